"""Users and their API keys: creation, authentication, rotation, revocation."""

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
from core.waiting import fail_fast_writes

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
    """An API key with its plaintext, which only its user may see."""

    key: UserKey
    plaintext: str

    def __repr__(self) -> str:
        """Return a text without the plaintext, for tracebacks and debug output."""
        return f"IssuedKey({self.key!r})"


@dataclass(frozen=True, slots=True)
class Rotation:
    """A rotated key: `old` works until its `expires_at`, `new` from now on."""

    old: UserKey
    new: IssuedKey


def create_user(user_id: str, *, actor: Actor) -> IssuedKey:
    """Create a user with a key; for an existing user return the newest live key, or a new one if none is live.

    Concurrent calls create one user and return the same key.

    Raises: `InvalidInput` for an invalid id, `Conflict` if the existing key can no longer be decrypted.
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
    """Create a user who does not exist yet.

    Raises: `InvalidInput` for an invalid id, `Conflict` if the user exists.
    """
    _check_user_id(user_id)
    with transaction.atomic():
        user, is_new = MemoryUser.objects.get_or_create(user_id=user_id)
        if not is_new:
            raise Conflict("This user exists already.")
        record(actor, "user.create", subject_type="user", subject_id=str(user.pk), user_id=user_id)
        return _issue(user, label="", expires_at=None, actor=actor)


def find_user(user_id: str) -> MemoryUser:
    """Return the user with that id.

    Raises: `NotFound`.
    """
    user = MemoryUser.objects.filter(user_id=user_id).first()
    if user is None:
        raise NotFound("There is no such user.")
    return user


def issue_key(user_pk: UUID, *, label: str = "", expires_at: datetime | None = None, actor: Actor) -> IssuedKey:
    """Issue a further key.

    Raises: `NotFound`, `InvalidInput` for label and expiry, `Conflict` at the limit of keys.
    """
    check_label(label)
    check_expiry(expires_at)
    with transaction.atomic():
        user = _lock(user_pk)
        _require_room(user)
        return _issue(user, label=label, expires_at=expires_at, actor=actor)


def rotate_key(user_pk: UUID, key_id: UUID, *, grace: timedelta = DEFAULT_GRACE, actor: Actor) -> Rotation:
    """Replace a live key by a new one.

    The old key works for `grace` more (0 to 30 days), but never beyond its own expiry.

    Raises: `NotFound`, `InvalidInput` for the grace, `Conflict` if the key is not live or at the limit of keys.
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
    """Revoke a key at once. Repeating it has no effect.

    Raises: `NotFound`; `Conflict` for the last live key unless `may_be_last`, because its user would be locked out.
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
    """Return all keys of a user, newest first, including expired and revoked ones."""
    return UserKey.objects.filter(user_id=user_pk).order_by("-created_at")


def with_live_keys(users: QuerySet[MemoryUser]) -> QuerySet[MemoryUser]:
    """Return the users, each with `live_key_count`."""
    live = UserKey.objects.filter(is_live_key(), user=OuterRef("pk")).order_by().values("user").annotate(n=Count("pk"))
    return users.annotate(live_key_count=Coalesce(Subquery(live.values("n")), 0))


def is_live_key() -> Q:
    """Return the condition that a key is live."""
    unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    return unexpired & Q(revoked_at__isnull=True)


def is_live(key: UserKey) -> bool:
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > timezone.now())


def authenticate(plaintext: str, user_id: str | None = None) -> Principal:
    """Return the principal of a key; with `user_id`, only if the key is that user's.

    One SQL statement, and a second one when the last use is a minute old.

    Raises: `Unauthenticated`, with the same message in all cases, so that it does not reveal which users and keys
    exist.
    """
    now = timezone.now()
    found = None
    if _KEY.fullmatch(plaintext):
        found = queries.live_key(_digest(plaintext), now=now)
    if found is None or (user_id is not None and user_id != found.user_id):
        raise Unauthenticated(REFUSAL)
    if found.last_used_at is None or found.last_used_at < now - _USE_INTERVAL:
        _record_use(found.key_id, now)
    return Principal(found.user_pk, found.user_id, found.key_id)


def _record_use(key_id: UUID, now: datetime) -> None:
    """Record the last use of a key, at most once per interval and without waiting for other writers.

    The condition makes concurrent calls harmless. A failed write is logged and does not fail the request.
    """
    due = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _USE_INTERVAL)
    try:
        with fail_fast_writes():
            UserKey.objects.filter(due, pk=key_id).update(last_used_at=now)
    except OperationalError as error:
        logger.warning("The last use of key %s was not noted: %s", key_id, error)


def lock_named(user_pk: UUID, user_id: str) -> MemoryUser:
    """Return the user's row, locked until the transaction ends, for a caller known by that user id.

    Raises: `Unauthenticated` if the user was erased meanwhile, which changes the user id first.
    """
    user = MemoryUser.objects.select_for_update().filter(pk=user_pk, user_id=user_id).first()
    if user is None:
        raise Unauthenticated(REFUSAL)
    return user


def _lock(user_pk: UUID) -> MemoryUser:
    """Return the user's row, locked: operations that count or change a user's keys run one after the other."""
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


def _delete_old_dead_keys(user: MemoryUser) -> None:
    """Delete all but the newest dead keys, so that rotation does not grow the list; the audit trail keeps them all."""
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
    """Check a label.

    Raises: `InvalidInput`.
    """
    if len(label) > MAX_LABEL_CHARS or not label.isprintable():
        raise InvalidInput.of_field("label", f"must be at most {MAX_LABEL_CHARS} characters in one line")


def check_expiry(expires_at: datetime | None) -> None:
    """Check an expiry time.

    Raises: `InvalidInput`.
    """
    now = timezone.now()
    if expires_at is not None and not now < expires_at <= now + MAX_LIFETIME:
        raise InvalidInput.of_field("expires_at", "must lie in the future, within ten years")


def _require_room(user: MemoryUser) -> None:
    if _live_keys(user).count() >= MAX_LIVE_KEYS:
        raise Conflict(f"A user has at most {MAX_LIVE_KEYS} live keys: revoke one first.")


def _issue(user: MemoryUser, *, label: str, expires_at: datetime | None, actor: Actor) -> IssuedKey:
    _delete_old_dead_keys(user)
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
    """Return the SHA-256 digest. No salt: 256 random bits cannot be guessed, and the digest must be searchable."""
    return hashlib.sha256(plaintext.encode()).hexdigest()
