"""uvicorn's WebSocket protocol with three things of our own: a limit that grows, a refusal that arrives, a goodbye.

It relies on uvicorn's internals, as the bridge does: `tests/agents/rpc/test_sockets.py` is the guard.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# What a stranger may send in one message. It is refused (1009) by its header, before anything of it is kept.
FIRST_MESSAGE_BYTES = 64 * 1024
# How long a peer may take to answer our last word at a shutdown, and to stop sending what was refused.
GOODBYE_SECONDS = 1.0
LINGER_SECONDS = 2.0

# It would write a line for each socket, with its query, and a traceback for each message that is no UTF-8. What goes
# wrong on our side is written by the router, which lets no exception through.
_silent = logging.Logger("silent", level=logging.CRITICAL + 1)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """The application finds in its scope `allow_message_bytes`, to call once it knows the peer, and `is_leaving`, an
    event: at a shutdown it says goodbye and closes, and is cut off where it does not.
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
        """Closing at once would throw away the close frame together with what the peer is still sending."""
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
