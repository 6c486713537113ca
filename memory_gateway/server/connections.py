"""Limits on the connections of a process. Idle connections are closed for new ones.

This module and `http_protocol` import no models: a worker process imports them before it sets up Django.
"""

import contextlib
import ipaddress
import logging
import math
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

from core.limits.rate_limit import network_of

logger = logging.getLogger("memory_gateway.server.connections")

MAX_CONNECTIONS = 4096
# Files other than client connections: databases, uploads, calls to engines, modules. A thread opens up to four.
RESERVED_FILES = 256
FILES_PER_THREAD = 4
# Below this, the server warns at startup.
FEW_CONNECTIONS = 1000
_WARNING_INTERVAL_SECONDS = 60.0


def allowed_connections(threads: int) -> int:
    """Raise the soft limit of open files as needed and allowed; return the number of connections it leaves."""
    reserve = RESERVED_FILES + FILES_PER_THREAD * threads
    limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = MAX_CONNECTIONS + reserve
    if limit == resource.RLIM_INFINITY:
        limit = needed
    elif limit < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS reports a hard limit that it does not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            limit = raised
    return max(min(limit - reserve, MAX_CONNECTIONS), limit // 4, 1)


class Connection(Protocol):
    """A connection to count. `address` is the result of `ConnectionTable.address_of` for its client."""

    address: str | None

    def close_now(self) -> None:
        """Close the connection immediately."""


class ConnectionTable:
    """The connections of one process, for use on one event loop.

    A connection is idle while it has no request in progress. When `total` or `per_address` is reached, the connection
    that has been idle longest is closed for the new one. An IPv6 address counts as its /64 network. Addresses in
    `trusted_proxies` have no limit for one client.
    """

    def __init__(
        self,
        *,
        total: int,
        per_address: int,
        trusted_proxies: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self.per_address = min(per_address, max(total // 2, 1))
        self._trusted_proxies = tuple(trusted_proxies)
        self._clock = clock
        self._warn_at = -math.inf
        self._counts: Counter[str | None] = Counter()
        self._idle: dict[Connection, None] = {}  # longest idle first, also per address below
        self._idle_of: defaultdict[str | None, dict[Connection, None]] = defaultdict(dict)
        self._closing: set[Connection] = set()

    def address_of(self, host: str) -> str | None:
        """Return the address under which a client is counted; None for a trusted proxy."""
        return _address_of(host, self._trusted_proxies)

    def admit(self, connection: Connection, *, open_connections: int) -> bool:
        """Count a new connection. Return False if there is no room and no idle connection to close.

        `open_connections` includes the new one, WebSockets, and those about to close.
        """
        address = connection.address
        self._counts[address] += 1
        while address is not None and self._counts[address] > self.per_address:
            if not self._close_oldest(self._idle_of[address]):
                self._release(connection)
                return False
        while open_connections - len(self._closing) > self.total:
            if (now := self._clock()) >= self._warn_at:
                self._warn_at = now + _WARNING_INTERVAL_SECONDS
                logger.warning("All %d connections are in use. Idle connections are closed for new ones.", self.total)
            if not self._close_oldest(self._idle):
                self._release(connection)
                return False
        self.mark_idle(connection)
        return True

    def mark_idle(self, connection: Connection) -> None:
        if connection not in self._closing:
            self._idle[connection] = None
            self._idle_of[connection.address][connection] = None

    def mark_busy(self, connection: Connection) -> None:
        self._idle.pop(connection, None)
        if connection.address in self._idle_of:
            self._idle_of[connection.address].pop(connection, None)

    def remove(self, connection: Connection) -> None:
        """Remove a connection that was closed, or that became a WebSocket, which has other limits."""
        if connection not in self._closing:
            self._release(connection)
        self._closing.discard(connection)

    def _close_oldest(self, idle: dict[Connection, None]) -> bool:
        oldest = next(iter(idle), None)
        if oldest is None:
            return False
        self._release(oldest)
        oldest.close_now()
        return True

    def _release(self, connection: Connection) -> None:
        self.mark_busy(connection)
        self._closing.add(connection)
        self._counts[connection.address] -= 1
        if not self._counts[connection.address]:
            del self._counts[connection.address]
            self._idle_of.pop(connection.address, None)


@lru_cache(maxsize=1024)
def _address_of(host: str, trusted_proxies: tuple[str, ...]) -> str | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    address = getattr(address, "ipv4_mapped", None) or address
    if any(address in ipaddress.ip_network(network, strict=False) for network in trusted_proxies):
        return None
    return network_of(str(address))
