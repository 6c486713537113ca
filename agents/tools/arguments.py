"""Arguments of the tools: leniently parsed, because models write them, and their JSON schemas."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from core.errors import InvalidInput
from core.ids import has_surrogates
from core.rest import invalid_input
from memories.services.manual import MAX_TEXT_CHARS
from store.categories import CATEGORIES

MAX_LIMIT: Final = 30
_Arguments = TypeVar("_Arguments", bound="Arguments")


def check_text(value: str) -> str:
    if "\x00" in value or has_surrogates(value):
        raise ValueError("must not hold NUL or half characters")
    return value


def _check_category(value: str) -> str:
    if value not in CATEGORIES:
        raise ValueError(f"must be one of {', '.join(CATEGORIES)}")
    return value


def _within_limit(value: object) -> object:
    """Clamp a number to the allowed range of whole numbers."""
    return int(min(max(value, 1), MAX_LIMIT)) if isinstance(value, float | int) and not isnan(value) else value


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


Text = Annotated[str, AfterValidator(check_text)]
Category = Annotated[str, AfterValidator(_check_category)]


class Arguments(BaseModel):
    """Numbers are clamped to their range; unknown arguments are ignored."""

    model_config = ConfigDict(extra="ignore")


class RecallArguments(Arguments):
    query: Text = ""
    limit: Annotated[int, BeforeValidator(_within_limit)] = MAX_LIMIT


class StoreArguments(Arguments):
    text: Text = ""
    importance: Annotated[
        float, Field(allow_inf_nan=False), AfterValidator(lambda value: min(max(value, 0.0), 1.0))
    ] = 0.7
    category: Category = CATEGORIES[0]


class ForgetArguments(Arguments):
    memory_id: Annotated[Text, Field(alias="memoryId")] = ""
    query: Text = ""


def read(model: type[_Arguments], arguments: Mapping[str, Any]) -> _Arguments:
    """Parse arguments; null counts as absent. Raises: `InvalidInput` naming every invalid one."""
    if not isinstance(arguments, Mapping):
        raise InvalidInput.of_field("args", "must be an object")
    try:
        return model.model_validate({name: value for name, value in arguments.items() if value is not None})
    except ValidationError as error:
        raise invalid_input(error) from None


DESCRIPTIONS: Final[dict[str, dict[str, Any]]] = {
    "memory_recall": {
        "description": "Find what is remembered of the user: preferences, facts, decisions, lessons, earlier "
        "conversations and documents. Each memory comes with its id.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, in any language."},
                "limit": {
                    "type": "number",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "default": MAX_LIMIT,
                    "description": "At most so many memories.",
                },
            },
            "required": ["query"],
        },
    },
    "memory_store": {
        "description": "Remember something for later. What is remembered in the same words already is updated.",
        "parameters": {
            "type": "object",
            "properties": {
                "text": {
                    "type": "string",
                    "maxLength": MAX_TEXT_CHARS,
                    "description": "What to remember, one thing at a time, understandable without its context.",
                },
                "importance": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.7},
                "category": {"type": "string", "enum": list(CATEGORIES), "default": CATEGORIES[0]},
            },
            "required": ["text"],
        },
    },
    "memory_forget": {
        "description": "Forget a memory by its id, or look for it: a question that means one memory without doubt "
        "forgets it, any other lists candidates with their ids.",
        "parameters": {
            "type": "object",
            "properties": {
                "memoryId": {"type": "string", "description": "The id that memory_recall shows."},
                "query": {"type": "string", "description": "What the memory says, if its id is not known."},
            },
        },
    },
}
"""Description and JSON schema of the parameters by tool name."""
