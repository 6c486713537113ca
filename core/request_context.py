"""Context of the current request."""

import logging
import random
import re
from contextvars import ContextVar

from core.redaction import redact_text

# Empty outside a request: in commands and workers.
request_id: ContextVar[str] = ContextVar("request_id", default="")

_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def choose_request_id(given: str) -> str:
    """Return the caller's `X-Request-Id` if it is valid and no secret, else a new one.

    The new id need not be unguessable, so the event loop does not wait for the system's random source.
    """
    return given if _SANE_ID.fullmatch(given) and redact_text(given) == given else f"{random.getrandbits(128):032x}"


class RequestIdFilter(logging.Filter):
    """A logging filter that adds the request id to each log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get() or "-"
        return True
