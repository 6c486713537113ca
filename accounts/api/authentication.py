"""Authentication by API key: from the header, or `user_id` and `user_key` from body, form or query.

Django REST framework imports this module while it reads its settings: import no drf-spectacular, generics or viewsets.
"""

import hmac
from collections.abc import Iterable, Mapping
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import limits
from accounts.audit import Actor, record_anonymous
from accounts.models import MemoryUser, Principal
from accounts.services import INVALID_KEY
from core import rest
from core.errors import BadRequest, InvalidInput, Unauthenticated
from core.ids import user_id_form
from core.messages import Translatable as _
from core.persistence import replica

# Views parse these bodies completely. A multipart body is read for credentials only without a header.
_SMALL_BODIES = ("application/json", "application/x-www-form-urlencoded")


class UserKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer uk_…` (preferred), or `user_id` and `user_key` in body, form or query.

    The header is checked before the body is read. Raises: `Unauthenticated`; `BadRequest` if two parts of the request
    differ; `TooManyRequests`.
    """

    def authenticate(self, request: Request) -> tuple[Principal, None] | None:
        try:
            key = bearer(request)
            principal = limits.authenticate(address_of(request), key) if key else None
            media_type = (request.content_type or "").partition(";")[0].strip().lower()
            body = request.data if key is None or media_type in _SMALL_BODIES else None
            principal = check_credentials(request._request, body, request.query_params, principal=principal, key=key)  # noqa: SLF001
        except Unauthenticated:
            limits.count_anonymous(address_of(request))
            raise
        if principal is None:
            limits.count_anonymous(address_of(request))
            return None
        return principal, None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class ProvisioningAuthentication(BaseAuthentication):
    """Authentication of clients that may create users. It sets no user.

    Without a provisioning token, the profile `local` lets every client create users: the gateway is on loopback only.

    Raises: `Unauthenticated`, `TooManyRequests`.
    """

    def authenticate(self, request: Request) -> None:
        is_open = not settings.MEMORY_GATEWAY_PROVISIONING_TOKEN and not settings.IS_PRODUCTION
        if is_open or is_provisioning_token(bearer(request)):
            return
        address, action = address_of(request), "provisioning.refuse"
        limits.count_failure(address)
        record_anonymous(Actor.provisioning(), action, address, subject_type="address")
        raise Unauthenticated(
            _("Creating and describing users needs the provisioning token: Authorization: Bearer <token>.")
        )

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def is_provisioning_token(presented: str | None) -> bool:
    """Return True for the provisioning token.

    It is checked before the user id is read, so a refusal does not reveal which users exist.
    """
    expected = settings.MEMORY_GATEWAY_PROVISIONING_TOKEN
    return bool(expected) and hmac.compare_digest((presented or "").encode(), expected.encode())


def caller(request: Request) -> Principal:
    """Return the caller, in a view whose authentication is `UserKeyAuthentication`."""
    return cast("Principal", request.user)


def _replica_caller(_view: Any, request: Request, *_args: Any, **_kwargs: Any) -> str:
    return replica.user_of(caller(request).user_pk)


reads = replica.reads(_replica_caller)
"""Decorate a method of a view that only reads: it may be answered by a replica of the database."""


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
    scheme, _space, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or " " in token:
        raise Unauthenticated(_("The Authorization header must read: Bearer uk_…."))
    return token


def check_credentials(
    request: HttpRequest, *parts: Any, principal: Principal | None, key: str | None = None
) -> Principal | None:
    """Return the caller by `user_id` and `user_key` in JSON objects, forms and queries; None if none has a key.

    `principal` is the caller by the `key` of the header: the parts may repeat these credentials but not contain others.
    A key in one of them marks the request; its response then has a `Deprecation` header.

    Raises: `BadRequest` if the parts differ, `InvalidInput` for a value that is not text, `Forbidden` for a user id
    that is not that of the header's key, `Unauthenticated` without a user id or with wrong credentials,
    `TooManyRequests`.
    """
    user_id, user_key = _single_value("user_id", parts), _single_value("user_key", parts)
    if user_key is not None:
        request.key_in_url_or_body = True  # type: ignore[attr-defined]
    if principal is not None:
        if user_key not in {None, key}:
            raise _different_values("user_key")
        if user_id is not None and user_id_form(user_id) != principal.user_id:
            raise rest.Forbidden(_("The key in the Authorization header belongs to another user: leave out user_id."))
        return principal
    if user_key is None:
        return None
    if user_id is None:
        raise Unauthenticated(_("Send user_id with user_key, or the header Authorization: Bearer uk_… alone."))
    return limits.authenticate(address_of(request), user_key, user_id)


def _single_value(name: str, parts: Iterable[Any]) -> str | None:
    """Return the value of a field in the parts of a request; None if absent.

    Raises: `BadRequest` if the parts give different values, `InvalidInput` for a value that is not text.
    """
    values: set[str] = set()
    for part in parts:
        if isinstance(part, MultiValueDict):
            values.update(part.getlist(name))
        elif isinstance(part, Mapping) and (value := part.get(name)) is not None:
            if not isinstance(value, str):
                raise InvalidInput.of_field(name, _("must be text"))
            values.add(value)
    if len(values) > 1:
        raise _different_values(name)
    return values.pop() if values else None


def _different_values(name: str) -> BadRequest:
    return BadRequest(_("%(name)s is given twice with different values: send it once.", name=name))


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Handle exceptions for DRF. A caller who was erased during the request gets 401.

    An unexpected error or a 502 is then a consequence: the caller's rows were deleted.
    """
    known = rest.as_gateway_error(error)
    if known is None or known.status == 502:
        user = context["request"].user
        if (
            isinstance(user, Principal)
            and not MemoryUser.objects.filter(pk=user.user_pk, user_id=user.user_id).exists()
        ):
            error = Unauthenticated(INVALID_KEY)
    return rest.problem_response(error, context)
