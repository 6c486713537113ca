"""uvicorn's WebSocket protocol with a growing message limit, delivered refusals and a graceful shutdown.

It relies on uvicorn's internals; `tests/agents/rpc/test_sockets.py` detects changes in them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# Message limit before authentication. A longer message is refused (1009) by its header, before it is stored.
FIRST_MESSAGE_BYTES = 64 * 1024
# Time for a peer to answer the close frame at a shutdown, and to stop sending what was refused.
GOODBYE_SECONDS = 1.0
LINGER_SECONDS = 2.0

# uvicorn would log each socket with its query, and a traceback for each invalid UTF-8 message. The router logs the
# gateway's own errors.
_silent = logging.Logger("silent", level=logging.CRITICAL + 1)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """WebSocket protocol that adds two entries to the application's scope.

    `allow_message_bytes`: call it to raise the message limit after authentication. `is_leaving`: an event set at
    shutdown; the application then closes the connection, or is cut off.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.logger = _silent
        self.conn.max_message_size = FIRST_MESSAGE_BYTES
        self._is_leaving = asyncio.Event()

    async def run_asgi(self) -> None:
        scope: Any = self.scope
        scope["allow_message_bytes"] = self._allow_message_bytes
        scope["is_leaving"] = self._is_leaving
        await super().run_asgi()

    def data_received(self, data: bytes) -> None:
        if self.conn.parser_exc is None:
            super().data_received(data)

    def handle_parser_exception(self) -> None:
        """Close with a delay: closing at once would drop the close frame together with the peer's data in transit."""
        failed = self.conn.close_sent
        if failed is None or not self.handshake_complete:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": 1006})
            self.transport.close()
            return
        self.queue.put_nowait({"type": "websocket.disconnect", "code": failed.code, "reason": failed.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.resume_reading()
        self.close_timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def shutdown(self) -> None:
        if self.close_sent or not self.handshake_complete or self.transport.is_closing():
            super().shutdown()
            return
        self.close_timeout = GOODBYE_SECONDS
        self._is_leaving.set()

    def _allow_message_bytes(self, size: int) -> None:
        self.conn.max_message_size = size
