"""Find the messages that a remote's memories were derived from: it names none, so the words of a flush decide.

A memory's sources are the messages of its flush that share words with it, or all of them: for a memory that
shares words with none, and for a message that no memory shares words with. Decisions about either hold for both
(`store.derived_memories`). What a remote derives again from deleted or edited memories waits in the trash.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from django.conf import settings
from django.db.models import Exists, F, Max, Min, OuterRef, Q, QuerySet

from remote.models import OutboxEntry, Resend
from store import admission, derived_memories, sessions, states, writes
from store.ledger import Override, Tombstone
from store.models import IS_PURGED, Memory, Session, State, owned_by, owner_columns
from store.text.matching import MIN_OVERLAP, Text
from store.types import Hit, Owner

DERIVED_AGAIN: Final = "derived again"
"""The reason of a deletion that waits for a person."""
_MAX_COMMON: Final = 20
"""Word sequences in more messages than these say nothing about a source."""
_IS_COPY: Final = Q(origin=Memory.Origin.REMOTE, memory_type=Memory.Type.EPISODE)
_TAKEN: Final = (OutboxEntry.State.FLUSHED, OutboxEntry.State.PURGED)
"""The states of messages that a flush took."""
_Spans = Sequence[tuple[int, int]]
"""Times in whole seconds, as EverOS dates memories: the first and the last of each span."""


def link(session: Session) -> None:
    """Link the session's new copies to their sources. Call inside a transaction that has locked the session.

    Sessions of an older version have messages that are replaced by no edited memory until they are linked.
    """
    owner = session.owner
    sessions.lock_decisions(owner)
    first_time = _set_flushes(session)
    copies = Memory.objects.filter(_IS_COPY, session=session).exclude(state=State.PURGED).defer("payload")
    found = copies.filter(sources=[]).exclude(batch_id="").order_by("pk")
    with_messages = set(
        _messages(session).filter(batch_id__in=found.values("batch_id")).values_list("batch_id", flat=True)
    )
    new = [copy for copy in found if copy.pk in first_time or copy.batch_id in with_messages]
    replaced = dict(_messages(session).filter(is_replaced=True).values_list("memory_id", "batch_id"))
    flushes = {copy.batch_id for copy in new}
    messages = list(_messages(session).filter(batch_id__in=flushes).defer("payload").order_by("seq", "pk"))
    for flush_id in flushes:
        _set_sources(
            [copy for copy in new if copy.batch_id == flush_id], [one for one in messages if one.batch_id == flush_id]
        )
    writes.save(owner, new, ["sources"])
    derived_memories.inherit(owner, new)
    _hold(session, new, _spans_of_purged(session, new))
    if not keeps_text(session) and not any(copy.is_covered for copy in new):
        _forget(owner, new, messages)
    # Of a session that was sent again, memories of no flush may cover messages (`remote.resend`).
    is_sent_again = Resend.objects.filter(session=session).exists()
    rows = copies if is_sent_again else copies.filter(batch_id__in=flushes | set(replaced.values()))
    derived_memories.cover_sources(owner, list(rows.values_list("pk", flat=True)), besides=replaced)


def keeps_text(session: Session) -> bool:
    """Return False if the messages of the session go when the memories derived from them are here."""
    return session.kind == Session.Kind.RESOURCE or bool(settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY)


def times_of(session: Session, copies: Collection[Memory]) -> dict[str, int]:
    """Return the times of the sources of copies that are here, by memory id."""
    named = {name for copy in copies for name in copy.sources}
    return dict(_messages(session).filter(memory_id__in=named).values_list("memory_id", "created_at_ms"))


def hold_what_repeats(session: Session, new: Sequence[Memory], decided: Sequence[Memory]) -> None:
    """Move new copies to the trash that repeat deleted or edited ones: of the same sources, or of their times."""
    named = {name for copy in decided for name in copy.sources}
    spans = list(_spans(session, [copy for copy in decided if not copy.sources]))
    _trash(session, [copy for copy in new if copy.state == State.LIVE and not named.isdisjoint(copy.sources)])
    _hold(session, new, spans)


def forget_sent(session: Session, copies: Sequence[Memory]) -> None:
    """Remove the messages that shown copies stand for, if the settings do not keep them."""
    if not keeps_text(session):
        flushes = {copy.batch_id for copy in copies}
        _forget(session.owner, copies, list(_messages(session).filter(batch_id__in=flushes).defer("payload")))


def not_linked() -> QuerySet[Session, int]:
    """Return the row ids of sessions of an older version whose messages are not shown yet without a remote."""
    of_replaced = Memory.objects.filter(is_replaced=True).values("session")
    edited = Memory.objects.filter(_IS_COPY, session__in=of_replaced).exclude(text=F("original_text"))
    linked = edited.exclude(sources=[]).values("session")
    return Session.objects.filter(pk__in=of_replaced).exclude(pk__in=linked).values_list("pk", flat=True)


def hold_repetitions(session: Session, new: Sequence[Memory]) -> None:
    """Move new copies to the trash that a remote derived again from deleted or edited memories.

    Their times decide. Call inside the transaction that saves them.
    """
    if new and (decided := _decided(session, new)):
        _hold(session, new, list(_spans(session, decided)))


def not_shown(owner: Owner, hits: Collection[Hit]) -> set[str]:
    """Return the ids of a remote's hits that must not be shown.

    These are purged ones, memories without a copy that may be derived again from deleted or edited ones, or that the
    person's controls refuse, and memories whose ids are those of another remote's. One SQL statement, and two to five
    more if a copy is missing.
    """
    episodes = [hit.memory_id for hit in hits if hit.memory_type == "episode"]
    is_ours: dict[str, bool] = {}
    if episodes:
        copies = Memory.objects.filter(owned_by(owner), memory_id__in=episodes, origin=Memory.Origin.REMOTE)
        is_shown = Q(~IS_PURGED & (Q(batch_id="") | is_of_remote()))
        is_ours = dict(copies.annotate(is_ours=is_shown).values_list("memory_id", "is_ours"))
    missing = {
        hit.memory_id: hit
        for hit in hits
        if hit.memory_id not in is_ours and hit.memory_type != "unprocessed_message"  # a row here
    }
    of_sessions = {name: hit for name, hit in missing.items() if hit.memory_type == "episode"}
    others = {name for name, ours in is_ours.items() if not ours}
    return others | _repeated(owner, of_sessions) | _refused(owner, list(missing.values()))


def _refused(owner: Owner, hits: Sequence[Hit]) -> set[str]:
    """Return the memories without a copy that the person's controls refuse. The times of profiles do not count."""
    said = [
        admission.Derived(hit.text, hit.created_at_ms if hit.memory_type == "episode" else 0, hit.session_id or "")
        for hit in hits
    ]
    return {hits[place].memory_id for place in admission.refused_derived(owner.user_pk, said)}


