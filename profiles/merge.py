"""Merging of a part into a document: JSON Merge Patch (RFC 7396), with entries of lists matched by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from core.errors import Conflict, InvalidInput
from profiles.schemas import MAX_ENTRIES, Entry
from profiles.shapes import item_of, model_of

REMOVE = "$remove"
Plain = dict[str, Any]


def merge(model: type[BaseModel], current: Mapping[str, Any], patch: Any, *, merge_lists: bool, path: str) -> Plain:
    """Return the document (or part of one) with the patch applied, not yet validated.

    null resets a field to its default, also in entries of lists. With `merge_lists` an entry of a named list changes
    the entry of its name, or is added; an entry with `"$remove": true` is removed.

    Raises: `InvalidInput` for entries that are unknown or have no name, `Conflict` if several entries have the name.
    """
    if not isinstance(patch, Mapping):
        raise InvalidInput.of_field(path, "must be an object")
    merged = dict(current)
    for field, value in patch.items():
        place = f"{path}.{field}"
        if field not in model.model_fields:
            raise InvalidInput.of_field(place, "is not a field of this document")
        if value is None:
            merged.pop(field, None)
        else:
            annotation = model.model_fields[field].annotation
            merged[field] = _merged_value(annotation, merged.get(field), value, merge_lists=merge_lists, path=place)
    return merged


def _merged_value(annotation: Any, current: Any, value: Any, *, merge_lists: bool, path: str) -> Any:
    inner, item = model_of(annotation), model_of(item_of(annotation))
    if inner is not None:
        return merge(inner, current or {}, value, merge_lists=merge_lists, path=path)
    if item is None or not isinstance(value, list):
        return value
    if len(value) > MAX_ENTRIES:
        raise InvalidInput.of_field(path, f"must hold at most {MAX_ENTRIES} entries")
    if merge_lists and issubclass(item, Entry):
        return _merge_entries(item, current or [], value, path)
    return [merge(item, {}, part, merge_lists=False, path=f"{path}.{place}") for place, part in enumerate(value)]


def _merge_entries(model: type[Entry], current: list[Plain], patches: list[Any], path: str) -> list[Plain]:
    merged = list(current)
    for number, patch in enumerate(patches):
        _merge_entry(model, merged, patch, f"{path}.{number}")
    return merged


def _merge_entry(model: type[Entry], entries: list[Plain], patch: Any, path: str) -> None:
    name, is_removed, rest = _read_entry(patch, path)
    places = [place for place, entry in enumerate(entries) if entry["name"] == name]
    if is_removed:
        for place in reversed(places):
            del entries[place]
    elif len(places) > 1:
        raise Conflict(f"{path}: several entries have this name; send the whole list without merge_lists.")
    elif places:
        entries[places[0]] = _changed(
            entries[places[0]], merge(model, entries[places[0]], rest, merge_lists=True, path=path)
        )
    else:
        entries.append(merge(model, {}, rest, merge_lists=True, path=path))


def _changed(before: Plain, after: Plain) -> Plain:
    """Return the changed entry; without new provenance, a change of content drops the old one."""
    is_new = any(after.get(field) != before.get(field) for field in before.keys() | after.keys() - {"meta"})
    if is_new and after.get("meta") == before.get("meta"):
        return {field: value for field, value in after.items() if field != "meta"}
    return after


def _read_entry(patch: Any, path: str) -> tuple[str, bool, Plain]:
    """Return an entry's name, True if it is to be removed, and its fields."""
    if not isinstance(patch, Mapping) or not isinstance(patch.get("name"), str):
        raise InvalidInput.of_field(f"{path}.name", "is required")
    is_removed = patch.get(REMOVE, False)
    if not isinstance(is_removed, bool):
        raise InvalidInput.of_field(f"{path}.{REMOVE}", "must be true or false")
    return patch["name"], is_removed, {key: value for key, value in patch.items() if key != REMOVE}
