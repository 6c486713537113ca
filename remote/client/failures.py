"""Map failures of EverOS to the port's errors. The error text of EverOS is logged and never returned to a caller."""

import logging
import re

from core.errors import EngineError, EngineRefused, EngineUnavailable, OutcomeUnknown
from core.logs import redact_text
from core.messages import Translatable as _
from core.network.http_client import HttpError

logger = logging.getLogger("memory_gateway.remote")

_MAX_LOGGED_CHARS = 500
_MAX_CAUSES = 10
_ADDRESS = re.compile(r"\b(?:https?|minio|s3|file)://[^\s\"'<>]+", re.IGNORECASE)
_BUSY = frozenset({408, 425, 429})
_REFUSED = frozenset({413, 415, 422})
"""Statuses for content that EverOS never accepts. Others may be temporary errors of a proxy, a key or an address."""
_REASONS = {
    404: _("it returned status 404; check its address"),
    413: _("the content is too large"),
    415: _("the file's type is unknown, or there is no file at its address"),
    422: _("the content is not accepted"),
    503: _("it lacks a component for this type of content"),
}


class CircuitOpen(EngineUnavailable):
    """Not sent: recent calls failed, and the circuit breaker rejects calls until the next probe."""


class NotReached(EngineUnavailable):
    """No connection: not carried out."""


class ServiceUnavailable(EngineUnavailable):
    """EverOS answered 503 because a service that it needs is unavailable. The messages of an add were not stored."""


class Rejected(EngineUnavailable):
    """A status that does not concern the content, such as 401, 404 or a redirect: not carried out, worth a retry."""

    status, code, title = 502, "upstream_refused", _("The memory engine refused the request")


class NoAnswer(OutcomeUnknown):
    """Sent, but no answer of EverOS arrived, or a proxy answered 502 or 504: outcome unknown, may still be running."""


class ProxyFailed(OutcomeUnknown):
    """A 5xx without EverOS's error code, so a proxy sent it: outcome unknown, may still be running."""


class UpstreamFailed(OutcomeUnknown):
    """EverOS answered 500: it may have been carried out in part, and is no longer running."""


class Lost(EngineRefused):
    """EverOS failed while extracting and lists no memories. Not permanent: it may list them later."""

    is_permanent = False


class AddFailed(EngineUnavailable):
    """EverOS answered 500 to an add and stored nothing of it. An address that it cannot read is one of the causes."""


class InvalidResponse(OutcomeUnknown):
    """An answer that breaks EverOS's contract: HTML, wrong types, or too large."""

    status, code, title = 502, "engine_invalid_response", _("The memory engine returned an unexpected response")


class Unsupported(EngineRefused):
    """EverOS cannot read this file type (415), or lacks a program for it."""


class NotConfigured(EngineRefused):
    """EverOS lacks the model for this search method."""

    status, code, title = 422, "method_unavailable", _("Search method unavailable")


def no_answer() -> NoAnswer:
    return NoAnswer(_("The memory engine did not answer in time."))


def invalid_response(why: str) -> InvalidResponse:
    """Log `why` and return the error for the caller."""
    log("invalid response", why)
    return InvalidResponse(_("The memory engine returned an unexpected response."))


def of_status(status: int, code: str, retry_after_seconds: int | None) -> EngineError:
    """Return the error for an HTTP status. `code` is EverOS's `error.code`, empty if a proxy answered."""
    if status == 503 and code == "CAPABILITY_UNAVAILABLE":
        return Unsupported(_("The memory engine refused the request: %(cause)s.", cause=_REASONS[503]))
    if status == 422 and code == "PROVIDER_NOT_CONFIGURED":
        return NotConfigured(_("method: the memory engine has no model for it; use keyword or hybrid."))
    if status in _REFUSED:
        kind = Unsupported if status == 415 else EngineRefused
        return kind(_("The memory engine refused the request: %(cause)s.", cause=_REASONS[status]))
    error = _temporary(status, is_everos=bool(code))
    error.retry_after_seconds = retry_after_seconds
    return error


def _temporary(status: int, *, is_everos: bool) -> EngineUnavailable:
    if status < 300:
        return invalid_response(f"status {status} without content")
    if status in {502, 504}:
        return NoAnswer(_("The memory engine did not answer its proxy (%(status)s).", status=status))
    if status in _BUSY or (status == 503 and is_everos):
        busy = ServiceUnavailable if status == 503 else EngineUnavailable
        return busy(_("The memory engine is busy, or a service behind it is unavailable (%(status)s).", status=status))
    if status < 500:
        cause = _REASONS.get(status) or _("it returned status %(status)s", status=status)
        return Rejected(_("The memory engine refused the request: %(cause)s.", cause=cause))
    if is_everos:
        return UpstreamFailed(_("The memory engine failed (%(status)s).", status=status))
    return ProxyFailed(_("A proxy of the memory engine failed (%(status)s).", status=status))


def cause_of(error: BaseException) -> str:
    """Return the reason why EverOS could not be reached, for operators."""
    current: BaseException | None = error
    for _cause in range(_MAX_CAUSES):
        if isinstance(current, HttpError):
            return current.message
        current = current and (current.__cause__ or current.__context__)
    return str(error)


def log(what: str, detail: str) -> None:
    """Log one line without secrets, addresses and line breaks.

    EverOS may repeat the presigned address of a file in its error.
    """
    plain = redact_text(_ADDRESS.sub("[ADDRESS]", detail))
    logger.warning("EverOS: %s: %r", what, plain[:_MAX_LOGGED_CHARS])
