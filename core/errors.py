"""All errors that a caller can receive, with their HTTP status and public code.

GatewayError
├── BadRequest 400, Unauthenticated 401, NotFound 404, Conflict 409 (AlreadyDone, DeletedByPerson, SessionEnded),
│   PreconditionFailed 412, TooLarge 413, UnsupportedType 415, RangeNotSatisfiable 416, InvalidInput 422,
│   TooManyRequests 429
├── NoSpace 507
└── EngineError
    ├── EngineUnavailable 503
    │   └── OutcomeUnknown 503, StorageUnavailable 503
    └── EngineRefused 502
        └── Unreadable 422, TimestampOutOfRange 422
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

from core.messages import Translatable, joined
from core.messages import Translatable as _

_Row_co = TypeVar("_Row_co", covariant=True)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field: its name as the caller wrote it (dots for nesting) and a message with the remedy."""

    field: str
    message: str


class GatewayError(Exception):
    """An error with a message for the caller. After `retry_after_seconds`, if set, the same call may succeed."""

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
        self.headers: dict[str, str] = {}
        self.members: dict[str, Any] = {}
        """Further members of the problem document."""

    @classmethod
    def of_fields(cls, errors: Sequence[FieldError]) -> Self:
        """Return the error for wrong fields. The detail repeats the first five; the error keeps fifty."""
        details = [
            Translatable("%(field)s: %(message)s", field=item.field, message=item.message) for item in errors[:5]
        ]
        return cls(joined("; ", details), errors=errors[:50])

    @classmethod
    def of_field(cls, field: str, message: str) -> Self:
        """Return the error for one wrong field."""
        return cls.of_fields([FieldError(field, message)])


class BadRequest(GatewayError):
    status, code, title = 400, "bad_request", _("Bad request")


class Unauthenticated(GatewayError):
    status, code, title = 401, "unauthenticated", _("Authentication failed")


class NotFound(GatewayError):
    status, code, title = 404, "not_found", _("Not found")


class Rows(Protocol[_Row_co]):
    """A query."""

    def first(self) -> _Row_co | None: ...


def existing(rows: Rows[_Row_co], message: str) -> _Row_co:
    """Return the first row of a query. Raises: `NotFound` with the message if there is none."""
    row = rows.first()
    if row is None:
        raise NotFound(message)
    return row


class Conflict(GatewayError):
    status, code, title = 409, "conflict", _("Conflict")


class AlreadyDone(Conflict):
    """A repeated request whose answer cannot be given again, because it contained a secret."""

    code, title = "already_done", _("Already done")

    def __init__(self, detail: str, *, created: Mapping[str, str]) -> None:
        super().__init__(detail)
        self.members["created"] = dict(created)


class DeletedByPerson(Conflict):
    """A memory that an application stores again, although a person deleted it."""

    code, title = "deleted_by_person", _("Deleted by a person")


class SessionEnded(Conflict):
    """An incognito session that has ended and takes nothing more."""

    code, title = "session_ended", _("Session ended")


class CountChanged(Conflict):
    """A deletion whose number of memories is not the one that the caller confirmed. `count` is the present number."""

    code, title = "count_changed", _("Another number of memories")

    def __init__(self, detail: str, *, count: int) -> None:
        super().__init__(detail)
        self.members["count"] = count


class PreconditionFailed(GatewayError):
    """The object has another ETag than the caller expects. `current` is the object as its owner reads it."""

    status, code, title = 412, "precondition_failed", _("Precondition failed")

    def __init__(self, detail: str, *, etag: str, current: Any = None) -> None:
        super().__init__(detail)
        self.headers["ETag"] = etag
        self.members["current"] = current


class TooLarge(GatewayError):
    status, code, title = 413, "too_large", _("Too large")


class UnsupportedType(GatewayError):
    status, code, title = 415, "unsupported_type", _("Unsupported type")


class RangeNotSatisfiable(GatewayError):
    status, code, title = 416, "range_not_satisfiable", _("Range not satisfiable")


class InvalidInput(GatewayError):
    status, code, title = 422, "invalid_input", _("Invalid input")


class TooManyRequests(GatewayError):
    status, code, title = 429, "too_many_requests", _("Too many requests")


class NoSpace(GatewayError):
    status, code, title = 507, "no_space", _("No space left")


class EngineError(GatewayError):
    """A failed call to the engine. `is_permanent`: the same call can never succeed."""

    is_permanent = False


class EngineUnavailable(EngineError):
    """A temporary failure: the call may be retried."""

    status, code, title = 503, "upstream_unavailable", _("The memory engine is unavailable")


class DatabaseNotWritable(EngineUnavailable):
    """The disk of the database is full or read-only."""

    status, code, title = 507, "no_space", _("No space left")


class DatabaseDamaged(EngineUnavailable):
    """The database is damaged: nothing more is written to it."""

    status, code, title = 503, "database_damaged", _("The database is damaged")


class StorageUnavailable(EngineUnavailable):
    """The storage folder or bucket cannot be reached, or was exchanged under the running server."""

    status, code, title = 503, "storage_unavailable", _("The storage is unavailable")


class OutcomeUnknown(EngineUnavailable):
    """The call may have been carried out: it stays unconfirmed until that is known."""

    code = "upstream_outcome_unknown"


class EngineRefused(EngineError):
    """A permanent failure: the engine will never accept this content."""

    status, code, title = 502, "upstream_refused", _("The memory engine refused the request")
    is_permanent = True


class Unreadable(EngineRefused):
    """A damaged, encrypted or too large document, or one of an unknown type. `detail` gives the reason."""

    status, code, title = 422, "unreadable_document", _("Unreadable document")


class TimestampOutOfRange(EngineRefused):
    """EverOS cannot hold the message: it reads milliseconds before September 2001 as seconds."""

    status, code, title = 422, "timestamp_too_early", _("The memory engine cannot store messages from that time")
