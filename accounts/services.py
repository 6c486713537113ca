"""Users and their API keys: creation, authentication, rotation, revocation."""

import hashlib
import logging
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Final
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts import expiry, scopes, tenants
from accounts.audit import Actor, record, record_counted
from accounts.models import MemoryUser, OAuthConnection, Principal, RpcToken, UserKey
from core.crypto import Purpose, Undecryptable
from core.errors import Conflict, InvalidInput, Unauthenticated, existing
from core.ids import ERASED_ID, ERASED_PREFIX, alias_of, check_user_id, user_id_form, user_of_alias
from core.logs import are_bodies_private
from core.messages import Translatable as _
from core.persistence import database_errors, replica, sql

logger = logging.getLogger("memory_gateway.accounts")

DEFAULT_GRACE = timedelta(hours=24)
MAX_GRACE = timedelta(days=30)
MAX_LIFETIME = timedelta(days=3650)
MAX_BROWSER_LIFETIME = timedelta(hours=1)
"""The longest time for which a key works that a browser gets."""
MAX_LABEL_CHARS = 100
MAX_LIVE_KEYS = 100
MAX_DEAD_KEYS = 100
USE_INTERVAL = timedelta(minutes=1)
_PURPOSE = Purpose("user keys", "accounts.UserKey.ciphertext")
SHOWN_KEY_CHARS = 7
SHOWN_TOKEN_CHARS = 8
# Those that this gateway issues have 43 characters; imported ones of the original gateway may have others.
_KEY = re.compile(r"uk_[A-Za-z0-9_-]{22,128}")
# Every request runs this. It takes 0.02 ms of CPU time, and with the ORM 0.35 ms: an eighth of a search.
_LIVE_KEY = """
    SELECT u.id, u.user_id, k.id, k.last_used_at IS NULL OR k.last_used_at < %s, k.scopes, k.app_id, k.agent_id,
        u.next_expiry_at <= %s,
        EXISTS (SELECT 1 FROM accounts_pause p WHERE p.user_id = u.id AND p.ended_at IS NULL)
            OR EXISTS (SELECT 1 FROM accounts_controls c WHERE c.user_id = u.id
                AND (CAST(c.words AS text) <> '[]' OR CAST(c.topics AS text) <> '[]'))
    FROM accounts_userkey k JOIN accounts_memoryuser u ON u.id = k.user_id
    WHERE k.digest = %s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %s)
"""
INVALID_KEY = _("The API key is unknown, expired or revoked, or belongs to another user.")
OAUTH_PREFIX = "oat_"
_OAUTH_TOKEN = _("OAuth tokens are for /mcp only. Send an API key (uk_…) here.")


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """An API key and its plaintext, which only its user may see."""

    key: UserKey
    plaintext: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Grant:
    """The label of a key and what it may do. The fields are columns of `UserKey`."""

    label: str = ""
    expires_at: datetime | None = None
    scopes: str = ""
    app_id: str = ""
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class Rotation:
    """A rotated key: `old` works until its `expires_at`, `new` from now on."""

    old: UserKey
    new: IssuedKey


def create_user(user_id: str, *, actor: Actor, must_be_new: bool = False) -> IssuedKey:
    """Create a user with a key; for an existing user return the newest live key without limits, or a new one.

    Concurrent calls create one user and return the same key.

    Raises: `InvalidInput` for an invalid id; `Conflict` if the existing key can no longer be decrypted, or if the user
    exists and `must_be_new`.
    """
    try:
        user_id = check_user_id(user_id)
    except ValueError as error:
        raise InvalidInput.of_field("user_id", error.args[0]) from None
    require_no_alias(user_id)
    with transaction.atomic():
        user, is_new = MemoryUser.objects.get_or_create(user_id=user_id)
        if is_new:
            record(actor, "user.create", str(user.pk), user_id=user_id)
        elif must_be_new:
            raise Conflict(_("A user with this ID already exists."))
        unlimited = _live_keys(_lock(user.pk)).filter(scopes="")
        key = unlimited.select_related("user").order_by("-created_at").first()
        if key is None:
            return _issue(user, Grant(), actor=actor)
        record_counted(actor, "key.reveal", str(key.pk), user_id=user_id)
        return IssuedKey(key, _plaintext(key))


PERSON: Final = ("name", "email", "labels", "notes", "tenant")
"""The columns by which operators know a person. Audit events name those that changed, not their values."""


