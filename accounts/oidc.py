"""Sign-in by OpenID Connect, of operators and of users: the authorization code flow with PKCE, a state and a nonce.

The ID token's signature, issuer, audience, nonce and times are checked. An operator is identified by issuer and
subject, never by a name or e-mail address: providers let people change these.

A user is found by the claim that the operator chose (`user_of`), and never created.

A refresh token, if the provider gives one, is kept to ask for the role again while the operator works (`confirm`).
"""

import base64
import functools
import hashlib
import logging
import secrets
import time
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode, urlsplit, urlunsplit

import orjson
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import transaction
from django.utils import timezone

from accounts import operators, sign_in
from accounts.audit import Actor, record, source
from accounts.models import MemoryUser, OperatorIdentity
from accounts.services import active_users
from core.crypto import Purpose, Undecryptable
from core.errors import GatewayError
from core.messages import Translatable as _
from core.network.http_client import Deadline, HttpClient, HttpError
from core.rest import Forbidden

logger = logging.getLogger("memory_gateway.sign_in")

_SECONDS: Final = 10.0
_MAX_BYTES: Final = 2**20
_LEEWAY_SECONDS: Final = 30
_DISCOVERY_SECONDS: Final = 300
_MAX_SUBJECT_CHARS: Final = 255
# Asymmetric algorithms only: with HMAC, everybody who knows the client secret could sign.
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
ACTOR: Final = Actor.system("single sign-on")

CONFIRMED_FOR: Final = timedelta(minutes=15)
"""The time after which the provider is asked again for the role of an operator who works."""
_RETRY_AFTER: Final = timedelta(minutes=1)
# The answers to a refresh that say that the person must sign in again, or cannot. Others are faults of the provider.
_ENDED: Final = frozenset(
    {"invalid_grant", "access_denied", "interaction_required", "login_required", "consent_required"}
)
_MAX_REFRESH_TOKEN_CHARS: Final = 16_384
_REFRESH: Final = Purpose("oidc refresh token", "accounts.OperatorIdentity.sealed_refresh_token")


class SignInFailed(Forbidden):
    """The provider's answer does not prove who signs in, or the person has no access."""

    title = _("Sign-in failed")


class ProviderUnavailable(GatewayError):
    """The provider does not answer, or its answer is not OpenID Connect."""

    status, title = 502, _("Sign-in is unavailable")


def is_on() -> bool:
    return bool(settings.MEMORY_GATEWAY_OIDC_ISSUER)


def is_on_for_users() -> bool:
    return bool(settings.MEMORY_GATEWAY_PORTAL_OIDC_CLAIM)


def require_roles() -> None:
    """Check that the roles of groups exist. Raises: `ImproperlyConfigured`."""
    named = set(settings.MEMORY_GATEWAY_OIDC_ROLES.values())
    if missing := sorted(named - set(Group.objects.filter(name__in=named).values_list("name", flat=True))):
        raise ImproperlyConfigured(
            f"MEMORY_GATEWAY_OIDC_ROLES names the role {missing[0]!r}, which does not exist. Roles are, for example, "
            "Viewer and Administrator."
        )


