"""Schemas of arguments that every MCP client and model provider reads, and the forms of arguments that models send.

Some clients refuse schemas with `$ref`, `anyOf`, null types or lookaheads in patterns. Some send numbers and lists as
text, names in camelCase, and null or empty text for what they leave out.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import orjson
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from core.errors import InvalidInput
from core.messages import Translatable as _

_KEPT: Final = (
    *("type", "description", "enum", "items", "properties", "required", "additionalProperties"),
    *("minimum", "maximum", "minItems", "maxItems", "maxLength", "default"),
)
"""Keywords that all known clients and providers accept."""
_LONGEST_TEXT: Final = 10_000
"""Models need no limit that is longer."""
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?")
_BOOLEANS: Final = {"true": True, "false": False}
_NOT_IN_NAMES: Final = re.compile(r"[_\-\s]")


class WithoutTitles(GenerateJsonSchema):
    """JSON Schema without a title for each field, which only repeats its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a model's arguments, without `$ref`, alternatives and null: optional is not required.

    Raises: `TypeError` for an argument with several types.
    """
    return plain(model.model_json_schema(schema_generator=WithoutTitles))


def plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema with its definitions in their places, and only keywords that all clients read."""
    return _plain(schema, schema.get("$defs", {}))


def _plain(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    merged = _merged(schema, definitions)
    found: dict[str, Any] = {keyword: merged[keyword] for keyword in _KEPT if keyword in merged}
    empty: dict[str, tuple[Any, ...]] = {"default": (None, "", []), "additionalProperties": (True,)}
    found = {keyword: value for keyword, value in found.items() if value not in empty.get(keyword, ())}
    if found.get("maxLength", 0) > _LONGEST_TEXT:
        del found["maxLength"]
    if "items" in found:
        found["items"] = _plain(found["items"], definitions)
        if "properties" in found["items"]:
            found["items"].pop("description", None)  # that of the list tells it
    if "properties" in found:
        found["properties"] = {name: _plain(part, definitions) for name, part in found["properties"].items()}
    return found


def _merged(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with its definition or its one alternative beside null. Raises: `TypeError` for several."""
    merged = dict(schema)
    if (name := merged.pop("$ref", None)) is not None:
        merged = {**definitions[name.rpartition("/")[2]], **merged}
    options = [option for option in merged.pop("anyOf", []) if option.get("type") != "null"]
    if len(options) > 1:
        raise TypeError(f"An argument must have one type: {options}")
    for option in options:
        merged = {**_merged(option, definitions), **merged}
    if "const" in merged:
        merged["enum"] = [merged["const"]]
    return merged


def accepted(model: type[BaseModel], arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return arguments as the schema writes them, and a note on each number that was brought into its range.

    Null counts as absent. What still does not fit the schema stays, for the model to refuse.
    Raises: `InvalidInput` for an argument that is given in two spellings with different values.
    """
    notes: list[str] = []
    found: dict[str, Any] = _object(schema_of(model), arguments, "", notes)
    required = schema_of(model).get("required", [])
    # Providers that make every argument required let the model send empty text for it.
    return {name: value for name, value in found.items() if value != "" or name in required}, notes


def _object(schema: Mapping[str, Any], given: Mapping[str, Any], path: str, notes: list[str]) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema["properties"]
    spellings = {_spelling(name): name for name in properties}
    found: dict[str, Any] = {}
    for written, value in given.items():
        name = written if written in properties else spellings.get(_spelling(written), written)
        if value is None:
            continue
        read = _value(properties.get(name, {}), value, f"{path}{name}", notes)
        if name in found and found[name] != read:
            raise InvalidInput.of_field(f"{path}{name}", _("is given twice with different values: send it once"))
        found[name] = read
    return found


def _spelling(name: str) -> str:
    return _NOT_IN_NAMES.sub("", name).lower()


def _value(schema: Mapping[str, Any], value: Any, path: str, notes: list[str]) -> Any:
    kind = schema.get("type")
    if isinstance(value, str) and kind != "string":
        value = _read(kind, value)
    if kind == "array" and isinstance(value, dict | str) and value:
        value = [value]
    if kind == "object" and "properties" in schema and isinstance(value, dict):
        return _object(schema, value, f"{path}.", notes)
    if kind == "array" and isinstance(value, list):
        return [_value(schema["items"], item, f"{path}.{index}", notes) for index, item in enumerate(value)]
    if kind in {"integer", "number"} and isinstance(value, int | float) and not isinstance(value, bool):
        return _within(schema, value, path, notes)
    return value


def _read(kind: str | None, text: str) -> Any:
    """Return the value that a text stands for, where a number, truth value, list or object belongs; else the text."""
    if kind in {"integer", "number"} and _NUMBER.fullmatch(text.strip()):
        number = float(text)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if kind == "boolean":
        return _BOOLEANS.get(text.strip().lower(), text)
    if kind in {"array", "object"} and text.lstrip().startswith(("[", "{")):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text


def _within(schema: Mapping[str, Any], number: float, path: str, notes: list[str]) -> float:
    """Return a number within its limits. Only those with a smallest value are limits; the others are times."""
    if "minimum" not in schema:
        return number
    used: float = min(max(number, schema["minimum"]), schema.get("maximum", number))
    if used != number:
        word = "smallest" if used > number else "largest"
        notes.append(f"{path}: {number:g} is out of range; {used:g}, the {word} value, was used.")
    return used