def describe_user(user_pk: UUID, values: Mapping[str, str], *, actor: Actor) -> list[str]:
    """Set some columns of `PERSON` and return the names of those that changed. Raises: `NotFound`."""
    with transaction.atomic():
        user = _lock(user_pk)
        changed = {name: values[name] for name in PERSON if name in values and values[name] != getattr(user, name)}
        if changed:
            MemoryUser.objects.filter(pk=user_pk).update(**changed)
            record(actor, "user.describe", str(user_pk), user_id=user.user_id, detail={"fields": list(changed)})
    return list(changed)


def labels_of(labels: Iterable[str]) -> str:
    """Return labels as they are stored: without commas, empty ones and repetitions."""
    words = (" ".join(label.replace(",", " ").split()) for label in labels)
    return ", ".join(dict.fromkeys(filter(None, words)))


def person_condition(text: str) -> Q:
    """Return the condition that a user's id, name, e-mail address, labels, notes or tenant contain a text."""
    names = ("user_id", *PERSON)
    return reduce(or_, (Q(**{f"{name}__icontains": text}) for name in names))


def require_no_alias(user_id: str, user_pk: UUID | None = None) -> None:
    """Raise `Conflict` for an id that is the alias of another user, in session ids and at remotes.

    `user_pk` is the key of a user who has one already: no other user's id may be their alias.
    """
    holder = None if user_pk is None else MemoryUser.objects.filter(user_id=alias_of(user_pk)).exclude(pk=user_pk)
    other = user_of_alias(user_id)
    if (other is not None and MemoryUser.objects.filter(pk=other).exists()) or (holder is not None and holder.exists()):
        raise Conflict(_("This user id stands for another user: choose another one."))


def find_user(user_id: str) -> MemoryUser:
    """Return the user with that id. Raises: `NotFound`."""
    return existing(
        tenants.reachable(MemoryUser.objects.filter(user_id=user_id_form(user_id)), ""), _("There is no such user.")
    )


def issue_key(
    user_pk: UUID,
    *,
    label: str = "",
    expires_at: datetime | None = None,
    granted: Iterable[str] | None = None,
    app_id: str = "",
    agent_id: str = "",
    actor: Actor,
) -> IssuedKey:
    """Issue another key with the scopes `granted`, by default all; with `app_id` or `agent_id`, one bound to it.

    Raises: `NotFound`, `InvalidInput` for label, expiry and scopes, `Conflict` at the limit of keys.
    """
    check_label(label)
    check_expiry(expires_at)
    allowed = scopes.stored(granted, is_bound=bool(app_id or agent_id))
    with transaction.atomic():
        user = _lock(user_pk)
        _check_key_limit(user)
        return _issue(user, Grant(label, expires_at, allowed, app_id, agent_id), actor=actor)


def import_key(user: MemoryUser, plaintext: str, *, created_at: datetime, actor: Actor) -> UserKey | None:
    """Save a key of another gateway, which keeps working; return None if it exists already.

    Call inside a transaction. Raises: `InvalidInput` for another format, `Conflict` for another user's key.
    """
    if not _KEY.fullmatch(plaintext):
        raise InvalidInput.of_field("user_key", _("has another format"))
    known_key = UserKey.objects.filter(digest=digest_of(plaintext)).first()
    if known_key is None:
        key = _save_key(user, plaintext, Grant("imported"), actor=actor)
        UserKey.objects.filter(pk=key.pk).update(created_at=created_at)
        return key
    if known_key.user_id != user.pk:
        raise Conflict(_("Another user has this API key."))
    return None


def remove_key(key: UserKey) -> bool:
    """Delete an imported key; return False if it is the last live one without limits, and stays."""
    with transaction.atomic():
        if not _live_keys(_lock(key.user.pk)).filter(scopes="").exclude(pk=key.pk).exists():
            return False
        key.delete()
        return True


