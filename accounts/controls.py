"""Control over remembering: which sources a person paused, since when, and who paused them.

Anyone with the scope can tighten controls. Only the person loosens them, on pages that the application opened with the
provisioning token: a key that could loosen them would let an agent undo what its user wants.

`store.admission` asks these rows about everything that is to be kept. Paused spans stay, and digests of refused
messages stay for 30 days, so that a transcript that is sent again later brings nothing back.
"""

import hashlib
import hmac
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Self
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import (
    MAX_NEVER_WORD_CHARS,
    MAX_NEVER_WORDS,
    Controls,
    MemoryUser,
    Pause,
    PortalLink,
    RefusedMessage,
)
from core.errors import GatewayError, InvalidInput, existing
from core.events import publish
from core.messages import Translatable as _

TOPICS: Final = tuple(Controls.Topic.values)
SOURCES: Final = tuple(Pause.Source.values)
KEPT_FOR: Final = timedelta(days=30)
"""The time for which a message is refused that repeats one of a pause."""


class LooseningRefused(GatewayError):
    """A call that would let the gateway keep more than the person allows."""

    status, code, title = 403, "loosening_refused", _("Only the person can allow more")

    def __init__(self) -> None:
        super().__init__(
            _(
                "Only the person can let the gateway remember more, on their own pages, opened by a link that the "
                "application makes with the provisioning token (POST /portal-links). No key, agent or operator can."
            )
        )


class Paused(GatewayError):
    """A file or a batch that is refused because its person paused remembering."""

    status, code, title = 403, "paused", _("Remembering is paused")

    def __init__(self) -> None:
        super().__init__(
            _("The person has paused remembering, so nothing is stored. Only they can resume it, on their own pages.")
        )


def may_loosen(link: PortalLink) -> bool:
    """Return True if the session of a link may loosen controls: no key made it, but the provisioning token."""
    return link.key_id is None


def pauses_of(user_pk: UUID) -> dict[str, Pause]:
    """Return the pauses that last, by source, in the order of `SOURCES`. One SQL statement."""
    found = {pause.source: pause for pause in Pause.objects.filter(user=user_pk, ended_at=None)}
    return {source: found[source] for source in SOURCES if source in found}


def is_paused(user_pk: UUID, *sources: str) -> bool:
    """Return True if one of the sources is paused, by default of all."""
    return Pause.objects.filter(user=user_pk, ended_at=None, source__in=sources or SOURCES).exists()


def require_not_paused(user_pk: UUID, *sources: str) -> None:
    """Raise `Paused` if one of the sources is paused, by default of all."""
    if is_paused(user_pk, *sources):
        raise Paused


def paused_users(*sources: str, since: datetime | None = None) -> QuerySet[Pause, UUID]:
    """Return a query for the keys of users who have paused one of the sources, or had after a moment."""
    lasted = Q(ended_at=None) if since is None else Q(ended_at=None) | Q(ended_at__gte=since)
    return Pause.objects.filter(lasted, source__in=sources).values_list("user_id", flat=True)


def set_paused(user_pk: UUID, sources: Iterable[str], *, is_loosening_allowed: bool = False, actor: Actor) -> None:
    """Pause these sources and resume the others.

    Raises: `InvalidInput` for an unknown source; `LooseningRefused` if one would be resumed; `NotFound`.
    """
    wanted = set(sources)
    if not wanted <= set(SOURCES):
        raise InvalidInput.of_field("paused", _("must be some of %(choices)s", choices=", ".join(SOURCES)))
    with transaction.atomic():
        user = existing(MemoryUser.objects.select_for_update().filter(pk=user_pk), _("There is no such user."))
        here = pauses_of(user_pk)
        resumed = [source for source in here if source not in wanted]
        added = [source for source in SOURCES if source in wanted and source not in here]
        if resumed and not is_loosening_allowed:
            raise LooseningRefused
        now = timezone.now()
        if added:
            Controls.objects.get_or_create(user=user)
            common = {"user": user, "began_at": now, "actor_kind": actor.kind, "actor": actor.name[:150]}
            Pause.objects.bulk_create(Pause(source=source, **common) for source in added)
            _tell(user, "pause", added, actor)
        if resumed:
            Pause.objects.filter(user=user, ended_at=None, source__in=resumed).update(ended_at=now)
            _tell(user, "resume", resumed, actor)


