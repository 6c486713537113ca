"""Tokens for OpenClaw's WebSocket protocol: creation, authentication, revocation.

A token belongs to an operator, who sees all users' memories, or to one user, who sees only their own. Unlike an API key
it is shown once, so only its digest is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import OperationalError, transaction
from django.db.models import Q
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import AuditEvent, MemoryUser, RpcToken
from accounts.services import check_expiry, check_label
from core.errors import InvalidInput, NotFound, Unauthenticated
from core.waiting import fail_fast_writes

logger = logging.getLogger("memory_gateway.accounts")

READ: Final = "operator.read"
WRITE: Final = "operator.write"
ADMIN: Final = "operator.admin"
SCOPES: Final = (READ, WRITE, ADMIN)
SETTING: Final = "MEMORY_GATEWAY_RPC_TOKEN"
_USE_INTERVAL = timedelta(minutes=1)
_TOKEN = re.compile(r"rpc_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token with its plaintext, which only its holder may see."""

    token: RpcToken
    plaintext: str

    def __repr__(self) -> str:
        """Return a text without the plaintext, for tracebacks and debug output."""
        return f"IssuedToken({self.token!r})"


@dataclass(frozen=True, slots=True)
class TokenPrincipal:
    """The holder of a token and its scopes. Either `operator` is set, or `user_pk` and `user_id` are.

    `token_id` is None for the token of the setting, whose operator is named after the setting.
    """

    token_id: UUID | None
    operator: str | None
    user_pk: UUID | None
    user_id: str | None
    scopes: tuple[str, ...]

    @property
    def name(self) -> str:
        """A name that all connections of a token share."""
        return str(self.token_id or SETTING)

    @property
    def actor(self) -> Actor:
        return Actor(AuditEvent.ActorKind.TOKEN, self.name)


def implied(scopes: Sequence[str], scope: str) -> bool:
    """Return True if the scopes include `scope`: an administrator has all, a writer may read."""
    return scope in scopes or (ADMIN in scopes and scope.startswith("operator.")) or (scope == READ and WRITE in scopes)


def issue(
    label: str,
    *,
    operator: User | None = None,
    user: MemoryUser | None = None,
    scopes: Sequence[str] = (ADMIN,),
    expires_at: datetime | None = None,
    actor: Actor,
) -> IssuedToken:
    """Issue a token for an operator or for a user.

    Raises: `InvalidInput` unless exactly one of both is given, for an operator who may not sign in, for label, scopes
    and expiry.
    """
    check_label(label)
    check_expiry(expires_at)
    _check_scopes(scopes)
    if (operator is None) == (user is None):
        raise InvalidInput("A token belongs either to an operator or to a user.")
    if operator is not None and not (operator.is_active and operator.is_staff):
        raise InvalidInput.of_field("operator", "must be an active member of the staff")
    plaintext = f"rpc_{secrets.token_urlsafe(32)}"
    with transaction.atomic():
        token = RpcToken.objects.create(
            label=label,
            operator=operator,
            user=user,
            scopes=" ".join(scope for scope in SCOPES if scope in scopes),
            prefix=plaintext[:8],
            digest=_digest(plaintext),
            expires_at=expires_at,
        )
        _record(actor, "token.issue", token, holder=token.holder, scopes=token.scopes)
    return IssuedToken(token, plaintext)


def find_operator(username: str) -> User:
    """Return the operator with that name.

    Raises: `NotFound`.
    """
    operator = User.objects.filter(username=username).first()
    if operator is None:
        raise NotFound("There is no such operator.")
    return operator


def revoke(token_id: UUID, *, actor: Actor) -> RpcToken:
    """Revoke a token. New connections fail at once; open ones are closed within a minute. Repeating it has no effect.

    Raises: `NotFound`.
    """
    with transaction.atomic():
        token = RpcToken.objects.select_for_update(of=("self",)).filter(pk=token_id).first()
        if token is None:
            raise NotFound("There is no such token.")
        if token.revoked_at is None:
            token.revoked_at = timezone.now()
            token.save(update_fields=["revoked_at"])
            _record(actor, "token.revoke", token)
    return token


def authenticate(plaintext: str) -> TokenPrincipal:
    """Return the principal of a token.

    Raises: `Unauthenticated`, with the same message in all cases.
    """
    if _is_configured_token(plaintext):
        return TokenPrincipal(None, SETTING, None, None, (ADMIN,))
    token = None
    if _TOKEN.fullmatch(plaintext):
        live = RpcToken.objects.filter(is_live_token(), digest=_digest(plaintext))
        token = live.select_related("operator", "user").first()
    if token is None:
        raise Unauthenticated("This token is unknown, expired or revoked.")
    _record_use(token)
    return TokenPrincipal(
        token_id=token.pk,
        operator=token.operator.get_username() if token.operator else None,
        user_pk=token.user_id,
        user_id=token.user.user_id if token.user else None,
        scopes=tuple(token.scopes.split()),
    )


def still_works(principal: TokenPrincipal) -> bool:
    """Return True if the token has not expired or been revoked since it was presented. One statement."""
    if principal.token_id is None:
        return bool(settings.MEMORY_GATEWAY_RPC_TOKEN)
    return RpcToken.objects.filter(is_live_token(), pk=principal.token_id).exists()


def is_any_configured() -> bool:
    """Return True if a live token exists."""
    return bool(settings.MEMORY_GATEWAY_RPC_TOKEN) or RpcToken.objects.filter(is_live_token()).exists()


def is_live_token() -> Q:
    """Return the condition that a token is live: an operator's token also ends when the operator may not sign in."""
    unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    has_holder = Q(user__isnull=False) | Q(operator__is_active=True, operator__is_staff=True)
    return unexpired & has_holder & Q(revoked_at__isnull=True)


def _is_configured_token(plaintext: str) -> bool:
    expected = settings.MEMORY_GATEWAY_RPC_TOKEN
    return bool(expected) and hmac.compare_digest(plaintext.encode("utf-8", "surrogatepass"), expected.encode())


def _record_use(token: RpcToken) -> None:
    """Record the last use, at most once a minute. A failed write is logged and does not fail the sign-in."""
    now = timezone.now()
    due = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _USE_INTERVAL)
    try:
        with fail_fast_writes():
            RpcToken.objects.filter(due, pk=token.pk).update(last_used_at=now)
    except OperationalError as error:
        logger.warning("The last use of token %s was not noted: %s", token.pk, error)


def _check_scopes(scopes: Sequence[str]) -> None:
    if not scopes or not set(scopes) <= set(SCOPES):
        raise InvalidInput.of_field("scopes", f"must be one or more of {', '.join(SCOPES)}")


def _record(actor: Actor, action: str, token: RpcToken, **detail: str) -> None:
    user_id = token.user.user_id if token.user else ""
    record(actor, action, subject_type="token", subject_id=str(token.pk), user_id=user_id, detail=detail)


def _digest(plaintext: str) -> str:
    """Return the SHA-256 digest. No salt: 256 random bits cannot be guessed, and the digest must be searchable."""
    return hashlib.sha256(plaintext.encode()).hexdigest()