def begin(redirect_uri: str) -> tuple[str, dict[str, str]]:
    """Return the provider's address for a sign-in, and the secrets that `finish` needs.

    Raises: `ProviderUnavailable`.
    """
    provider = _provider()
    secret = {name: secrets.token_urlsafe(48) for name in ("state", "nonce", "verifier")}
    digest = hashlib.sha256(secret["verifier"].encode()).digest()
    query = {
        "response_type": "code",
        "client_id": settings.MEMORY_GATEWAY_OIDC_CLIENT_ID,
        "redirect_uri": redirect_uri,
        "scope": " ".join(dict.fromkeys(["openid", *settings.MEMORY_GATEWAY_OIDC_SCOPES])),
        "state": secret["state"],
        "nonce": secret["nonce"],
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    return _with_query(provider["authorization_endpoint"], query), secret


def finish(secret: Mapping[str, str], answer: Mapping[str, str], redirect_uri: str) -> User:
    """Return the operator to whom the provider's answer belongs, created at the first sign-in.

    Raises: `SignInFailed`, `ProviderUnavailable`.
    """
    wanted = {settings.MEMORY_GATEWAY_OIDC_GROUPS_CLAIM, "preferred_username"}
    return _operator(*_claims(secret, answer, redirect_uri, wanted))


def user_of(secret: Mapping[str, str], answer: Mapping[str, str], redirect_uri: str) -> MemoryUser:
    """Return the user whose id is in the provider's answer, in the claim that the operator chose.

    An e-mail address counts only if the provider has verified it. Raises: `SignInFailed`, `ProviderUnavailable`.
    """
    claim = settings.MEMORY_GATEWAY_PORTAL_OIDC_CLAIM
    wanted = {claim, "email_verified"} if claim == "email" else {claim}
    claims, _refresh_token = _claims(secret, answer, redirect_uri, wanted)
    value = claims.get(claim)
    if not isinstance(value, str) or not value or (claim == "email" and claims.get("email_verified") is not True):
        raise _refusal(f"the provider says no {claim} that proves who signs in")
    user = active_users().filter(user_id=value).first()
    if user is None:
        sign_in.record_failure("", source.get().address, method="oidc")
        raise SignInFailed(
            _("There are no memories for this account. Sign in with the account that you use in the application.")
        )
    return user


def _claims(
    secret: Mapping[str, str], answer: Mapping[str, str], redirect_uri: str, wanted: Collection[str]
) -> tuple[dict[str, Any], Any]:
    """Return the claims of the person who signs in, and the refresh token.

    Claims of `wanted` that the ID token lacks are asked for. Raises: `SignInFailed`, `ProviderUnavailable`.
    """
    if not secret or not secrets.compare_digest(answer.get("state", "").encode(), secret["state"].encode()):
        raise SignInFailed(_("This sign-in was not started in this browser, or took too long. Sign in again."))
    provider = _provider()
    is_iss_required = provider.get("authorization_response_iss_parameter_supported") is True
    if answer.get("iss", None if is_iss_required else provider["issuer"]) != provider["issuer"]:  # RFC 9207
        raise _refusal("another issuer answered")
    if "code" not in answer:
        raise _refusal(f"the provider answered {answer.get('error', 'without a code')[:100]!r}")
    tokens = _tokens(
        provider,
        {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "redirect_uri": redirect_uri,
            "code_verifier": secret["verifier"],
        },
    )
    claims = _verified(provider, tokens.get("id_token"), secret["nonce"])
    if not claims.keys() >= set(wanted):
        claims = {**_user_info(provider, tokens.get("access_token"), claims["sub"]), **claims}
    return claims, tokens.get("refresh_token")


def confirm(operator_pk: int, *, now: datetime | None = None) -> datetime:
    """Ask the provider for the role of an operator again, unless it was asked within 15 minutes.

    Return the time from which the next 15 minutes count. If the provider cannot be used, nothing changes and it is
    asked again in a minute. Fewer permissions end sessions and tokens; a provider that does not confirm the person
    ends the sessions, and tokens rest until the next sign-in.
    """
    now = now or timezone.now()
    identity = OperatorIdentity.objects.filter(operator=operator_pk).exclude(sealed_refresh_token="").first()
    if not is_on() or identity is None:
        return now
    if identity.confirmed_at and identity.confirmed_at > now - CONFIRMED_FOR:
        return identity.confirmed_at
    # One request of all asks: the provider may take a refresh token that is used twice for a stolen one.
    asked_before = OperatorIdentity.objects.filter(pk=identity.pk, confirmed_at=identity.confirmed_at)
    if not asked_before.update(confirmed_at=now):
        return now
    try:
        claims = _refreshed(identity)
    except SignInFailed:
        _end(identity, now)
        return now
    except ProviderUnavailable:
        earlier = now - CONFIRMED_FOR + _RETRY_AFTER
        OperatorIdentity.objects.filter(pk=identity.pk, confirmed_at=now).update(confirmed_at=earlier)
        return earlier
    if settings.MEMORY_GATEWAY_OIDC_ROLES and claims is not None:
        with transaction.atomic():
            operators.follow_provider(identity.operator, _role(claims), actor=ACTOR)
    return now


def forget_old(now: datetime) -> None:
    """Delete refresh tokens of operators whose sessions have all ended."""
    lifetime = timedelta(hours=settings.MEMORY_GATEWAY_SESSION_MAX_HOURS)
    OperatorIdentity.objects.filter(confirmed_at__lt=now - lifetime).exclude(sealed_refresh_token="").update(
        sealed_refresh_token=""
    )


def _refreshed(identity: OperatorIdentity) -> dict[str, Any] | None:
    """Return the claims of a person by the refresh token; None if the provider's answer has none.

    The next refresh token is stored. Raises: `SignInFailed`, `ProviderUnavailable`.
    """
    try:
        refresh_token = _REFRESH.decrypt(identity.sealed_refresh_token)
    except Undecryptable:
        raise _refusal("the refresh token cannot be decrypted") from None
    provider = _provider()
    if provider["issuer"] != identity.issuer:
        raise _refusal("the provider is another one now")
    tokens = _tokens(provider, {"grant_type": "refresh_token", "refresh_token": refresh_token})
    if following := _sealed(tokens.get("refresh_token")):
        unchanged = OperatorIdentity.objects.filter(pk=identity.pk, sealed_refresh_token=identity.sealed_refresh_token)
        unchanged.update(sealed_refresh_token=following)
        identity.sealed_refresh_token = following
    claims = _verified(provider, tokens["id_token"], None) if "id_token" in tokens else {}
    if claims and claims["sub"] != identity.subject:
        raise _refusal("the ID token is another person's (sub)")
    if settings.MEMORY_GATEWAY_OIDC_GROUPS_CLAIM not in claims:
        claims = {**_user_info(provider, tokens.get("access_token"), identity.subject), **claims}
    return claims or None


def _end(identity: OperatorIdentity, now: datetime) -> None:
    """End the sessions of a person whom the provider does not confirm; tokens rest. A new sign-in has precedence."""
    same = OperatorIdentity.objects.filter(pk=identity.pk, sealed_refresh_token=identity.sealed_refresh_token)
    with transaction.atomic():
        if same.update(sealed_refresh_token="", ended_at=now):
            count = operators.end_sessions(identity.operator)
            detail = {"sessions": count, "reason": "provider"}
            record(ACTOR, "operator.sign_out", identity.operator.get_username(), detail=detail)


def _sealed(refresh_token: Any) -> str:
    is_usable = isinstance(refresh_token, str) and 0 < len(refresh_token) <= _MAX_REFRESH_TOKEN_CHARS
    return _REFRESH.encrypt(refresh_token) if is_usable else ""


def sign_out_address(redirect_uri: str) -> str:
    """Return the provider's address that ends its own session, or an empty string. Raises: `ProviderUnavailable`."""
    address = _provider().get("end_session_endpoint")
    query = {"client_id": settings.MEMORY_GATEWAY_OIDC_CLIENT_ID, "post_logout_redirect_uri": redirect_uri}
    return _with_query(_checked(address), query) if address else ""


def _provider() -> dict[str, Any]:
    return _discovered(settings.MEMORY_GATEWAY_OIDC_ISSUER, int(time.monotonic() // _DISCOVERY_SECONDS))


@functools.lru_cache(maxsize=1)
def _discovered(issuer: str, _period: int) -> dict[str, Any]:
    found = _object(f"{issuer}/.well-known/openid-configuration")
    # Some providers' issuers end with a slash, which the setting lacks. Tokens must name exactly the provider's.
    if str(found.get("issuer")).rstrip("/") != issuer:
        raise _unavailable(f"it calls itself {found.get('issuer')!r}")
    for name in _ENDPOINTS:
        _checked(found.get(name))
    return found


def _checked(address: Any) -> str:
    """Return an endpoint's address if it is as safe as the issuer's."""
    parts = urlsplit(address) if isinstance(address, str) else None
    is_http_allowed = settings.MEMORY_GATEWAY_OIDC_ISSUER.startswith("http:")
    if parts is None or not parts.hostname or parts.scheme not in ({"http", "https"} if is_http_allowed else {"https"}):
        raise _unavailable(f"it names the endpoint {address!r}")
    return parts.geturl()


def _tokens(provider: Mapping[str, Any], form: dict[str, str]) -> dict[str, Any]:
    """Return the answer of the token endpoint. Raises: `SignInFailed` if the person has no access any longer."""
    client_id, client_secret = settings.MEMORY_GATEWAY_OIDC_CLIENT_ID, settings.MEMORY_GATEWAY_OIDC_CLIENT_SECRET
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if "client_secret_basic" in (provider.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]):
        # RFC 6749, 2.3.1: both are encoded as in a form first.
        pair = urlencode({client_id: client_secret}).replace("=", ":", 1)
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form = {**form, "client_id": client_id, "client_secret": client_secret}
    status, found = _answer(provider["token_endpoint"], headers=headers, form=form)
    error = found.get("error")
    if status in {400, 401, 403} and error in _ENDED and form["grant_type"] == "refresh_token":
        raise _refusal(f"the provider does not refresh the sign-in ({error})")
    if status != 200:
        raise _unavailable(f"the token endpoint answered with status {status}")
    return found


def _verified(provider: Mapping[str, Any], token: Any, nonce: str | None) -> dict[str, Any]:
    """Return the claims of an ID token (OpenID Connect Core, 3.1.3.7). After a refresh it has no nonce (12.2)."""
    import jwt  # noqa: PLC0415  most gateways have no single sign-on, and it loads all of cryptography

    client_id = settings.MEMORY_GATEWAY_OIDC_CLIENT_ID
    key_set = _object(provider["jwks_uri"])
    try:
        keys = [key for key in jwt.PyJWKSet.from_dict(key_set) if key.public_key_use in {None, "sig"}]
        key_id = jwt.get_unverified_header(token).get("kid")
        key = next(key for key in keys if key_id is None or key.key_id == key_id)
        claims = jwt.decode(
            token,
            key,
            algorithms=_ALGORITHMS,
            audience=client_id,
            issuer=provider["issuer"],
            leeway=_LEEWAY_SECONDS,
            options={"require": ["aud", "exp", "iat", "iss", "sub"]},
        )
    except StopIteration:
        raise _refusal("the ID token is signed by an unknown key") from None
    except jwt.PyJWTError as error:
        raise _refusal(f"the ID token is not valid: {error}") from None
    if nonce is not None and not secrets.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise _refusal("the ID token is of another sign-in (nonce)")
    is_for_many = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if claims.get("azp", None if is_for_many else client_id) != client_id:
        raise _refusal("the ID token is for another application (azp)")
    if not 0 < len(claims["sub"]) <= _MAX_SUBJECT_CHARS:
        raise _refusal("the ID token has no valid subject")
    return claims


def _user_info(provider: Mapping[str, Any], access_token: Any, subject: str) -> dict[str, Any]:
    """Return the claims that some providers leave out of ID tokens. They must be the same person's."""
    if not isinstance(access_token, str) or not provider.get("userinfo_endpoint"):
        return {}
    found = _object(_checked(provider["userinfo_endpoint"]), headers={"Authorization": f"Bearer {access_token}"})
    if found.get("sub") != subject:
        raise _refusal("the user information is another person's (sub)")
    return found


def _operator(claims: Mapping[str, Any], refresh_token: Any) -> User:
    """Return the operator of a subject, with the role of their groups."""
    role, name = _role(claims), _name(claims)
    with transaction.atomic():
        found = (
            OperatorIdentity.objects.select_related("operator")
            .filter(issuer=claims["iss"], subject=claims["sub"])
            .first()
        )
        operator = found.operator if found else None
        has_access = role is not None or not settings.MEMORY_GATEWAY_OIDC_ROLES
        if operator is None and has_access:
            operator = operators.create(name, role, actor=ACTOR)
            OperatorIdentity.objects.create(operator=operator, issuer=claims["iss"], subject=claims["sub"])
        elif operator is not None and settings.MEMORY_GATEWAY_OIDC_ROLES:
            operators.follow_provider(operator, role, actor=ACTOR)
        if operator is None or not has_access:
            reason = _("No group of your account has a role here. Ask an administrator of the identity provider.")
        elif not (operator.is_active and operator.is_staff):
            reason = _("This account may not sign in. Ask an administrator.")
        else:
            OperatorIdentity.objects.filter(operator=operator).update(
                sealed_refresh_token=_sealed(refresh_token), confirmed_at=timezone.now(), ended_at=None
            )
            record(
                Actor.operator(operator.get_username()),
                "operator.sign_in",
                operator.get_username(),
                detail={"method": "oidc"},
            )
            return operator
        subject = operator.get_username() if operator else name
        record(ACTOR, "operator.refuse", subject)
    raise SignInFailed(reason)


def _role(claims: Mapping[str, Any]) -> Group | None:
    """Return the role of the first group in the setting that the person is in."""
    value = claims.get(settings.MEMORY_GATEWAY_OIDC_GROUPS_CLAIM) or []
    groups = {value} if isinstance(value, str) else {one for one in value if isinstance(one, str)}
    for group, role in settings.MEMORY_GATEWAY_OIDC_ROLES.items():
        if group in groups:
            return Group.objects.filter(name=role).first()
    return None


def _name(claims: Mapping[str, Any]) -> str:
    """Return a free operator name. A name that exists belongs to another operator, so it gets a suffix."""
    suffix = hashlib.sha256(f"{claims['iss']} {claims['sub']}".encode()).hexdigest()[:8]
    wanted = str(claims.get("preferred_username") or claims.get("email") or "")[:140]
    try:
        User.username_validator(wanted)
    except ValidationError:
        return f"operator-{suffix}"
    return f"{wanted}-{suffix}" if User.objects.filter(username__iexact=wanted).exists() else wanted


def _object(address: str, *, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON object at an address."""
    status, found = _answer(address, headers=headers)
    if status != 200:
        raise _unavailable(f"{urlsplit(address).path} answered with status {status}")
    return found


def _answer(
    address: str, *, headers: Mapping[str, str] | None = None, form: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    """Return the status and the JSON object of an answer, to a form if one is given."""
    parts = urlsplit(address)
    path = urlunsplit(("", "", parts.path, parts.query, ""))
    body = urlencode(form).encode() if form else None
    try:
        with (
            HttpClient(
                f"{parts.scheme}://{parts.netloc}", headers={"Accept": "application/json", **(headers or {})}
            ) as http,
            http.send("POST" if form else "GET", path, body, Deadline.after(_SECONDS)) as response,
        ):
            status, found = response.status, orjson.loads(response.body(_MAX_BYTES))
    except HttpError as error:
        raise _unavailable(f"{parts.path}: {error.message}") from None
    except (orjson.JSONDecodeError, ValueError):
        raise _unavailable(f"{parts.path} did not answer with JSON") from None
    if not isinstance(found, dict):
        raise _unavailable(f"{parts.path} did not answer with an object")
    return status, found


def _with_query(address: str, query: Mapping[str, str]) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"


def _refusal(reason: str) -> SignInFailed:
    logger.warning("Single sign-on was refused: %s", reason)
    sign_in.record_failure("", source.get().address, method="oidc")
    return SignInFailed(_("The identity provider's answer was refused. Sign in again, or ask an administrator."))


def _unavailable(reason: str) -> ProviderUnavailable:
    logger.warning("The identity provider cannot be used: %s", reason)
    return ProviderUnavailable(_("The identity provider cannot be used. Try again later, or ask an administrator."))
