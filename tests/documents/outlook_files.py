"""Messages of Outlook, made byte by byte: compound files with the streams of a message and of its attachments."""

from __future__ import annotations

import itertools
import struct

Storage = dict[str, "bytes | Storage"]
_SECTOR, _MINI, _CUTOFF = 512, 64, 4096
_FREE, _END, _TABLE, _NONE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFF


def message(subject: str, text: str, *attachments: Storage, is_top: bool = True) -> Storage:
    """Return the storage of a message."""
    streams: Storage = {
        "__properties_version1.0": bytes(32 if is_top else 24),
        "__substg1.0_001A001F": "IPM.Note".encode("utf-16-le"),
        "__substg1.0_0037001F": subject.encode("utf-16-le"),
        "__substg1.0_0C1A001F": "Anna Weber".encode("utf-16-le"),
        "__substg1.0_0C1F001F": "anna@example.org".encode("utf-16-le"),
        "__substg1.0_0E04001F": "ben@example.org".encode("utf-16-le"),
        "__substg1.0_1000001F": text.encode("utf-16-le"),
    }
    if is_top:
        streams["__nameid_version1.0"] = dict.fromkeys((f"__substg1.0_000{number}0102" for number in (2, 3, 4)), b"")
    for number, attachment in enumerate(attachments):
        streams[f"__attach_version1.0_#{number:08X}"] = attachment
    return streams


def attached(name: str, content: bytes | Storage) -> Storage:
    """Return the storage of an attachment: a file, or a message in its own storage."""
    is_file = isinstance(content, bytes)
    method = struct.pack("<IIQ", 0x37050003, 6, 1 if is_file else 5)
    return {
        "__properties_version1.0": bytes(8) + method,
        "__substg1.0_3001001F": name.encode("utf-16-le"),
        "__substg1.0_3707001F": name.encode("utf-16-le"),
        f"__substg1.0_3701{'0102' if is_file else '000D'}": content,
    }


def compound(root: Storage) -> bytes:
    """Return the bytes of a compound file."""
    entries: list[list[int | str | bytes]] = []  # name, type, right, child, start, size
    sectors: list[bytes] = []
    table: list[int] = []
    mini, mini_table = bytearray(), list[int]()

    def chain(content: bytes) -> int:
        parts = [content[at : at + _SECTOR].ljust(_SECTOR, b"\0") for at in range(0, len(content), _SECTOR)]
        first = len(sectors)
        sectors.extend(parts)
        table.extend([*range(first + 1, first + len(parts)), _END] if parts else [])
        return first if parts else _END

    def mini_chain(content: bytes) -> int:
        count, first = -(-len(content) // _MINI), len(mini_table)
        mini.extend(content.ljust(count * _MINI, b"\0"))
        mini_table.extend([*range(first + 1, first + count), _END] if count else [])
        return first if count else _END

    def add(name: str, content: bytes | Storage) -> int:
        number = len(entries)
        if isinstance(content, bytes):
            start = mini_chain(content) if len(content) < _CUTOFF else chain(content)
            entries.append([name, 2, _NONE, _NONE, start, len(content)])
            return number
        entries.append([name, 1, _NONE, _NONE, 0, 0])
        members = [add(*member) for member in sorted(content.items(), key=lambda one: (len(one[0]), one[0]))]
        for member, following in itertools.pairwise(members):
            entries[member][2] = following
        entries[number][3] = members[0] if members else _NONE
        return number

    add("Root Entry", root)
    entries[0][1], entries[0][4], entries[0][5] = 5, chain(bytes(mini)), len(mini)
    directory = b"".join(
        struct.pack(
            "<64sHBBIII16xI8x8xIQ",
            *(str(name).encode("utf-16-le"), len(str(name)) * 2 + 2, kind, 1, _NONE, right, child, 0, start, size),
        )
        for name, kind, right, child, start, size in entries
    )
    mini_sectors = -(-len(mini_table) * 4 // _SECTOR)
    mini_start = chain(struct.pack(f"<{len(mini_table)}I", *mini_table).ljust(mini_sectors * _SECTOR, b"\xff"))
    empty = struct.pack("<64sHBBIII16xI8x8xIQ", b"", 0, 0, 0, _NONE, _NONE, _NONE, 0, 0, 0)
    directory_start = chain(directory + empty * (-len(entries) % 4))
    count = 1
    while (len(table) + count) * 4 > count * _SECTOR:
        count += 1
    first = len(sectors)
    table += [_TABLE] * count
    packed = struct.pack(f"<{len(table)}I", *table).ljust(count * _SECTOR, b"\xff")
    header = struct.pack(
        "<8s16xHHHHH6x9I",
        *(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6, 0, count, directory_start, 0, _CUTOFF),
        *(mini_start, mini_sectors, _END, 0),
    )
    places = [*range(first, first + count)] + [_FREE] * (109 - count)
    return header + struct.pack("<109I", *places) + b"".join(sectors) + packed
