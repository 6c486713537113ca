"""Times in the API: `2026-06-10T10:00:00+00:00` (UTC, whole seconds); messages carry Unix milliseconds."""

from datetime import UTC, datetime


def isoformat(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def isoformat_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else isoformat(moment)


def from_ms(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


_LEAST_MS = 100_000_000_000  # as milliseconds a time in 1973, as seconds one in the year 5138


def as_ms(unix_time: int) -> int:
    """Return Unix milliseconds. A number too small for milliseconds is taken as seconds, as the remote does."""
    return unix_time if unix_time >= _LEAST_MS else unix_time * 1000


def to_ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
