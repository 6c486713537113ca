"""Lease holders: who works on a row, and whether that process still runs.

A holder is `host:pid:random`. The host includes the process namespace, because a pid of another container means nothing
here. The random part starts with a token of this process, which tells it from an earlier process with the same pid.
"""

from __future__ import annotations

import os
import secrets
import socket
from datetime import datetime
from functools import cache
from pathlib import Path

from django.db.models import Q


def new_holder() -> str:
    """Return a new holder for one piece of work in this process, at most 128 characters long."""
    return f"{_host()}:{os.getpid()}:{_process_token(os.getpid())}{secrets.token_hex(4)}"


def is_dead(holder: str) -> bool:
    """Return True if the holder was a process of this machine that has ended; False if that cannot be known."""
    host, pid, random = (*holder.rsplit(":", 2), "", "")[:3]
    if host != _host() or not pid.isdecimal():
        return False
    if int(pid) == os.getpid():
        return not random.startswith(_process_token(os.getpid()))
    return not _is_running(int(pid))


def is_free(seen_holder: str, now: datetime, *, expires: str = "leased_until") -> Q:
    """Return the condition of a conditional update that takes a lease: the lease has expired, or it still belongs to
    `seen_holder` and that process has ended. The fields are `holder` and the one named by `expires`."""
    expired = Q(**{f"{expires}__lt": now})
    return expired | Q(holder=seen_holder) if is_dead(seen_holder) else expired


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
