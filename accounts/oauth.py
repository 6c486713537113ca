"""OAuth 2.1 for `/mcp`: applications register or describe themselves, users connect them, tokens act for one user.

All tokens of one approval belong to a connection; a connection that ends is deleted with its tokens. Codes and tokens
are stored as digests.
"""

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit
from uuid import NAMESPACE_URL, UUID, uuid5

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, UUIDField
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts import authority, client_documents, expiry, scopes
from accounts.audit import Actor, record
from accounts.models import (
    AuditEvent,
    MemoryUser,
    OAuthClient,
    OAuthConnection,
    OAuthToken,
    Principal,
    UserKey,
    destination_of,
)
from accounts.services import OAUTH_PREFIX, digest_of, live_key_condition, record_use
from core.errors import InvalidInput, NotFound, Unauthenticated
from core.messages import Translatable as _

READ: Final = scopes.READ
WRITE: Final = scopes.WRITE
SCOPES: Final = (READ, WRITE)
Kind = OAuthToken.Kind
CODE, ACCESS, REFRESH = Kind.CODE, Kind.ACCESS, Kind.REFRESH

LIFETIMES: Final = {CODE: timedelta(minutes=5), ACCESS: timedelta(hours=1), REFRESH: timedelta(days=30)}
_PREFIXES: Final = {CODE: "oac_", ACCESS: OAUTH_PREFIX, REFRESH: "ort_"}
_TOKEN = re.compile(rf"{OAUTH_PREFIX}[A-Za-z0-9_-]{{43}}")
UNUSED_LIFETIME: Final = timedelta(days=1)
USED_LIFETIME: Final = timedelta(days=90)
DOCUMENT_LIFETIME: Final = timedelta(hours=1)
"""The time after which the document at a client's id is read again."""
MAX_UNCONNECTED: Final = 1000
"""Registered clients without a connection; beyond it those that expire first are deleted."""
# Two processes of one application may refresh at once. The later one is refused, but the connection stays.
REFRESH_RACE: Final = timedelta(minutes=1)
MAX_REDIRECT_URIS = 10
_APPLICATIONS: Final = frozenset({"cursor", "vscode", "vscode-insiders", "windsurf", "zed"})
"""Schemes of known applications, which are no reversed domains."""
_REVERSED_DOMAIN: Final = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+")
MAX_URI_CHARS = 1000
INVALID_TOKEN = _(
    "The token is unknown, expired or revoked, or is not for this address. Connect the application again."
)
INVALID_GRANT = _("The code or token is unknown, expired, revoked or already used. Connect the application again.")


@dataclass(frozen=True, slots=True)
class Access:
    """The user for whom a key or an access token acts, within its scopes; a token also has those that were granted."""

    principal: Principal
    actor: Actor
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """An access token and the refresh token for the next one, in plaintext, which only the client may see."""

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    scopes: str


@dataclass(frozen=True, slots=True)
class Approval:
    """The token scopes that a user approved, and the parameters of the client's request."""

    client_id: UUID
    redirect_uri: str
    code_challenge: str
    resource: str
    scopes: tuple[str, ...]


def register(client_id: UUID, name: str, redirect_uris: Sequence[str]) -> OAuthClient:
    """Store a client, which expires after a day unless a user connects it.

    Raises: `InvalidInput` unless there are 1 to 10 addresses, each https, http on loopback, or of an application.
    """
    return _store(client_id, name, redirect_uris)


def _store(client_id: UUID, name: str, redirect_uris: Sequence[str], **document: Any) -> OAuthClient:
    if not 0 < len(redirect_uris) <= MAX_REDIRECT_URIS:
        raise InvalidInput.of_field("redirect_uris", _("must be 1 to %(number)s addresses", number=MAX_REDIRECT_URIS))
    for uri in redirect_uris:
        _check_redirect_uri(uri)
    shown = "".join(character for character in name if character.isprintable()).strip()[:100]
    values = {"name": shown, "redirect_uris": list(redirect_uris), **document}
    expires_at = timezone.now() + UNUSED_LIFETIME
    client, _created = OAuthClient.objects.update_or_create(
        pk=client_id, defaults=values, create_defaults={**values, "expires_at": expires_at}
    )
    unconnected = OAuthClient.objects.filter(connections__isnull=True).order_by("-expires_at", "-created_at")
    if excess := list(unconnected.values_list("pk", flat=True)[MAX_UNCONNECTED:]):
        OAuthClient.objects.filter(pk__in=excess, connections__isnull=True).delete()
    return client


