"""Arguments of the tools. OpenClaw ignores unknown ones; MCP refuses them, and takes the forms that models send."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Annotated, Any, Final, Self, TypeVar

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from agents.tools.argument_forms import accepted
from agents.tools.budget import LARGEST_MAX_TOKENS, MAX_TOKENS, SMALLEST_MAX_TOKENS
from agents.tools.time_arguments import Expires
from core.errors import FieldError, InvalidInput
from core.labels import Metadata, Tags, check_external_id
from core.messages import Translatable as _
from core.rest import WHOLE, invalid_input
from core.storable import check_text
from memories.services.manual import MAX_TEXT_CHARS
from profiles.schemas import item_of, model_of
from store.categories import CATEGORIES, MEANINGS

MAX_LIMIT: Final = 30
DEFAULT_IMPORTANCE: Final = 0.7
_Arguments = TypeVar("_Arguments", bound="Arguments")


def _check_category(value: str) -> str:
    if value not in CATEGORIES:
        raise ValueError(f"must be one of {', '.join(CATEGORIES)}")
    return value


def _within_limit(value: object) -> object:
    """Clamp a number to the allowed range of whole numbers."""
    return int(min(max(value, 1), MAX_LIMIT)) if isinstance(value, float | int) and not isnan(value) else value


def _separated(value: object) -> object:
    """Return the tags of a text, or of a list with one text, that separates them by commas."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        return value
    return [tag for tag in (part.strip() for part in value.replace("，", ",").split(",")) if tag]


def _read_object(value: object) -> object:
    """Return the object that a text of JSON holds; any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value) if value.strip() else {}
    except orjson.JSONDecodeError:
        return value


def _check_external_id(value: str) -> str:
    return check_external_id(value) if value else value


Text = Annotated[str, AfterValidator(check_text)]
Whole = Annotated[int, WHOLE]
CategoryName = Annotated[str, AfterValidator(_check_category), Field(json_schema_extra={"enum": list(CATEGORIES)})]
DESCRIBED_CATEGORIES: Final = "; ".join(f"`{category}`: {meaning}" for category, meaning in MEANINGS.items())


class Arguments(BaseModel):
    """Base class of tool arguments. OpenClaw ignores unknown ones. `notes` tell the model what was changed."""

    model_config = ConfigDict(extra="ignore")

    _notes: list[str] = PrivateAttr(default_factory=list)

    @property
    def notes(self) -> list[str]:
        return self._notes


class StrictArguments(Arguments):
    """Base class of the arguments of MCP tools, which refuse unknown ones, and numbers and lists only if unclear."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="wrap")
    @classmethod
    def _accept_forms(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        arguments, notes = accepted(cls, given)
        read_model = handler(arguments)
        read_model._notes = notes  # noqa: SLF001
        return read_model


def _within_budget(value: object) -> object:
    """Clamp a number of tokens to the allowed range."""
    limits = SMALLEST_MAX_TOKENS, LARGEST_MAX_TOKENS
    return int(min(max(value, limits[0]), limits[1])) if isinstance(value, float | int) and not isnan(value) else value


MAX_TOKENS_FIELD: Final = Field(
    MAX_TOKENS,
    ge=SMALLEST_MAX_TOKENS,
    le=LARGEST_MAX_TOKENS,
    description="The maximum length of the answer, in estimated tokens. Long memories are cut, the last left out.",
)


class RecallArguments(Arguments):
    model_config = ConfigDict(json_schema_extra={"required": ["query"]})

    query: Text = Field("", description="What to search for, in any language.")
    limit: Annotated[int, BeforeValidator(_within_limit)] = Field(
        MAX_LIMIT,
        description="The maximum number of memories.",
        json_schema_extra={"type": "number", "minimum": 1, "maximum": MAX_LIMIT},
    )
    max_tokens: Annotated[int, BeforeValidator(_within_budget)] = MAX_TOKENS_FIELD


class StoreArguments(Arguments):
    model_config = ConfigDict(json_schema_extra={"required": ["text"]})

    text: Text = Field(
        "",
        description="The text to remember. Store one thing at a time, in words that need no context.",
        json_schema_extra={"maxLength": MAX_TEXT_CHARS},
    )
    importance: Annotated[float, AfterValidator(lambda value: min(max(value, 0.0), 1.0))] = Field(
        DEFAULT_IMPORTANCE,
        allow_inf_nan=False,
        description="How important it is, 1 for most important.",
        json_schema_extra={"minimum": 0, "maximum": 1},
    )
    category: CategoryName = Field(CATEGORIES[0], description=f"The kind of memory. {DESCRIBED_CATEGORIES}.")
    tags: Annotated[Tags, BeforeValidator(_separated)] = Field([], description="Words to find it by.")
    metadata: Annotated[Metadata, BeforeValidator(_read_object)] = Field({}, description="Data about it: small JSON.")
    external_id: Annotated[str, AfterValidator(_check_external_id)] = Field(
        "", description="Your own id of the fact: storing it again with this id changes it."
    )
    expires_at: Expires = None


class ForgetArguments(Arguments):
    memory_id: Text = Field("", alias="memoryId", description="The id of the memory, from memory_recall.")
    query: Text = Field("", description="The text of the memory, if you do not know its id.")


def read(model: type[_Arguments], arguments: Mapping[str, Any]) -> _Arguments:
    """Parse arguments; null counts as absent. Raises: `InvalidInput` with every invalid argument."""
    if not isinstance(arguments, Mapping):
        raise InvalidInput.of_field("args", "must be an object")
    try:
        return model.model_validate({name: value for name, value in arguments.items() if value is not None})
    except ValidationError as error:
        unknown = {item["loc"] for item in error.errors(include_url=False) if item["type"] == "extra_forbidden"}
        known = {".".join(map(str, path)): _names(model, path[:-1]) for path in unknown}
        found = [
            FieldError(item.field, _("is not an argument; the arguments are %(names)s", names=known[item.field]))
            if item.field in known
            else item
            for item in invalid_input(error).errors
        ]
        raise InvalidInput.of_fields(found) from None


def _names(model: type[BaseModel], path: Sequence[int | str]) -> str:
    """Return the names of the arguments at a path, such as ("messages", 0)."""
    for part in path:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            model = model_of(item_of(annotation)) or model_of(annotation) or model
    return ", ".join(argument_names(model))


def argument_names(model: type[BaseModel]) -> list[str]:
    """Return the names of a tool's arguments, as callers write them."""
    return [field.alias or name for name, field in model.model_fields.items()]
