"""Who works on something: holders of leases, and whether a holder of this machine still lives.

A holder reads `host:pid:random`. The host names the process namespace too, since pids of another container mean
nothing here; the random part starts with this process's own token, so that a successor with the same pid is told apart.
"""

from __future__ import annotations

import os
import secrets
import socket
from functools import cache
from pathlib import Path


def new_holder() -> str:
    """A holder string for one piece of work in this process (at most 128 characters)."""
    return f"{_host()}:{os.getpid()}:{_process_token(os.getpid())}{secrets.token_hex(4)}"


def is_dead(holder: str) -> bool:
    """Whether the holder was a process of this machine that has ended; False where that cannot be known."""
    host, pid, random = (*holder.rsplit(":", 2), "", "")[:3]
    if host != _host() or not pid.isdecimal():
        return False
    if int(pid) == os.getpid():
        return not random.startswith(_process_token(os.getpid()))
    return not _is_running(int(pid))


@cache
def _host() -> str:
    namespace = Path("/proc/self/ns/pid")
    suffix = f"@{namespace.readlink().name.strip('pid:[]')}" if namespace.is_symlink() else ""
    return f"{socket.gethostname()[:64]}{suffix}"


@cache
def _process_token(_pid: int) -> str:
    """Per pid, because a forked child inherits this cache."""
    return secrets.token_hex(4)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Killed, but its parent has not noticed yet: it works on nothing any more."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[:1] == ["Z"]
