"""A user's memories, profiles and files as a ZIP archive that people and programs can read, written as a stream.

`index.html` is for reading, `memories.jsonl`, `profiles.jsonl` and `files.jsonl` are for programs, `files/` holds the
uploaded files under their names. `operations.archives` moves users between gateways instead.
"""

import io
import re
import zipfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote

import orjson
from django.db.models import Q
from django.utils.html import escape, format_html, format_html_join
from django.utils.translation import get_language, gettext

from accounts.models import MemoryUser
from core import readable
from core.persistence.files import stored_files
from core.times import isoformat
from profiles.models import ProfileMemory
from resources.models import Resource
from store import table
from store.models import NOT_INCOGNITO, Memory, State
from store.types import StoredMemory, labels_of

_BATCH_ROWS: Final = 500
_CHUNK_BYTES: Final = 64 * 1024
_MAX_NAME_BYTES: Final = 200
_NOT_IN_NAMES: Final = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "article{border-top:1px solid #8884;padding:.6rem 0}p{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0}"
    "small{opacity:.75}pre{white-space:pre-wrap}"
)


class _Stream(io.RawIOBase):
    """Collects what a ZIP writer writes until it is sent."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken


class Words(NamedTuple):
    """The words of the page, in the language that is active when it is made."""

    language: str
    title: str
    profile: str
    files: str
    memories: str
    states: Mapping[str, str]

    @classmethod
    def now(cls, user_id: str) -> Self:
        return cls(
            language=get_language() or "en",
            title=gettext("Memories of %(user)s") % {"user": user_id},
            profile=gettext("Profile"),
            files=gettext("Files"),
            memories=gettext("Memories"),
            states={state.value: str(state.label) for state in State if state != State.LIVE},
        )


def export(user: MemoryUser, words: Words) -> Generator[bytes]:
    """Yield the parts of the archive. Reads rows in batches and files in chunks: memory use does not grow with them.

    Purged memories and files are not in it; expired and deleted ones say so in `state`. Files that cannot be found are
    named in `missing.jsonl`.
    """
    stream = _Stream()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        add = partial(_add, archive, stream)
        yield from add("index.html", _page(user, words))
        yield from add("memories.jsonl", map(_line, map(_memory, _memories(user))))
        yield from add("profiles.jsonl", map(_line, _profiles(user)))
        yield from add("files.jsonl", (_line(_file(one, name)) for one, name in _files(user)))
        missing = []
        for resource, name in _files(user):
            if name is None or resource.state != State.LIVE:
                continue
            with ExitStack() as opened:
                try:
                    file = opened.enter_context(stored_files().open_whole(resource.file_key))
                except FileNotFoundError:  # deleted meanwhile, or lost
                    missing.append(_line({"resource_id": resource.pk, "path": name}))
                    continue
                yield from add(name, iter(partial(file.read, _CHUNK_BYTES), b""))
        if missing:
            yield from add("missing.jsonl", missing)
    yield stream.take()


def _add(archive: zipfile.ZipFile, stream: _Stream, name: str, parts: Iterable[bytes]) -> Iterator[bytes]:
    """Write a file into the archive; yield what is ready to be sent."""
    with archive.open(name, "w", force_zip64=True) as entry:
        for part in parts:
            entry.write(part)
            if ready := stream.take():
                yield ready
    if ready := stream.take():
        yield ready


def _line(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps(value) + b"\n"


def _memories(user: MemoryUser) -> Iterator[StoredMemory]:
    """Yield the memories of a user by their time, in batches: a slow reader holds no transaction."""
    found = table.visible(Memory.objects.filter(NOT_INCOGNITO, user=user)).order_by("created_at_ms", "pk")
    batch = list(found[:_BATCH_ROWS])
    while batch:
        yield from map(table.stored, batch)
        at, pk = batch[-1].created_at_ms, batch[-1].pk
        later = Q(created_at_ms__gt=at) | Q(created_at_ms=at, pk__gt=pk)
        batch = list(found.filter(later, created_at_ms__gte=at)[:_BATCH_ROWS])


def _memory(memory: StoredMemory) -> dict[str, Any]:
    is_edited = bool(memory.original_text) and memory.original_text != memory.text
    return {
        "id": memory.memory_id,
        "state": State.TRASHED if memory.is_live and memory.is_session_hidden else memory.state,
        "text": memory.text,
        "original_text": memory.original_text if is_edited else None,
        "category": memory.category,
        "importance": memory.importance,
        "tags": list(memory.payload.get("tags", ())),
        "metadata": memory.payload.get("metadata", {}),
        "external_id": memory.payload.get("external_id"),
        "created_at": isoformat(readable.moment(memory.created_at_ms)),
        "expires_at": memory.expires_at and isoformat(memory.expires_at),
        "memory_type": memory.memory_type,
        "session_id": memory.session_id,
        "role": memory.envelope.get("role"),
        "sender_id": memory.sender_id,
        "sender_name": memory.envelope.get("sender_name"),
        "agent_id": memory.agent_id,
        "app_id": memory.owner.app_id,
        "project_id": memory.owner.project_id,
    }


def _profiles(user: MemoryUser) -> Iterator[dict[str, Any]]:
    for profile in ProfileMemory.objects.filter(owner=user).order_by("memory_type"):
        yield {
            "kind": profile.memory_type,
            "status": profile.status,
            "version": profile.version,
            "updated_at": isoformat(profile.updated_at),
            "content": profile.content,
        }


def _files(user: MemoryUser) -> Iterator[tuple[Resource, str | None]]:
    """Yield the files of a user, each with its unique name in the archive; None for one that is not stored here."""
    used: set[str] = set()
    found = Resource.objects.filter(user=user).exclude(state=State.PURGED).order_by("created_at", "pk")
    for resource in found.iterator(_BATCH_ROWS):
        yield resource, _name_in_archive(resource.filename, used) if resource.storage_path else None


def _name_in_archive(filename: str, used: set[str]) -> str:
    """Return a file's own name without what file systems refuse, with a number if another file has it."""
    safe = _NOT_IN_NAMES.sub("_", filename).strip(". ") or "file"
    stem, dot, suffix = safe.rpartition(".")
    stem, suffix = (stem, f".{suffix}") if dot and len(suffix) <= 16 else (safe, "")
    stem = stem.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
    name, number = f"{stem}{suffix}", 1
    while name.casefold() in used:
        number += 1
        name = f"{stem} ({number}){suffix}"
    used.add(name.casefold())
    return f"files/{name}"


