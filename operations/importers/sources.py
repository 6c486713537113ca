"""Readers of other memory stores: exports of mem0, ChatGPT, Claude, the MCP memory server, EverOS and OpenClaw.

A reader yields the memories of a source one by one and in a fixed order, so that a source of any size needs little
memory. It follows no symbolic link and opens regular files only. Zip archives are read, never unpacked to disk.
"""

import hashlib
import io
import json
import lzma
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from core.errors import InvalidInput, NotFound
from core.messages import Translatable as _
from core.storable import (
    MAX_GIVEN_JSON_BYTES,
    MAX_JSON_DEPTH,
    NotStorable,
    Repair,
    check_json,
    check_ms,
    check_text,
    parse_integer,
    parse_json,
)
from core.times import to_ms
from memories.services.manual import MAX_TEXT_CHARS

_CHUNK_CHARS: Final = 2**20
_MAX_ITEM_CHARS: Final = 2**22
_MAX_FILE_BYTES: Final = 16 * 2**20
_MAX_MEMBERS: Final = 100_000
_MAX_UNPACKED_BYTES: Final = 2 * 2**30
_MAX_RATIO: Final = 200
_MIN_RATIO_BYTES: Final = 2**20
_DAMAGED_ZIP: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, ValueError, NotImplementedError,
)  # fmt: skip
MAX_ID_CHARS: Final = 256
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEADING = re.compile(r"#{1,6}\s")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_FRONT_MATTER = re.compile(r"\A---\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_DATE = re.compile(r"^(?:date|created|created_at):\s*['\"]?([0-9][0-9T:.+Z -]*)", re.MULTILINE)
_MARKED = re.compile(r"<!-- memory (\{[^\n]*\}) -->\n(.*?)\n<!-- /memory -->", re.DOTALL)
_STRUCTURE = re.compile(r'\\.|["\[\]{},]', re.DOTALL)
_OPEN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_ENTRY = re.compile(r"<!-- entry:([A-Za-z0-9_-]+) -->\r?\n(.*?)<!-- /entry:\1 -->", re.DOTALL)
_FIELD = re.compile(r"^\*\*([^*\n]+)\*\*:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_EPISODES = re.compile(r"(.*/)?users/([^/]+)/episodes/episode-(\d{4}-\d\d-\d\d)\.md")
_USER_FILE = re.compile(r"(?:.*/)?users/([^/]+)/(.+)")


@dataclass(frozen=True, slots=True)
class Found:
    """A memory of a source. `source_id` names it there; `memory_id` is set if the memory keeps its id.

    `speaker` said it, if it is neither the user nor the agent. `unread_date` is a date that could not be read.
    """

    source_id: str
    text: str
    created_at_ms: int
    category: str = ""
    agent_id: str = ""
    memory_id: str = ""
    session_id: str = ""
    batch_id: str = ""
    importance: float | None = None
    speaker: str = ""
    unread_date: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Left:
    """A part of a source that cannot be imported, with the reason and its place in the source."""

    reason: str
    place: str = ""


Items = Iterator[Found | Left]
Parts = Iterator[tuple[str, str, Found | Left]]
"""Items of a reader: the user, "" if unknown, the place in the source, and the memory or the reason to skip it."""


def read(source: str, path: Path, of_user: str | None) -> Items:
    """Yield the memories of a source; those of one of its users if it has several.

    Raises: `NotFound` for the path, `InvalidInput` for a source that cannot be read or has several users.
    """
    users: set[str] = set()
    for user, place, item in READERS[source](path):
        if user and of_user is None:
            users.add(user)
            if len(users) > 1:
                names = Repair().text("users", " and ".join(sorted(users)), 200)
                raise InvalidInput(
                    f"The source has memories of several users, such as {names}. Choose one with --source-user."
                )
        part = Left("of another user") if user and of_user not in {None, user} else item
        yield replace(part, place=Repair().text("place", place, 100)) if isinstance(part, Left) else part


def _mem0(path: Path) -> Parts:
    # A record with bytes that are not UTF-8 holds lone surrogates then, for which it is left out.
    with io.TextIOWrapper(_open_binary(path), encoding="utf-8-sig", errors="surrogateescape") as file:
        saved_at_ms = _modified_ms(file)
        for number, item in enumerate(_JsonItems(file), 1):
            user = _name(item, "user_id") if isinstance(item, dict) else ""
            yield user, f"item {number}", _mem0_item(item, saved_at_ms)


def _name(item: Mapping[str, Any], field: str) -> str:
    """Return a name, which may be a number; "" for other values."""
    name = item.get(field)
    return str(name) if name and isinstance(name, str | int) else ""


def _mem0_item(item: Any, saved_at_ms: int) -> Found | Left:
    if not isinstance(item, dict):
        return item if isinstance(item, Left) else Left("not a memory")
    text = item.get("memory") or item.get("text") or item.get("data")
    if not isinstance(text, str):
        return Left("without text")
    item_id, created_at = _name(item, "id"), item.get("created_at")
    if item.get("id") and not item_id:
        return Left("an id that is neither text nor a number")
    return _checked(
        Found(
            source_id=item_id or hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest(),
            text=text,
            created_at_ms=saved_at_ms if (at_ms := _date(created_at)) is None else at_ms,
            agent_id=_name(item, "agent_id"),
            unread_date=_unread(created_at, at_ms),
            details={name: item[name] for name in ("metadata", "categories", "run_id", "updated_at") if item.get(name)},
        )
    )


class _JsonItems:
    """The items of a JSON list, or of the list `results` or `memories` of an object, read piece by piece.

    In the place of an item that cannot be parsed or is too large, there is a `Left`.
    """

    _decoder = json.JSONDecoder(parse_int=parse_integer)

    def __init__(self, file: IO[str]) -> None:
        self._file, self._text, self._at, self._is_over = file, "", 0, False

    def __iter__(self) -> Iterator[Any]:
        if self._next() == "{":
            self._find_list()
        self._take("[")
        while self._next() != "]":
            yield self._value()
            if self._next() != "]":
                self._take(",")

    def _find_list(self) -> None:
        self._take("{")
        while True:
            name = self._value()
            self._take(":")
            if isinstance(name, str) and name in {"results", "memories"} and self._next() == "[":
                return
            self._value()
            self._take(",")

    def _next(self) -> str:
        """Return the next character that is no white space; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in " \t\r\n":
                    return self._text[self._at]
                self._at += 1
            if self._is_over:
                return ""
            self._fill()

    def _take(self, char: str) -> None:
        if self._next() != char:
            raise InvalidInput(f"The file is not a JSON list of memories: {char!r} is missing.")
        self._at += 1

    def _value(self) -> Any:
        """Return the value at this place, or a `Left` for one that cannot be parsed, which is skipped."""
        self._next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                return self._skip("nested too deeply")
            except json.JSONDecodeError:
                if self._is_over:
                    return self._skip("not valid JSON")
            else:
                if end < len(self._text) or self._is_over:
                    self._at = end
                    return value
            if len(self._text) - self._at > _MAX_ITEM_CHARS:
                return self._skip("not valid JSON, or of more than four million characters")
            self._fill()

    def _skip(self, reason: str) -> Left:
        """Skip a value by its brackets and quotes."""
        depth, is_text = 0, False
        while True:
            for match in _STRUCTURE.finditer(self._text, self._at):
                char = match[0]
                if is_text:
                    is_text = char != '"'
                elif depth == 0 and char in ",]}":
                    self._at = match.start()
                    return Left(reason)
                else:
                    is_text = char == '"'
                    depth += (char in "[{") - (char in "]}")
            self._at = len(self._text)
            if self._is_over:
                return Left(reason)
            self._at -= bool(_OPEN_ESCAPE.search(self._text))  # which continues in the next piece
            self._fill()

    def _fill(self) -> None:
        more = self._file.read(_CHUNK_CHARS)
        self._text, self._at, self._is_over = self._text[self._at :] + more, 0, not more


def _markdown(path: Path) -> Parts:
    for name, text, saved_at_ms in _markdown_files(path):
        if text is None:
            yield "", name, Left("not a Markdown file of at most 16 MiB")
        elif _MARKED.search(text):
            for found in _MARKED.finditer(text):
                yield "", name, _exported(found, saved_at_ms)
        else:
            front = _FRONT_MATTER.match(text)
            date = _DATE.search(front[1]) if front else None
            at = _time(date[1].strip(), saved_at_ms) if date else saved_at_ms
            for piece in _pieces(text[front.end() :] if front else text):
                digest = hashlib.sha256(piece.encode()).hexdigest()
                yield "", name, _checked(Found(f"{name}#{digest}", piece, at, details={"file": name}))


def _exported(found: re.Match[str], saved_at_ms: int) -> Found | Left:
    """Return a memory that `export_memory` wrote."""
    try:
        head = parse_json(found[1])
        memory_id = str(head["id"])[:256]
        return _checked(
            Found(
                source_id=memory_id,
                text=found[2].replace("<\\!--", "<!--"),
                created_at_ms=_time(str(head["created_at"]), saved_at_ms),
                category=str(head["category"]),
                agent_id=str(head.get("agent_id", "")),
                memory_id=memory_id,
                importance=_importance(head.get("importance")),
                details={"session_id": str(head["session_id"])} if head.get("session_id") else {},
            )
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        return Left("a damaged marker")


def _pieces(text: str) -> Iterator[str]:
    """Yield the sections of a text: each begins with its heading, and long ones are cut at paragraphs.

    A heading without text precedes the next section.
    """
    lines: list[str] = []
    is_code = has_body = False
    for line in text.splitlines():
        is_code ^= bool(_FENCE.match(line))
        is_heading = bool(_HEADING.match(line)) and not is_code
        if is_heading and has_body:
            yield from _cut("\n".join(lines).strip())
            lines, has_body = [], False
        has_body |= bool(line.strip()) and not is_heading
        lines.append(line)
    if "\n".join(lines).strip():
        yield from _cut("\n".join(lines).strip())


def _cut(text: str) -> Iterator[str]:
    while len(text) > MAX_TEXT_CHARS:
        end = text.rfind("\n\n", 1, MAX_TEXT_CHARS)
        end = MAX_TEXT_CHARS if end < 1 else end
        yield text[:end].strip()
        text = text[end:].strip()
    if text:
        yield text


def _everos(path: Path) -> Parts:
    for name, text, saved_at_ms in _markdown_files(path, is_hidden_read=True):
        episodes, file = _EPISODES.fullmatch(name), _USER_FILE.fullmatch(name)
        if text is None or file is None:
            yield "", name, Left("not an episode")
        elif episodes is None:
            yield file[1], name, Left("a profile" if file[2] == "user.md" else "derived from episodes")
        else:
            place = f"{episodes[1] or ''}{episodes[2]}"
            for entry in _ENTRY.finditer(text):
                episode = _episode(f"{place}/{entry[1]}", entry[2], _time(episodes[3], saved_at_ms))
                yield episodes[2], f"{name}, entry {entry[1]}", episode


def _episode(source_id: str, body: str, date_ms: int) -> Found | Left:
    head, *sections = re.split(r"^###[ \t]+(.+?)[ \t]*$", body, flags=re.MULTILINE)
    fields = dict(_FIELD.findall(head))
    named = {title: text.strip() for title, text in zip(sections[::2], sections[1::2], strict=True)}
    if fields.get("deprecated_by"):
        return Left("superseded")
    text = named.get("Content") or named.get("Summary") or re.sub(_FIELD, "", re.sub(r"(?m)^## .*$", "", head)).strip()
    details = {name: fields[name] for name in ("session_id", "parent_id") if fields.get(name)}
    if subject := named.get("Subject"):
        details["subject"] = subject
    return _checked(Found(source_id, text, _time(fields.get("timestamp", ""), date_ms), details=details))


# The table of the original plugin, else that of OpenClaw's own, which has fewer columns and other categories.
_LANCE_TABLES: Final = ("openclaw_memories_alibaba_local", "memories")
_LANCE_COLUMNS: Final = (
    "id", "agentId", "userId", "sessionId", "text", "importance", "category", "createdAt", "isDeleted", "batchId",
    "seqInBatch", "chunkIndex",
)  # fmt: skip
_LANCE_CATEGORIES: Final = {
    "full_context_memory": "full_context_others",
    "fact": "user_memory_fact",
    "preference": "user_memory_preference",
    "decision": "user_memory_decision",
}
_LANCE_ROWS: Final = 500


def _openclaw(path: Path) -> Parts:
    if path.is_symlink() or not path.is_dir():
        raise NotFound(f"{path} is not a folder.")
    previous: list[Any] = []
    for number, row in enumerate(_lance_rows(path), 1):
        place = f"row {number}"
        same = [row.get(name) for name in ("agentId", "sessionId", "category", "text", "createdAt")]
        user = str(row.get("userId") or "")
        if row.get("isDeleted"):
            yield user, place, Left("deleted")
        elif row.get("chunkIndex") and same == previous:
            yield user, place, Left("another vector of the same memory")
        else:
            for item in _lance_items(row):
                yield user, place, item
        previous = same


def _lance_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        import lancedb  # noqa: PLC0415  of the extra `lancedb`
    except ImportError:
        raise InvalidInput("LanceDB is not installed. Run: pip install 'memory-gateway[lancedb]'") from None
    try:
        database = lancedb.connect(path)
        names = database.list_tables().tables
        table = database.open_table(next((name for name in _LANCE_TABLES if name in names), _LANCE_TABLES[0]))
        columns = [name for name in _LANCE_COLUMNS if name in table.schema.names]
        for batch in table.search().select(columns).to_batches(_LANCE_ROWS):
            yield from batch.to_pylist()
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{path} cannot be read as the LanceDB of an OpenClaw plugin: {error}") from error


def _lance_items(row: Mapping[str, Any]) -> Iterator[Found | Left]:
    """Yield the memory of a row; a long text becomes several."""
    text, row_id = str(row.get("text") or ""), str(row.get("id") or "")
    category = str(row.get("category") or "")
    try:
        created_at_ms, importance = int(row.get("createdAt") or 0), _importance(row.get("importance"))
    except (ValueError, TypeError, OverflowError):
        yield Left("a time or importance that is not a number")
        return
    found = Found(
        source_id=row_id,
        text=text,
        created_at_ms=created_at_ms,
        category=_LANCE_CATEGORIES.get(category, category),
        agent_id=str(row.get("agentId") or ""),
        memory_id=row_id if _UUID.fullmatch(row_id) else "",
        session_id=str(row.get("sessionId") or ""),
        batch_id=str(row.get("batchId") or "")[:64],
        importance=importance,
        details={name: row[name] for name in ("category", "seqInBatch", "chunkIndex") if row.get(name)},
    )
    if not text.strip():
        yield Left("without text")
    for number, piece in enumerate(_cut(text.strip())):
        part = replace(found, source_id=f"{row_id}#{number}", memory_id="") if number else found
        yield _checked(replace(part, text=piece))


_CHAT_CATEGORIES: Final = {"user": "full_context_user", "assistant": "full_context_assistant"}


def _chatgpt(path: Path) -> Parts:
    """Yield what both sides said, in the branch of each conversation that was shown last."""
    for number, item, saved_at_ms in _conversations(path):
        place = f"conversation {number}"
        nodes = item.get("mapping") if isinstance(item, dict) else None
        if not isinstance(nodes, dict):
            yield "", place, item if isinstance(item, Left) else Left("not a conversation")
            continue
        chat = _name(item, "conversation_id") or _name(item, "id")
        for node in _branch(nodes, item.get("current_node")):
            message = node.get("message")
            if not isinstance(message, dict):
                continue
            author, content = message.get("author"), message.get("content")
            parts = content.get("parts") if isinstance(content, dict) else None
            told = _Told(
                _name(message, "id"),
                _name(author, "role") if isinstance(author, dict) else "",
                "\n".join(part for part in parts if isinstance(part, str)) if isinstance(parts, list) else "",
                message.get("create_time") or item.get("create_time"),
            )
            for part in _said("chatgpt", chat, told, saved_at_ms):
                yield "", place, part


def _branch(nodes: Mapping[str, Any], last: object) -> list[Mapping[str, Any]]:
    """Return the nodes from the first to the last one; all of them, in their order, if the last one is unknown."""
    found: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while isinstance(last, str) and last not in seen and isinstance(node := nodes.get(last), dict):
        seen.add(last)
        found.append(node)
        last = node.get("parent")
    return found[::-1] or [node for node in nodes.values() if isinstance(node, dict)]


def _claude(path: Path) -> Parts:
    for number, item, saved_at_ms in _conversations(path):
        place = f"conversation {number}"
        messages = item.get("chat_messages") if isinstance(item, dict) else None
        if not isinstance(messages, list):
            yield "", place, item if isinstance(item, Left) else Left("not a conversation")
            continue
        for message in messages:
            if not isinstance(message, dict):
                yield "", place, Left("not a message")
                continue
            content = message.get("content")
            parts = (
                [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
            )
            text = "\n".join(part for part in parts if isinstance(part, str)) or message.get("text")
            role = {"human": "user"}.get(_name(message, "sender"), _name(message, "sender"))
            told = _Told(_name(message, "uuid"), role, text if isinstance(text, str) else "", message.get("created_at"))
            for part in _said("claude", _name(item, "uuid"), told, saved_at_ms):
                yield "", place, part


class _Told(NamedTuple):
    """A message of a conversation with an assistant."""

    id: str
    role: str
    text: str
    at: object


def _said(speaker: str, chat: str, told: _Told, saved_at_ms: int) -> Iterator[Found | Left]:
    """Yield a message as memories of its conversation; a long one in pieces."""
    category = _CHAT_CATEGORIES.get(told.role)
    if category is None or not told.text.strip():
        if told.text.strip():
            yield Left("a message of the system or a tool")
        return
    at_ms = _date(told.at)
    found = Found(
        source_id=told.id or hashlib.sha256(f"{chat}{told.role}{told.text}".encode(errors="surrogatepass")).hexdigest(),
        text=told.text,
        created_at_ms=saved_at_ms if at_ms is None else at_ms,
        category=category,
        session_id=f"chat:{chat}" if chat else "",
        speaker=speaker if told.role == "assistant" else "",
        unread_date=_unread(told.at, at_ms),
        details={"role": told.role},
    )
    for number, piece in enumerate(_cut(told.text.strip())):
        yield _checked(
            replace(found, source_id=f"{found.source_id}#{number}" if number else found.source_id, text=piece)
        )


def _conversations(path: Path) -> Iterator[tuple[int, Any, int]]:
    """Yield the number, the conversation and the file's time of an export (zip or `conversations.json`)."""
    with ExitStack() as opened:
        binary = opened.enter_context(_open_binary(path))
        saved_at_ms = int(os.fstat(binary.fileno()).st_mtime * 1000)
        if zipfile.is_zipfile(binary):
            binary.seek(0)
            binary = opened.enter_context(_zipped_conversations(binary))
        else:
            binary.seek(0)
        file = opened.enter_context(io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape"))
        try:
            for number, item in enumerate(_JsonItems(file), 1):
                yield number, item, saved_at_ms
        except (*_DAMAGED_ZIP, RuntimeError) as error:
            raise InvalidInput(_("The zip archive is damaged, encrypted, or of an unknown kind.")) from error


def _zipped_conversations(file: IO[bytes]) -> IO[bytes]:
    """Open `conversations.json` in an archive. Raises: `InvalidInput` without it, and for a harmful archive."""
    try:
        archive = zipfile.ZipFile(file)
        members = _checked_members(archive, os.fstat(file.fileno()).st_size)
        member = next((one for one in members if one.filename.rpartition("/")[2] == "conversations.json"), None)
        if member is None:
            raise InvalidInput(_("The zip archive has no file conversations.json."))
        return archive.open(member)
    except (*_DAMAGED_ZIP, RuntimeError) as error:
        raise InvalidInput(_("The zip archive is damaged, encrypted, or of an unknown kind.")) from error


def _mcp_memory(path: Path) -> Parts:
    """Yield the observations and relations of the MCP memory server's file, one JSON object a line."""
    with io.TextIOWrapper(_open_binary(path), encoding="utf-8-sig", errors="surrogateescape") as file:
        saved_at_ms = _modified_ms(file)
        for number, line in enumerate(_lines(file), 1):
            if line.strip():
                for item in _mcp_items(line, saved_at_ms):
                    yield "", f"line {number}", item


def _lines(file: IO[str]) -> Iterator[str]:
    """Yield the lines of a file; of one that is too long the beginning, which is no JSON."""
    while line := file.readline(_MAX_ITEM_CHARS):
        yield line
        while len(line) == _MAX_ITEM_CHARS and not line.endswith("\n"):
            line = file.readline(_MAX_ITEM_CHARS)


def _mcp_items(line: str, saved_at_ms: int) -> Iterator[Found | Left]:
    try:
        item = parse_json(line)
    except ValueError:
        item = None
    if not isinstance(item, dict):
        yield Left("not valid JSON")
        return
    texts: list[str] = []
    details: dict[str, Any] = {}
    if item.get("type") == "relation":
        words = [_name(item, name) for name in ("from", "relationType", "to")]
        texts = [f"{words[0]} {words[1].replace('_', ' ')} {words[2]}"] if all(words) else []
        details = {"relation": words[1]}
    elif item.get("type") == "entity" and isinstance(observations := item.get("observations"), list):
        name = _name(item, "name")
        texts = [f"{name}: {one}" for one in observations if isinstance(one, str) and one.strip() and name]
        details = {"entity": name, "entity_type": _name(item, "entityType")}
    if not texts:
        yield Left("without an observation or a relation")
    for text in texts:
        source_id = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        yield _checked(Found(source_id, text, saved_at_ms, details=details))


READERS: Final[Mapping[str, Callable[[Path], Parts]]] = {
    "mem0": _mem0,
    "chatgpt": _chatgpt,
    "claude": _claude,
    "mcp-memory": _mcp_memory,
    "markdown": _markdown,
    "everos-markdown": _everos,
    "openclaw": _openclaw,
}
"""The readers by the names of their sources."""


def _checked(found: Found) -> Found | Left:
    text = found.text.strip()
    if not text:
        return Left("without text")
    if len(text) > MAX_TEXT_CHARS:
        return Left("too long")
    field = "text"
    try:
        check_text(text)
        for field in ("source_id", "memory_id", "agent_id", "session_id", "batch_id"):
            check_text(getattr(found, field), MAX_ID_CHARS)
        field = "created_at"
        check_ms(found.created_at_ms)
        for field, value in found.details.items():  # noqa: B007
            check_json(value, max_depth=MAX_JSON_DEPTH)
        field = ", ".join(found.details)
        check_json(found.details, max_bytes=MAX_GIVEN_JSON_BYTES)
    except NotStorable as error:
        return Left(InvalidInput.of_field(field, error.message).detail)
    return found


def _importance(value: Any) -> float | None:
    return None if value is None else min(1.0, max(0.0, float(value)))  # 0 for NaN


def _time(text: str, otherwise: int) -> int:
    """Return a date or time in Unix milliseconds; without a zone it is in UTC."""
    try:
        moment = datetime.fromisoformat(text)
        return to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return otherwise


def _date(given: object) -> int | None:
    """Return a date in Unix milliseconds, given as text or as seconds or milliseconds; None if it cannot be read."""
    if isinstance(given, str):
        try:
            given = float(given)
        except ValueError:
            at_ms = _time(str(given), -1)
            return None if at_ms == -1 else at_ms
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1e15:
        return None
    return round(given) if given >= 1e11 else round(given * 1000)


def _unread(given: object, at_ms: int | None) -> str:
    """Return a date that was given and could not be read."""
    return Repair().text("date", str(given), 100) if given and at_ms is None else ""


def _markdown_files(path: Path, *, is_hidden_read: bool = False) -> Iterator[tuple[str, str | None, int]]:
    """Yield name, text and time of each Markdown file of a folder or zip archive.

    No text for other files and symbolic links; of an archive with such names as `../a` nothing.
    """
    if path.suffix == ".zip":
        yield from _zipped_files(path, is_hidden_read=is_hidden_read)
        return
    if path.is_symlink() or not path.is_dir():
        raise NotFound(f"{path} is not a folder.")
    for folder, folders, names in os.walk(path):
        linked = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = sorted(name for name in folders if is_hidden_read or not name.startswith("."))
        for name in sorted([*names, *linked]):
            file = Path(folder, name)
            relative = file.relative_to(path).as_posix()
            try:
                with _open(file) as opened:
                    is_read = _is_markdown(name) and os.fstat(opened.fileno()).st_size <= _MAX_FILE_BYTES
                    yield relative, opened.read() if is_read else None, _modified_ms(opened)
            except (InvalidInput, NotFound, UnicodeDecodeError):
                yield relative, None, 0


def _is_markdown(name: str) -> bool:
    return name.endswith((".md", ".markdown"))


def _zipped_files(path: Path, *, is_hidden_read: bool) -> Iterator[tuple[str, str | None, int]]:
    with _open_binary(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = _checked_members(archive, os.fstat(file.fileno()).st_size)
                for member in sorted(members, key=lambda member: member.filename):
                    hidden = any(part.startswith(".") for part in member.filename.split("/")[:-1])
                    if not member.is_dir() and (is_hidden_read or not hidden):
                        is_read = _is_markdown(member.filename) and member.file_size <= _MAX_FILE_BYTES
                        yield member.filename, _member_text(archive, member) if is_read else None, _member_ms(member)
        except (*_DAMAGED_ZIP, RuntimeError) as error:
            raise InvalidInput(_("The zip archive is damaged, encrypted, or of an unknown kind.")) from error


def _checked_members(archive: zipfile.ZipFile, size: int) -> list[zipfile.ZipInfo]:
    """Return the members of an archive. Raises: `InvalidInput` for one that is made to harm."""
    members = archive.infolist()
    if len(members) > _MAX_MEMBERS or sum(member.file_size for member in members) > _MAX_UNPACKED_BYTES:
        raise InvalidInput(_("The zip archive has more than 100,000 files, or more than 2 GiB of them."))
    if sum(member.compress_size for member in members) > size:
        raise InvalidInput(_("The files of the zip archive overlap."))
    for member in members:
        name, kind = member.orig_filename, stat.S_IFMT(member.external_attr >> 16)
        parts = name.replace("\\", "/").split("/")
        if ".." in parts or not parts[0] or ":" in parts[0] or "\x00" in name:
            raise InvalidInput(_("The zip archive has a file outside its folder: %(name)s", name=name[:100]))
        if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
            raise InvalidInput(_("The zip archive has a link or device: %(name)s", name=name[:100]))
        if member.file_size > max(_MIN_RATIO_BYTES, _MAX_RATIO * member.compress_size):
            raise InvalidInput(_("A file of the zip archive is compressed too much: %(name)s", name=name[:100]))
    return members


def _member_text(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> str | None:
    with archive.open(member) as opened:
        try:
            return opened.read(_MAX_FILE_BYTES).decode("utf-8-sig")
        except UnicodeDecodeError:
            return None


def _member_ms(member: zipfile.ZipInfo) -> int:
    try:
        return to_ms(datetime(*member.date_time, tzinfo=UTC))
    except ValueError:
        return 0


def _open(path: Path) -> IO[str]:
    """Open a regular file of text. Raises: as `_open_binary`."""
    return io.TextIOWrapper(_open_binary(path), encoding="utf-8-sig")


def _open_binary(path: Path) -> IO[bytes]:
    """Open a regular file. Raises: `NotFound`, `InvalidInput` for symbolic links, devices and others."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NotFound(f"The file {path} does not exist.") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InvalidInput(f"{path} is not a regular file.")
    return os.fdopen(descriptor, "rb")


def _modified_ms(file: IO[str]) -> int:
    return int(os.fstat(file.fileno()).st_mtime * 1000)
