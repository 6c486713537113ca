"""Parameters of the plugin's panel. As in OpenClaw, an unreadable value counts as absent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from core.times import to_ms

Params = Mapping[str, Any]
MAX_NUMBER = 10**9
_MIN_MS, _MAX_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999


def text(params: Params, name: str) -> str:
    value = params.get(name)
    return value.strip() if isinstance(value, str) else ""


def whole(params: Params, name: str, default: int, *, maximum: int = MAX_NUMBER) -> int:
    """Return a number of at least 1, also from digits; the default for zero and unreadable values."""
    value = params.get(name)
    try:
        number = int(value) if isinstance(value, int | float | str) else 0
    except (ValueError, OverflowError):
        number = 0
    return min(max(number, 1), maximum) if number else default


def moment_ms(params: Params, name: str) -> int | None:
    """Return Unix milliseconds from ISO 8601 (UTC without a zone) or a number; None if absent or unreadable."""
    value = params.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value) if _MIN_MS <= value <= _MAX_MS else None
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        at_ms = to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None
    return at_ms if _MIN_MS <= at_ms <= _MAX_MS else None  # the zone may shift it out of range
