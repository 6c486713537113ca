"""What a purge leaves of what was said: bare rows, which say that it was, and no words that a move could tell again."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q
from django.utils import timezone

from engines.registry import local_engine
from memories.models import Override
from operations.moves.matching import Text, to_forget
from store import storage
from store.external import journal
from store.models import BARE, Memory, Session
from store.types import Message, Owner

WORDLESS = Q(origin=Memory.Origin.UPSTREAM, memory_type=Memory.Type.UNPROCESSED_MESSAGE, payload={})


def holds_bare(session: Session) -> bool:
    """Whether anything of a session was purged."""
    return Memory.objects.filter(session=session, batch_id=BARE).exists()


def broken_flushes(session: Session) -> set[str]:
    """The flushes of which the journal does not hold every word."""
    return set(Memory.objects.filter(WORDLESS, session=session).values_list("batch_id", flat=True)) - {""}


def forget_messages(owner: Owner, memory: Memory) -> None:
    """Takes the words of the messages that an upstream's memory was made of, and has our own engine know them too.
    Call inside the transaction that purges it, while its words are there and its user is locked."""
    is_made = memory.origin == Memory.Origin.UPSTREAM and memory.memory_type != Memory.Type.UNPROCESSED_MESSAGE
    if not is_made or memory.session is None:
        return
    rows = list(Memory.objects.filter(session=memory.session, origin=Memory.Origin.UPSTREAM).order_by("pk"))
    told = [row for row in rows if journal.has_text(row) and journal.is_flushed(row)]
    made = _texts(row for row in rows if row.memory_type != Memory.Type.UNPROCESSED_MESSAGE)
    old = next(text for text in made if text.memory_id == memory.memory_id)
    names = to_forget(old, made, [Text(row.memory_id, row.text, row.batch_id) for row in told])
    for row in told:
        message = journal.message_of(row)
        if row.memory_id in names or (row.batch_id == memory.batch_id and _has_files(message)):
            _leave_names(owner, memory.session, row, message)
            Memory.objects.filter(pk=row.pk).update(text="", payload={})


def _texts(rows: Iterable[Memory]) -> list[Text]:
    """By what the upstream said, also where its user put other words in its place."""
    made = list(rows)
    corrected = Override.objects.filter(row__in=made, undone_at__isnull=True)
    originals = dict(corrected.values_list("row_id", "original_text"))
    return [Text(row.memory_id, originals.get(row.pk, row.text), row.batch_id) for row in made]


def _has_files(message: Message) -> bool:
    """Then nobody knows its words without reading them."""
    return any(item.text is None for item in message.content)


def _leave_names(owner: Owner, session: Session, row: Memory, message: Message) -> None:
    """Bare rows under the names that our own engine would give to what the message says."""
    names = set(local_engine().memory_ids(owner, session.session_id, message))
    Memory.objects.bulk_create(
        Memory(
            user_id=owner.user_pk,
            app_id=owner.app_id,
            project_id=owner.project_id,
            memory_id=name,
            session=session,
            memory_type=Memory.Type.UNPROCESSED_MESSAGE,
            text="",
            batch_id=BARE,
            seq=row.seq,
            created_at_ms=row.created_at_ms,
            origin=Memory.Origin.UPSTREAM,
            hidden_at=timezone.now(),
        )
        for name in sorted(names - storage.known(owner, names))
    )