def describe(client_id: str, *, before_read: Callable[[], None] = lambda: None) -> OAuthClient:
    """Return the client of a document's address, read again after an hour. `before_read` may refuse the reading.

    Raises: `InvalidInput`.
    """
    known = find_client(client_id)
    if known is not None and known.read_at is not None and known.read_at > timezone.now() - DOCUMENT_LIFETIME:
        return known
    before_read()
    document = client_documents.read(client_id)
    read = {"address": client_id, "read_at": timezone.now()}
    client = _store(_pk_of(client_id), document.name, document.redirect_uris, **read)
    OAuthClient.objects.filter(pk=client.pk, expires_at__lt=timezone.now() + UNUSED_LIFETIME).update(
        expires_at=timezone.now() + UNUSED_LIFETIME
    )
    return client


def _pk_of(address: str) -> UUID:
    return uuid5(NAMESPACE_URL, address)


def _check_redirect_uri(uri: str) -> None:
    parts = urlsplit(uri)
    is_web = bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts)))
    is_allowed = is_web or is_of_application(parts.scheme)
    if not is_allowed or parts.username is not None or parts.fragment or len(uri) > MAX_URI_CHARS:
        raise InvalidInput.of_field(
            "redirect_uris",
            _(
                "must be https addresses, http addresses of this machine (127.0.0.1, [::1], localhost), or addresses "
                "of an application whose scheme is a reversed domain (com.example.app) or one of %(schemes)s, without "
                "user name and fragment, of at most %(number)s characters",
                schemes=", ".join(sorted(_APPLICATIONS)),
                number=MAX_URI_CHARS,
            ),
        )


def is_of_application(scheme: str) -> bool:
    """Return True for a private-use scheme (RFC 8252), which opens an application: a reversed domain or a known one."""
    return scheme in _APPLICATIONS or bool(_REVERSED_DOMAIN.fullmatch(scheme))


def _is_loopback(parts: SplitResult) -> bool:
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"


def find_client(client_id: str) -> OAuthClient | None:
    """Return the client of an id, as it is stored."""
    if client_documents.is_address(client_id):
        return OAuthClient.objects.filter(pk=_pk_of(client_id), address=client_id).first()
    try:
        return OAuthClient.objects.filter(pk=UUID(client_id), address="").first()
    except ValueError:
        return None


def is_registered(client: OAuthClient, uri: str) -> bool:
    """Return True for a registered redirect address. On loopback the port may differ (RFC 8252)."""
    return uri in client.redirect_uris or any(
        _without_port(uri) == _without_port(known) for known in client.redirect_uris if _is_loopback_http(known)
    )


def _is_loopback_http(uri: str) -> bool:
    parts = urlsplit(uri)
    return parts.scheme == "http" and _is_loopback(parts)


def _without_port(uri: str) -> tuple[str, ...]:
    parts = urlsplit(uri)
    return parts.scheme, parts.username or "", parts.hostname or "", parts.path, parts.query, parts.fragment


def approve(
    approval: Approval, *, user_pk: UUID, key_id: UUID | None = None, operator: User | None = None, actor: Actor
) -> str:
    """Connect a client to a user and return the code, which the client redeems within five minutes.

    The API key or the operator has approved it. Raises: `NotFound` if the client or the user was deleted meanwhile.
    """
    with transaction.atomic():
        client = OAuthClient.objects.select_for_update().filter(pk=approval.client_id).first()
        user = MemoryUser.objects.filter(pk=user_pk).first()
        if client is None or user is None:
            raise NotFound(_("The application or the user no longer exists. Connect the application again."))
        client.expires_at = timezone.now() + USED_LIFETIME
        client.save(update_fields=["expires_at"])
        connection = OAuthConnection.objects.create(
            client=client,
            user=user,
            key_id=key_id,
            operator=operator,
            scopes=" ".join(approval.scopes),
            resource=approval.resource,
            redirect_uri=approval.redirect_uri,
            code_challenge=approval.code_challenge,
        )
        detail = {"application": client.name, "host": connection.host}
        _record(actor, "connection.approve", connection, {**detail, "scopes": connection.scopes})
        return _issue(connection, CODE, connection.scopes)