def _file(resource: Resource, name: str | None) -> dict[str, Any]:
    return {
        "resource_id": resource.pk,
        "state": resource.state,
        "filename": resource.filename,
        "path": name if resource.state == State.LIVE else None,
        "title": resource.title,
        "description": resource.description,
        **labels_of(resource.labels or {}),
        "mime_type": resource.mime_type,
        "size_bytes": resource.size_bytes,
        "sha256": resource.sha256,
        "created_at": isoformat(resource.created_at),
        "app_id": resource.app_id,
        "project_id": resource.project_id,
    }


def _page(user: MemoryUser, words: Words) -> Iterator[bytes]:
    head = '<!doctype html>\n<html lang="{}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += "<title>{}</title><style>{}</style>\n<h1>{}</h1>\n"
    yield format_html(head, words.language, words.title, _STYLE, words.title).encode()
    for profile in _profiles(user):
        content = orjson.dumps(profile["content"], option=orjson.OPT_INDENT_2).decode()
        yield format_html("<h2>{}: {}</h2>\n<pre>{}</pre>\n", words.profile, profile["kind"], content).encode()
    yield from _list_of_files(user, words)
    yield format_html("<h2>{}</h2>\n", words.memories).encode()
    for memory in map(_memory, _memories(user)):
        yield _article(memory, words)


def _list_of_files(user: MemoryUser, words: Words) -> Iterator[bytes]:
    yield format_html("<h2>{}</h2>\n<ul>\n", words.files).encode()
    for resource, name in _files(user):
        label = escape(resource.filename)
        if name is not None and resource.state == State.LIVE:
            label = format_html('<a href="{}">{}</a>', quote(name), resource.filename)
        yield format_html("<li>{}\n", label).encode()
    yield b"</ul>\n"


def _article(memory: Mapping[str, Any], words: Words) -> bytes:
    speaker = memory["sender_name"] or memory["sender_id"] if memory["role"] else ""
    state, tags = words.states.get(memory["state"], ""), ", ".join(memory["tags"])
    notes = format_html_join(" · ", "{}", ((note,) for note in (
        memory["created_at"], state, speaker, memory["category"], tags) if note))  # fmt: skip
    return format_html('<article><small>{}</small>\n<p dir="auto">{}</p></article>\n', notes, memory["text"]).encode()
