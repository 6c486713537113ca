"""All errors that a call can raise.

MemoryGatewayError
├── NoAnswer            no connection, a timeout, or a connection that broke
├── InvalidAnswer       an answer that is not the gateway's, for example a proxy's page
└── Problem             the gateway refused the call: status, code, detail, field errors, request id
    ├── Unauthenticated 401, Forbidden 403, NotFound 404, Conflict 409, PreconditionFailed 412, TooLarge 413,
    │   UnsupportedType 415, InvalidInput 422, TooManyRequests 429
    └── Unavailable 502, 503, 504 · NoSpace 507
"""

from typing import Final

import httpx2
from pydantic import BaseModel, ValidationError


class FieldProblem(BaseModel):
    """A wrong field: its name, with dots for nesting, and a message with the remedy."""

    field: str
    message: str


class _Document(BaseModel):
    """A problem document, `application/problem+json`."""

    title: str
    detail: str
    code: str
    errors: list[FieldProblem] = []


class MemoryGatewayError(Exception):
    """Base class of all errors of this package."""


class NoAnswer(MemoryGatewayError):
    """The gateway did not answer. A call that changes something may have been carried out."""


class InvalidAnswer(MemoryGatewayError):
    """The answer is not one of a Memory Gateway. Check `base_url`."""


class Problem(MemoryGatewayError):
    """The gateway refused the call.

    Programs read `code` and the names in `errors`; `detail` is for people. `code` is empty if the answer is a proxy's.
    `retry_after` is in seconds; None if the answer has none.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: tuple[FieldProblem, ...] = (),
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{detail.rstrip('.')} ({' '.join([str(status), code]).strip()}).")
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.request_id = request_id
        self.retry_after = retry_after


class Unauthenticated(Problem):
    """The API key is missing, wrong, expired or revoked."""


class Forbidden(Problem):
    """The credential does not allow this call."""


class NotFound(Problem):
    """The object does not exist, or belongs to another user."""


class Conflict(Problem):
    """The object's state forbids the call: read `detail`."""


class PreconditionFailed(Problem):
    """The document was changed by another call: read it again."""


class TooLarge(Problem):
    """The file or the body is too large."""


class UnsupportedType(Problem):
    """The gateway does not take files of this type."""


class InvalidInput(Problem):
    """Fields are wrong: `errors` names them."""


class TooManyRequests(Problem):
    """The user's rate limit is reached: wait `retry_after` seconds."""


class Unavailable(Problem):
    """The gateway, its engine or its database is not available."""


class NoSpace(Problem):
    """The disk or the user's quota is full."""


_BY_STATUS: Final[dict[int, type[Problem]]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    413: TooLarge,
    415: UnsupportedType,
    422: InvalidInput,
    429: TooManyRequests,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
    507: NoSpace,
}


def problem_of(response: httpx2.Response) -> Problem:
    """Return the error for an answer that is not 2xx. Its body has been read."""
    code, detail, errors = "", response.reason_phrase or "The call failed", tuple[FieldProblem, ...]()
    try:
        document = _Document.model_validate_json(response.content)
    except ValidationError:  # a proxy's answer
        if location := response.headers.get("Location"):
            detail = f"The gateway redirects to {location}: use that address as base_url"
    else:
        code, detail, errors = document.code, document.detail or document.title, tuple(document.errors)
    return _BY_STATUS.get(response.status_code, Problem)(
        response.status_code,
        code,
        detail,
        errors=errors,
        request_id=response.headers.get("X-Request-ID"),
        retry_after=retry_after_of(response),
    )


def retry_after_of(response: httpx2.Response) -> float | None:
    """Return the seconds of `Retry-After`; None if it is missing or a date, which the gateway never sends."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else None
