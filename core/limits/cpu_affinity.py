"""CPU affinity of this process (Linux only).

The GIL lets one thread compute at a time, and a request hands it over dozens of times. A handover to a thread on
another core has to wake that core and fill its cache: unpinned, eight concurrent requests took a third more CPU time,
and a quarter fewer were answered (`python -m benchmarks http`, two idle cores). On two cores that other programs kept
busy, a pinned process answered 40 % fewer requests, with the same CPU time each.
"""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STAT_FILE = Path("/proc/thread-self/stat")
_allowed_cpus: set[int] = set()
"""CPU cores that this process may use, once it is pinned to one of them."""
_claims: list[int] = []


def pin_to_free_cpu() -> None:
    """Pin this thread, and those it starts from now on, to a core that no other worker of the same parent uses.

    Prefer the core it runs on, and use that one if all are taken. Do nothing where pinning is not possible.
    """
    if sys.platform != "linux":
        return
    try:
        allowed = os.sched_getaffinity(0)
        # Field 39, see proc(5): the core that this thread ran on last.
        current = int(_STAT_FILE.read_text().rpartition(")")[2].split()[36])
        if current in allowed:
            core = next(filter(_claim, [current, *sorted(allowed - {current})]), current)
            os.sched_setaffinity(0, {core})
            _allowed_cpus.update(allowed)
    except OSError:
        return


def _claim(core: int) -> bool:
    """Claim a core for this process; return False if another one has it.

    The claim is a bound abstract socket, which the system releases when the process ends.
    """
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0memory-gateway-{os.getppid()}-{core}")
    except OSError:
        claim.close()
        return False
    _claims.append(claim.detach())
    return True


def available_cpus() -> int:
    """Return how many CPU cores this process and those it starts may use."""
    if sys.platform != "linux":
        return os.cpu_count() or 1
    return len(_allowed_cpus or os.sched_getaffinity(0))


@contextmanager
def original_affinity() -> Iterator[None]:
    """Restore the original CPU affinity inside the block, to start another process.

    The other process has its own GIL and may run on any allowed core.
    """
    if sys.platform != "linux" or not _allowed_cpus:
        yield
        return
    pinned = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _allowed_cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, pinned)
