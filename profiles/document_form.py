"""HTML forms of documents: built from the model, parsed from POST data, changed by buttons.

A control is named by its path (`people.0.role`). Buttons that add, remove and move entries submit the whole form, which
comes back changed and unsaved, so no script is needed. Provenance is shown and not submitted: it is set to the operator
who changes an entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from django.http import QueryDict
from pydantic import BaseModel

from core.errors import FieldError
from core.sentences import told
from profiles.labels import Language, label
from profiles.schemas import MAX_ENTRIES
from profiles.shapes import choices, inner_type, item_of, model_of

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
    children: list[Node] = field(default_factory=list)
    provenance: str = ""

    @property
    def dom_id(self) -> str:
        return f"f-{self.path.replace('.', '-')}"

    @property
    def is_named(self) -> bool:
        return any(child.path == f"{self.path}.name" for child in self.children)


class Builder:
    """A builder of a document's controls. `errors` are named by path; `known` is the stored document."""

    def __init__(self, language: Language, errors: Sequence[FieldError], known: Mapping[str, Any]) -> None:
        self._language = language
        self._known = known
        self._errors: dict[str, list[str]] = {}
        for error in errors:
            self._errors.setdefault(error.field.removeprefix("content."), []).append(told(error.message))

    def nodes(self, model: type[BaseModel], values: Mapping[str, Any], prefix: str = "") -> list[Node]:
        return [
            self._node(info.annotation, name, f"{prefix}{name}", values.get(name))
            for name, info in model.model_fields.items()
            if name != "meta"
        ]

    def _node(self, annotation: Any, name: str, path: str, value: Any) -> Node:
        node = Node(path=path, label=label(name, self._language), control=_control(annotation))
        node.errors = self._errors.get(path, [])
        if node.control == "group":
            node.children = self.nodes(_model(annotation), value or {}, f"{path}.")
        elif node.control == "list":
            node.children = [self._item(annotation, name, path, place, item) for place, item in enumerate(value or [])]
        elif node.control in {"select", "days"}:
            node.options = self._options(annotation, value, with_none=node.control == "select")
        else:
            node.value = "" if value is None else value
            if node.control == "text":
                is_long = bool({"\n", "\r"} & set(str(node.value)))  # a text input would drop line breaks
                node.control = "area" if is_long else _TEXT_CONTROLS.get(name, "text")
        return node

    def _item(self, annotation: Any, name: str, path: str, place: int, value: Any) -> Node:
        item = get_args(inner_type(annotation))[0]
        node = self._node(item, name, f"{path}.{place}", value)
        node.label = f"{node.label} {place + 1}"
        if isinstance(value, Mapping) and value.get("name"):
            node.label = str(value["name"])
            node.provenance = self._provenance(path, value)
        return node

    def _provenance(self, path: str, value: Mapping[str, Any]) -> str:
        """Return the provenance of the stored entry of that name."""
        stored = self._known.get(path)
        found = [entry for entry in stored if entry["name"] == value["name"]] if isinstance(stored, list) else []
        meta = found[0].get("meta") if found else None
        if not meta or not meta["source"]:
            return ""
        parts = [label(meta["source"], self._language), meta["confidence"], (meta["last_updated_at"] or "")[:10]]
        return " · ".join(str(part) for part in parts if part not in {None, ""})

    def _options(self, annotation: Any, value: Any, *, with_none: bool) -> list[tuple[str, str, bool]]:
        words = choices(annotation) or choices(item_of(annotation))
        chosen = value if isinstance(value, list) else [value]
        options = [(word, label(word, self._language), word in chosen) for word in words]
        return [("", "", not any(option[2] for option in options)), *options] if with_none else options


def read(model: type[BaseModel], posted: QueryDict, prefix: str = "") -> Plain:
    """Return POST data as a document to validate. Nothing is refused here: an invalid number stays text."""
    return {
        name: _read(info.annotation, posted, f"{prefix}{name}")
        for name, info in model.model_fields.items()
        if name != "meta"
    }


def apply(model: type[BaseModel], document: Plain, action: str) -> Plain:
    """Apply a button's action: `add:people`, `remove:people.0`, `up:people.1` or `down:people.0`; ignore others."""
    verb, _, path = action.partition(":")
    entries, annotation, place = _entries(model, document, path, with_place=verb != "add")
    if entries is None:
        return document
    if verb == "add" and len(entries) < MAX_ENTRIES:
        entries.append({} if model_of(item_of(annotation)) else "")
    elif verb == "remove" and 0 <= place < len(entries):
        del entries[place]
    elif verb in {"up", "down"}:
        other = place + (1 if verb == "down" else -1)
        if min(place, other) >= 0 and max(place, other) < len(entries):
            entries[place], entries[other] = entries[other], entries[place]
    return document


def without_blanks(value: Any) -> Any:
    """Return the value without rows that were added and left empty, and without empty texts in lists."""
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
    model: type[BaseModel], document: Plain, path: str, *, with_place: bool
) -> tuple[list[Any] | None, Any, int]:
    """Return the list at the path, its annotation and the position in it; None if the document has no such list."""
    steps = path.split(".")
    place = _place(steps.pop()) if with_place else -1
    value: Any = document
    annotation: Any = model
    for step in steps:
        inner = model_of(annotation)
        if inner is not None and step in inner.model_fields and isinstance(value, dict):
            annotation, value = inner.model_fields[step].annotation, value.get(step)
        elif isinstance(value, list) and 0 <= _place(step) < len(value):
            annotation, value = item_of(annotation), value[_place(step)]
        else:
            return None, None, -1
    return (value, annotation, place) if isinstance(value, list) else (None, None, -1)


def _place(step: str) -> int:
    return int(step) if step.isdecimal() and len(step) < 6 else -1


def _read(annotation: Any, posted: QueryDict, path: str) -> Any:
    control = _control(annotation)
    if control == "group":
        return read(_model(annotation), posted, f"{path}.")
    if control == "list":
        count = _whole(posted.get(f"{path}.count", "0"))
        count = min(count, MAX_ENTRIES + 1) if isinstance(count, int) else 0
        item = get_args(inner_type(annotation))[0]
        return [_read(item, posted, f"{path}.{place}") for place in range(count)]
    if control == "days":
        return [day for day in posted.getlist(path) if day]
    text = posted.get(path, "").replace("\r\n", "\n")
    if control == "number":
        return _whole(text)
    return text if text or not _is_optional(annotation) else None


def _whole(text: str) -> int | str | None:
    """Return the number, or the text for the model to refuse."""
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


def _is_optional(annotation: Any) -> bool:
    return type(None) in get_args(annotation)


def _model(annotation: Any) -> type[BaseModel]:
    return cast("type[BaseModel]", model_of(annotation))
