"""Provenance of entries: an entry written without `meta` gets its writer's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from accounts.audit import Actor
from accounts.models import AuditEvent
from core.times import isoformat
from profiles.schemas import Content, Entry, EntryMeta, MemorySource
from profiles.shapes import entry_model

_SOURCES: dict[str, MemorySource] = {
    AuditEvent.ActorKind.KEY: "user_stated",
    AuditEvent.ActorKind.OPERATOR: "operator",
}
AGENT_CONFIDENCE = 0.7


def meta_of(actor: Actor, agent_id: str, now: datetime) -> EntryMeta:
    """Return the provenance of an entry written without one: inferred if an agent wrote it, else stated."""
    if agent_id:
        return EntryMeta(source="agent_inferred", confidence=AGENT_CONFIDENCE, last_updated_at=isoformat(now))
    return EntryMeta(source=_SOURCES.get(actor.kind, "import"), confidence=1.0, last_updated_at=isoformat(now))


def fill_in(content: Content, before: Content, meta: EntryMeta) -> None:
    """Set `meta` of entries that lack it: the previous one if the entry is unchanged, else the writer's."""
    for field, info in type(content).model_fields.items():
        model = entry_model(info.annotation)
        if model is not None and "meta" in model.model_fields:
            known = {_content_json(entry): vars(entry)["meta"] for entry in getattr(before, field)}
            for entry in getattr(content, field):
                if "meta" not in entry.model_fields_set:
                    entry.meta = known.get(_content_json(entry), meta)


def _content_json(entry: Entry) -> str:
    content: Any = entry.model_dump_json(exclude={"meta"})
    return str(content)
