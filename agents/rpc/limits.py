"""Limits of the protocol, and the gateway's own limits."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE_BYTES: Final = 25 * 2**20
MAX_HANDSHAKE_BYTES: Final = 64 * 1024
"""Until `connect` is accepted."""
MAX_OUTBOUND_BYTES: Final = 50 * 2**20
"""Bytes that may wait for a slow client."""
MAX_PENDING_CONNECTIONS: Final = 256
"""Sockets per process without an accepted `connect`; one more disconnects the oldest."""
SOCKETS_PER_TOKEN: Final = 8
REQUESTS_IN_FLIGHT: Final = 8
"""Per socket, above which nothing more is read, and per token, above which requests wait."""
THREADS: Final = 24
"""Request threads per process: three tokens with hanging calls leave room for a fourth."""
CONTROL_THREADS: Final = 2
"""Threads reserved for connecting and token checks, so that busy requests do not block them."""
