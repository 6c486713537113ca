"""Merging of a part into a document: JSON Merge Patch (RFC 7396), with entries of lists matched by name."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from core.errors import Conflict, InvalidInput
from core.messages import Translatable as _
from profiles.schemas import MAX_ENTRIES, Entry, item_of, model_of

REMOVE = "$remove"
Plain = dict[str, Any]


def merge(model: type[BaseModel], current: Mapping[str, Any], patch: Any, *, merge_lists: bool, path: str) -> Plain:
    """Return the document (or part of one) with the patch applied, not yet validated.

    null resets a field to its default, also in entries of lists. With `merge_lists`, an entry changes the entry of the
    same name, or is added; an entry with `"$remove": true` is removed.

    Raises: `InvalidInput` for unknown fields and entries without a name, `Conflict` if several entries have the name.
    """
    if not isinstance(patch, Mapping):
        raise InvalidInput.of_field(path, _("must be an object"))
    merged = dict(current)
    for field, value in patch.items():
        field_path = f"{path}.{field}"
        if field not in model.model_fields:
            raise InvalidInput.of_field(
                field_path, _("is not a field; the fields are %(names)s", names=", ".join(model.model_fields))
            )
        if value is None:
            merged.pop(field, None)
        else:
            annotation = model.model_fields[field].annotation
            merged[field] = _merged_value(
                annotation, merged.get(field), value, merge_lists=merge_lists, path=field_path
            )
    return merged


def _merged_value(annotation: Any, current: Any, value: Any, *, merge_lists: bool, path: str) -> Any:
    inner, item = model_of(annotation), model_of(item_of(annotation))
    if inner is not None:
        return merge(inner, current or {}, value, merge_lists=merge_lists, path=path)
    if item is None or not isinstance(value, list):
        return value
    if len(value) > MAX_ENTRIES:
        raise InvalidInput.of_field(path, _("must have at most %(number)s entries", number=MAX_ENTRIES))
    if merge_lists and issubclass(item, Entry):
        merged = list(current or [])
        for index, part in enumerate(value):
            _merge_entry(item, merged, part, f"{path}.{index}")
        return merged
    return [merge(item, {}, part, merge_lists=False, path=f"{path}.{index}") for index, part in enumerate(value)]


def _merge_entry(model: type[Entry], entries: list[Plain], patch: Any, path: str) -> None:
    if not isinstance(patch, Mapping) or not isinstance(patch.get("name"), str):
        raise InvalidInput.of_field(f"{path}.name", _("is required"))
    is_removed = patch.get(REMOVE, False)
    if not isinstance(is_removed, bool):
        raise InvalidInput.of_field(f"{path}.{REMOVE}", _("must be true or false"))
    indexes = [index for index, entry in enumerate(entries) if entry["name"] == patch["name"]]
    fields = {field: value for field, value in patch.items() if field != REMOVE}
    if is_removed:
        merge(model, {}, fields, merge_lists=True, path=path)  # refuses unknown fields
        for index in reversed(indexes):
            del entries[index]
        return
    if len(indexes) > 1:
        raise Conflict(
            _("%(path)s: several entries have this name; send the whole list without merge_lists.", path=path)
        )
    before = entries[indexes[0]] if indexes else {}
    after = merge(model, before, fields, merge_lists=True, path=path)
    if not indexes:
        entries.append(after)
        return
    is_changed = any(after.get(field) != before.get(field) for field in before.keys() | after.keys() - {"meta"})
    if is_changed and after.get("meta") == before.get("meta"):
        after.pop("meta", None)  # the provenance of the old content
    entries[indexes[0]] = after
