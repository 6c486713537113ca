"""Pagination cursors: opaque texts that hold a number and a name. They are validated when a caller sends them back."""

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta

from core.errors import GatewayError, InvalidInput
from core.messages import Translatable as _

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_NUMBER = 2**63 - 1
_PLAIN = re.compile(r"([0-9]{1,19}):([0-9A-Za-z_]{1,40})")


def encode(number: int, name: int | str) -> str:
    return base64.urlsafe_b64encode(f"{number}:{name}".encode()).decode()


def decode(cursor: str) -> tuple[int, str]:
    """Return the number and the name.

    Raises: `InvalidInput` for text that `encode` did not make.
    """
    try:
        found = _PLAIN.fullmatch(base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii"))
    except (ValueError, binascii.Error):
        found = None
    if found is None or int(found[1]) > _MAX_NUMBER:
        raise _invalid_cursor()
    return int(found[1]), found[2]


def decode_numbers(cursor: str) -> tuple[int, int]:
    """Return both numbers of a cursor whose name is a number too.

    Raises: `InvalidInput`.
    """
    number, name = decode(cursor)
    if not name.isdecimal() or int(name) > _MAX_NUMBER:
        raise _invalid_cursor()
    return number, int(name)


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(since_epoch: int) -> datetime:
    """Return the inverse of `microseconds`.

    Raises: `InvalidInput` for a time out of range.
    """
    try:
        return _EPOCH + timedelta(microseconds=since_epoch)
    except OverflowError:
        raise _invalid_cursor() from None


def _invalid_cursor() -> GatewayError:
    return InvalidInput.of_field("cursor", _("must be the next_cursor of an earlier response"))
