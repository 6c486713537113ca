"""Attachments of Outlook's messages: the storages of a compound file, and properties in them (MS-OXMSG)."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple

from olefile import OleFileIO

from documents.decoding import decode
from documents.guards import DAMAGED, Refused

_ATTACHMENT: Final = "__attach_version1.0_#"
_PROPERTY: Final = "__substg1.0_"
_NAMES: Final = ("3707", "3704", "3001")
"""The names of an attachment: long, short, shown."""
_FIELDS: Final = {"Subject": "0037", "From": "0C1A", "To": "0E04", "Cc": "0E03"}


class Message(NamedTuple):
    """A message in a message. It has a text, or HTML."""

    fields: dict[str, str]
    text: str
    html: bytes
    attachments: "Attachments"


Attachments = Iterator[tuple[str, "Callable[[], bytes] | Message | None"]]
"""The name and the content of each attachment; None for an object that only Outlook can show."""


def attachments(data: bytes) -> Attachments:
    """Return the attachments of a message. They, and this, raise `Refused` if the file is damaged."""
    with _damage_refused():
        return _Storage(OleFileIO(io.BytesIO(data)), ()).attachments()


@contextmanager
def _damage_refused() -> Iterator[None]:
    """Raise `Refused` for what the library raises: OSError where it checks, others where it meets damage."""
    try:
        yield
    except (OSError, ValueError, IndexError, AttributeError, TypeError, RecursionError) as error:
        raise Refused(DAMAGED) from error


class _Storage(NamedTuple):
    """A storage of a compound file, which holds streams and storages."""

    file: OleFileIO
    path: tuple[str, ...]

    def attachments(self) -> Attachments:
        for name in filter(lambda one: one.startswith(_ATTACHMENT), self._names()):
            storage = _Storage(self.file, (*self.path, name))
            title = next(filter(None, map(storage._text, _NAMES)), "")
            if storage._has("37010102"):
                yield title, partial(storage._bytes, "37010102")
            elif storage._has("3701000D"):
                message = _Storage(self.file, (*storage.path, f"{_PROPERTY}3701000D")).message()
                yield title or (message.fields.get("Subject", "") if message else ""), message

    def message(self) -> Message | None:
        if not any(name.startswith(_PROPERTY) for name in self._names()):
            return None
        fields = {name: text for name, tag in _FIELDS.items() if (text := self._text(tag))}
        html = self._bytes("10130102") if self._has("10130102") else b""
        return Message(fields, self._text("1000"), html, self.attachments())

    def _names(self) -> list[str]:
        depth = len(self.path)
        return sorted({one[depth] for one in self.file.listdir() if tuple(one[:depth]) == self.path})

    def _has(self, tag: str) -> bool:
        return bool(self.file.exists([*self.path, f"{_PROPERTY}{tag}"]))

    def _bytes(self, tag: str) -> bytes:
        with _damage_refused():
            content: bytes = self.file.openstream([*self.path, f"{_PROPERTY}{tag}"]).read()
            return content

    def _text(self, tag: str) -> str:
        """Return the text of a property, which is UTF-16 or, in old messages, of an encoding that it does not name."""
        if self._has(f"{tag}001F"):
            return self._bytes(f"{tag}001F").decode("utf-16-le", "replace").replace("\r\n", "\n").strip("\0 \n")
        return decode(self._bytes(f"{tag}001E")).strip("\0 \n") if self._has(f"{tag}001E") else ""