class Never(NamedTuple):
    """The words and topics of texts that are never kept. A text has a word in any form."""

    words: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words or self.topics)


def has_any(user_pk: UUID) -> bool:
    """Return True if a person limited what is kept, now or before. One SQL statement."""
    return Controls.objects.filter(pk=user_pk).exists()


def never_of(user_pk: UUID) -> Never:
    """Return what a person wants never remembered. One SQL statement."""
    row = Controls.objects.filter(pk=user_pk).first()
    return Never() if row is None else Never(tuple(row.words), tuple(row.topics))


def never_by_user(user_pks: Collection[UUID]) -> dict[UUID, Never]:
    """Return what these users want never remembered, without those who limited nothing. One SQL statement."""
    rows = Controls.objects.filter(pk__in=user_pks)
    found = {row.pk: Never(tuple(row.words), tuple(row.topics)) for row in rows}
    return {user_pk: never for user_pk, never in found.items() if never}


def set_never(
    user_pk: UUID,
    *,
    words: Iterable[str] | None = None,
    topics: Iterable[str] | None = None,
    is_loosening_allowed: bool = False,
    actor: Actor,
) -> None:
    """Set the words and the topics that are never remembered; None: as before. The trail has their numbers alone.

    Raises: `InvalidInput` for words without a letter, too many of them, and unknown topics; `LooseningRefused` if one
    would be taken away; `NotFound`.
    """
    with transaction.atomic():
        user = existing(MemoryUser.objects.select_for_update().filter(pk=user_pk), _("There is no such user."))
        before = never_of(user_pk)
        wanted = Never(
            before.words if words is None else _checked_words(words, before.words),
            before.topics if topics is None else _checked_topics(topics),
        )
        added, taken = _differences(wanted, before), _differences(before, wanted)
        if taken and not is_loosening_allowed:
            raise LooseningRefused
        if added or taken:
            Controls.objects.update_or_create(
                user=user, defaults={"words": list(wanted.words), "topics": list(wanted.topics)}
            )
        for verb, changed in (("limit", added), ("unlimit", taken)):
            if changed:
                counts = {"words": len(changed.words), "topics": len(changed.topics)}
                record(actor, f"controls.{verb}", user_id=user.user_id, detail=counts)


def _differences(one: Never, other: Never) -> Never:
    return Never(
        tuple(word for word in one.words if word not in other.words),
        tuple(topic for topic in one.topics if topic not in other.topics),
    )


def _checked_words(words: Iterable[str], before: Sequence[str]) -> tuple[str, ...]:
    """Return the words, each once; one that differs in case from an earlier one is that. Raises: `InvalidInput`."""
    spelled = {word.casefold(): word for word in before}
    found: dict[str, str] = {}
    for number, given in enumerate(words):
        word = " ".join(unicodedata.normalize("NFC", given).split())
        if not any(char.isalnum() for char in word):
            raise InvalidInput.of_field(f"words.{number}", _("must contain a letter or a digit"))
        if len(word) > MAX_NEVER_WORD_CHARS:
            raise InvalidInput.of_field(
                f"words.{number}", _("must have at most %(number)s characters", number=MAX_NEVER_WORD_CHARS)
            )
        found.setdefault(word.casefold(), spelled.get(word.casefold(), word))
    if len(found) > MAX_NEVER_WORDS:
        raise InvalidInput.of_field("words", _("must be at most %(number)s", number=MAX_NEVER_WORDS))
    return tuple(found.values())


