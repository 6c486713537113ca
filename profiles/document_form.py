"""HTML forms of documents: built from the model, parsed from POST data, changed by buttons.

A control is named by its path (`people.0.role`). Buttons that add, remove and move entries submit the whole form and
return it changed and unsaved, without a script. Provenance is shown only: a change sets it to the operator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from django.http import QueryDict
from pydantic import BaseModel

from core.errors import FieldError
from core.localization import localized
from profiles.labels import Language, label
from profiles.schemas import MAX_ENTRIES, choices, inner_type, item_of, model_of

Plain = dict[str, Any]
Control = Literal["text", "area", "number", "date", "time", "select", "days", "group", "list"]
_TEXT_CONTROLS: dict[str, Control] = {
    "deadline": "date",
    "description": "area",
    "due_date": "date",
    "end": "time",
    "notes": "area",
    "start": "time",
    "team_context": "area",
}


@dataclass(kw_only=True)
class Node:
    """A control or a group of controls. `options` are (value, label, is chosen)."""

    path: str
    label: str
    control: Control
    value: Any = ""
    errors: list[str] = field(default_factory=list)
    options: list[tuple[str, str, bool]] = field(default_factory=list)
    children: list["Node"] = field(default_factory=list)
    provenance: str = ""

    @property
    def dom_id(self) -> str:
        return f"f-{self.path.replace('.', '-')}"

    @property
    def is_named(self) -> bool:
        return any(child.path == f"{self.path}.name" for child in self.children)


class Builder:
    """A builder of a document's controls. `errors` name paths; `known` is the stored document."""

    def __init__(self, language: Language, errors: Sequence[FieldError], known: Mapping[str, Any]) -> None:
        self._language = language
        self._known = known
        self._errors: dict[str, list[str]] = {}
        for error in errors:
            self._errors.setdefault(error.field.removeprefix("content."), []).append(localized(error.message))

    def nodes(self, model: type[BaseModel], values: Mapping[str, Any], prefix: str = "") -> list[Node]:
        return [
            self._node(info.annotation, name, f"{prefix}{name}", values.get(name))
            for name, info in model.model_fields.items()
            if name != "meta"
        ]

    def _node(self, annotation: Any, name: str, path: str, value: Any) -> Node:
        node = Node(path=path, label=label(name, self._language), control=_control(annotation))
        node.errors = self._errors.get(path, [])
        if (model := model_of(annotation)) is not None:
            node.children = self.nodes(model, value or {}, f"{path}.")
        elif node.control == "list":
            item_type = get_args(inner_type(annotation))[0]
            for index, item in enumerate(value or []):
                child = self._node(item_type, name, f"{path}.{index}", item)
                child.label = f"{child.label} {index + 1}"
                if isinstance(item, Mapping) and item.get("name"):
                    child.label, child.provenance = str(item["name"]), self._provenance(path, item["name"])
                node.children.append(child)
        elif node.control in {"select", "days"}:
            values = choices(annotation) or choices(item_of(annotation))
            chosen = value if isinstance(value, list) else [value]
            node.options = [(word, label(word, self._language), word in chosen) for word in values]
            if node.control == "select":
                node.options.insert(0, ("", "", not any(is_chosen for _word, _label, is_chosen in node.options)))
        else:
            node.value = "" if value is None else value
            if node.control == "text":
                is_long = bool({"\n", "\r"} & set(str(node.value)))  # a text input would drop line breaks
                node.control = "area" if is_long else _TEXT_CONTROLS.get(name, "text")
        return node

    def _provenance(self, path: str, name: Any) -> str:
        """Return the provenance of the stored entry of that name."""
        stored = self._known.get(path)
        entries = stored if isinstance(stored, list) else []
        meta = next((entry.get("meta") for entry in entries if entry["name"] == name), None)
        if not meta or not meta["source"]:
            return ""
        parts = [label(meta["source"], self._language), meta["confidence"], (meta["last_updated_at"] or "")[:10]]
        return " · ".join(str(part) for part in parts if part not in {None, ""})


def read(model: type[BaseModel], posted: QueryDict, prefix: str = "") -> Plain:
    """Return POST data as a document, not validated: an invalid number stays text."""
    return {
        name: _read(info.annotation, posted, f"{prefix}{name}")
        for name, info in model.model_fields.items()
        if name != "meta"
    }


def apply(model: type[BaseModel], document: Plain, action: str) -> Plain:
    """Apply a button's action: `add:people`, `remove:people.0`, `up:people.1` or `down:people.0`; ignore others."""
    verb, _, path = action.partition(":")
    entries, annotation, index = _entries(model, document, path, with_index=verb != "add")
    if entries is None:
        return document
    if verb == "add" and len(entries) < MAX_ENTRIES:
        entries.append({} if model_of(item_of(annotation)) else "")
    elif verb == "remove" and 0 <= index < len(entries):
        del entries[index]
    elif verb in {"up", "down"}:
        target = index + (1 if verb == "down" else -1)
        if min(index, target) >= 0 and max(index, target) < len(entries):
            entries[index], entries[target] = entries[target], entries[index]
    return document


def without_blanks(value: Any) -> Any:
    """Return the value without empty entries and empty texts of lists."""
    if isinstance(value, dict):
        return {key: without_blanks(part) for key, part in value.items()}
    if isinstance(value, list):
        return [without_blanks(part) for part in value if not _is_blank(part)]
    return value


def _is_blank(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_blank(part) for part in value.values())
    if isinstance(value, list):
        return all(_is_blank(part) for part in value)
    return value in {None, ""}


def _entries(
    model: type[BaseModel], document: Plain, path: str, *, with_index: bool
) -> tuple[list[Any] | None, Any, int]:
    """Return the list at the path, its annotation and the position in it; None if the document has no such list."""
    steps = path.split(".")
    index = _index(steps.pop()) if with_index else -1
    value: Any = document
    annotation: Any = model
    for step in steps:
        inner = model_of(annotation)
        if inner is not None and step in inner.model_fields and isinstance(value, dict):
            annotation, value = inner.model_fields[step].annotation, value.get(step)
        elif isinstance(value, list) and 0 <= _index(step) < len(value):
            annotation, value = item_of(annotation), value[_index(step)]
        else:
            return None, None, -1
    return (value, annotation, index) if isinstance(value, list) else (None, None, -1)


def _index(step: str) -> int:
    return int(step) if step.isdecimal() and len(step) < 6 else -1


def _read(annotation: Any, posted: QueryDict, path: str) -> Any:
    control = _control(annotation)
    if (model := model_of(annotation)) is not None:
        return read(model, posted, f"{path}.")
    if control == "list":
        count = _whole(posted.get(f"{path}.count", "0"))
        count = min(count, MAX_ENTRIES + 1) if isinstance(count, int) else 0
        item = get_args(inner_type(annotation))[0]
        return [_read(item, posted, f"{path}.{index}") for index in range(count)]
    if control == "days":
        return [day for day in posted.getlist(path) if day]
    text = posted.get(path, "").replace("\r\n", "\n")
    if control == "number":
        return _whole(text)
    return text if text or type(None) not in get_args(annotation) else None


def _whole(text: str) -> int | str | None:
    """Return the number; a text that is no number unchanged, for the model to refuse."""
    if not text.strip():
        return None
    return int(text) if text.strip().isdecimal() and len(text) < 10 else text


def _control(annotation: Any) -> Control:
    if model_of(annotation) is not None:
        return "group"
    if choices(item_of(annotation)):
        return "days"
    if item_of(annotation) is not None:
        return "list"
    if choices(annotation):
        return "select"
    return "number" if inner_type(annotation) is int else "text"
