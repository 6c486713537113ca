"""Users and their keys: making, proving, rotating, revoking."""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts import queries
from accounts.audit import Actor, record
from accounts.models import MemoryUser, UserKey
from accounts.principal import Principal
from core import crypto
from core.errors import Conflict, InvalidInput, NotFound, Unauthenticated
from core.ids import check_name
from core.waiting import no_waiting

logger = logging.getLogger("memory_gateway.accounts")

DEFAULT_GRACE = timedelta(hours=24)
MAX_GRACE = timedelta(days=30)
MAX_LIFETIME = timedelta(days=3650)
MAX_LABEL_CHARS = 100
MAX_LIVE_KEYS = 100
MAX_DEAD_KEYS = 100
_USE_INTERVAL = timedelta(minutes=1)
_PURPOSE = "user keys"
_KEY = re.compile(r"uk_[A-Za-z0-9_-]{43}")
REFUSAL = "The user id and key do not belong together, or the key is unknown, expired or revoked."


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key with its plaintext, which goes to its owner and nowhere else."""

    key: UserKey
    plaintext: str

    def __repr__(self) -> str:
        """Without the plaintext, so that no traceback and no debug line can show it."""
        return f"IssuedKey({self.key!r})"


@dataclass(frozen=True, slots=True)
class Rotation:
    """`old` works until its `expires_at`, `new` from now on."""

    old: UserKey
    new: IssuedKey


def create_user(user_id: str, *, actor: Actor) -> IssuedKey:
    """The user with a key; an existing user's newest live key again (a new one if none lives).

    Two calls at once make one user and answer the same key. Errors: `InvalidInput` for the id's grammar, `Conflict`
    if the existing key cannot be read any more.
    """
    _check_user_id(user_id)
    with transaction.atomic():
        user, is_new = MemoryUser.objects.get_or_create(user_id=user_id)
        if is_new:
            record(actor, "user.create", subject_type="user", subject_id=str(user.pk), user_id=user_id)
        key = _live_keys(_lock(user.pk)).select_related("user").order_by("-created_at").first()
        if key is None:
            return _issue(user, label="", expires_at=None, actor=actor)
        record(actor, "key.reveal", subject_type="key", subject_id=str(key.pk), user_id=user_id)
        return IssuedKey(key, _plaintext(key))


def create_new_user(user_id: str, *, actor: Actor) -> IssuedKey:
    """A user who was not there before. Errors: `InvalidInput` for the id's grammar, `Conflict` if the user exists."""
    _check_user_id(user_id)
    with transaction.atomic():
        user, is_new = MemoryUser.objects.get_or_create(user_id=user_id)
        if not is_new:
            raise Conflict("This user exists already.")
        record(actor, "user.create", subject_type="user", subject_id=str(user.pk), user_id=user_id)
        return _issue(user, label="", expires_at=None, actor=actor)


def find_user(user_id: str) -> MemoryUser:
    """Errors: `NotFound`."""
    user = MemoryUser.objects.filter(user_id=user_id).first()
    if user is None:
        raise NotFound("There is no such user.")
    return user


def issue_key(user_pk: UUID, *, label: str = "", expires_at: datetime | None = None, actor: Actor) -> IssuedKey:
    """One more key. Errors: `NotFound`, `InvalidInput` for label and expiry, `Conflict` at too many keys."""
    check_label(label)
    check_expiry(expires_at)
    with transaction.atomic():
        user = _lock(user_pk)
        _require_room(user)
        return _issue(user, label=label, expires_at=expires_at, actor=actor)


def rotate_key(user_pk: UUID, key_id: UUID, *, grace: timedelta = DEFAULT_GRACE, actor: Actor) -> Rotation:
    """A new key in the place of a live one, which works for `grace` more (0 to 30 days) and never longer than before.

    Errors: `NotFound`, `InvalidInput` for the grace, `Conflict` if the key lives no more or there are too many.
    """
    if not timedelta(0) <= grace <= MAX_GRACE:
        raise InvalidInput.of_field("grace_seconds", f"must be 0 to {int(MAX_GRACE.total_seconds())} seconds")
    with transaction.atomic():
        user = _lock(user_pk)
        old = _key_of(user, key_id)
        if not is_live(old):
            raise Conflict("This key is expired or revoked: make a new one instead of rotating it.")
        if grace:
            _require_room(user)
        ends_at = timezone.now() + grace
        old.expires_at = min(old.expires_at or ends_at, ends_at)
        old.save(update_fields=["expires_at"])
        issued = _issue(user, label=old.label, expires_at=None, actor=actor)
        detail = {"new_key": str(issued.key.pk), "grace_seconds": int(grace.total_seconds())}
        record(actor, "key.rotate", subject_type="key", subject_id=str(old.pk), user_id=user.user_id, detail=detail)
        return Rotation(old, issued)


def revoke_key(user_pk: UUID, key_id: UUID, *, actor: Actor, may_be_last: bool = False) -> UserKey:
    """Ends a key at once; revoking twice is the same as once.

    Errors: `NotFound`; `Conflict` for the last live key unless `may_be_last`, since its owner would be locked out.
    """
    with transaction.atomic():
        user = _lock(user_pk)
        key = _key_of(user, key_id)
        if key.revoked_at is not None:
            return key
        if is_live(key) and not may_be_last and not _live_keys(user).exclude(pk=key.pk).exists():
            raise Conflict("This is your last key: make another one first, or rotate this one.")
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        record(actor, "key.revoke", subject_type="key", subject_id=str(key.pk), user_id=user.user_id)
        return key


