"""Log one JSON line per request with the REST API's field names, without parameters and answers."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import orjson

from agents.rpc.handshake import Peer
from core.redaction import redact_text
from core.request_context import request_id
from core.times import isoformat

logger = logging.getLogger("memory_gateway.api")
_SHOWN_CHARS = 100


def write(peer: Peer, method: str, client: str, outcome: str, duration_ms: float) -> None:
    line = {
        "request_time": isoformat(datetime.now(UTC) - timedelta(milliseconds=duration_ms)),
        "duration_ms": round(duration_ms, 2),
        "method": "RPC",
        "path": redact_text(method[:_SHOWN_CHARS]),
        "client": client,
        "request_id": request_id.get(),
        "user_id": peer.principal.user_id,
        "token": peer.principal.name,
        "output": {"status": outcome},
    }
    logger.info("%s", orjson.dumps(line).decode())
