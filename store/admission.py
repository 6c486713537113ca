"""Decide what may be kept. Everything that writes a text of a user asks `admit` first, whatever its interface.

A rule names the offers that it refuses, and why. Callers tell counts and reasons, never texts. Users who have not
limited what is kept cost one SQL statement.

A language model is asked about what the rules let in (`store.topic_model`), for `ask_seconds` at most: 0 in a
transaction, where its earlier answers count. It gets nothing of a pause or an incognito session.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import orjson
from django.db.models import Q

from accounts import controls
from accounts.controls import Never
from accounts.models import Controls, Pause
from core.errors import GatewayError
from core.ids import parse_session_id
from core.logs import are_bodies_private
from core.messages import Translatable as _
from core.times import to_ms
from store import topic_model
from store.models import MANUAL_ORIGINS, Memory, Session, owned_by
from store.text.disguises import readings
from store.text.topics import Speaker, topics_of
from store.text.word_forms import word_forms
from store.types import METADATA, TAGS, Owner

Source = Literal["chats", "files", "agents"]
Reason = Literal["paused", "never"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A text that a caller wants to have kept: a message, a fact or a file.

    `role` is that of a message, empty for others. `at_ms` is the time that it says (Unix milliseconds), None for the
    present. `text` is all that it says; of what has no text, something that identifies it. `others` are the texts that
    are kept with it, such as tags, metadata and the arguments of calls. `names` are names and ids: words are looked
    for in them, topics are not.
    """

    source: Source
    text: str = ""
    role: str = ""
    at_ms: int | None = None
    others: Sequence[str] = ()
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Admission:
    """The positions of refused offers, each with its reason. `is_paused`: the person has paused one of the sources.

    `limits` is what the person allowed then.
    """

    refused: Mapping[int, Reason] = field(default_factory=dict)
    is_paused: bool = False
    limits: object = None

    @property
    def counts(self) -> dict[str, int]:
        """Return how many offers were refused, by reason."""
        return dict(Counter(self.refused.values()))


class ControlsChanged(Exception):
    """A change of the controls between an admission and its storing: what was admitted must be admitted again."""


class NotKept(GatewayError):
    """A fact that is not kept. Interfaces whose contract has an answer for it give that instead."""

    status, code, title = 403, "not_kept", _("Not remembered")

    def __init__(self, admission: Admission) -> None:
        sentence = _("The person's controls do not allow to remember this. Nothing was stored.")
        if admission.is_paused:
            sentence = _("The person has paused remembering. Nothing was stored.")
        super().__init__(sentence)
        self.admission = admission
        self.members |= answer_of(admission.counts, is_paused=admission.is_paused)


def answer_of(counts: Mapping[str, int], *, is_paused: bool) -> dict[str, Any]:
    """Return what every interface says of what was refused: counts by reason, and whether a pause lasts."""
    refused = {"refused": dict(counts)} if counts else {}
    return refused | ({"paused": True} if is_paused else {})


class _Limits:
    """The controls of a user, read once for all rules."""

    def __init__(self, row: Controls) -> None:
        self.row = row

    @cached_property
    def pauses(self) -> Sequence[Pause]:
        """The pauses, ended ones too."""
        return list(Pause.objects.filter(user=self.row.pk))

    @property
    def as_told(self) -> object:
        """Everything that is paused or never remembered, to be compared."""
        paused = sorted(pause.source for pause in self.pauses if pause.ended_at is None)
        return [paused, self.row.words, self.row.topics]

    def digest(self, offer: Offer) -> str:
        return controls.digest_of(self.row.salt, offer.role, offer.text)


_Offers = Sequence[tuple[int, Offer]]
_Rule = Callable[[_Limits, _Offers], Iterable[int]]


