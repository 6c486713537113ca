"""Parse parameters of the plugin's panel. As in OpenClaw, an invalid value counts as absent."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from agents.rpc.failures import invalid
from core.times import to_ms

Params = Mapping[str, Any]
MAX_NUMBER = 10**9
_MIN_MS, _MAX_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999


def text(params: Params, name: str) -> str:
    value = params.get(name)
    return value.strip() if isinstance(value, str) else ""


def whole(params: Params, name: str, default: int, *, maximum: int = MAX_NUMBER) -> int:
    """Return a number or digits as an integer between 1 and `maximum`; the default for zero and invalid values."""
    value = params.get(name)
    try:
        number = int(value) if isinstance(value, int | float | str) else 0
    except (ValueError, OverflowError):
        number = 0
    return min(max(number, 1), maximum) if number else default


def flag(params: Params, name: str, default: bool) -> bool:
    """Return a boolean, also from "true" and "false". Raises: `Failure` for lists and objects."""
    value = params.get(name)
    if isinstance(value, list | dict):
        raise invalid(f"{name} must be true or false")
    return {True: True, False: False, "true": True, "false": False}.get(value, default)


def moment_ms(params: Params, name: str) -> int | None:
    """Return Unix milliseconds from a number, or from a text that `Date.parse` accepts; None if absent or invalid."""
    value = params.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value) if _MIN_MS <= value <= _MAX_MS else None
    if not isinstance(value, str):
        return None
    try:
        at_ms = to_ms(_parsed(value.strip()))
    except (ValueError, OverflowError):
        return None
    return at_ms if _MIN_MS <= at_ms <= _MAX_MS else None  # the zone may shift it out of range


_DATES = ("%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y", "%Y/%m/%d", "%m/%d/%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_FORMATS = tuple(date + time + zone for date in _DATES for time in _TIMES for zone in ("", " %z"))
_DATE_ONLY = re.compile(r"(\d{4})(-\d\d)?(-\d\d)?")
_NOISE = re.compile(r"\(.*\)$|^(mon|tue|wed|thu|fri|sat|sun)[a-z]*\b|,", re.IGNORECASE)
_UTC = re.compile(r"\b(GMT|UTC|Z)$", re.IGNORECASE)
_MAX_CHARS = 100


def _parsed(value: str) -> datetime:
    """Return the time of a text in the formats that every browser reads.

    These are ISO 8601, RFC 2822, `Date.toString()` and dates with slashes or names of months. A date of ISO 8601
    without a time is in UTC, other times without a zone are in that of the server. Raises: ValueError, OverflowError.
    """
    if match := _DATE_ONLY.fullmatch(value):
        return datetime.fromisoformat(f"{match[1]}{match[2] or '-01'}{match[3] or '-01'}").replace(tzinfo=UTC)
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        found = _with_names(value[:_MAX_CHARS])
    return found if found.tzinfo else found.replace(tzinfo=timezone.get_default_timezone())


def _with_names(value: str) -> datetime:
    plain = _UTC.sub("+0000", " ".join(_NOISE.sub(" ", value).split()))
    plain = re.sub(r" (?:GMT|UTC)(?=[+-]\d)", " ", plain)
    for form in _FORMATS:
        with suppress(ValueError):
            return datetime.strptime(plain, form)  # noqa: DTZ007  the caller adds the zone
    raise ValueError("not a time")
