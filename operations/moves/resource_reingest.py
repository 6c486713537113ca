"""Reading a resource's file again under our own engine, where its reader may find more than it did then."""

from __future__ import annotations

from django.db import transaction

from core.errors import Unreadable
from engines.registry import local_engine
from memories.models import Override
from memories.services import lookup
from operations.moves import purged
from operations.moves.messages import resource_of
from operations.moves.replacement import Change, replace
from operations.moves.result import Changed, Moved, Note, owner_of
from resources.services.ingestion import message_of
from store.models import Memory, Session


def reread(session: Session, note: Note) -> Moved:
    """Replaces a file's passages where their text is another now, with what was decided about them.

    A file that cannot be read keeps the passages that it has, and so does one of which something was purged.
    Errors: `Changed`, `EngineUnavailable`.
    """
    resource = resource_of(session).first()
    if resource is None:
        return Moved()
    owner = owner_of(session)
    olds = _passages(session)
    if purged.holds_bare(session):
        return Moved(stayed=len(olds))
    try:
        replay = local_engine().replay(owner, session.session_id, message_of(resource), "reread")
    except Unreadable:
        return Moved(stayed=len(olds))
    if not replay.memories or _original_texts(olds) == [memory.text for memory in replay.memories]:
        return Moved(stayed=len(olds))
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        held = Session.objects.select_for_update().get(pk=session.pk)
        rows = _passages(held)
        if [row.pk for row in rows] != [row.pk for row in olds]:
            raise Changed("Somebody wrote to the session while its file was read.")
        moved = replace(owner, held, Change(rows, [replay]))
        note(moved)
    return moved


def _passages(session: Session) -> list[Memory]:
    rows = Memory.objects.filter(session=session, origin=Memory.Origin.EMBEDDED, chunk_index__isnull=False)
    return list(rows.order_by("chunk_index", "pk"))


def _original_texts(rows: list[Memory]) -> list[str]:
    corrected = Override.objects.filter(row__in=rows, undone_at__isnull=True)
    originals = dict(corrected.values_list("row_id", "original_text"))
    return [originals.get(row.pk, row.text) for row in rows]
