"""Send one session of the embedded engine to EverOS, except memories with a decision.

What EverOS derives covers the memories that were sent. Deleted and overridden ones stay as they are, and searches find
them in addition to those of EverOS. So EverOS never receives a deleted text, and decisions keep their memory.
"""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from core.errors import EngineRefused
from memories.models import Override
from memories.services import lookup
from operations.moves.messages import messages_of
from operations.moves.replacement import Changed, Moved, OnMoved, detach
from remote import outbox, sessions
from remote import staging as upstream_staging
from remote.models import OutboxEntry
from store import storage
from store.models import Memory, Session
from store.port import Remote
from store.text.matching import Text, match


def undecided_rows(session_pk: int | OuterRef) -> QuerySet[Memory]:
    """Return the memories of a session that EverOS does not have, without a deletion or override."""
    overridden = Override.objects.filter(row=OuterRef("pk"), undone_at__isnull=True)
    rows = Memory.objects.filter(session=session_pk, origin=Memory.Origin.EMBEDDED, hidden_at__isnull=True)
    # A message that is in the outbox was added since EverOS was attached.
    waiting = OutboxEntry.objects.filter(session=OuterRef("session"), flush_id="")
    flushed = OutboxEntry.objects.filter(session=OuterRef("session"), flush_id=OuterRef("batch_id"))
    is_sent = (
        Q(is_covered=True)
        | Q(Exists(waiting), memory_type=Memory.Type.UNPROCESSED_MESSAGE)
        | Q(Exists(flushed), ~Q(batch_id=""))
    )
    return rows.exclude(is_sent).filter(~Exists(overridden))


def move(session: Session, engine: Remote, on_moved: OnMoved, *, is_retry: bool = False) -> Moved:
    """Send the session to EverOS under a new id; then give that id to the session and cover the rows that were sent.

    The second step is one transaction; `on_moved(moved)` runs inside it. After an interruption the same call continues;
    `is_retry`: an earlier try of this process failed. Raises: `Changed`, and the engine's errors.
    """
    owner = session.owner
    rows = list(undecided_rows(session.pk).order_by("seq", "pk"))
    if not rows:
        return Moved()
    sources = messages_of(session, rows)
    flushed = [source.message for source in sources if source.is_flushed]
    waiting = [source.message for source in sources if not source.is_flushed]
    # The staging session of an earlier try is discarded if it has messages that must no longer be sent, or if its
    # process died during the flush: it would be unknown for minutes if its memories still appear.
    staging = upstream_staging.staging_session(owner, session, timezone.now())
    is_unconfirmed = not is_retry and sessions.is_flush_open(staging)
    if is_unconfirmed or upstream_staging.has_other_messages(staging, [*flushed, *waiting]):
        upstream_staging.discard(staging)
        staging = upstream_staging.staging_session(owner, session, timezone.now())
    try:
        engine.stage(owner, staging, flushed, waiting)
    except EngineRefused:
        upstream_staging.discard(staging)
        raise
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        locked = Session.objects.select_for_update().get(pk=session.pk)
        free = undecided_rows(session.pk).filter(pk__in=[row.pk for row in rows])
        if locked.deleted_at is None and free.count() == len(rows):  # no sent memory was decided about
            _transfer_categories(upstream_staging.memories_of(staging), rows)
            made = upstream_staging.publish(staging, locked)
            cleared = outbox.assign(locked, [(source.message, source.rows) for source in sources])
            detach(owner, [row.memory_id for row in cleared])  # undone decisions remain as history
            storage.remove(owner, cleared)
            others = Memory.objects.filter(session=locked, origin=Memory.Origin.EMBEDDED, is_covered=False)
            moved = Moved(len(sources), made, len(rows), others.exclude(pk__in=[row.pk for row in rows]).count())
            on_moved(moved)
            return moved
    upstream_staging.discard(staging)
    raise Changed("A decision about the session was made while it was moved.")


def _transfer_categories(made: Sequence[Memory], rows: Sequence[Memory]) -> None:
    """Give a new memory the category of the old ones that it matches, if they share one."""
    categories_by_id = {row.memory_id: row.category for row in rows if not row.category.startswith("full_context_")}
    if not any(categories_by_id.values()):
        return
    texts = [Text(row.memory_id, row.text) for row in rows]
    for memory in made:
        names = match(Text(memory.memory_id, memory.text), (), texts).memory_ids
        categories = {categories_by_id.get(name, "") for name in names}
        memory.category = categories.pop() if len(categories) == 1 else ""
    Memory.objects.bulk_update([memory for memory in made if memory.category], ["category"])
