"""`connect`, the first request of every socket: protocol version, origin, token and scopes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from accounts import tokens
from accounts.api import limits
from accounts.tokens import TokenPrincipal
from agents.rpc import frames
from agents.rpc.failures import Failure, Refusal, invalid, refused
from agents.rpc.frames import BadFrame, NotJson, Request
from agents.rpc.limits import MAX_HANDSHAKE_BYTES, MAX_MESSAGE_BYTES, MAX_OUTBOUND_BYTES
from agents.rpc.origins import is_origin_allowed
from core.errors import TooManyRequests, Unauthenticated

MIN_PROTOCOL, MAX_PROTOCOL = 3, 4
ROLE = "operator"
EVENTS = ("connect.challenge", "tick", "shutdown")
_STARTED = time.monotonic()


@dataclass(frozen=True, slots=True)
class Arrival:
    """A socket before its first message: the address and headers of the upgrade."""

    peer: str
    host: str
    origin: str | None
    scheme: str


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


def connect(request: Request, arrival: Arrival) -> Peer:
    """Check the request, then authenticate its token, which takes two SQL statements. Raises: `Refusal`."""
    if request.method != "connect":
        raise refused(invalid("invalid handshake: first request must be connect"))
    protocol = _protocol(request.params)
    _check_origin(arrival)
    auth = _part(request.params, "auth")
    asked = _asked_scopes(request.params)
    if request.params.get("role", ROLE) != ROLE:
        raise refused(invalid("invalid role"))
    principal = _authenticate(auth, arrival.peer, has_device=bool(request.params.get("device")))
    granted = principal.scopes if asked is None else _granted(principal, asked)
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


def _part(params: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = params.get(name)
    if value is not None and not isinstance(value, dict):
        raise refused(_bad_params(f"at /{name}: must be an object"))
    return value or {}


def _asked_scopes(params: Mapping[str, Any]) -> list[str] | None:
    scopes = params.get("scopes")
    if scopes is not None and not (isinstance(scopes, list) and all(isinstance(scope, str) for scope in scopes)):
        raise refused(_bad_params("at /scopes: must be an array of strings"))
    return scopes


def _bad_params(why: str) -> Failure:
    return invalid(f"invalid connect params: {why}")


def _granted(principal: TokenPrincipal, asked: list[str]) -> tuple[str, ...]:
    return tuple(scope for scope in dict.fromkeys(asked) if tokens.implied(principal.scopes, scope))


def _check_origin(arrival: Arrival) -> None:
    if arrival.origin is None or is_origin_allowed(
        arrival.origin, host=arrival.host, scheme=arrival.scheme, peer=arrival.peer
    ):
        return
    message = (
        "origin not allowed (open the Control UI from the gateway host or allow it in gateway.controlUi.allowedOrigins)"
    )
    details = {"code": "CONTROL_UI_ORIGIN_NOT_ALLOWED", "reason": "name it in MEMORY_GATEWAY_ALLOWED_ORIGINS"}
    raise refused(invalid(message, details))


def _authenticate(auth: Mapping[str, Any], peer: str, *, has_device: bool) -> TokenPrincipal:
    """Authenticate the secret, sent as token or password.

    Failures count together with wrong API keys of that address. Raises: `Refusal`.
    """
    given = [auth[name] for name in ("token", "password") if isinstance(auth.get(name), str) and auth[name]]
    if not given:
        raise refused(_missing_token() if has_device else _missing_device())
    for secret in dict.fromkeys(given):
        try:
            return tokens.authenticate(secret)
        except Unauthenticated:
            continue
    try:
        limits.count_failure(peer)
    except TooManyRequests as error:
        raise refused(_too_many_failures(error)) from None
    raise refused(_wrong_token())


def token_ended() -> Refusal:
    """Return the refusal for a token that was revoked, expired or lost its holder after connecting."""
    return Refusal(4001, "gateway auth changed", _wrong_token())


def _wrong_token() -> Failure:
    details = {
        "code": "AUTH_TOKEN_MISMATCH",
        "authReason": "token_mismatch",
        "canRetryWithDeviceToken": False,
        "recommendedNextStep": "update_auth_credentials",
    }
    return invalid("unauthorized: gateway token mismatch (provide gateway auth token)", details)


def _missing_token() -> Failure:
    details = {
        "code": "AUTH_TOKEN_MISSING",
        "authReason": "token_missing",
        "canRetryWithDeviceToken": False,
        "recommendedNextStep": "update_auth_configuration",
    }
    return invalid("unauthorized: gateway token missing (provide gateway auth token)", details)


def _missing_device() -> Failure:
    return Failure("NOT_PAIRED", "device identity required", details={"code": "DEVICE_IDENTITY_REQUIRED"})


def _too_many_failures(error: TooManyRequests) -> Failure:
    return Failure(
        "INVALID_REQUEST",
        "unauthorized: too many failed authentication attempts (retry later)",
        details={"code": "AUTH_RATE_LIMITED", "authReason": "rate_limited"},
        retry_after_ms=1000 * (error.retry_after_seconds or 1),
    )