def rotate_key(user_pk: UUID, key_id: UUID, *, grace: timedelta = DEFAULT_GRACE, actor: Actor) -> Rotation:
    """Replace a live key by a new one.

    The old key works for `grace` more (0 to 30 days), but never beyond its own expiry.

    Raises: `NotFound`, `InvalidInput` for the grace, `Conflict` if the key is not live or at the limit of keys.
    """
    if not timedelta(0) <= grace <= MAX_GRACE:
        raise InvalidInput.of_field(
            "grace_seconds", _("must be 0 to %(number)s seconds", number=int(MAX_GRACE.total_seconds()))
        )
    with transaction.atomic():
        user = _lock(user_pk)
        old = _key_of(user, key_id)
        if not is_live(old):
            raise Conflict(_("The API key is expired or revoked and cannot be rotated. Create a new one."))
        if grace:
            _check_key_limit(user)
        ends_at = timezone.now() + grace
        old.expires_at = min(old.expires_at or ends_at, ends_at)
        old.save(update_fields=["expires_at"])
        issued = _issue(user, Grant(old.label, None, old.scopes, old.app_id, old.agent_id), actor=actor)
        detail = {"new_key": str(issued.key.pk), "grace_seconds": int(grace.total_seconds())}
        record(actor, "key.rotate", str(old.pk), user_id=user.user_id, detail=detail)
        return Rotation(old, issued)


def revoke_key(user_pk: UUID, key_id: UUID, *, actor: Actor, may_be_last: bool = False) -> UserKey:
    """Revoke a key at once. Repeating it has no effect.

    Raises: `NotFound`; `Conflict` for the last live key without limits unless `may_be_last`, because its user would be
    locked out.
    """
    with transaction.atomic():
        user = _lock(user_pk)
        key = _key_of(user, key_id)
        if key.revoked_at is not None:
            return key
        others = _live_keys(user).filter(scopes="").exclude(pk=key.pk)
        if is_live(key) and not key.scopes and not may_be_last and not others.exists():
            raise Conflict(_("This is your last active API key. Create another one first, or rotate this one."))
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        record(actor, "key.revoke", str(key.pk), user_id=user.user_id)
        return key


def keys_of(user_pk: UUID) -> QuerySet[UserKey]:
    """Return all keys of a user, newest first, including expired and revoked ones."""
    return UserKey.objects.filter(user_id=user_pk).order_by("-created_at")


def active_users() -> QuerySet[MemoryUser]:
    """Return the users except those being erased, for an operator limited to tenants theirs."""
    return tenants.reachable(
        MemoryUser.objects.exclude(user_id__startswith=ERASED_PREFIX, user_id__regex=ERASED_ID), ""
    )


def with_live_keys(users: QuerySet[MemoryUser]) -> QuerySet[MemoryUser]:
    """Return the users, each with `live_key_count`."""
    live = (
        UserKey.objects.filter(live_key_condition(), user=OuterRef("pk"))
        .order_by()
        .values("user")
        .annotate(n=Count("pk"))
    )
    return users.annotate(live_key_count=Coalesce(Subquery(live.values("n")), 0))


def live_key_condition() -> Q:
    """Return the condition that a key, or a token, is neither expired nor revoked."""
    unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    return unexpired & Q(revoked_at__isnull=True)


def is_live(key: UserKey) -> bool:
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > timezone.now())


def authenticate(plaintext: str, user_id: str | None = None) -> Principal:
    """Return the principal of a key; with `user_id`, only if the key is that user's.

    One SQL statement, and a second one when the last use is a minute old. What has expired of the user ends.

    Raises: `Unauthenticated`, with one message for all cases: it does not reveal which users and keys exist.
    """
    found = []
    if plaintext.startswith(OAUTH_PREFIX):
        raise Unauthenticated(_OAUTH_TOKEN)
    if _KEY.fullmatch(plaintext):
        now = timezone.now()
        used_before, live_at = sql.moment_value(now - USE_INTERVAL), sql.moment_value(now)
        found = sql.rows(_LIVE_KEY, [used_before, live_at, digest_of(plaintext), live_at])
    if not found or (user_id is not None and user_id_form(user_id) != found[0][1]):
        raise Unauthenticated(INVALID_KEY)
    user_pk, found_id, key_id, is_use_due, granted, app_id, agent_id, is_expiry_due, is_limited = found[0]
    if is_limited:
        are_bodies_private.set(True)
    pk, key_pk = UUID(str(user_pk)), UUID(str(key_id))  # SQLite stores them as text
    principal = Principal(pk, found_id, key_pk, scopes.of_key(granted), app_id, agent_id)
    if is_use_due:
        record_use(UserKey.objects.filter(pk=principal.key_id))
    if is_expiry_due:
        expiry.end_due(principal.user_pk)
        replica.note_write(replica.user_of(principal.user_pk))
    return principal


