"""Detection of disks that are full or read-only."""

import os
import time
from collections import deque
from pathlib import Path
from typing import Final

_RECENT_SECONDS: Final = 60
_FULL_BELOW_BYTES: Final = 2**20
_failed_at: deque[float] = deque(maxlen=1)


def note_failed_write() -> None:
    """Record that a write to disk failed just now."""
    _failed_at.append(time.monotonic())


def has_failed_lately() -> bool:
    """Return True if a write failed within the last minute, as under a quota that the free space does not show."""
    return bool(_failed_at) and time.monotonic() - _failed_at[0] < _RECENT_SECONDS


def problem_of(folder: Path, name: str, floor_bytes: int) -> str:
    """Return a sentence about the problem of a folder's disk, empty if none. `name` names the folder in it."""
    while not folder.exists():
        folder = folder.parent
    status = os.statvfs(folder)
    if status.f_flag & os.ST_RDONLY:
        return f"The disk of the {name} is read-only, so nothing new is stored. Make it writable."
    if status.f_bavail * status.f_frsize < _FULL_BELOW_BYTES:
        return f"The disk of the {name} is full, so nothing new is stored. Free some space."
    if status.f_bavail * status.f_frsize < floor_bytes:
        return (
            f"The disk of the {name} has less than {floor_bytes} bytes free (MEMORY_GATEWAY_MIN_FREE_DISK_BYTES), "
            "so uploads are refused. Free some space."
        )
    return ""
