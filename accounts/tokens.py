"""Tokens for OpenClaw's WebSocket protocol: creation, authentication, revocation.

A token gives access to the memories of all users, if it belongs to an operator, or of its user. It acts within its
scopes and what its operator may do at that moment. Unlike an API key it is shown once, so only its digest is stored.
"""

import hmac
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts import authority
from accounts.audit import Actor, record
from accounts.models import AuditEvent, MemoryUser, RpcToken
from accounts.services import SHOWN_TOKEN_CHARS, check_expiry, check_label, digest_of, live_key_condition, record_use
from core.errors import InvalidInput, Unauthenticated, existing
from core.messages import Translatable as _

READ: Final = "operator.read"
WRITE: Final = "operator.write"
ADMIN: Final = "operator.admin"
SCOPES: Final = (READ, WRITE, ADMIN)
SETTING: Final = "MEMORY_GATEWAY_RPC_TOKEN"
_USES: Final = (authority.VIEW, authority.ADD, authority.CHANGE, authority.DELETE)
PERMISSIONS: Final = {READ: _USES[:1], WRITE: _USES, ADMIN: _USES}
"""The permissions that the methods of each scope can need."""
_TOKEN = re.compile(r"rpc_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token and its plaintext, which only its holder may see."""

    token: RpcToken
    plaintext: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenPrincipal:
    """The holder of a token and its scopes. Either `operator` is set, or `user_pk` and `user_id` are.

    `token_id` is None for the token of the setting, whose operator is named after the setting.
    """

    token_id: UUID | None
    operator: str | None
    operator_pk: int | None
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


def includes_scope(scopes: Sequence[str], scope: str) -> bool:
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

    Raises: `InvalidInput` unless exactly one of both is given; for an operator who may not sign in; for an invalid
    label, scope or expiry.
    """
    check_label(label)
    check_expiry(expires_at)
    if not scopes or not set(scopes) <= set(SCOPES):
        raise InvalidInput.of_field("scopes", _("must be one or more of %(choices)s", choices=", ".join(SCOPES)))
    if (operator is None) == (user is None):
        raise InvalidInput(_("A token belongs either to an operator or to a user."))
    if operator is not None and not (operator.is_active and operator.is_staff):
        raise InvalidInput.of_field("operator", _("must be an active operator"))
    plaintext = f"rpc_{secrets.token_urlsafe(32)}"
    with transaction.atomic():
        token = RpcToken.objects.create(
            label=label,
            operator=operator,
            user=user,
            scopes=" ".join(scope for scope in SCOPES if scope in scopes),
            prefix=plaintext[:SHOWN_TOKEN_CHARS],
            digest=digest_of(plaintext),
            expires_at=expires_at,
        )
        _record(actor, "token.issue", token, holder=token.holder, scopes=token.scopes)
    return IssuedToken(token, plaintext)


def find_operator(username: str) -> User:
    """Return the operator with that name. Raises: `NotFound`."""
    return existing(User.objects.filter(username=username), _("There is no such operator."))


def revoke(token_id: UUID, *, actor: Actor) -> RpcToken:
    """Revoke a token. New connections fail at once; open ones are closed within a minute. Repeating it has no effect.

    Raises: `NotFound`.
    """
    with transaction.atomic():
        token = existing(
            RpcToken.objects.select_for_update(of=("self",)).filter(pk=token_id), _("There is no such token.")
        )
        if token.revoked_at is None:
            token.revoked_at = timezone.now()
            token.save(update_fields=["revoked_at"])
            _record(actor, "token.revoke", token)
    return token


def authenticate(plaintext: str) -> TokenPrincipal:
    """Return the principal of a token.

    Raises: `Unauthenticated`, with the same message in all cases.
    """
    configured = settings.MEMORY_GATEWAY_RPC_TOKEN
    if configured and hmac.compare_digest(plaintext.encode("utf-8", "surrogatepass"), configured.encode()):
        return TokenPrincipal(None, SETTING, None, None, None, (ADMIN,))
    token = None
    if _TOKEN.fullmatch(plaintext):
        live = RpcToken.objects.filter(is_live_token(), digest=digest_of(plaintext))
        token = live.select_related("operator", "user").first()
    if token is None:
        raise Unauthenticated(_("This token is unknown, expired or revoked."))
    record_use(RpcToken.objects.filter(pk=token.pk))
    return TokenPrincipal(
        token_id=token.pk,
        operator=token.operator.get_username() if token.operator else None,
        operator_pk=token.operator_id,
        user_pk=token.user_id,
        user_id=token.user.user_id if token.user else None,
        scopes=tuple(token.scopes.split()),
    )


def is_still_valid(principal: TokenPrincipal) -> bool:
    """Return True if the token has not expired or been revoked since it was presented. One statement."""
    if principal.token_id is None:
        return bool(settings.MEMORY_GATEWAY_RPC_TOKEN)
    return RpcToken.objects.filter(is_live_token(), pk=principal.token_id).exists()


def may(principal: TokenPrincipal, permission: str) -> bool:
    """Return True if the holder has a permission now. One statement.

    Users have all permissions for their own memories; so has the token of the setting, which belongs to no operator.
    """
    if principal.operator_pk is None:
        return True
    return authority.holders(permission).filter(pk=principal.operator_pk).exists()


def revoke_exceeding(operator: User, *, before: Collection[str], now: Collection[str], actor: Actor) -> None:
    """Revoke the live tokens of an operator that could do what the operator may not do any longer."""
    for token in RpcToken.objects.filter(live_key_condition(), operator=operator):
        uses = {permission for scope in token.scopes.split() for permission in PERMISSIONS[scope]}
        if uses & set(before) - set(now):
            revoke(token.pk, actor=actor)


def is_any_configured() -> bool:
    """Return True if a live token exists."""
    return bool(settings.MEMORY_GATEWAY_RPC_TOKEN) or RpcToken.objects.filter(is_live_token()).exists()


def is_live_token() -> Q:
    """Return the condition that a token is live.

    An operator's token also ends when the operator may not sign in, and rests while the identity provider does not
    confirm the operator, or while the operator is limited to tenants, because it sees all users.
    """
    may_sign_in = Q(operator__is_active=True, operator__is_staff=True, operator__identity__ended_at__isnull=True)
    may_sign_in &= Q(operator__tenants__isnull=True)
    return live_key_condition() & (Q(user__isnull=False) | may_sign_in)


def _record(actor: Actor, action: str, token: RpcToken, **detail: str) -> None:
    user_id = token.user.user_id if token.user else ""
    record(actor, action, str(token.pk), user_id=user_id, detail=detail)