def find(kind: Kind, plaintext: str) -> OAuthToken | None:
    """Return a live code or refresh token. A used one ends its connection: it was copied (RFC 9700)."""
    found = OAuthToken.objects.filter(kind=kind, digest=digest_of(plaintext)).select_related("connection__client")
    token = found.first()
    if token is not None and token.used_at is not None:
        _end_if_copied(token, token.used_at)
    return found.filter(is_live_token(), used_at__isnull=True).first()


def redeem(kind: Kind, plaintext: str, scopes: str = "") -> IssuedTokens:
    """Exchange a code or refresh token, once, for new tokens. `scopes` may narrow those of the access token.

    Raises: `Unauthenticated`.
    """
    token = find(kind, plaintext)
    if token is None:
        raise Unauthenticated(INVALID_GRANT)
    now = timezone.now()
    with transaction.atomic():
        connection = OAuthConnection.objects.select_for_update().filter(pk=token.connection_id).first()
        if connection is None:
            raise Unauthenticated(INVALID_GRANT)
        if OAuthToken.objects.filter(pk=token.pk, used_at__isnull=True).update(used_at=now):
            OAuthClient.objects.filter(pk=connection.client_id).update(expires_at=now + USED_LIFETIME)
            granted = scopes or connection.scopes
            access, refresh = _issue(connection, ACCESS, granted), _issue(connection, REFRESH, connection.scopes)
            return IssuedTokens(access, refresh, granted)
    _end_if_copied(token, now)
    raise Unauthenticated(INVALID_GRANT)


def _end_if_copied(token: OAuthToken, used_at: datetime) -> None:
    """End the connection of a code or token that is used again, but for refreshes that overlap."""
    if token.kind == CODE or used_at < timezone.now() - REFRESH_RACE:
        revoke(token.connection_id, actor=Actor.system("oauth"), reason="reuse")


def authenticate(plaintext: str, resource: str) -> Access:
    """Return the user and token scopes of an access token that was issued for `resource`.

    Raises: `Unauthenticated`, with the same message in all cases.
    """
    token = None
    if _TOKEN.fullmatch(plaintext):
        live = OAuthToken.objects.filter(is_live_token(), kind=ACCESS, digest=digest_of(plaintext))
        token = live.filter(connection__resource=resource).select_related("connection__user", "connection__key").first()
    if token is None:
        raise Unauthenticated(INVALID_TOKEN)
    record_use(OAuthConnection.objects.filter(pk=token.connection_id))
    user, key = token.connection.user, token.connection.key
    granted = scopes.of_oauth(token.scopes.split())
    principal = Principal(user.pk, user.user_id, token.connection_id, granted)
    if key is not None:  # an application may not do more than the key that connected it
        allowed = granted & scopes.of_key(key.scopes)
        principal = replace(principal, scopes=allowed, app_id=key.app_id, agent_id=key.agent_id)
    if user.next_expiry_at is not None and user.next_expiry_at <= timezone.now():
        expiry.end_due(user.pk)
    return Access(principal, _actor(token.connection_id), tuple(token.scopes.split()))


def revoke(connection_id: UUID, *, actor: Actor, user_pk: UUID | None = None, reason: str = "") -> None:
    """End a connection at once, with all its tokens; with `user_pk`, only one of this user.

    Raises: `NotFound` with `user_pk`. Without it, repeating the call has no effect.
    """
    with transaction.atomic():
        rows = OAuthConnection.objects.select_for_update(of=("self",)).select_related("client", "user")
        connection = rows.filter(pk=connection_id, **({"user": user_pk} if user_pk else {})).first()
        if connection is not None:
            detail = {"application": connection.client.name, **({"reason": reason} if reason else {})}
            _record(actor, "connection.revoke", connection, detail)
            connection.delete()
        elif user_pk:
            raise NotFound(_("There is no such connection."))