def record_use(credential: QuerySet[UserKey] | QuerySet[RpcToken] | QuerySet[OAuthConnection]) -> None:
    """Record the last use of a key, token or connection, at most once a minute and without waiting for other writers.

    The condition makes concurrent calls harmless. A failed write does not fail the request. It is logged unless the
    database was only busy: then the next request records its own use.
    """
    now = timezone.now()
    due = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - USE_INTERVAL)
    try:
        with sql.fail_fast_writes():
            credential.filter(due).update(last_used_at=now)
    except OperationalError as error:
        if database_errors.explain(error):
            name = credential.model.__name__
            logger.warning("The last use of a %s could not be recorded: %s", name, error, extra={"cause": error})


def digest_of(plaintext: str) -> str:
    """Return the SHA-256 digest. No salt: 256 random bits cannot be guessed, and the digest must be searchable."""
    return hashlib.sha256(plaintext.encode("utf-8", "surrogatepass")).hexdigest()


def lock_caller(user_pk: UUID, user_id: str, *, no_key: bool = False) -> MemoryUser:
    """Return the row of a caller, locked until the transaction ends.

    With `no_key`, rows that refer to the user can be written meanwhile. Raises: `Unauthenticated` if the user was
    erased since authentication: erasing changes the user id first.
    """
    user = MemoryUser.objects.select_for_update(no_key=no_key).filter(pk=user_pk, user_id=user_id).first()
    if user is None:
        raise Unauthenticated(INVALID_KEY)
    return user


def _lock(user_pk: UUID) -> MemoryUser:
    """Return the user's row, locked, to serialize operations that count or change the user's keys."""
    return existing(MemoryUser.objects.select_for_update().filter(pk=user_pk), _("There is no such user."))


def _key_of(user: MemoryUser, key_id: UUID) -> UserKey:
    return existing(UserKey.objects.filter(pk=key_id, user=user), _("There is no such API key."))


def _live_keys(user: MemoryUser) -> QuerySet[UserKey]:
    return UserKey.objects.filter(live_key_condition(), user=user)


def check_label(label: str) -> None:
    """Raise `InvalidInput` for a label that is too long or has several lines."""
    if len(label) > MAX_LABEL_CHARS or not label.isprintable():
        raise InvalidInput.of_field(
            "label", _("must be one line of at most %(number)s characters", number=MAX_LABEL_CHARS)
        )


def check_expiry(expires_at: datetime | None) -> None:
    """Raise `InvalidInput` for a time in the past or after ten years."""
    now = timezone.now()
    if expires_at is not None and not now < expires_at <= now + MAX_LIFETIME:
        raise InvalidInput.of_field("expires_at", _("must be in the future, within ten years"))


def _check_key_limit(user: MemoryUser) -> None:
    if _live_keys(user).count() >= MAX_LIVE_KEYS:
        raise Conflict(_("A user can have at most %(number)s active API keys. Revoke one first.", number=MAX_LIVE_KEYS))


def _issue(user: MemoryUser, grant: Grant, *, actor: Actor) -> IssuedKey:
    # Rotation would grow the list without limit. The audit trail still names the deleted keys.
    dead = UserKey.objects.filter(~live_key_condition(), user=user).order_by("-created_at")
    if excess := list(dead.values_list("pk", flat=True)[MAX_DEAD_KEYS:]):
        UserKey.objects.filter(pk__in=excess).delete()
    plaintext = f"uk_{secrets.token_urlsafe(32)}"
    return IssuedKey(_save_key(user, plaintext, grant, actor=actor), plaintext)


def _save_key(user: MemoryUser, plaintext: str, grant: Grant, *, actor: Actor) -> UserKey:
    key = UserKey.objects.create(
        user=user,
        prefix=plaintext[:SHOWN_KEY_CHARS],
        digest=digest_of(plaintext),
        ciphertext=_PURPOSE.encrypt(plaintext),
        **asdict(grant),
    )
    limits = {name: getattr(grant, name) for name in ("scopes", "app_id", "agent_id") if getattr(grant, name)}
    record(actor, "key.issue", str(key.pk), user_id=user.user_id, detail=limits)
    return key


def _plaintext(key: UserKey) -> str:
    try:
        return _PURPOSE.decrypt(key.ciphertext)
    except Undecryptable:
        raise Conflict(
            _(
                "The user's API key cannot be decrypted because the gateway's secret has changed. Ask the "
                "operator to restore the former secret or to issue a new key."
            )
        ) from None
