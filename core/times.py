"""Times on the wire: `2026-06-10T10:00:00+00:00`, UTC, whole seconds; messages carry Unix milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime


def isoformat(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def from_ms(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


_FIRST_MS = 100_000_000_000  # in milliseconds a moment of 1973, in seconds one of the year 5138


def as_ms(unix_time: int) -> int:
    """Unix milliseconds; a number that can only be seconds is read as such, as EverOS reads it."""
    return unix_time if unix_time >= _FIRST_MS else unix_time * 1000


def to_ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