def admit(user_pk: UUID, offers: Sequence[Offer], *, ask_seconds: float = topic_model.SECONDS) -> Admission:
    """Return which of the offers must not be kept. Those that a pause refuses are known again when they are repeated.

    One SQL statement without controls, at most four with them.
    """
    row = Controls.objects.filter(pk=user_pk).first()
    if row is None or not offers:
        return Admission()
    limits = _Limits(row)
    refused: dict[int, Reason] = {}
    for reason, rule in _RULES:
        open_ones = [(place, offer) for place, offer in enumerate(offers) if place not in refused]
        refused |= dict.fromkeys(rule(limits, open_ones), reason)
    if row.topics and topic_model.is_set():
        left = {place: _told(offer) for place, offer in enumerate(offers) if place not in refused}
        refused |= dict.fromkeys(_of_model(row.topics, left, ask_seconds), "never")
    if refused:
        are_bodies_private.set(True)
    sources = {offer.source for offer in offers}
    is_paused = any(pause.ended_at is None and pause.source in sources for pause in limits.pauses)
    return Admission(refused, is_paused, limits.as_told)


def ask_seconds(owner: Owner, session_id: str) -> float:
    """Return how long the language model may be asked about a session: not at all about incognito ones."""
    if not topic_model.is_set():
        return 0
    incognito = Session.objects.filter(owned_by(owner), session_id=session_id, incognito_until__isnull=False)
    return 0 if incognito.exists() else topic_model.SECONDS


def require_unchanged(user_pk: UUID, admission: Admission) -> None:
    """Raise `ControlsChanged` if the controls are not those of the admission. Call in the transaction that stores.

    Files are read in between, which takes long: a person who pauses meanwhile must not find them stored afterwards.
    One SQL statement without controls, two with them.
    """
    row = Controls.objects.filter(pk=user_pk).first()
    if (None if row is None else _Limits(row).as_told) != admission.limits:
        raise ControlsChanged


def require(user_pk: UUID, offer: Offer, *, ask_seconds: float = topic_model.SECONDS) -> Admission:
    """Return the admission of an offer. Raises: `NotKept` if it must not be kept."""
    admission = admit(user_pk, [offer], ask_seconds=ask_seconds)
    if admission.refused:
        raise NotKept(admission)
    return admission


def require_correction(
    user_pk: UUID, offer: Offer, *, is_of_person: bool, ask_seconds: float = topic_model.SECONDS
) -> None:
    """Raise `NotKept` for a correction that must not be kept. Those of the person no pause and no model refuses."""
    if is_of_person:
        require_wanted(user_pk, offer)
    else:
        require(user_pk, offer, ask_seconds=ask_seconds)


def kept_reason(user_pk: UUID, reason: str, *, is_of_person: bool) -> str:
    """Return the reason of a decision, empty if it must not be kept: the decision itself is never refused."""
    if not reason:
        return ""
    try:
        require_correction(user_pk, Offer("agents", reason), is_of_person=is_of_person, ask_seconds=0)
    except NotKept:
        return ""
    return reason


def session_names(session_id: str) -> list[str]:
    """Return what a session id says besides its kind and its user."""
    return [rest] if (rest := parse_session_id(session_id).rest) else []


def require_wanted(user_pk: UUID, offer: Offer) -> None:
    """Raise `NotKept` for what the person wants never remembered, such as a text from the trash."""
    if is_never_kept(controls.never_of(user_pk), offer):
        are_bodies_private.set(True)
        raise NotKept(Admission({0: "never"}))


def is_held(prefix: str = "") -> Q:
    """Return the condition on sessions that no model and no remote gets: incognito ones, and those of a paused source.

    `prefix` leads from a row to its session, such as "session__".
    """
    is_file = Q(**{f"{prefix}kind": Session.Kind.RESOURCE})
    user = f"{prefix}user__in"
    of_files = is_file & Q(**{user: controls.paused_users("files")})
    is_incognito = Q(**{f"{prefix}incognito_until__isnull": False})
    return is_incognito | of_files | (~is_file & Q(**{user: controls.paused_users("chats")}))


