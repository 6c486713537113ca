"""Attachments of Outlook's messages: the storages of a compound file (MS-CFB), and properties in them (MS-OXMSG)."""

import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from documents.decoding import decode
from documents.guards import DAMAGED, Refused

_HEADER: Final = struct.Struct("<30xHH14xI4xIIII4x")
_ENTRY: Final = struct.Struct("<64sHBxIII36xIQ")
_TABLE_PLACES: Final = 109
"""The number of sectors of the allocation table that the header names."""
_SHIFTS: Final = frozenset({6, 9, 12})
_LAST: Final = 0xFFFFFFFA
"""The last number of a sector or an entry; greater ones stand for none."""
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
    """Yield the attachments of a message. Raises: `Refused` if the file is damaged."""
    try:
        file = _CompoundFile(data)
    except (struct.error, IndexError) as error:
        raise Refused(DAMAGED) from error
    yield from _attachments(file, file.members(file.entries[0]))


class _Entry(NamedTuple):
    name: bytes
    size_of_name: int
    kind: int
    left: int
    right: int
    child: int
    start: int
    size: int


Members = dict[str, _Entry]


class _CompoundFile:
    """The sectors of a compound file. Raises: `struct.error` or `IndexError` if its header or directory is damaged."""

    def __init__(self, data: bytes) -> None:
        shift, small_shift, directory, self._cutoff, small_table, _count, more = _HEADER.unpack_from(data)
        if not {shift, small_shift} <= _SHIFTS:
            raise struct.error
        self._data, self._sector, self._small_sector = data, 1 << shift, 1 << small_shift
        places = list(struct.unpack_from(f"<{_TABLE_PLACES}I", data, _HEADER.size))
        needed = len(data) * 4 // self._sector**2 + 1
        while more <= _LAST and len(places) < needed:
            *next_places, more = self._integers(self._at(more))
            places += next_places
        self._table = [one for place in places[:needed] if place <= _LAST for one in self._integers(self._at(place))]
        listed = b"".join(self._chain(directory))
        self.entries = [_Entry(*one) for one in _ENTRY.iter_unpack(listed)]
        self._small_table = self._integers(b"".join(self._chain(small_table)))
        self._small = b"".join(self._chain(self.entries[0].start))

    def members(self, storage: _Entry) -> Members:
        """Return the streams and storages in a storage by their names. Raises: `Refused`."""
        found: Members = {}
        todo, seen = [storage.child], set[int]()
        while todo:
            number = todo.pop()
            if number <= _LAST and number not in seen:
                if number >= len(self.entries):
                    raise Refused(DAMAGED)
                seen.add(number)
                entry = self.entries[number]
                found[entry.name[: max(0, entry.size_of_name - 2)].decode("utf-16-le", "replace")] = entry
                todo += (entry.right, entry.left)
        return found

    def stream(self, entry: _Entry) -> bytes:
        """Return the bytes of a stream. Raises: `Refused`."""
        if entry.size >= self._cutoff:
            return b"".join(self._chain(entry.start))[: entry.size]
        size = self._small_sector
        numbers = _numbers(self._small_table, entry.start)
        return b"".join(self._small[number * size : (number + 1) * size] for number in numbers)[: entry.size]

    def _chain(self, start: int) -> Iterator[bytes]:
        return map(self._at, _numbers(self._table, start))

    def _at(self, number: int) -> bytes:
        begin = (number + 1) * self._sector
        return self._data[begin : begin + self._sector]

    def _integers(self, sectors: bytes) -> list[int]:
        return list(struct.unpack(f"<{len(sectors) // 4}I", sectors[: len(sectors) // 4 * 4]))


def _numbers(table: list[int], number: int) -> Iterator[int]:
    """Yield the sectors of a chain; one that runs in a circle ends. Raises: `Refused`."""
    for _ in table:
        if number > _LAST:
            return
        if number >= len(table):
            raise Refused(DAMAGED)
        yield number
        number = table[number]


def _attachments(file: _CompoundFile, members: Members) -> Attachments:
    for storage_name, storage in sorted(members.items()):
        if not storage_name.startswith(_ATTACHMENT):
            continue
        found = file.members(storage)
        name = next(filter(None, (_text(file, found, tag) for tag in _NAMES)), "")
        if content := found.get(f"{_PROPERTY}37010102"):
            yield name, partial(file.stream, content)
        elif inner := found.get(f"{_PROPERTY}3701000D"):
            message = _message(file, file.members(inner))
            yield name or (message.fields.get("Subject", "") if message else ""), message


def _message(file: _CompoundFile, members: Members) -> Message | None:
    if not any(name.startswith(_PROPERTY) for name in members):
        return None
    fields = {name: text for name, tag in _FIELDS.items() if (text := _text(file, members, tag))}
    html = members.get(f"{_PROPERTY}10130102")
    text = _text(file, members, "1000")
    return Message(fields, text, file.stream(html) if html else b"", _attachments(file, members))


def _text(file: _CompoundFile, members: Members, tag: str) -> str:
    """Return the text of a property, which is UTF-16 or, in old messages, of an encoding that it does not name."""
    if wide := members.get(f"{_PROPERTY}{tag}001F"):
        return file.stream(wide).decode("utf-16-le", "replace").replace("\r\n", "\n").strip("\0 \n")
    narrow = members.get(f"{_PROPERTY}{tag}001E")
    return decode(file.stream(narrow)).strip("\0 \n") if narrow else ""
