"""The time zones of users. Profiles hold them, and tell how to read them: nothing below profiles imports them."""

import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import tzinfo
from typing import Final
from uuid import UUID

from core.zones import default_zone, zone_of

_KEPT_SECONDS: Final = 60.0
_MAX_KEPT: Final = 10_000


def _no_zone(_user_pk: UUID) -> str:
    return ""


_read: Callable[[UUID], str] = _no_zone
_kept: OrderedDict[UUID, tuple[float, str]] = OrderedDict()


def read_with(reader: Callable[[UUID], str]) -> None:
    """Set the function that returns the zone as a user wrote it, empty without one."""
    global _read  # noqa: PLW0603  set once, when the app that holds the zones is ready
    _read = reader


def written_zone(user_pk: UUID) -> str:
    """Return the zone as the user wrote it, empty without one; up to a minute old if another process changed it.

    At most one SQL statement.
    """
    now = time.monotonic()
    read_at, zone = _kept.get(user_pk, (float("-inf"), ""))
    if now - read_at > _KEPT_SECONDS:
        zone = _read(user_pk)
        _kept[user_pk] = now, zone
        _kept.move_to_end(user_pk)
        while len(_kept) > _MAX_KEPT:
            _kept.popitem(last=False)
    return zone


def zone_of_user(user_pk: UUID, requested: str = "") -> tzinfo:
    """Return the zone that a request names, else that of the user's profile; the installation's for unknown names.

    At most one SQL statement, and none with a requested zone.
    """
    return zone_of(requested or written_zone(user_pk)) or default_zone()


def forget(user_pk: UUID) -> None:
    """Read the zone of a user again, because the profile changed."""
    _kept.pop(user_pk, None)