def _repeated(owner: Owner, missing: Mapping[str, Hit]) -> set[str]:
    """Return the memories without a copy that are as old as deleted or edited ones of their sessions."""
    names = {hit.session_id for hit in missing.values() if hit.session_id}
    if not names:
        return set()
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for session in Session.objects.filter(owned_by(owner), session_id__in=names):
        spans[session.session_id] = list(_spans(session, _decided(session)))
    return {
        name
        for name, hit in missing.items()
        if any(first <= hit.created_at_ms // 1000 <= last for first, last in spans[hit.session_id or ""])
    }


def _decided(session: Session, besides: Sequence[Memory] = ()) -> list[Memory]:
    """Return the session's memories that the attached remote has, and that are deleted, purged or edited here."""
    copies = Memory.objects.filter(is_present(), session=session, origin=Memory.Origin.REMOTE).defer("payload")
    decided = copies.exclude(state=State.LIVE, text=F("original_text"))
    return list(decided.exclude(pk__in=[memory.pk for memory in besides]))


def of_remote() -> Q:
    """Return the condition of entries of the attached remote. Those of another wait until it is attached again."""
    return Q(base_url__in=("", settings.MEMORY_GATEWAY_BACKEND_BASE_URL))


def is_of_remote() -> Exists:
    """Return the condition of copies that the attached remote derived."""
    flushed = OutboxEntry.objects.filter(of_remote(), session=OuterRef("session"), flush_id=OuterRef("batch_id"))
    return Exists(flushed)


def is_present() -> Q:
    """Return the condition of copies that the attached remote has under the session's id, or may have."""
    return Q(Q(batch_id="") | is_of_remote())


def _set_flushes(session: Session) -> set[int]:
    """Link copies to the flush whose messages they are as old as, else to the latest one; return their row ids."""
    unlinked = list(Memory.objects.filter(_IS_COPY, session=session, batch_id="").only("created_at_ms"))
    if not unlinked:
        return set()
    taken = OutboxEntry.objects.filter(session=session, state__in=_TAKEN)
    flushed = taken.exclude(flush_id="").order_by()
    spans = list(flushed.values("flush_id").annotate(at=Max("pk"), first=Min("time_ms"), last=Max("time_ms")))
    spans.sort(key=lambda span: -span["at"])
    for copy in unlinked:
        second = copy.created_at_ms // 1000
        of_time = (one for one in spans if one["first"] // 1000 <= second <= one["last"] // 1000)
        copy.batch_id = next((one["flush_id"] for one in [*of_time, *spans]), "")
    writes.save(session.owner, unlinked, ["batch_id"])
    return {copy.pk for copy in unlinked}


def _set_sources(copies: Sequence[Memory], messages: Sequence[Memory]) -> None:
    """Set the sources of the copies of one flush."""
    overridden = Override.objects.filter(row__in=messages, undone_at__isnull=True)
    sent = dict(overridden.values_list("row_id", "original_text"))
    said = [Text(one.memory_id, sent.get(one.pk, one.text)) for one in messages]
    found = sources_of([Text(copy.memory_id, copy.original_text) for copy in copies], said)
    for copy in copies:
        copy.sources = found[copy.memory_id]


def sources_of(derived: Sequence[Text], said: Sequence[Text]) -> dict[str, list[str]]:
    """Return the ids of the messages of a flush that each memory of it was derived from, if unclear too many."""
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, message in enumerate(said):
        for sequence in message.sequences:
            places[sequence].append(place)
    sharing = {one.memory_id: _sharing(one, said, places) for one in derived}
    doubtful = set(range(len(said))).difference(*sharing.values())
    return {
        name: [said[place].memory_id for place in sorted(found | doubtful if found else range(len(said)))]
        for name, found in sharing.items()
    }


def _sharing(derived: Text, said: Sequence[Text], places: dict[tuple[str, ...], list[int]]) -> set[int]:
    shared: Counter[int] = Counter()
    for sequence in derived.sequences:
        found = places.get(sequence, ())
        if len(found) <= _MAX_COMMON:
            shared.update(found)
    return {
        place
        for place, count in shared.items()
        if count >= MIN_OVERLAP * min(len(said[place].sequences), len(derived.sequences))
    }


def _spans_of_purged(session: Session, copies: Sequence[Memory]) -> _Spans:
    """Return the times of purged messages of the copies' flushes, from which the copies may be derived too."""
    if not copies:
        return []
    flushes = {copy.batch_id for copy in copies}
    sent = OutboxEntry.objects.filter(session=session, state=OutboxEntry.State.PURGED, flush_id__in=flushes)
    return [(at // 1000, at // 1000) for at in sent.values_list("time_ms", flat=True)]


def _spans(session: Session, copies: Sequence[Memory]) -> Iterator[tuple[int, int]]:
    """Yield the times of memories, from their first source on."""
    times = times_of(session, copies)
    for copy in copies:
        of_copy = [copy.created_at_ms, *(times[name] for name in copy.sources if name in times)]
        yield min(of_copy) // 1000, max(of_copy) // 1000


def _hold(session: Session, copies: Sequence[Memory], spans: _Spans) -> None:
    """Move copies whose times overlap these spans to the trash, where a restore accepts them."""
    held = []
    for copy, (first, last) in zip(copies, _spans(session, copies), strict=True):
        if copy.state == State.LIVE and any(start <= last and first <= end for start, end in spans):
            held.append(copy)
    _trash(session, held)


def _trash(session: Session, held: Sequence[Memory]) -> None:
    owner = session.owner
    for copy in held:
        copy.state = State.TRASHED
    Tombstone.objects.bulk_create(
        Tombstone(
            **owner_columns(owner),
            memory_id=copy.memory_id,
            session_id=session.session_id,
            row=copy,
            reason=DERIVED_AGAIN,
            actor_kind=derived_memories.REMOTE.kind,
            actor=derived_memories.REMOTE.name,
        )
        for copy in held
    )
    states.refresh_memories(owner, {copy.memory_id for copy in held})


def _forget(owner: Owner, copies: Sequence[Memory], messages: Sequence[Memory]) -> None:
    """Remove the messages that copies stand for, except those with a decision."""
    named = {name for copy in copies for name in copy.sources}
    overridden = Override.objects.filter(row__in=messages, undone_at__isnull=True).values_list("row_id", flat=True)
    edited = set(overridden)
    live = Memory.objects.filter(pk__in=[one.pk for one in messages], state=State.LIVE)
    gone = [one for one in live if one.memory_id in named and one.pk not in edited]
    writes.remove(owner, gone)
    flushes = {one.batch_id for one in gone}
    OutboxEntry.objects.filter(session__in={one.session_id for one in gone}, flush_id__in=flushes).update(memory_ids=[])
    removed = {one.memory_id for one in gone}
    for copy in copies:
        copy.sources = [name for name in copy.sources if name not in removed]
    writes.save(owner, copies, ["sources"])


def _messages(session: Session) -> QuerySet[Memory]:
    return Memory.objects.filter(session=session, origin=Memory.Origin.EMBEDDED)
