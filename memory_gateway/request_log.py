"""Request log: one JSON line per API request, with secrets redacted and bodies cut at `MAX_BODY_CHARS`."""

import logging
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson

from core.logs import REDACTED, is_secret_name, redact, redact_text
from core.redaction import masked_data
from core.times import isoformat

logger = logging.getLogger("memory_gateway.api")

MAX_BODY_CHARS = 2 * 1024


def write(
    *,
    request_id: str,
    started_at: datetime,
    duration_ms: float,
    method: str,
    origin: str,
    path: str,
    query_string: str,
    client: str,
    status: int,
    user_id: str | None = None,
    request_body: Any = None,
    response_body: Any = None,
) -> None:
    """Log a request and its response.

    `origin` is scheme and host. The bodies are plain JSON data, or None to log nothing.
    """
    path, query = redact_text(path), redacted_query(query_string)
    line = {
        "request_time": isoformat(started_at),
        "duration_ms": round(duration_ms, 2),
        "method": method,
        "path": path,
        "url": redact_text(origin) + path + (f"?{urlencode(query, doseq=True, safe='[]')}" if query else ""),
        "client": client,
        "request_id": request_id,
        "user_id": user_id,
        "input": {"query": query, "body": request_body and masked_data(redact(request_body, MAX_BODY_CHARS))},
        "output": {"status": status, "body": response_body and masked_data(redact(response_body, MAX_BODY_CHARS))},
    }
    # orjson escapes control characters, so the path cannot break the line.
    logger.info("%s", orjson.dumps(line, default=str).decode())


def redacted_query(query_string: str) -> dict[str, Any]:
    """Return the query parameters by name; a repeated one is a list."""
    query: dict[str, Any] = {}
    for name, value in parse_qsl(query_string[:MAX_BODY_CHARS], keep_blank_values=True, errors="replace"):
        shown_name = redact_text(name)
        shown: Any = REDACTED if is_secret_name(name) else redact_text(value)
        if shown_name in query:
            before = query[shown_name]
            shown = [*(before if isinstance(before, list) else [before]), shown]
        query[shown_name] = shown
    return query
