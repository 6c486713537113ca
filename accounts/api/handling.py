"""Exception handling in REST endpoints that depends on the caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import MemoryUser
from accounts.principal import Principal
from accounts.services import REFUSAL
from core import rest
from core.errors import Unauthenticated


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Handle exceptions for DRF. A caller who was erased during the request gets 401.

    Whatever other error occurred, the deletion of the caller's rows caused it.
    """
    known = rest.as_gateway_error(error)
    if (known is None or known.status == 502) and _was_erased(context["request"]):
        error = Unauthenticated(REFUSAL)
    return rest.problem_response(error, context)


def _was_erased(request: Request) -> bool:
    who = request.user
    if not isinstance(who, Principal):
        return False
    return not MemoryUser.objects.filter(pk=who.user_pk, user_id=who.user_id).exists()
