"""`connect`, the first request of every socket: protocol version, origin, token and scopes."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from accounts import tokens
from accounts.api import limits
from accounts.tokens import TokenPrincipal
from agents.rpc import frames
from agents.rpc.connection_limits import MAX_HANDSHAKE_BYTES, MAX_MESSAGE_BYTES, MAX_OUTBOUND_BYTES
from agents.rpc.failures import Failure, Refusal, invalid, refused
from agents.rpc.frames import BadFrame, NotJson, Request
from agents.rpc.origins import is_origin_allowed
from core.errors import TooManyRequests, Unauthenticated

MIN_PROTOCOL, MAX_PROTOCOL = 3, 4
ROLE = "operator"
EVENTS = ("connect.challenge", "tick", "shutdown")
_STARTED = time.monotonic()


@dataclass(frozen=True, slots=True)
class UpgradeInfo:
    """The client's address and the headers of a WebSocket upgrade."""

    peer: str
    host: str
    origin: str | None
    scheme: str
    client: str = ""


@dataclass(frozen=True, slots=True)
class Peer:
    """A connected client. `scopes` are the requested scopes that the token has."""

    principal: TokenPrincipal
    scopes: tuple[str, ...]
    protocol: int


def first_request(data: bytes) -> Request:
    """Parse the first message. Raises: `Refusal` without an error response."""
    if len(data) > MAX_HANDSHAKE_BYTES:
        raise Refusal(1009, "frame too large before connect")
    try:
        return frames.read(data)
    except NotJson:
        raise Refusal(1000) from None
    except BadFrame:
        raise Refusal(1008, "invalid request frame") from None


def connect(request: Request, upgrade: UpgradeInfo) -> Peer:
    """Check the request, then authenticate its token, which takes two SQL statements. Raises: `Refusal`."""
    if request.method != "connect":
        raise refused(invalid("invalid handshake: first request must be connect"))
    protocol = _protocol(request.params)
    if upgrade.origin is not None and not is_origin_allowed(
        upgrade.origin, host=upgrade.host, scheme=upgrade.scheme, peer=upgrade.peer
    ):
        message = "origin not allowed (open the Control UI from the gateway host or allow it in gateway.controlUi."
        details = {"code": "CONTROL_UI_ORIGIN_NOT_ALLOWED", "reason": "name it in MEMORY_GATEWAY_ALLOWED_ORIGINS"}
        raise refused(invalid(f"{message}allowedOrigins)", details))
    auth, requested = request.params.get("auth"), request.params.get("scopes")
    if not isinstance(auth, dict | None):
        raise refused(_bad_params("at /auth: must be an object"))
    if not isinstance(requested, list | None) or not all(isinstance(scope, str) for scope in requested or ()):
        raise refused(_bad_params("at /scopes: must be an array of strings"))
    if request.params.get("role", ROLE) != ROLE:
        raise refused(invalid("invalid role"))
    principal = _authenticate(auth or {}, upgrade.peer, has_device=bool(request.params.get("device")))
    granted = principal.scopes
    if requested is not None:
        granted = tuple(scope for scope in dict.fromkeys(requested) if tokens.includes_scope(principal.scopes, scope))
    return Peer(principal, granted, protocol)


def hello(peer: Peer, *, connection_id: str, methods: list[str], tick_seconds: float) -> dict[str, Any]:
    return {
        "type": "hello-ok",
        "protocol": peer.protocol,
        "server": {"version": settings.SPECTACULAR_SETTINGS["VERSION"], "connId": connection_id},
        "features": {"methods": methods, "events": list(EVENTS)},
        "snapshot": {
            "presence": [],
            "health": {},
            "stateVersion": {"presence": 0, "health": 0},
            "uptimeMs": int((time.monotonic() - _STARTED) * 1000),
        },
        "auth": {"role": ROLE, "scopes": list(peer.scopes)},
        "policy": {
            "maxPayload": MAX_MESSAGE_BYTES,
            "maxBufferedBytes": MAX_OUTBOUND_BYTES,
            "tickIntervalMs": max(1, int(tick_seconds * 1000)),
        },
    }


def _protocol(params: Mapping[str, Any]) -> int:
    lowest, highest = (_version(params, name) for name in ("minProtocol", "maxProtocol"))
    if highest < MIN_PROTOCOL or lowest > MAX_PROTOCOL:
        details = {
            "code": "PROTOCOL_MISMATCH",
            "clientMinProtocol": lowest,
            "clientMaxProtocol": highest,
            "expectedProtocol": MAX_PROTOCOL,
            "minimumProbeProtocol": MIN_PROTOCOL,
        }
        raise refused(invalid("protocol mismatch", details), code=1002)
    return min(highest, MAX_PROTOCOL)


def _version(params: Mapping[str, Any], name: str) -> int:
    value = params.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise refused(_bad_params(f"at /{name}: must be an integer of at least 1"))
    return value


def _bad_params(reason: str) -> Failure:
    return invalid(f"invalid connect params: {reason}")


def _authenticate(auth: Mapping[str, Any], peer: str, *, has_device: bool) -> TokenPrincipal:
    """Authenticate the secret, sent as token or password.

    Failures count together with wrong API keys of that address. Raises: `Refusal`.
    """
    secrets = [auth[name] for name in ("token", "password") if isinstance(auth.get(name), str) and auth[name]]
    if not secrets:
        if not has_device:
            details = {"code": "DEVICE_IDENTITY_REQUIRED"}
            message = "unauthorized: gateway token missing (device identity required)"
            raise refused(Failure("NOT_PAIRED", message, details=details))
        raise refused(_bad_token("missing", "update_auth_configuration"))
    for secret in dict.fromkeys(secrets):
        try:
            return tokens.authenticate(secret)
        except Unauthenticated:
            continue
    try:
        limits.count_failure(peer)
    except TooManyRequests as error:
        failure = Failure(
            "INVALID_REQUEST",
            "unauthorized: too many failed authentication attempts (retry later)",
            details={"code": "AUTH_RATE_LIMITED", "authReason": "rate_limited"},
            retry_after_ms=1000 * (error.retry_after_seconds or 1),
        )
        raise refused(failure) from None
    raise refused(_bad_token("mismatch", "update_auth_credentials"))


def token_ended() -> Refusal:
    """Return the refusal for a token that has become invalid since `connect`: revoked, expired or without holder."""
    return Refusal(4001, "gateway auth changed", _bad_token("mismatch", "update_auth_credentials"))


def _bad_token(reason: str, next_step: str) -> Failure:
    details = {
        "code": f"AUTH_TOKEN_{reason.upper()}",
        "authReason": f"token_{reason}",
        "canRetryWithDeviceToken": False,
        "recommendedNextStep": next_step,
    }
    return invalid(f"unauthorized: gateway token {reason} (provide gateway auth token)", details)
