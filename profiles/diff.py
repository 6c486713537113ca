"""Differences between two states of a document, as text."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from profiles.labels import Language, label
from profiles.prompts import window_text
from profiles.schemas import Content, Entry, TimeWindow

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in one field, whose path is `where`. An empty text means no value."""

    where: str
    before: str
    after: str


def differences(before: Content, after: Content, language: Language) -> list[Difference]:
    """Return the differences field by field, entries of lists by name, without provenance."""
    old, new = dict(_leaves(before, (), language)), dict(_leaves(after, (), language))
    return [
        Difference(" › ".join(path), old.get(path, ""), new.get(path, ""))
        for path in new | old
        if old.get(path, "") != new.get(path, "")
    ]


def _leaves(model: BaseModel, path: _Path, language: Language) -> Iterator[tuple[_Path, str]]:
    for field in type(model).model_fields:
        value, here = getattr(model, field), (*path, label(field, language))
        if field in {"meta", "name"}:
            continue  # covered by the list of names
        if isinstance(value, BaseModel):
            yield from _leaves(value, here, language)
        elif isinstance(value, list) and value and isinstance(value[0], Entry):
            yield here, ", ".join(entry.name for entry in value)
            counts: Counter[str] = Counter()
            for entry in value:
                counts[entry.name] += 1  # entries with the same name are numbered
                number = f" ({counts[entry.name]})" if counts[entry.name] > 1 else ""
                yield from _leaves(entry, (*here, f"{entry.name}{number}"), language)
        else:
            yield here, _text(value, language)


def _text(value: Any, language: Language) -> str:
    if isinstance(value, list):
        return "\n".join(_text(item, language) for item in value)
    if isinstance(value, TimeWindow):
        return window_text(value, language)
    return "" if value is None else str(value)
