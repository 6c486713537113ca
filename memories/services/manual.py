"""Facts that a person, a program or an agent states in one call, rather than in messages. No engine extracts them.

`store_fact` is the way of the API and of tools: it recognizes an older memory of the same text or external id.
`add_by_hand` stores another one in any case. Both create rows in `_create`.
"""

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.zones import zone_of_user
from core.errors import Conflict, DeletedByPerson, InvalidInput, NotFound
from core.events import publish
from core.ids import check_name
from core.messages import Translatable as _
from core.persistence.checked_rows import check_row
from core.persistence.database_errors import database_errors
from core.redaction import masked
from core.times import to_ms
from memories.services import decisions, lookup
from memories.services.decisions import OverrideValues
from memories.services.hygiene import is_visible, own_data, own_text
from memories.services.lookup import MemoryRef, require_open, require_own_session
from memories.services.zones import offset_of
from store import browse, expiry, sessions, topic_model, writes
from store.admission import (
    ControlsChanged,
    Offer,
    admit,
    ask_seconds,
    require,
    require_unchanged,
    session_names,
    texts_in,
)
from store.categories import CATEGORIES, TABS, tab_of
from store.cover import is_attached
from store.derived_memories import queue_comparison
from store.filters import MAX_MS
from store.index.keyword import entry_of
from store.ledger import digest_of
from store.models import MANUAL_ORIGINS, ExternalId, Memory, Session, State, owned_by, owner_columns
from store.search.candidates import find_similar_notes
from store.text.wording import normalized
from store.types import EXTERNAL_ID, METADATA, TAGS, Owner, StoredMemory

