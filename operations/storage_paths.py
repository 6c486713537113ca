"""Paths of stored files: absolute in the database, below `{storage}` in an archive."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from core.errors import InvalidInput
from resources import storage

_ROOT = "{storage}/"
BELOW_ROOT = (
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/(?:r_[0-9a-f]{32}|memory_attachments/[0-9a-f]{64})"
    r"/content(?:\.[a-z0-9]{1,8})?"
)
"""What the gateway calls the files that it stores, below its storage folder."""
_STORED = re.compile(rf"(?P<scheme>file://)?/(?:.*/)?(?P<path>{BELOW_ROOT})", re.DOTALL)
_BELOW = re.compile(rf"(?P<path>{BELOW_ROOT})")
_PACKED = re.compile(rf"(?P<scheme>file://)?{re.escape(_ROOT)}(?P<path>{BELOW_ROOT})")


def pack(place: str) -> str:
    """A path or `file://` address of a stored file as an archive has it; anything else as it is."""
    found = _STORED.fullmatch(place)
    return f"{found['scheme'] or ''}{_ROOT}{found['path']}" if found else place


def unpack(place: str) -> str:
    """The same in the storage folder of this gateway."""
    found = _PACKED.fullmatch(place)
    if not found:
        return place
    path = storage.root() / found["path"]
    return path.as_uri() if found["scheme"] else str(path)


def is_of(user_pk: UUID, place: str) -> bool:
    """Whether a place in an archive is none of the storage's, or in this user's own folder."""
    found = _PACKED.fullmatch(place) or _STORED.fullmatch(place) or _BELOW.fullmatch(place)
    return not found or found["path"].startswith(f"{user_pk}/")


def of_upload(row: dict[str, Any]) -> list[str]:
    """Errors: `InvalidInput` for what is no place of ours."""
    place = row["storage_path"]
    if place and not _BELOW.fullmatch(place):
        raise InvalidInput(f"storage_path: {place[:100]!r} is no place of a stored file")
    return [place]


def of_attachment(row: dict[str, Any]) -> list[str]:
    return [row["internal_uri"]]


def of_message(row: dict[str, Any]) -> list[str]:
    found: list[str] = []
    _with_files(row, found.append)
    return found


def pack_uri(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "internal_uri": pack(row["internal_uri"])}


def unpack_uri(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "internal_uri": unpack(row["internal_uri"])}


def pack_message(row: dict[str, Any]) -> dict[str, Any]:
    """A journalled message names the files that came with it."""
    return _with_files(row, pack)


def unpack_message(row: dict[str, Any]) -> dict[str, Any]:
    """Errors: `InvalidInput` for a file that is not ours: the message would be sent on with it."""
    return _with_files(row, _unpack_file)


def _unpack_file(place: str) -> str:
    if not _PACKED.fullmatch(place):
        raise InvalidInput(f"a message names the file {place[:100]!r}, which is not in the archive")
    return unpack(place)


def _with_files(row: dict[str, Any], change: Any) -> dict[str, Any]:
    message = row["payload"].get("message") if isinstance(row["payload"], dict) else None
    items = message.get("content") if isinstance(message, dict) else None
    if not isinstance(items, list) or not any(isinstance(item, dict) and item.get("file") for item in items):
        return row
    changed = [
        {**item, "file": change(str(item["file"]))} if isinstance(item, dict) and item.get("file") else item
        for item in items
    ]
    return {**row, "payload": {**row["payload"], "message": {**message, "content": changed}}}  # type: ignore[dict-item]