def keys_of(user_pk: UUID) -> QuerySet[UserKey]:
    """All keys of a user, newest first, dead ones included."""
    return UserKey.objects.filter(user_id=user_pk).order_by("-created_at")


def with_live_keys(users: QuerySet[MemoryUser]) -> QuerySet[MemoryUser]:
    """The users, each with `live_key_count`."""
    live = UserKey.objects.filter(is_live_key(), user=OuterRef("pk")).order_by().values("user").annotate(n=Count("pk"))
    return users.annotate(live_key_count=Coalesce(Subquery(live.values("n")), 0))


def is_live_key() -> Q:
    """The condition that a key works now."""
    unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    return unexpired & Q(revoked_at__isnull=True)


def is_live(key: UserKey) -> bool:
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > timezone.now())


def authenticate(plaintext: str, user_id: str | None = None) -> Principal:
    """Whose key this is; with `user_id`, only if it is that user's.

    One SQL statement, and one more when the last use is a minute old. Errors: `Unauthenticated`, with the same
    sentence whatever is wrong, so that nobody learns which users and keys exist.
    """
    now = timezone.now()
    found = None
    if _KEY.fullmatch(plaintext):
        found = queries.live_key(_digest(plaintext), now=now)
    if found is None or (user_id is not None and user_id != found.user_id):
        raise Unauthenticated(REFUSAL)
    if found.last_used_at is None or found.last_used_at < now - _USE_INTERVAL:
        _note_use(found.key_id, now)
    return Principal(found.user_pk, found.user_id, found.key_id)


def _note_use(key_id: UUID, now: datetime) -> None:
    """The condition makes concurrent calls harmless; a database that cannot write just now still lets people read, and
    nobody who reads waits for those who write."""
    due = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _USE_INTERVAL)
    try:
        with no_waiting():
            UserKey.objects.filter(due, pk=key_id).update(last_used_at=now)
    except OperationalError as error:
        logger.warning("The last use of key %s was not noted: %s", key_id, error)


def lock_named(user_pk: UUID, user_id: str) -> MemoryUser:
    """The user's row, locked until the transaction ends, for whoever asks under that name. Errors: `Unauthenticated`
    if they were erased meanwhile, which takes the name first."""
    user = MemoryUser.objects.select_for_update().filter(pk=user_pk, user_id=user_id).first()
    if user is None:
        raise Unauthenticated(REFUSAL)
    return user


def _lock(user_pk: UUID) -> MemoryUser:
    """The user's row, locked: everything that counts or changes a user's keys happens one after the other."""
    user = MemoryUser.objects.select_for_update().filter(pk=user_pk).first()
    if user is None:
        raise NotFound("There is no such user.")
    return user


def _key_of(user: MemoryUser, key_id: UUID) -> UserKey:
    key = UserKey.objects.filter(pk=key_id, user=user).first()
    if key is None:
        raise NotFound("There is no such key.")
    return key


def _live_keys(user: MemoryUser) -> QuerySet[UserKey]:
    return UserKey.objects.filter(is_live_key(), user=user)


def _forget_long_dead(user: MemoryUser) -> None:
    """Keeps the newest dead keys only: rotation must not grow a list for years, and the audit trail knows them all."""
    dead = UserKey.objects.filter(~is_live_key(), user=user).order_by("-created_at")
    too_many = list(dead.values_list("pk", flat=True)[MAX_DEAD_KEYS:])
    if too_many:
        UserKey.objects.filter(pk__in=too_many).delete()


def _check_user_id(user_id: str) -> None:
    try:
        check_name(user_id)
    except ValueError as error:
        raise InvalidInput.of_field("user_id", str(error)) from None


def check_label(label: str) -> None:
    """Errors: `InvalidInput`."""
    if len(label) > MAX_LABEL_CHARS or not label.isprintable():
        raise InvalidInput.of_field("label", f"must be at most {MAX_LABEL_CHARS} characters in one line")


def check_expiry(expires_at: datetime | None) -> None:
    """Errors: `InvalidInput`."""
    now = timezone.now()
    if expires_at is not None and not now < expires_at <= now + MAX_LIFETIME:
        raise InvalidInput.of_field("expires_at", "must lie in the future, within ten years")


def _require_room(user: MemoryUser) -> None:
    if _live_keys(user).count() >= MAX_LIVE_KEYS:
        raise Conflict(f"A user has at most {MAX_LIVE_KEYS} live keys: revoke one first.")


def _issue(user: MemoryUser, *, label: str, expires_at: datetime | None, actor: Actor) -> IssuedKey:
    _forget_long_dead(user)
    plaintext = f"uk_{secrets.token_urlsafe(32)}"
    key = UserKey.objects.create(
        user=user,
        label=label,
        prefix=plaintext[:7],
        digest=_digest(plaintext),
        ciphertext=crypto.encrypt(plaintext, purpose=_PURPOSE),
        expires_at=expires_at,
    )
    record(actor, "key.issue", subject_type="key", subject_id=str(key.pk), user_id=user.user_id)
    return IssuedKey(key, plaintext)


def _plaintext(key: UserKey) -> str:
    try:
        return crypto.decrypt(key.ciphertext, purpose=_PURPOSE)
    except crypto.Undecryptable:
        raise Conflict(
            "This user's key can no longer be read: it was kept under another MEMORY_GATEWAY_SECRET_KEY. "
            "Put the old secret into MEMORY_GATEWAY_SECRET_KEY_FALLBACKS, or make a new key."
        ) from None


def _digest(plaintext: str) -> str:
    """SHA-256 without salt is right here: 256 random bits cannot be guessed, and the digest must be found again."""
    return hashlib.sha256(plaintext.encode()).hexdigest()