def revoke_approved_by(operator: User, *, actor: Actor) -> None:
    """End the connections that an operator has approved."""
    for pk in OAuthConnection.objects.filter(operator=operator).values_list("pk", flat=True):
        revoke(pk, actor=actor, reason="operator")


def revoke_by_token(plaintext: str, client_id: str | None) -> None:
    """End the connection of a token (RFC 7009). Nothing happens for an unknown one, or one of another client."""
    token = OAuthToken.objects.filter(digest=digest_of(plaintext)).select_related("connection__client").first()
    if token is not None and client_id in {None, token.connection.client.client_id}:
        revoke(token.connection_id, actor=_actor(token.connection_id))


def connections_of(user_pk: UUID) -> QuerySet[OAuthConnection]:
    """Return the live connections of a user, newest first."""
    is_usable = Exists(OAuthToken.objects.filter(connection=OuterRef("pk"), expires_at__gt=timezone.now()))
    rows = OAuthConnection.objects.filter(_is_live(), is_usable, user=user_pk)
    return rows.select_related("client", "key").order_by("-created_at")


def clients_only_of(user: MemoryUser) -> QuerySet[OAuthClient]:
    """Return the clients that this user alone has connected, also those whose connection has ended since."""
    approved = AuditEvent.objects.filter(action="connection.approve", user_id=user.user_id)
    known = {(detail.get("application"), detail.get("host")) for detail in approved.values_list("detail", flat=True)}
    # A client that was never connected expires within a day, and may be another user's who is about to connect it.
    ended = OAuthClient.objects.filter(connections=None, expires_at__gt=timezone.now() + UNUSED_LIFETIME)
    of_trail = [
        client.pk
        for client in ended.filter(name__in={name for name, _host in known})
        if any((client.name, destination_of(uri)) in known for uri in client.redirect_uris)
    ]
    of_others = OAuthConnection.objects.filter(client=OuterRef("pk")).exclude(user=user)
    connected = Q(Exists(OAuthConnection.objects.filter(client=OuterRef("pk"), user=user)), ~Exists(of_others))
    return OAuthClient.objects.filter(connected | Q(pk__in=of_trail))


def forget_old(now: datetime) -> None:
    """Delete expired tokens, connections that have ended, and clients without a connection that have expired."""
    OAuthToken.objects.filter(expires_at__lte=now).delete()
    OAuthConnection.objects.filter(Q(tokens__isnull=True) | ~_is_live()).delete()
    OAuthClient.objects.filter(expires_at__lte=now, connections__isnull=True).delete()


def is_live_token() -> Q:
    """Return the condition that a code or token has not expired and its connection is live."""
    return Q(expires_at__gt=timezone.now()) & _is_live("connection__")


def _is_live(prefix: str = "") -> Q:
    """Return the condition of a live connection: its API key is live, or without one any key of its user.

    The operator who approved it must be allowed to do so now.
    """
    key = Coalesce(OuterRef(f"{prefix}key"), F("pk"), output_field=UUIDField())
    has_key = Exists(UserKey.objects.filter(live_key_condition(), user=OuterRef(f"{prefix}user"), pk=key))
    approver = Q(**{f"{prefix}operator__isnull": True}) | Q(
        **{f"{prefix}operator__in": authority.holders(authority.CONNECT)}
    )
    return Q(has_key) & approver


def _issue(connection: OAuthConnection, kind: Kind, scopes: str) -> str:
    plaintext = f"{_PREFIXES[kind]}{secrets.token_urlsafe(32)}"
    expires_at = timezone.now() + LIFETIMES[kind]
    OAuthToken.objects.create(
        connection=connection, kind=kind, digest=digest_of(plaintext), scopes=scopes, expires_at=expires_at
    )
    return plaintext


def _actor(connection_id: UUID) -> Actor:
    return Actor(AuditEvent.ActorKind.TOKEN, str(connection_id))


def _record(actor: Actor, action: str, connection: OAuthConnection, detail: dict[str, str]) -> None:
    record(actor, action, str(connection.pk), user_id=connection.user.user_id, detail=detail)
