"""Times on the wire: `2026-06-10T10:00:00+00:00`, UTC, whole seconds; messages carry Unix milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime


def isoformat(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def from_ms(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


def to_ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
