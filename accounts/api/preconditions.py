"""`If-Match` and `If-None-Match` of endpoints: their description, and the check in the transaction of a change.

`PreconditionMiddleware` refuses the headers on every other endpoint that changes something.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import caller
from accounts.services import lock_caller
from core.preconditions import etag_of, is_named, preconditions_of, require_match

View = TypeVar("View", bound=Callable[..., Any])
_DESCRIPTIONS = {
    "If-Match": "ETags of earlier responses, or `*`. If none is current, nothing is done (412).",
    "If-None-Match": "ETags of earlier responses, or `*`. If one is current, GET returns 304, changes 412.",
}
_TAG = r'(W/)?"[!#-~]*"'
_SCHEMA = {"type": "string", "pattern": rf"^(\*|{_TAG}(, {_TAG})*)$"}
_PARAMETERS = [
    OpenApiParameter(name, _SCHEMA, OpenApiParameter.HEADER, description=description)
    for name, description in _DESCRIPTIONS.items()
]


def conditional(view: View) -> View:
    """Mark a view method that checks preconditions, and describe the headers."""
    view.takes_preconditions = True  # type: ignore[attr-defined]
    return extend_schema(parameters=_PARAMETERS)(view)


def checked_preconditions(view: Any, method: str) -> Collection[str] | None:
    """Return the headers that a REST view checks for a method; None for other views and unknown methods."""
    name = method.lower()
    handler = getattr(getattr(view, "cls", None), getattr(view, "actions", {}).get(name, name), None)
    if handler is None:
        return None
    return _DESCRIPTIONS.keys() if hasattr(handler, "takes_preconditions") else ()


def not_modified(request: Request | HttpRequest, etag: str, document: Any) -> HttpResponse | None:
    """Return the 304 of a GET whose `If-None-Match` names the ETag; None for any other.

    Raises: `PreconditionFailed` if `If-Match` does not name it, `BadRequest`.
    """
    conditions = preconditions_of(request.headers)
    require_match(etag, conditions.if_match, current=document)
    return HttpResponseNotModified(headers={"ETag": etag}) if is_named(etag, conditions.if_none_match) else None


def with_etag(request: Request, document: Any) -> HttpResponse:
    """Return the response of a GET with its `ETag`, or a 304. Raises: as `not_modified`."""
    etag = etag_of(document)
    return not_modified(request, etag, document) or Response(document, headers={"ETag": etag})


@contextmanager
def if_unchanged(request: Request, read: Callable[[], Any], *, is_read_after: bool = False) -> Iterator[None]:
    """Make a change of the caller's object inside the block, if the object meets the preconditions of the request.

    `read` returns the document that a GET returns. Check and change are one transaction, which locks the caller as all
    changes do: of two that name the same ETag, the second is refused. With `is_read_after`, the block reads the changed
    object, so that the transaction is needed without preconditions too.

    Raises: `PreconditionFailed`, `BadRequest`, and the errors of `read`.
    """
    conditions = preconditions_of(request.headers)
    if not (conditions.is_any or is_read_after):
        yield
        return
    principal = caller(request)
    with transaction.atomic():
        lock_caller(principal.user_pk, principal.user_id, no_key=True)
        if conditions.is_any:
            document = read()
            require_match(etag_of(document), *conditions, current=document)
        yield