MANUAL_SESSION = "manual_insert"
MAX_TEXT_CHARS = 8000
MAX_SIMILAR: Final = 3
MAX_SPEAKER_CHARS: Final = 64
DEFAULT_IMPORTANCE: Final = 0.7
_SENT: Final = "external_digest"
"""The field of a payload with the digest of the text that its application sent last: a person may have edited it."""
Origin = Literal["panel", "tool"]
Action = Literal["created", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact to store. Without `session_id` it is of the user's own notes.

    `given` are the fields that change an older memory of the same text or external id; others keep their values.
    """

    text: str
    category: str = CATEGORIES[0]
    importance: float = DEFAULT_IMPORTANCE
    agent_id: str = ""
    session_id: str = ""
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    external_id: str = ""
    created_at: datetime | None = None
    expires_at: datetime | None = None
    given: Collection[str] = frozenset()

    def cleaned(self, redacted: Counter[str]) -> "NewFact":
        """Return the fact as it is stored: without recalled memories and masked values, except in the external id."""
        return replace(
            self,
            text=own_text(self.text, redacted).strip(),
            tags=own_data(list(self.tags), redacted),
            metadata=own_data(self.metadata, redacted),
        )

    @property
    def offer(self) -> Offer:
        """Return what the fact says, for the user's controls."""
        at_ms = to_ms(self.created_at) if self.created_at else None
        kept_with_it = [self.tags, self.metadata, self.external_id]
        names = [self.agent_id, *session_names(self.session_id)]
        return Offer("agents", self.text, at_ms=at_ms, others=tuple(texts_in(kept_with_it)), names=names)

    @property
    def labels(self) -> dict[str, Any]:
        """Return what the payload holds of tags, metadata and external id."""
        external = {EXTERNAL_ID: masked(self.external_id), _SENT: digest_of(self.text)} if self.external_id else {}
        named = {TAGS: list(self.tags), METADATA: dict(self.metadata)}
        return {name: value for name, value in named.items() if value} | external


class StoredFact(NamedTuple):
    """A memory that was created, updated or left unchanged, others with similar texts, and the masked values."""

    memory: StoredMemory
    action: Action
    similar: Sequence[Memory]
    redacted: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a fact, and who states it.

    `application` is that whose external ids are meant, empty for the user's own keys.
    """

    origin: Origin
    actor: Actor
    application: str = ""


def ask_model(owner: Owner, facts: Iterable[NewFact]) -> None:
    """Ask the model what is never remembered of facts, before the transaction or the loop that stores them."""
    if not topic_model.is_set():
        return
    cleaned = [fact.cleaned(Counter()) for fact in facts]
    open_ones = [fact.offer for fact in cleaned if ask_seconds(owner, fact.session_id)]
    admit(owner.user_pk, open_ones)


def store_fact(
    owner: Owner,
    fact: NewFact,
    source: Source,
    *,
    before: Callable[[Memory | None], None] = lambda _older: None,
    before_change: Callable[[], None] = lambda: None,
    with_similar: bool = True,
    is_asked: bool = False,
) -> StoredFact:
    """Store a fact, or update the memory of the same external id, else of the same text, agent and tab.

    `before` is called under the lock of the user with that memory, `before_change` before it is changed: either may
    raise. `is_asked`: `ask_model` was called. Raises: `InvalidInput` for values, `DeletedByPerson` for an external id
    whose memory was deleted, `NotFound` and `Conflict` for the session, `NotKept` for what the user's controls refuse,
    `EngineUnavailable`.
    """
    redacted: Counter[str] = Counter()
    fact = fact.cleaned(redacted)
    fact = replace(fact, session_id=fact.session_id or f"memory_edit:{owner.session_name}")
    _check(fact)
    require_own_session(owner, fact.session_id)
    seconds = 0 if is_asked else ask_seconds(owner, fact.session_id)
    admission = require(owner.user_pk, fact.offer, ask_seconds=seconds)
    near: Sequence[Memory] = ()
    with _refusing_what_changed(owner, fact), database_errors(), transaction.atomic():
        lookup.lock_user(owner.user_pk)
        require_unchanged(owner.user_pk, admission)
        known = _known(owner, fact, source)
        older = _of_external_id(owner, known)
        if with_similar or not fact.external_id:
            equal, near = _notes_like(owner, fact)
            older = older if fact.external_id else equal
        before(older)
        if older is not None:
            action = _change(owner, older, fact, source.actor, before_change)
            [stored] = browse.get_many([older.pk])
        else:
            _require_open_session(owner, fact.session_id)
            action, stored = "created", _create(owner, fact, source)
            _remember(owner, fact, source, known, stored)
    others = [one for one in near if one.memory_id != stored.memory_id]
    return StoredFact(stored, action, others[:MAX_SIMILAR], dict(redacted))


@contextmanager
def _refusing_what_changed(owner: Owner, fact: NewFact) -> Iterator[None]:
    """Ask again what the user's controls refuse if they change inside the block. Raises: `NotKept`, `Conflict`."""
    try:
        yield
    except ControlsChanged:
        require(owner.user_pk, fact.offer, ask_seconds=0)
        raise Conflict(_("The person has changed their controls meanwhile. Send the request again.")) from None


def add_by_hand(
    owner: Owner,
    *,
    category: str,
    text: str,
    agent_id: str = "",
    session_id: str = MANUAL_SESSION,
    importance: float = 1.0,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    expires_at: datetime | None = None,
    origin: Origin,
    actor: Actor,
) -> StoredMemory:
    """Store a text as a memory. Searches find it at once, under any engine.

    With a language model, the embedded engine compares it with older ones later, and supersedes those that it replaces.

    Raises: `InvalidInput` for an empty or too long text, an unknown category or an importance outside 0..1;
    `NotFound`, `Conflict` and `EngineRefused` for the session; `NotKept`; `EngineUnavailable`.
    """
    fact = NewFact(text, category, importance, agent_id, session_id, tags, metadata or {}, expires_at=expires_at)
    fact = fact.cleaned(Counter())
    _check(fact)
    expiry.check(expires_at)
    require_own_session(owner, session_id)
    require(owner.user_pk, fact.offer, ask_seconds=ask_seconds(owner, session_id))
    return _create(owner, fact, Source(origin, actor))


def _create(owner: Owner, fact: NewFact, source: Source) -> StoredMemory:
    at_ms = to_ms(fact.created_at or timezone.now())
    memory = Memory(
        user_id=owner.user_pk,
        memory_id=str(uuid.uuid4()),
        agent_id=fact.agent_id,
        memory_type=Memory.Type.EPISODE,
        category=fact.category,
        sender_id=fact.agent_id or owner.user_id,
        speaker=(fact.agent_id or owner.user_id)[:MAX_SPEAKER_CHARS],
        text=fact.text,
        importance=fact.importance,
        created_at_ms=at_ms,
        expires_at=fact.expires_at,
        origin=source.origin,
        payload=offset_of(zone_of_user(owner.user_pk), at_ms) | fact.labels,
    )
    check_row(memory)
    entry = entry_of(memory)
    with database_errors(), transaction.atomic():
        expiry.set_defaults(owner, [memory])
        expiry.note([memory])
        session = sessions.locked(owner, fact.session_id)
        require_open(session)
        last = session.memories.aggregate(last=Max("seq"))["last"]
        memory.session, memory.seq = session, 0 if last is None else last + 1
        writes.insert(owner, [memory], [entry])
        if not is_attached():
            queue_comparison(memory)
        detail = {"category": fact.category, "origin": source.origin}
        record(source.actor, "memory.add", memory.memory_id, user_id=owner.user_id, detail=detail)
        publish("memory.added", owner.user_pk, **owner.scope, memory_ids=[memory.memory_id])
    [stored] = browse.get_many([memory.pk])
    return stored


def _require_open_session(owner: Owner, session_id: str) -> None:
    """Check that a session takes memories. Raises: `NotFound` for one that was deleted permanently."""
    if Session.objects.filter(owned_by(owner), session_id=session_id, state=State.PURGED).exists():
        raise NotFound(_("This session was deleted permanently: choose another session_id."))


def _known(owner: Owner, fact: NewFact, source: Source) -> ExternalId | None:
    if not fact.external_id:
        return None
    digest = hashlib.sha256(fact.external_id.encode()).hexdigest()
    return ExternalId.objects.filter(owned_by(owner), application=source.application, digest=digest).first()


def _remember(owner: Owner, fact: NewFact, source: Source, known: ExternalId | None, stored: StoredMemory) -> None:
    """Let the external id name the new memory, also in the place of one that has expired."""
    if known is not None:
        known.memory_id = stored.memory_id
        known.save(update_fields=["memory_id"])
    elif fact.external_id:
        digest = hashlib.sha256(fact.external_id.encode()).hexdigest()
        ExternalId.objects.create(
            **owner_columns(owner), application=source.application, digest=digest, memory_id=stored.memory_id
        )


def _of_external_id(owner: Owner, known: ExternalId | None) -> Memory | None:
    """Return the memory of an external id; None for a new id, and if the memory has expired.

    Raises: `DeletedByPerson`.
    """
    if known is None:
        return None
    rows = Memory.objects.select_related("session").filter(owned_by(owner), memory_id=known.memory_id)
    memory = rows.first()
    is_open = memory is not None and (memory.session is None or memory.session.state in _NOT_DELETED)
    if memory is None or not is_open or memory.state not in _NOT_DELETED:
        raise DeletedByPerson(
            _(
                "A person deleted the memory with this external_id, so it is not stored again. Restore it first, or "
                "send another external_id for another fact."
            )
        )
    times = [memory.expires_at, memory.session.expires_at if memory.session else None]
    has_expired = State.EXPIRED in {memory.state, memory.session.state if memory.session else ""}
    return None if has_expired or any(at is not None and at <= timezone.now() for at in times) else memory


_NOT_DELETED: Final = (State.LIVE, State.SUPERSEDED, State.EXPIRED)


def _notes_like(owner: Owner, fact: NewFact) -> tuple[Memory | None, list[Memory]]:
    """Return a live note of the same agent and tab with the same text, and similar ones.

    Only equal texts are duplicates: "likes tea" and "likes no tea" are similar.
    """
    similar = find_similar_notes(owner, fact.text, fact.agent_id)
    candidates = Memory.objects.filter(
        owned_by(owner),
        pk__in=[*similar.equal, *similar.near],
        origin__in=MANUAL_ORIGINS,
        agent_id=fact.agent_id,
        category__in=TABS[tab_of(fact.category)],
    )
    incognito = Q(session__incognito_until__isnull=False)  # what is only of an incognito session is lost with it
    candidates = candidates.filter(~incognito | Q(session__session_id=fact.session_id))
    found = {memory.pk: memory for memory in candidates.order_by("pk")}
    wanted = normalized(fact.text)
    equal = next((memory for memory in found.values() if normalized(memory.text) == wanted), None)
    near = [found[pk] for pk in (*(similar.equal if fact.external_id else ()), *similar.near) if pk in found]
    return equal, near


def _change(owner: Owner, older: Memory, fact: NewFact, actor: Actor, before_change: Callable[[], None]) -> Action:
    """Change what the fact gives of an older memory. A text that its application sent before changes nothing."""
    is_sent = bool(fact.external_id) and older.payload.get(_SENT) == digest_of(fact.text)
    values = OverrideValues(
        None if is_sent or older.text == fact.text else fact.text,
        fact.category if "category" in fact.given and fact.category != older.category else None,
        fact.importance if "importance" in fact.given and fact.importance != older.importance else None,
    )
    columns = _changed_columns(older, fact)
    ref = MemoryRef(older.memory_id, app_id=older.app_id, project_id=older.project_id)
    is_reworded = values != OverrideValues()
    if not (is_reworded or columns):
        return "unchanged"
    before_change()
    if is_reworded:
        if older.state == State.SUPERSEDED:
            decisions.restore(owner.user_pk, ref, actor=actor)
        decisions.override(owner.user_pk, ref, values, is_update=True, actor=actor)
    if columns:
        _save(owner, older, columns)
    if columns and not is_reworded:
        fields = {"fields": sorted(columns)}
        record(actor, "memory.override", older.memory_id, user_id=owner.user_id, detail=fields)
        publish("memory.overridden", owner.user_pk, **owner.scope, memory_ids=[older.memory_id])
    return "updated"


def _changed_columns(older: Memory, fact: NewFact) -> dict[str, Any]:
    """Return the columns besides the wording that a fact changes, with their values."""
    names = {TAGS, METADATA} & set(fact.given) | ({EXTERNAL_ID, _SENT} if fact.external_id else set())
    payload = {name: value for name, value in older.payload.items() if name not in names}
    payload |= {name: value for name, value in fact.labels.items() if name in names}
    wanted: dict[str, Any] = {"payload": payload}
    if "expires_at" in fact.given:
        wanted["expires_at"] = fact.expires_at
    if "created_at" in fact.given and fact.created_at is not None:
        wanted["created_at_ms"] = to_ms(fact.created_at)
    return {name: value for name, value in wanted.items() if getattr(older, name) != value}


def _save(owner: Owner, older: Memory, columns: Mapping[str, Any]) -> None:
    memory = Memory.objects.select_for_update().get(pk=older.pk)
    former = {memory.pk: entry_of(memory)} if memory.is_indexed else {}
    for name, value in columns.items():
        setattr(memory, name, value)
    if "created_at_ms" in columns:  # the index has the words of its day
        writes.replace(owner, former, [memory], columns.keys())
    else:
        writes.save(owner, [memory], columns.keys())


def add_imported(owner: Owner, memories: Sequence[Memory], *, session_id: str) -> None:
    """Save new memories of another store in a session, with their times. Call inside a transaction.

    Raises: `Conflict` if the session is in the trash, `EngineRefused` if it is deleted.
    """
    if not memories:
        return
    require_own_session(owner, session_id)
    session = sessions.locked(owner, session_id)
    require_open(session)
    last = session.memories.aggregate(last=Max("seq"))["last"]
    for seq, memory in enumerate(memories, start=0 if last is None else last + 1):
        memory.session, memory.seq = session, seq
    writes.insert(owner, memories)
    publish("memory.added", owner.user_pk, **owner.scope, memory_ids=[memory.memory_id for memory in memories])


def _check(fact: NewFact) -> None:
    if not is_visible(fact.text):
        raise InvalidInput.of_field("text", _("must not be empty"))
    if len(fact.text) > MAX_TEXT_CHARS:
        raise InvalidInput.of_field(
            "text", _("must be at most %(number)s characters; upload longer texts as files", number=MAX_TEXT_CHARS)
        )
    if fact.category not in CATEGORIES:
        raise InvalidInput.of_field("category", _("must be one of %(choices)s", choices=", ".join(CATEGORIES)))
    if not 0 <= fact.importance <= 1:
        raise InvalidInput.of_field("importance", _("must be between 0 and 1"))
    if fact.created_at is not None and not 0 <= to_ms(fact.created_at) <= MAX_MS:
        raise InvalidInput.of_field("created_at", _("must be a time since 1970"))
    if fact.expires_at is not None and fact.expires_at <= timezone.now():
        raise InvalidInput.of_field("expires_at", _("must be in the future"))
    try:
        check_name(fact.agent_id or "main")
    except ValueError as error:
        raise InvalidInput.of_field("agent_id", error.args[0]) from error
