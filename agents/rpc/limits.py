"""The protocol's numbers, and ours where it has none."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE_BYTES: Final = 25 * 2**20
MAX_HANDSHAKE_BYTES: Final = 64 * 1024
"""Before `connect` was accepted."""
MAX_OUTBOUND_BYTES: Final = 50 * 2**20
"""Of what waits for a client that does not read."""
MAX_PENDING_CONNECTIONS: Final = 256
"""Sockets that have not connected yet, per process: one more sends the oldest away."""
SOCKETS_PER_TOKEN: Final = 8
REQUESTS_IN_FLIGHT: Final = 8
"""Per socket, beyond which nothing is read, and per token over all its sockets, beyond which requests wait."""
THREADS: Final = 24
"""For the requests of all sockets of a process: three tokens whose calls hang do not yet stop a fourth."""
CONTROL_THREADS: Final = 2
"""For what every socket needs however busy the others are: to connect, and to have its token looked at."""
