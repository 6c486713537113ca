"""A decorator for writing endpoints that accept an `Idempotency-Key`, as Stripe and the IETF draft describe it."""

from collections.abc import Callable
from functools import partial, wraps
from hashlib import sha256
from typing import Any, TypeVar, cast

import orjson
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import idempotency
from accounts.api.authentication import caller
from accounts.idempotency import HEADER, MAX_KEY_CHARS, Claim
from accounts.models import IdempotencyKey
from core.errors import AlreadyDone
from core.messages import Translatable as _

View = TypeVar("View", bound=Callable[..., HttpResponse])
_KEPT_HEADERS = ("Content-Language", "ETag", "Location", "Preference-Applied")
_CREDENTIALS = {"user_id", "user_key"}
_REPLAYED = OpenApiParameter(
    "Idempotent-Replayed",
    {"type": "string", "enum": ["true"]},
    OpenApiParameter.HEADER,
    description=f"The result is that of an earlier request with this `{HEADER}`.",
    response=[200, 202],
)


def _key_parameter(repeated: str) -> OpenApiParameter:
    return OpenApiParameter(
        HEADER,
        {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": "^[!-~]([ -~]*[!-~])?$"},
        OpenApiParameter.HEADER,
        description=(
            "A new random text for each new request, such as a UUID. A repeated request with the same key is carried "
            f"out once: within 24 hours {repeated}"
        ),
    )


_PARAMETERS = [_key_parameter("it returns the same result."), _REPLAYED]
_PARAMETERS_OF_SECRETS = [_key_parameter("the answer is 409 with the id, because the secret is shown only once.")]


def idempotent(
    *,
    in_transaction: bool = False,
    before: Callable[[Request], None] = lambda _request: None,
    render: Callable[..., HttpResponse] | None = None,
    keep: Callable[[Any], dict[str, Any]] = lambda _data: {},
    id_field: str = "",
) -> Callable[[View], View]:
    """Return a decorator for a view method that accepts an `Idempotency-Key`.

    Only successful answers are kept. `in_transaction`: the change is one transaction, which then includes the key;
    `before` is called before it, unless the answer is a repeated one.
    Answers must consist of ids, counts and states, because they are stored; otherwise `render(request, kept, **path)`
    builds a repeated answer from the kept headers, and from what `keep` returns of the answer. Of an answer with a
    secret, only the id in `id_field` is kept: a repeated request is refused with it (`AlreadyDone`).
    """

    def decorate(view: View) -> View:
        @extend_schema(parameters=_PARAMETERS_OF_SECRETS if id_field else _PARAMETERS)
        @wraps(view)
        def repeatable(self: Any, request: Request, **path: Any) -> HttpResponse:
            key = request.headers.get(HEADER)
            if key is None:
                before(request)
                return view(self, request, **path)
            claimed = idempotency.claim(caller(request), key, _digest(request))
            if id_field:
                _refuse_if_done(claimed, id_field)
            if isinstance(claimed, IdempotencyKey):
                return _replayed(claimed, request, path)
            with idempotency.carrying_out(claimed, in_transaction=in_transaction, before=partial(before, request)):
                response = view(self, request, **path)
                result = response.data if isinstance(response, Response) else {}
                result = keep(result) if render else result
                if id_field:
                    result = {id_field: result[id_field]}
                headers = {name: response[name] for name in _KEPT_HEADERS if name in response}
                claimed.settle(response.status_code, result, headers)
            return response

        return cast("View", repeatable)

    def _replayed(kept: IdempotencyKey, request: Request, path: dict[str, Any]) -> HttpResponse:
        if render:
            response = render(request, kept, **path)
        else:
            response = Response(kept.result, status=kept.status, headers=kept.headers)
        response["Idempotent-Replayed"] = "true"
        return response

    return decorate


def _refuse_if_done(claimed: Claim | IdempotencyKey, id_field: str) -> None:
    """Raise `AlreadyDone` if an earlier attempt has made its change, also if its process ended before the answer."""
    if isinstance(claimed, Claim):
        if id_field not in claimed.kept:
            return
        claimed.settle(200, claimed.kept, {})
        created = str(claimed.kept[id_field])
    else:
        created = claimed.result[id_field]
    detail = _(
        "This request was carried out already, and its secret was shown once (%(field)s: %(id)s). If you have not "
        "received it, send the request with a new %(header)s.",
        field=id_field,
        id=created,
        header=HEADER,
    )
    raise AlreadyDone(detail, created={id_field: created})


def _digest(request: Request) -> str:
    """Return the digest of method, path and body without credentials. The digest of its bytes stands for a file."""
    if request.FILES:
        files = {name: [file.filename, file.mime_type, file.sha256] for name, file in request.FILES.items()}
        body: Any = {"fields": request.POST.dict(), "files": files}
        body["fields"] = _without_credentials(body["fields"])
    else:
        body = _without_credentials(request.data)
    data = [request.method, request.path_info, body]
    return sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _without_credentials(fields: Any) -> Any:
    if not isinstance(fields, dict):
        return fields
    return {name: value for name, value in fields.items() if name not in _CREDENTIALS}
