"""Tags and metadata that callers give memories and files: their limits, and their types in schemas."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import orjson
from pydantic import AfterValidator, Field, StringConstraints

from core.messages import Translatable as _
from core.storable import NotStorable, check_json, check_text

MAX_TAGS: Final = 32
MAX_TAG_CHARS: Final = 100
MAX_METADATA_BYTES: Final = 16 * 1024
MAX_METADATA_DEPTH: Final = 3
MAX_METADATA_VALUES: Final = 1000
MAX_KEY_CHARS: Final = 100
MAX_EXTERNAL_ID_CHARS: Final = 255


def check_tags(tags: Sequence[str]) -> list[str]:
    """Return the tags without spaces around them, each once. Raises: ValueError."""
    stripped = [tag.strip() for tag in tags]
    if not all(0 < len(tag) <= MAX_TAG_CHARS for tag in stripped):
        raise ValueError(_("each must be 1 to %(number)s characters", number=MAX_TAG_CHARS))
    for tag in stripped:
        check_text(tag)
    found = list(dict.fromkeys(stripped))
    if len(found) > MAX_TAGS:
        raise ValueError(_("must be at most %(number)s", number=MAX_TAGS))
    return found


def check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return valid metadata. Raises: ValueError."""
    check_json(metadata)
    if len(orjson.dumps(metadata)) > MAX_METADATA_BYTES:
        raise ValueError(_("must be at most %(number)s bytes of JSON", number=MAX_METADATA_BYTES))
    if _count_values(metadata, MAX_METADATA_DEPTH) > MAX_METADATA_VALUES:
        raise ValueError(_("must hold at most %(number)s values", number=MAX_METADATA_VALUES))
    return metadata


def _count_values(value: Any, depth_left: int) -> int:
    """Return the number of values. Raises: ValueError for a wrong key, and below the deepest level."""
    if not isinstance(value, dict | list):
        return 1
    if depth_left == 0:
        raise ValueError(_("must nest at most %(number)s levels deep", number=MAX_METADATA_DEPTH))
    if isinstance(value, dict) and not all(0 < len(key) <= MAX_KEY_CHARS for key in value):
        raise ValueError(_("keys must be 1 to %(number)s characters", number=MAX_KEY_CHARS))
    items = value.values() if isinstance(value, dict) else value
    return 1 + sum(_count_values(item, depth_left - 1) for item in items)


def check_external_id(value: str) -> str:
    """Return a valid id of another application. Raises: ValueError."""
    if not value.strip() or len(value) > MAX_EXTERNAL_ID_CHARS:
        raise ValueError(_("must be 1 to %(number)s characters", number=MAX_EXTERNAL_ID_CHARS))
    check_text(value)
    return value


def _checked(check: Any) -> AfterValidator:
    """Return the validator of a field, whose message is that of a value that cannot be stored too."""

    def validate(value: Any) -> Any:
        try:
            return check(value)
        except NotStorable as error:
            raise ValueError(error.message) from None

    return AfterValidator(validate)


Tag = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=MAX_TAG_CHARS)]
Tags = Annotated[list[Tag], Field(max_length=MAX_TAGS), _checked(check_tags)]
Metadata = Annotated[dict[str, Any], _checked(check_metadata)]
ExternalId = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=MAX_EXTERNAL_ID_CHARS), _checked(check_external_id)
]
