"""One session out of an upstream's keeping into ours: what was said, word for word, with what was decided about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from core.errors import Unreadable
from engines.port import Replay
from engines.registry import local_engine
from memories.services import lookup
from operations.moves.replacement import Change, replace
from operations.moves.result import Changed, Moved, Note, owner_of
from resources.models import Resource
from resources.services.ingestion import message_of
from store.external import journal, residue
from store.external.staging import fresh_engine_id
from store.models import Memory, Session
from store.types import Message


@dataclass(frozen=True, slots=True)
class _Source:
    """What the table holds of an upstream's session: what it was told, of `wordless` only that it was, and our copies
    of what it made."""

    told: Sequence[Memory]
    wordless: Sequence[Memory]
    made: Sequence[Memory]

    @property
    def keys(self) -> set[tuple[int, str]]:
        return {(row.pk, row.batch_id) for row in (*self.told, *self.wordless, *self.made)}


def move(session: Session, note: Note) -> Moved:
    """Replays the session's journal or file here and takes over the rest. One transaction makes the new memories,
    carries the decisions and removes the old ones; `note(moved)` runs inside it.

    Errors: `Changed`, and `EngineUnavailable` where a file cannot be fetched now.
    """
    owner = owner_of(session)
    source, engine = _source(session), local_engine()
    replays = [
        engine.replay(owner, session.session_id, message, batch_id)
        for message, batch_id in _journalled_messages(session, source)
    ]
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        held = Session.objects.select_for_update().get(pk=session.pk)
        if held.deleted_at is not None:
            return Moved()
        before, source = source, _source(held)
        if source.keys != before.keys:
            raise Changed("Somebody wrote to the session while it was moved.")
        moved = replace(owner, held, Change(source.made, replays, _not_replayed(source, replays), source.told))
        _leave_upstream(held)
        note(moved)
    return moved


def _source(session: Session) -> _Source:
    rows = list(Memory.objects.filter(session=session, origin=Memory.Origin.UPSTREAM).order_by("pk"))
    said = [row for row in rows if row.memory_type == Memory.Type.UNPROCESSED_MESSAGE]
    return _Source(
        [row for row in said if journal.has_text(row)],
        [row for row in said if not journal.has_text(row)],
        [row for row in rows if row.memory_type != Memory.Type.UNPROCESSED_MESSAGE],
    )


def _journalled_messages(session: Session, source: _Source) -> list[tuple[Message, str]]:
    """A resource's one message is made anew: its file may lie elsewhere by now. Of what was purged nobody knows where
    in the file it stands: then that is not read again."""
    resource = Resource.objects.select_related("user").filter(session_id=session.session_id, user_id=session.user_id)
    found = resource.filter(deleted_at__isnull=True).first()
    if found is None:
        return [(journal.message_of(row), row.batch_id if journal.is_flushed(row) else "") for row in source.told]
    if source.wordless:
        return []
    try:
        batch_id = next((row.batch_id for row in source.told if journal.is_flushed(row)), "moved")
        return [(message_of(found), batch_id)]
    except Unreadable:
        return []


def _leave_upstream(session: Session) -> None:
    """What the upstream still holds of the session is nobody's from now on."""
    residue.record_session(session)
    session.engine_session_id = fresh_engine_id(session)
    if session.searchable_at is None:
        session.flushed_at = None
    session.save(update_fields=["engine_session_id", "flushed_at"])


def _not_replayed(source: _Source, replays: Sequence[Replay]) -> set[str]:
    """The old memories whose content is not, or not wholly, among the new ones: of pictures and sounds, of files that
    cannot be read any more, of what was said before there was a journal, or of what was purged in part."""
    whole = {item.batch_id for item in replays}
    partial = {item.batch_id for item in replays if not item.is_whole} | {row.batch_id for row in source.wordless}
    is_unknown_told = bool(replays) and not partial
    return {
        row.memory_id
        for row in source.made
        if (row.batch_id in partial or row.batch_id not in whole if row.batch_id else not is_unknown_told)
    }
