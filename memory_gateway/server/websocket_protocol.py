"""uvicorn's WebSocket protocol with a message limit that can be raised, reliable close frames and graceful shutdown.

It relies on uvicorn's internals; `tests/agents/rpc/test_connection_limits.py` detects changes in them.
"""

import asyncio
import contextlib
import logging
from functools import partial
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

# Message limit before authentication. Longer messages are refused (1009) by their frame header, before they are read.
FIRST_MESSAGE_BYTES = 64 * 1024
# Time for a client to answer the close frame at shutdown, and to read the close frame after an invalid message.
CLOSE_SECONDS = 1.0
LINGER_SECONDS = 2.0

# Disables uvicorn's logging, which would log each socket with its query, and a traceback for each invalid message. The
# router logs the gateway's own errors.
_silent = logging.Logger("silent", level=logging.CRITICAL + 1)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """WebSocket protocol that adds two entries to the application's scope.

    `allow_message_bytes`: a function that raises the message limit after authentication. `is_leaving`: an event that is
    set at shutdown, after which the application closes the connection, or it is aborted.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.logger = _silent
        self.conn.max_message_size = FIRST_MESSAGE_BYTES
        self._is_leaving = asyncio.Event()

    async def run_asgi(self) -> None:
        scope: Any = self.scope
        scope["allow_message_bytes"] = partial(setattr, self.conn, "max_message_size")
        scope["is_leaving"] = self._is_leaving
        await super().run_asgi()

    def data_received(self, data: bytes) -> None:
        if self.conn.parser_exc is None:
            super().data_received(data)

    def send_receive_event_to_app(self) -> None:
        """Pass a message on. uvicorn closes for invalid UTF-8, which fails after a close frame in the same read."""
        with contextlib.suppress(InvalidState):
            super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        """Close with a delay, because closing immediately would drop the close frame with the client's unread data."""
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
        self.close_timeout = CLOSE_SECONDS
        self._is_leaving.set()
