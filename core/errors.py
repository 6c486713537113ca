"""All errors that a caller can receive, with their HTTP status and public code.

GatewayError
├── BadRequest 400, Unauthenticated 401, NotFound 404, Conflict 409, PreconditionFailed 412, TooLarge 413,
│   UnsupportedType 415, InvalidInput 422, TooManyRequests 429
├── NoSpace 507
└── EngineError
    ├── EngineUnavailable 503
    │   └── OutcomeUnknown 503
    └── EngineRefused 502
        └── Unreadable 422, TimestampOutOfRange 422
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field: its name as the caller wrote it (dots for nesting) and a sentence with the remedy."""

    field: str
    message: str


class GatewayError(Exception):
    """A refusal with a sentence for the caller. `retry_after_seconds` says that the same call may work later."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    title: ClassVar[str] = "Internal error"

    def __init__(
        self, detail: str, *, errors: Sequence[FieldError] = (), retry_after_seconds: int | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.retry_after_seconds = retry_after_seconds

    @classmethod
    def of_field(cls, field: str, message: str) -> GatewayError:
        """The common case: one field is wrong, and the detail says so too."""
        return cls(f"{field}: {message}", errors=[FieldError(field, message)])


class BadRequest(GatewayError):
    status, code, title = 400, "bad_request", "Bad request"


class Unauthenticated(GatewayError):
    status, code, title = 401, "unauthenticated", "Authentication failed"


class NotFound(GatewayError):
    status, code, title = 404, "not_found", "Not found"


class Conflict(GatewayError):
    status, code, title = 409, "conflict", "Conflict"


class PreconditionFailed(GatewayError):
    status, code, title = 412, "precondition_failed", "Precondition failed"


class TooLarge(GatewayError):
    status, code, title = 413, "too_large", "Too large"


class UnsupportedType(GatewayError):
    status, code, title = 415, "unsupported_type", "Unsupported type"


class InvalidInput(GatewayError):
    status, code, title = 422, "invalid_input", "Invalid input"


class TooManyRequests(GatewayError):
    status, code, title = 429, "too_many_requests", "Too many requests"


class NoSpace(GatewayError):
    status, code, title = 507, "no_space", "No space left"


class EngineError(GatewayError):
    """A failed call to the engine. `is_permanent`: the same call can never succeed."""

    is_permanent = False


class EngineUnavailable(EngineError):
    """A temporary failure: the call may be retried."""

    status, code, title = 503, "upstream_unavailable", "The memory service is unavailable"


class OutcomeUnknown(EngineUnavailable):
    """The call may have been carried out: it stays unconfirmed until that is known."""

    code = "upstream_outcome_unknown"


class EngineRefused(EngineError):
    """A permanent failure: the engine will never accept this content."""

    status, code, title = 502, "upstream_refused", "The memory service refused"
    is_permanent = True


class Unreadable(EngineRefused):
    """A damaged, encrypted or too large document, or one of an unknown type. `detail` gives the reason."""

    status, code, title = 422, "unreadable_document", "The document cannot be read"


class TimestampOutOfRange(EngineRefused):
    """EverOS cannot hold the message: it reads milliseconds before September 2001 as seconds."""

    status, code, title = 422, "timestamp_too_early", "The memory service cannot hold a message from that time"
