"""Map failures of EverOS to the port's errors. The error text of EverOS is logged and never returned to a caller."""

from __future__ import annotations

import logging
import re

from core.errors import EngineError, EngineRefused, EngineUnavailable, OutcomeUnknown
from core.http_client import HttpError
from core.redaction import redact_text

logger = logging.getLogger("memory_gateway.upstream")

_MAX_LOGGED_CHARS = 500
_MAX_CAUSES = 10
_ADDRESS = re.compile(r"\b(?:https?|minio|s3|file)://[^\s\"'<>]+", re.IGNORECASE)
_BUSY = frozenset({408, 425, 429})
_GATEWAY_STATUSES = frozenset({502, 504})
_REFUSED = frozenset({413, 415, 422})
"""Statuses for content that EverOS will never accept. Any other may be temporary: a proxy, a key, an address."""
_REASONS = {
    404: "it answered 404 (is the address right?)",
    413: "the content is too large for it",
    415: "it cannot read this file, whose type it does not know or which is not at its address",
    422: "it does not accept this content",
    503: "it lacks what this type of content needs",
}


class CircuitOpen(EngineUnavailable):
    """Not sent: the last calls failed, and the next try is due later."""


class NotReached(EngineUnavailable):
    """No connection: not carried out."""


class Unserved(EngineUnavailable):
    """EverOS answered 503 because a service it needs is missing. The messages of an add were not stored."""


class Rejected(EngineUnavailable):
    """A status that says nothing about the content, such as 401, 404 or a redirect: not carried out, worth a retry."""

    status, code, title = 502, "upstream_refused", "The memory service refused"


class NoAnswer(OutcomeUnknown):
    """Sent, but no answer of EverOS arrived, or a proxy answered 502 or 504: outcome unknown, may still be running."""


class ProxyFailed(OutcomeUnknown):
    """A 5xx without EverOS's error code, so a proxy sent it: outcome unknown, may still be running."""


class UpstreamFailed(OutcomeUnknown):
    """EverOS answered 500: it may have been carried out in part, and is no longer running."""


class Lost(EngineRefused):
    """EverOS failed while extracting and shows nothing. Not permanent: its list may show the memories later."""

    is_permanent = False


class InvalidResponse(OutcomeUnknown):
    """An answer that breaks EverOS's contract: HTML, wrong types, or too large."""

    status, code, title = 502, "engine_invalid_response", "The memory service returned an unexpected response"


class Unsupported(EngineRefused):
    """EverOS cannot read this file type (415), or lacks a program for it."""


class NotConfigured(EngineRefused):
    """EverOS lacks the model for this search method."""

    status, code, title = 422, "method_unavailable", "This method of search is not available"


def not_reached() -> NotReached:
    return NotReached("The memory service cannot be reached.")


def no_answer() -> NoAnswer:
    return NoAnswer("The memory service did not answer in time.")


def invalid_response(why: str) -> InvalidResponse:
    """Log `why` and return the error for the caller."""
    log("invalid response", why)
    return InvalidResponse("The memory service returned an unexpected response.")


def of_status(status: int, code: str, retry_after_seconds: int | None) -> EngineError:
    """Return the error for an HTTP status. `code` is EverOS's `error.code`, empty if a proxy answered."""
    if status == 503 and code == "CAPABILITY_UNAVAILABLE":
        return Unsupported(f"The memory service refused: {_REASONS[503]}.")
    if status == 422 and code == "PROVIDER_NOT_CONFIGURED":
        return NotConfigured("method: the memory service lacks the model for it; use keyword or hybrid.")
    if status in _REFUSED:
        kind = Unsupported if status == 415 else EngineRefused
        return kind(f"The memory service refused: {_REASONS[status]}.")
    error = _temporary(status, is_everos=bool(code))
    error.retry_after_seconds = retry_after_seconds
    return error


def _temporary(status: int, *, is_everos: bool) -> EngineUnavailable:
    if status < 300:
        return invalid_response(f"an empty success, {status}")
    if status in _GATEWAY_STATUSES:
        return NoAnswer(f"The memory service did not answer its proxy ({status}).")
    if status in _BUSY or (status == 503 and is_everos):
        busy = Unserved if status == 503 else EngineUnavailable
        return busy(f"The memory service is busy or lacks its own services ({status}).")
    if status < 500:
        return Rejected(f"The memory service refused: {_REASONS.get(status, f'it answered {status}')}.")
    if is_everos:
        return UpstreamFailed(f"The memory service failed at this call ({status}).")
    return ProxyFailed(f"A proxy of the memory service failed ({status}).")


def cause_of(error: BaseException) -> str:
    """Return the reason why EverOS could not be reached, for operators."""
    seen: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if isinstance(seen, HttpError):
            return str(seen)
        seen = seen and (seen.__cause__ or seen.__context__)
    return str(error)


def log(what: str, detail: str) -> None:
    """Log one line without secrets, addresses and line breaks.

    An address may be a presigned one that EverOS was asked to read and repeats in its error.
    """
    plain = redact_text(_ADDRESS.sub("[ADDRESS]", detail))
    logger.warning("upstream: %s: %r", what, plain[:_MAX_LOGGED_CHARS])
