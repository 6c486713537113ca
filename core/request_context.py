"""What is known of the request that a piece of code is working for."""

from __future__ import annotations

import logging
import random
import re
from contextvars import ContextVar

# Empty outside a request: commands, the sweeper.
request_id: ContextVar[str] = ContextVar("request_id", default="")

_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def choose_request_id(given: str) -> str:
    """The caller's own id if it is sane (`X-Request-Id`), else a new one, which nobody needs to be unable to guess:
    the event loop does not ask the system for it."""
    return given if _SANE_ID.fullmatch(given) else f"{random.getrandbits(128):032x}"


class RequestIdFilter(logging.Filter):
    """Gives each log record the id of its request, so that a line of trouble can be matched with an answer."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get() or "-"
        return True