def is_held_memory(prefix: str = "") -> Q:
    """Return the same condition on memories. Facts are those of agents."""
    is_fact = Q(**{f"{prefix}origin__in": MANUAL_ORIGINS})
    is_incognito = Q(**{f"{prefix}session__incognito_until__isnull": False})
    of_agents = Q(**{f"{prefix}user__in": controls.paused_users("agents")})
    return is_incognito | (is_fact & of_agents) | (~is_fact & is_held(f"{prefix}session__"))


def _of_pause(limits: _Limits, offers: _Offers) -> list[int]:
    """Return what is of a source that is paused, or was at its time. Its digests are kept."""
    spans = [
        (pause.source, to_ms(pause.began_at) // 1000 * 1000, to_ms(pause.ended_at) if pause.ended_at else None)
        for pause in limits.pauses
    ]  # many clients tell times in whole seconds
    now_paused = {source for source, _began, ended in spans if ended is None}

    def is_in_span(offer: Offer) -> bool:
        at_ms = offer.at_ms
        return at_ms is not None and any(
            source == offer.source and began <= at_ms and ended is not None and at_ms <= ended
            for source, began, ended in spans
        )

    found = [(place, offer) for place, offer in offers if offer.source in now_paused or is_in_span(offer)]
    controls.keep_refused(limits.row, (limits.digest(offer) for _place, offer in found if offer.text))
    return [place for place, _offer in found]


def _repeats(limits: _Limits, offers: _Offers) -> Iterator[int]:
    """Yield what repeats a message of a pause within 30 days, whatever its time."""
    digests = {place: limits.digest(offer) for place, offer in offers if offer.text}
    known = controls.refused(limits.row, set(digests.values())) if digests else set()
    yield from (place for place, digest in digests.items() if digest in known)


def never_kept(never: Never, texts: Iterable[str], speaker: Speaker) -> bool:
    """Return True if one of the texts has a word that is never kept, or is about such a topic, also in disguise."""
    forms = word_forms(never.words)
    return any(
        forms.are_in(seen) or bool(topics_of(seen, never.topics, speaker=speaker))
        for text in texts
        for seen in (text, *readings(text))
    )


def never_kept_of(user_pk: UUID, texts: Sequence[str], *, source: Source = "files", ask_seconds: float = 0) -> set[int]:
    """Return the places of texts that the person wants never remembered, whatever is paused.

    One SQL statement; another one if the language model is asked, which is not during a pause.
    """
    never, speaker = controls.never_of(user_pk), speaker_of(source, "")
    if not never:
        return set()
    refused = {place for place, text in enumerate(texts) if never_kept(never, [text], speaker)}
    if ask_seconds and never.topics and topic_model.is_set() and controls.pauses_of(user_pk):
        ask_seconds = 0
    left = {place: text for place, text in enumerate(texts) if place not in refused}
    return refused | set(_of_model(never.topics, left, ask_seconds))


class Derived(NamedTuple):
    """A memory that a remote derived from a session, with its time (Unix milliseconds)."""

    text: str
    at_ms: int
    session_id: str

    @property
    def source(self) -> Source:
        return "files" if parse_session_id(self.session_id).kind == "resource" else "chats"


def refused_derived(user_pk: UUID, memories: Sequence[Derived], *, ask_seconds: float = 0) -> set[int]:
    """Return the places of a remote's memories that must be neither kept nor shown.

    These are of a time when their source was paused, or never to be remembered. Those derived from messages of before a
    pause may come during it. One SQL statement without controls, at most four with them.
    """
    if not memories or not Controls.objects.filter(pk=user_pk).exists():
        return set()
    pauses = Pause.objects.filter(user=user_pk).values_list("source", "began_at", "ended_at")
    spans = [(source, to_ms(began), to_ms(ended) if ended else None) for source, began, ended in pauses]
    of_pause = {
        place
        for place, one in enumerate(memories)
        if any(
            source == one.source and began <= one.at_ms and (ended is None or one.at_ms <= ended)
            for source, began, ended in spans
        )
    }
    texts = [one.text for one in memories]
    return of_pause | never_kept_of(user_pk, texts, source="agents", ask_seconds=ask_seconds)


def unwanted(user_pk: UUID, texts: Collection[str]) -> set[str]:
    """Return those of the texts that the person wants never remembered. One SQL statement."""
    never = controls.never_of(user_pk) if texts else Never()
    return {text for text in set(texts) if never and any(never_kept(never, [text], who) for who in _WHO_KNOWS)}


_WHO_KNOWS: Final[tuple[Speaker, ...]] = ("user", "note")


def is_never_kept(never: Never, offer: Offer) -> bool:
    """Return True if an offer, or what is kept with it, has a word or is about a topic that is never kept."""
    speaker = speaker_of(offer.source, offer.role)
    return (
        never_kept(never, [offer.text], speaker)
        or never_kept(never, offer.others, "note")
        or never_kept(Never(never.words), map(_spaced, offer.names), "note")
    )


def offer_of(memory: Memory) -> Offer:
    """Return a stored memory as it would be offered."""
    source: Source = "agents" if memory.origin in MANUAL_ORIGINS else "chats"
    if memory.chunk_index is not None:
        source = "files"
    kept_with_it = [memory.payload.get(name) for name in ("tool_calls", TAGS, METADATA)]
    names = [memory.payload.get(name) or "" for name in ("sender_name", "filename", "tool_call_id")]
    role = memory.payload.get("role") or ""
    return Offer(source, memory.text, role, others=tuple(texts_in(kept_with_it)), names=names)


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts, names and numbers of plain data, and of the JSON that is a text in it, such as arguments."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield _spaced(str(key))
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)
    elif value is not None and not isinstance(value, bool):
        written = str(value)
        yield written if " " in written else _spaced(written)
        yield from _texts_in_json(written)


