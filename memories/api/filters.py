"""What the schema says of `filters`. They are read by `store.filters`; nothing is ever parsed by these types."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, with_config
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from store.filters import MAX_LIST, MAX_MS

_OBJECT = ConfigDict(extra="forbid", json_schema_extra={"minProperties": 1})

_Text = Annotated[str, Field(max_length=512)]
_Texts = Annotated[list[_Text], Field(min_length=1, max_length=MAX_LIST)]
_Milliseconds = Annotated[int, Field(ge=0, le=MAX_MS)]
_Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
_Time = _Milliseconds | _Moment
_Times = Annotated[list[_Time], Field(min_length=1, max_length=MAX_LIST)]

# Not classes: `in` is no name that a class could have.
TextComparison = TypedDict(
    "TextComparison",
    {"eq": _Text, "ne": _Text, "gt": _Text, "gte": _Text, "lt": _Text, "lte": _Text, "in": _Texts},
    total=False,
)
TimeComparison = TypedDict(
    "TimeComparison",
    {"eq": _Time, "ne": _Time, "gt": _Time, "gte": _Time, "lt": _Time, "lte": _Time, "in": _Times},
    total=False,
)
SenderComparison = TypedDict("SenderComparison", {"eq": _Text, "in": _Texts}, total=False)
TypeComparison = TypedDict("TypeComparison", {"eq": _Text, "ne": _Text, "in": _Texts}, total=False)
for _comparison in (TextComparison, TimeComparison, SenderComparison, TypeComparison):
    with_config(_OBJECT)(_comparison)


@with_config(ConfigDict(extra="forbid"))
class SearchFilter(TypedDict, total=False):
    """Conditions that hold together. A plain value means equal; times are Unix milliseconds or ISO 8601."""

    AND: list[SearchFilter]
    OR: list[SearchFilter]
    session_id: _Text | TextComparison
    parent_type: _Text | TextComparison
    parent_id: _Text | TextComparison
    timestamp: _Time | TimeComparison
    sender_id: _Text | SenderComparison
    type: _Text | TypeComparison


class FilterTree:
    """Marks plain JSON data that the schema describes as `SearchFilter`: `Annotated[dict[str, Any], FilterTree]`."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(TypeAdapter(SearchFilter).core_schema)