def _checked_topics(topics: Iterable[str]) -> tuple[str, ...]:
    """Return the topics in the order of `TOPICS`. Raises: `InvalidInput`."""
    wanted = set(topics)
    if not wanted <= set(TOPICS):
        raise InvalidInput.of_field("topics", _("must be some of %(choices)s", choices=", ".join(TOPICS)))
    return tuple(topic for topic in TOPICS if topic in wanted)


def _tell(user: MemoryUser, verb: str, sources: Sequence[str], actor: Actor) -> None:
    record(actor, f"controls.{verb}", user_id=user.user_id, detail={"sources": list(sources)})
    publish("user.paused" if verb == "pause" else "user.resumed", user.pk, sources=list(sources))


def digest_of(salt: str, role: str, text: str) -> str:
    """Return the digest by which a refused message is known again, however its white space is written."""
    words = " ".join(unicodedata.normalize("NFC", text).split())
    return hmac.digest(salt.encode(), f"{role}\n{words}".encode("utf-8", "surrogatepass"), hashlib.sha256).hex()


def keep_refused(controls: Controls, digests: Iterable[str]) -> None:
    """Keep digests of refused messages. Those that are kept already keep their time."""
    now = timezone.now()
    rows = [RefusedMessage(user_id=controls.pk, digest=digest, refused_at=now) for digest in dict.fromkeys(digests)]
    if not rows:
        return
    if RefusedMessage.objects.filter(user=controls.pk, refused_at__lte=now - KEPT_FOR).exists():
        forget_old(now)
    RefusedMessage.objects.bulk_create(rows, ignore_conflicts=True)


def refused(controls: Controls, digests: Collection[str]) -> set[str]:
    """Return those of the digests that a message has which was refused within 30 days."""
    recent = RefusedMessage.objects.filter(user=controls.pk, refused_at__gt=timezone.now() - KEPT_FOR)
    return set(recent.filter(digest__in=digests).values_list("digest", flat=True))


def forget_old(now: datetime) -> int:
    """Delete digests of more than 30 days ago, and return their number."""
    return RefusedMessage.objects.filter(refused_at__lte=now - KEPT_FOR).delete()[0]


class FormerControls:
    """The controls of a user who is replaced by an archive. The stricter of both stays."""

    def __init__(self, controls: Controls | None, pauses: list[Pause], refused: list[RefusedMessage]) -> None:
        self._controls, self._pauses, self._refused = controls, pauses, refused

    @classmethod
    def of(cls, user: MemoryUser) -> Self:
        controls = Controls.objects.filter(user=user).first()
        pauses, refused = Pause.objects.filter(user=user), RefusedMessage.objects.filter(user=user)
        return cls(controls, list(pauses), list(refused))

    def add_to(self, user: MemoryUser) -> None:
        """Add them to the controls that the archive has. A pause that lasts in one of both lasts.

        Digests need the salt that made them, so those of an archive with another salt are of no use here.
        """
        if self._controls is None:
            return
        archived = never_of(user.pk)
        words = _checked_words([*self._controls.words, *archived.words][:MAX_NEVER_WORDS], self._controls.words)
        topics = _checked_topics([*self._controls.topics, *archived.topics])
        Controls.objects.update_or_create(
            user=user, defaults={"salt": self._controls.salt, "words": list(words), "topics": list(topics)}
        )
        for pause in self._pauses:
            same = Pause.objects.filter(user=user, source=pause.source)
            if same.filter(began_at=pause.began_at, ended_at=pause.ended_at).exists():
                continue
            if pause.ended_at is None:
                same.filter(ended_at=None, began_at__gte=pause.began_at).delete()
                if same.filter(ended_at=None).exists():
                    continue  # it began earlier in the archive
                same.filter(began_at=pause.began_at).delete()
            elif same.filter(began_at=pause.began_at).exists():
                continue  # it lasts in the archive
            pause.pk, pause.user = None, user
            pause.save(force_insert=True)
        for row in self._refused:
            row.pk, row.user = None, user
        RefusedMessage.objects.bulk_create(self._refused, ignore_conflicts=True)
