"""What can go wrong with the upstream, in the port's words. Its own error text goes to our log, never to a caller."""

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
_UNAVAILABLE = frozenset({408, 425, 429, 502, 503, 504})
_UNREACHED = frozenset({502, 504})
_REASONS = {
    404: "it does not know this call (is the address right?)",
    413: "the content is too large for it",
    415: "it cannot read this file, whose type it does not know or which is not at its address",
    422: "it does not accept this content",
    503: "it lacks what this type of content needs",
}


class CircuitOpen(EngineUnavailable):
    """Not even tried: the last calls all failed, and the next try is due later."""


class NotReached(EngineUnavailable):
    """No connection, or a proxy in between that could not reach the upstream: certainly not carried out."""


class NoAnswer(OutcomeUnknown):
    """Sent, but no whole answer came in time: it may have been carried out, or may be going on."""


class UpstreamFailed(OutcomeUnknown):
    """It answered 500: parts may have been carried out, and nothing goes on any more."""


class OddAnswer(OutcomeUnknown):
    """Whatever answered, it was not a memory service: HTML, wrong types, far too much."""

    status, code, title = 502, "upstream_odd_answer", "The memory service answered with something else"


class Unsupported(EngineRefused):
    """The upstream cannot read this type of content (415), or lacks a program that it needs for it."""


class NotConfigured(EngineRefused):
    """The upstream lacks the model that this method of search needs."""

    status, code, title = 422, "method_unavailable", "This method of search is not available"


def not_reached() -> NotReached:
    return NotReached("The memory service cannot be reached.")


def no_answer() -> NoAnswer:
    return NoAnswer("The memory service did not answer in time.")


def odd_answer(why: str) -> OddAnswer:
    """`why` is a sentence of ours for the log."""
    log("odd answer", why)
    return OddAnswer("The memory service gave an answer that is none of its own.")


def of_status(status: int, code: str, retry_after_seconds: int | None) -> EngineError:
    """The error that an HTTP status means; `code` (the upstream's `error.code`) is a hint where statuses are shared."""
    after = retry_after_seconds
    if status == 503 and code == "CAPABILITY_UNAVAILABLE":
        return Unsupported(f"The memory service refused: {_REASONS[503]}.")
    if status == 422 and code == "PROVIDER_NOT_CONFIGURED":
        return NotConfigured("method: the memory service lacks the model for it; use keyword or hybrid.")
    if status in _UNREACHED:
        return NotReached("The memory service cannot be reached.", retry_after_seconds=after)
    if status in _UNAVAILABLE:
        return EngineUnavailable("The memory service is busy or lacks its own services.", retry_after_seconds=after)
    if status >= 500:
        return UpstreamFailed("The memory service failed at this call.", retry_after_seconds=after)
    kind = Unsupported if status == 415 else EngineRefused
    return kind(f"The memory service refused: {_REASONS.get(status, f'it answered {status}')}.")


def cause_of(error: BaseException) -> str:
    """Return why EverOS could not be reached, for operators."""
    seen: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if isinstance(seen, HttpError):
            return str(seen)
        seen = seen and (seen.__cause__ or seen.__context__)
    return str(error)


def log(what: str, detail: str) -> None:
    """One line in our log, without secrets and without end-of-line tricks. Addresses are left out: one that we had it
    read may be a presigned one, and it repeats them in its texts."""
    plain = redact_text(_ADDRESS.sub("[ADDRESS]", detail))
    logger.warning("upstream: %s: %r", what, plain[:_MAX_LOGGED_CHARS])