def _texts_in_json(text: str) -> Iterator[str]:
    """Yield the texts of JSON, which may write any character of a word otherwise, and a line end next to it."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    yield from texts_in(data)


def _spaced(name: str) -> str:
    """Return a name with its parts as words: "takesInsulin", "insulin2"."""
    return f"{name} {_JOINTS.sub(' ', name)}"


_JOINTS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[^\W\d_]{4})(?=\d)|(?<=\d)(?=[^\W\d_]{4})")


def speaker_of(source: Source, role: str) -> Speaker:
    """Return who says a text: the user themselves also in their files, an assistant, or a note about the user."""
    if source == "agents":
        return "note"
    return "user" if source == "files" or role in {"user", ""} else "other"


def _never(limits: _Limits, offers: _Offers) -> Iterator[int]:
    """Yield what has a word or is about a topic that the person wants never remembered."""
    never = Never(tuple(limits.row.words), tuple(limits.row.topics))
    yield from (place for place, offer in offers if never and is_never_kept(never, offer))


def _told(offer: Offer) -> str:
    """Return what a model is asked about: the text and what is kept with it, each once."""
    return "\n".join(dict.fromkeys([offer.text, *offer.others]))


def _of_model(topics: Collection[str], texts: Mapping[int, str], ask_seconds: float) -> Iterator[int]:
    """Yield the places of texts that the language model finds to be about the topics."""
    if not topics or not topic_model.is_set():
        return
    if ask_seconds:
        topic_model.ask(texts.values(), ask_seconds)
    yield from (place for place, text in texts.items() if topic_model.is_about(text, topics))


_RULES: Final[tuple[tuple[Reason, _Rule], ...]] = (
    ("paused", _of_pause),
    ("paused", _repeats),
    ("never", _never),
)
"""The rules, in their order. What one refuses, the next ones do not see."""
