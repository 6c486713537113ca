"""Authentication by API key: from the header, or `user_id` and `user_key` from body, form or query.

Django REST framework imports this module while it reads its settings: import no drf-spectacular, generics or viewsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts import provisioning, services
from accounts.api import limits
from accounts.principal import Principal
from core.errors import BadRequest, InvalidInput, Unauthenticated

# Bodies that a view parses completely anyway. A multipart body is read for credentials only without a header.
_SMALL_BODIES = ("application/json", "application/x-www-form-urlencoded")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials in one place of a request; None if absent."""

    user_id: str | None = None
    user_key: str | None = None


class UserKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer uk_…` (preferred), or `user_id` and `user_key` in body, form or query.

    Raises: `Unauthenticated`; `BadRequest` if two places of the request disagree; `TooManyRequests`.
    """

    def authenticate(self, request: Request) -> tuple[Principal, None] | None:
        try:
            principal = self._principal(request)
        except Unauthenticated:
            limits.count_anonymous(address_of(request))
            raise
        if principal is None:
            limits.count_anonymous(address_of(request))
            return None
        return principal, None

    def _principal(self, request: Request) -> Principal | None:
        header = bearer(request)
        query = credentials_from(request.query_params) if request.META.get("QUERY_STRING") else Credentials()
        if header is None:
            return authenticate_credentials(request._request, credentials_from(request.data), query)  # noqa: SLF001
        principal = limits.authenticate(address_of(request), header)
        _require_same(principal, header, self._redundant_credentials(request, query))
        return principal

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"

    def _redundant_credentials(self, request: Request, query: Credentials) -> list[Credentials]:
        is_small = (request.content_type or "").partition(";")[0].strip().lower() in _SMALL_BODIES
        seen = [query, credentials_from(request.data)] if is_small else [query]
        _mark_deprecated(request._request, seen)  # noqa: SLF001
        return seen


class ProvisioningAuthentication(BaseAuthentication):
    """Authentication of the provisioner, who may create users. It sets no user.

    Raises: `Unauthenticated`, `TooManyRequests`.
    """

    def authenticate(self, request: Request) -> None:
        if not provisioning.is_open() and not provisioning.is_token(bearer(request)):
            limits.count_failure(address_of(request))
            provisioning.refuse(address=address_of(request))

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def caller(request: Request) -> Principal:
    """Return the caller, in a view whose authentication is `UserKeyAuthentication`."""
    return cast("Principal", request.user)


def address_of(request: Request | HttpRequest) -> str:
    """Return the client's address, empty if there is none."""
    return str(request.META.get("REMOTE_ADDR", ""))


def bearer(request: Request | HttpRequest) -> str | None:
    """Return the token of the `Authorization` header; None without the header.

    Raises: `Unauthenticated` if it is not a bearer token.
    """
    header: str = request.META.get("HTTP_AUTHORIZATION", "")
    if not header:
        return None
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or " " in token:
        raise Unauthenticated("The Authorization header must read: Bearer uk_….")
    return token


def credentials_from(fields: Any) -> Credentials:
    """Return `user_id` and `user_key` of a JSON object, a form or a query.

    Raises: `BadRequest` if one is given twice with different values, `InvalidInput` if it is not text.
    """
    if not isinstance(fields, Mapping):
        return Credentials()
    return Credentials(_text(fields, "user_id"), _text(fields, "user_key"))


def authenticate_credentials(request: HttpRequest, *places: Credentials) -> Principal | None:
    """Return the caller by the credentials of several places; None if no place has a key.

    Raises: `BadRequest` if they disagree, `Unauthenticated` without a user id or with wrong credentials,
    `TooManyRequests`.
    """
    _mark_deprecated(request, places)
    user_id = _agreed("user_id", (place.user_id for place in places))
    user_key = _agreed("user_key", (place.user_key for place in places))
    if user_key is None:
        return None
    if user_id is None:
        raise Unauthenticated("Send user_id beside user_key, or the header Authorization: Bearer uk_… alone.")
    return limits.authenticate(address_of(request), user_key, user_id)


def _require_same(principal: Principal, header: str, places: Iterable[Credentials]) -> None:
    for place in places:
        _agreed("user_key", (header, place.user_key))
    user_id = _agreed("user_id", (place.user_id for place in places))
    if user_id is not None and user_id != principal.user_id:
        raise Unauthenticated(services.REFUSAL)


def _mark_deprecated(request: HttpRequest, places: Iterable[Credentials]) -> None:
    """Mark the request, so that the response says that keys outside the header are deprecated."""
    if any(place.user_key is not None for place in places):
        request.key_in_url_or_body = True  # type: ignore[attr-defined]


def _agreed(name: str, values: Iterable[str | None]) -> str | None:
    given = {value for value in values if value is not None}
    if len(given) > 1:
        raise BadRequest(f"{name} is given twice with different values: send it once.")
    return next(iter(given), None)


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    if isinstance(fields, MultiValueDict):
        return _agreed(name, fields.getlist(name))
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput.of_field(name, "must be text")
    return value
