#!/usr/bin/env python3
"""Command-line client of Memory Gateway. Needs Python 3.9 or newer and no other package.

Environment:
  MEMORY_GATEWAY_BASE_URL            default http://127.0.0.1:8010
  MEMORY_GATEWAY_USER_ID             user ID
  MEMORY_GATEWAY_USER_KEY            API key of the user; sent in a header, never in a URL
  MEMORY_GATEWAY_PROVISIONING_TOKEN  for create-user, if the gateway requires it

Responses are JSON on stdout. Errors are one sentence on stderr and an exit code: 2 wrong usage, 3 refused by gateway
(4xx), 4 the gateway or its memory engine is unavailable (5xx, no connection).
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import io
import json
import mimetypes
import os
import re
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, TextIO
from urllib.parse import quote, urlencode, urlsplit

EXIT_USAGE, EXIT_REFUSED, EXIT_UNAVAILABLE, EXIT_INTERRUPTED = 2, 3, 4, 130
DEFAULT_BASE_URL = "http://127.0.0.1:8010"
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 180.0  # an upload waits for its text to be read and remembered
ATTEMPTS = 3
LONGEST_WAIT_SECONDS = 30
CHUNK_BYTES = 64 * 1024

Fields = dict[str, Any]
OPERATIONS = json.loads(Path(__file__).with_name("operations.json").read_text(encoding="utf-8"))
KEY, PROVISIONING, NOBODY = "key", "provisioning", ""
SAFE_GRACE_SECONDS = 600  # the old key works so long at least while the new one is saved
BRIEF_FIELDS = ("id", "session_id", "text", "resource_uri", "category", "sender_id", "timestamp_ms", "context")


class ClientError(Exception):
    """An error with one sentence for stderr. The class determines the exit code."""

    exit_code = EXIT_USAGE


class UsageError(ClientError):
    """The command line, the environment or a local file is wrong."""


class Refused(ClientError):
    """The gateway answered 4xx."""

    exit_code = EXIT_REFUSED


class Unavailable(ClientError):
    """No answer, or 5xx."""

    exit_code = EXIT_UNAVAILABLE


# --- configuration ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    """The validated environment. `base_path` is the prefix of every path, without a trailing slash."""

    is_https: bool
    host: str
    port: int | None
    base_path: str
    user_id: str = ""
    user_key: str = field(default="", repr=False)
    provisioning_token: str = field(default="", repr=False)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Config:
        base_url = environ.get("MEMORY_GATEWAY_BASE_URL", "").strip() or DEFAULT_BASE_URL
        try:
            parts = urlsplit(base_url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host or parts.scheme not in ("http", "https") or "@" in parts.netloc or parts.query or parts.fragment:
            raise UsageError(f"MEMORY_GATEWAY_BASE_URL must read like {DEFAULT_BASE_URL}.")
        return cls(
            is_https=parts.scheme == "https",
            host=host,
            port=port,
            base_path=parts.path.rstrip("/"),
            user_id=environ.get("MEMORY_GATEWAY_USER_ID", "").strip(),
            user_key=_secret(environ, "MEMORY_GATEWAY_USER_KEY"),
            provisioning_token=_secret(environ, "MEMORY_GATEWAY_PROVISIONING_TOKEN"),
        )

    @property
    def address(self) -> str:
        port = f":{self.port}" if self.port else ""
        return f"{'https' if self.is_https else 'http'}://{self.host}{port}{self.base_path}"

    def require_user_id(self) -> str:
        if not self.user_id:
            raise UsageError("Set MEMORY_GATEWAY_USER_ID to the user's id.")
        return self.user_id

    def require_user_key(self) -> str:
        if not self.user_key:
            raise UsageError("Set MEMORY_GATEWAY_USER_KEY to the user's key (create-user gives one).")
        return self.user_key


def _secret(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "").strip()
    if not all("!" <= character <= "~" for character in value):
        raise UsageError(f"{name} must be plain characters without spaces.")
    return value


# --- requests --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A request. `path` is quoted and includes the query; a `Multipart` body is streamed."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Multipart | None = None
    reads_only: bool = False


class Multipart:
    """A `multipart/form-data` body of text fields and one file, which is streamed."""

    def __init__(self, fields: Mapping[str, str], file: BinaryIO, filename: str, mime_type: str) -> None:
        self._boundary = uuid.uuid4().hex
        self._file = file
        self._file_bytes = os.fstat(file.fileno()).st_size
        self._head = b"".join(self._text_part(name, value) for name, value in fields.items())
        self._head += self._part_head(f'name="file"; filename={quoted(filename)}\r\nContent-Type: {mime_type}')
        self._tail = f"\r\n--{self._boundary}--\r\n".encode()
        self.content_type = f"multipart/form-data; boundary={self._boundary}"
        self.length = len(self._head) + self._file_bytes + len(self._tail)

    def __iter__(self) -> Iterator[bytes]:
        yield self._head
        yield from self._file_chunks()
        yield self._tail

    def _file_chunks(self) -> Iterator[bytes]:
        left = self._file_bytes
        while left:
            chunk = self._file.read(min(left, CHUNK_BYTES))
            if not chunk:
                raise UsageError("The file was truncated during the upload.")
            left -= len(chunk)
            yield chunk

    def _text_part(self, name: str, value: str) -> bytes:
        return self._part_head(f'name="{name}"') + value.encode("utf-8", "replace") + b"\r\n"

    def _part_head(self, disposition: str) -> bytes:
        head = f"--{self._boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n"
        return head.encode("utf-8", "replace")


def quoted(filename: str) -> str:
    """Return a quoted header string in UTF-8, as browsers send it; line ends become spaces."""
    printable = "".join(character if character.isprintable() else " " for character in filename)
    escaped = printable.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Gateway:
    """Sends requests. `sleep` takes seconds and is used only between attempts."""

    def __init__(self, config: Config, answer_seconds: float, sleep: Callable[[float], None]) -> None:
        self.config = config
        self.answer_seconds = answer_seconds
        self.sleep = sleep

    def json(self, call: Call) -> Any:
        """Return the JSON of the answer. Raises: `Refused`, `Unavailable`."""
        with self.answer(call) as response:
            body = reading(response.read, self.config)
        try:
            return json.loads(body)
        except ValueError:
            raise Unavailable(f"{self.config.address} does not answer like a Memory Gateway.") from None

    @contextlib.contextmanager
    def answer(self, call: Call) -> Iterator[http.client.HTTPResponse]:
        """Yield a 2xx answer that is still to be read. Raises: `Refused`, `Unavailable`."""
        connection, response = self._accepted(call)
        with contextlib.closing(connection), contextlib.closing(response):
            yield response

    def _accepted(self, call: Call) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        attempts = ATTEMPTS if call.reads_only else 1
        while True:
            attempts -= 1
            connection, response = self._send(call)
            if 200 <= response.status < 300:
                return connection, response
            with contextlib.closing(connection):
                error = refusal(response, reading(response.read, self.config))
            wait = retry_after_seconds(response)
            if not attempts or response.status not in (429, 503) or wait is None or wait > LONGEST_WAIT_SECONDS:
                raise error
            self.sleep(wait)

    def _send(self, call: Call) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._connection()
        try:
            return connection, reading(lambda: self._exchange(connection, call), self.config)
        except ClientError:
            connection.close()
            raise

    def _exchange(self, connection: http.client.HTTPConnection, call: Call) -> http.client.HTTPResponse:
        connection.connect()
        connection.sock.settimeout(self.answer_seconds)
        headers = {"Accept": "application/json, application/problem+json", **call.headers}
        if isinstance(call.body, Multipart):
            headers.update({"Content-Type": call.body.content_type, "Content-Length": str(call.body.length)})
        # A server may refuse a file before it has read all of it: its answer is what counts.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(call.method, self.config.base_path + call.path, body=call.body, headers=headers)
        return connection.getresponse()

    def _connection(self) -> http.client.HTTPConnection:
        # http.client follows no redirect: the key goes to the configured address alone.
        kind = http.client.HTTPSConnection if self.config.is_https else http.client.HTTPConnection
        return kind(self.config.host, self.config.port, timeout=CONNECT_SECONDS)


def reading(read: Callable[[], Any], config: Config) -> Any:
    """Return the result of `read`. Raises: `Unavailable` for any failure of the connection."""
    try:
        return read()
    except TimeoutError:
        raise Unavailable(f"{config.address} did not answer in time.") from None
    except (OSError, http.client.HTTPException) as error:
        reason = one_line(str(error) or type(error).__name__)
        raise Unavailable(f"{config.address} cannot be reached: {reason}.") from None


def retry_after_seconds(response: http.client.HTTPResponse) -> int | None:
    value = response.getheader("Retry-After", "")
    return int(value) if value.isascii() and value.isdigit() else None


def refusal(response: http.client.HTTPResponse, body: bytes) -> ClientError:
    """Return the refusal with the gateway's own message, if there is one."""
    kind = Refused if 400 <= response.status < 500 else Unavailable
    location = response.getheader("Location")
    if 300 <= response.status < 400 and location:
        return kind(f"The gateway redirects to {one_line(location)}. Set MEMORY_GATEWAY_BASE_URL to that address.")
    detail, code = problem(body)
    wait = retry_after_seconds(response)
    again = "" if wait is None else f"; try again in {wait} s"
    return kind(f"{one_line(detail or response.reason).rstrip('.')} ({response.status}{code}{again}).")


def problem(body: bytes) -> tuple[str, str]:
    """Return detail and code of an `application/problem+json` document; empty text for other content."""
    try:
        document = json.loads(body)
    except ValueError:
        return "", ""
    if not isinstance(document, dict) or not isinstance(document.get("detail"), str):
        return "", ""
    return document["detail"], f" {document['code']}" if "code" in document else ""


def one_line(text: str) -> str:
    """Return the text without line ends and control characters, which a terminal would interpret."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


# --- commands --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Argument:
    """An argument for argparse."""

    flags: tuple[str, ...]
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.options.get("dest") or self.flags[0].lstrip("-").replace("-", "_")


def argument(*flags: str, **options: Any) -> Argument:
    return Argument(flags, options)


def argument_of(item: Fields) -> Argument:
    """Return the argument of a field: required ones are positional, and a switch changes its default."""
    name, kind, values = item["name"], item["type"], item.get("values", ())
    options: Fields = {"help": item.get("help", "").replace("%", "%%")}
    if item.get("default") not in (None, True, False):
        options["help"] += f" Default: {json.dumps(item['default'])}."
    if kind == "boolean":
        is_on, in_query = item.get("default") is True, item["in"] == "query"
        flag = "no-" + re.sub("^(include|enable)_", "", name) if is_on else name
        help_text = f"Sends `{name}` false. {options['help']}" if is_on else options["help"]
        return switch(f"--{dashed(flag)}", dest=name, const="true" if in_query else not is_on, help=help_text)
    if name in HEADERS:
        return HEADERS[name]
    if kind in READERS:
        options["type"] = READERS[kind]
    if values:
        options["choices"] = values
    if len(values) > MAX_CHOICES_SHOWN:
        options["metavar"] = name.upper()
    if kind == "array":
        options["action"] = "append"
    return argument(name, **options) if item.get("required") else argument(f"--{dashed(name)}", **options)


def switch(flag: str, **options: Any) -> Argument:
    return argument(flag, action="store_const", **options)


def dashed(name: str) -> str:
    return name.replace("_", "-")


def send_json(gateway: Gateway, command: Command, fields: Fields) -> Any:
    return gateway.json(command.call(gateway.config, fields))


@dataclass(frozen=True)
class Command:
    """A command and the operation that it calls, as `operations.json` describes it.

    Its arguments are the fields of the operation, and `own` ones, also in place of a field. Missing ones are not sent,
    so that the gateway's defaults hold. `{name}` in the path takes the argument of that name; the rest goes into the
    JSON body, or into the query of an operation without a body.
    """

    name: str
    operation: str
    examples: tuple[str, ...]
    own: tuple[Argument, ...] = ()
    reads_only: bool = False
    run: Callable[[Gateway, Command, Fields], Any] = send_json

    @property
    def described(self) -> Fields:
        described: Fields = OPERATIONS[self.operation]
        return described

    @property
    def method(self) -> str:
        return str(self.described["method"])

    @property
    def path(self) -> str:
        return str(self.described["path"])

    @property
    def auth(self) -> str:
        return str(self.described["auth"])

    @property
    def arguments(self) -> list[Argument]:
        """Return the arguments: the positional ones in the order of the operation."""
        own = {item.name: item for item in self.own}
        fields = sorted(self.described["fields"], key=lambda item: (item["in"] != "path", not item.get("required")))
        return [own.pop(item["name"]) if item["name"] in own else argument_of(item) for item in fields] + list(
            own.values()
        )

    def call(self, config: Config, fields: Fields, body: Multipart | None = None) -> Call:
        in_path = {name: quote(str(value), safe="") for name, value in fields.items() if "{" + name + "}" in self.path}
        headers = {name: value for name, value in fields.items() if name in HEADERS}
        rest = {name: value for name, value in fields.items() if name not in in_path and name not in HEADERS}
        reads_only = self.reads_only or self.method == "GET"
        in_query = all(item["in"] != "body" for item in self.described["fields"])
        query = {**self._owner(config), **(rest if in_query else {})}
        path = self.path.format(**in_path) + (f"?{urlencode(query)}" if query else "")
        sent = {**headers, **self._authorization(config)}
        if in_query or body is not None:
            return Call(self.method, path, sent, body, reads_only)
        json_type = {"Content-Type": "application/json"}
        return Call(self.method, path, {**sent, **json_type}, encoded(rest), reads_only)

    def _owner(self, config: Config) -> Fields:
        """Return the user id that the key must belong to."""
        return {"user_id": config.user_id} if self.auth == KEY and config.user_id else {}

    def _authorization(self, config: Config) -> dict[str, str]:
        token = config.require_user_key() if self.auth == KEY else config.provisioning_token
        return {"Authorization": f"Bearer {token}"} if self.auth and token else {}


def encoded(fields: Fields) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")


def create_user(gateway: Gateway, command: Command, fields: Fields) -> Any:
    fields.setdefault("user_id", gateway.config.user_id)
    if not fields["user_id"]:
        raise UsageError("Give the user id: create-user USER_ID, or set MEMORY_GATEWAY_USER_ID.")
    return send_json(gateway, command, fields)


def new_key(gateway: Gateway, command: Command, fields: Fields) -> Any:
    """Make a key. With `save`, write it to that file, if it works, and leave it out of the answer.

    The old key of a rotation stays valid until then, so that neither a lost answer nor a full disk locks the user out.
    """
    name = fields.pop("save", None)
    make = create_user if command.auth == PROVISIONING else send_json
    if name is None:
        return make(gateway, command, fields)
    grace = fields.get("grace_seconds")
    if grace is not None:
        fields["grace_seconds"] = max(grace, SAFE_GRACE_SECONDS)
    path = Path(name)
    with private_file(path) as file:
        answer = make(gateway, command, fields)
        key = answer.pop("user_key")
        with_key = Gateway(replace(gateway.config, user_key=key), gateway.answer_seconds, gateway.sleep)
        owner = replace(with_key.config, user_id=answer.get("user_id", gateway.config.user_id))
        with_key.json(command_named("list-keys").call(owner, {}))
        file.write(f"{key}\n")
    if grace == 0:
        with_key.json(command_named("revoke-key").call(with_key.config, {"key_id": answer["previous_key_id"]}))
        answer["previous_expires_at"] = None
    return {**answer, "saved_to": str(path)}


@contextlib.contextmanager
def private_file(path: Path) -> Iterator[TextIO]:
    """Yield a file that only this user can read, and that replaces `path` at the end of the block, or not at all."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        file = os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii")
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                aside.unlink()
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}. The old key, if any, still works.") from None


def command_named(name: str) -> Command:
    return next(item for item in COMMANDS if item.name == name)


def search_memory(gateway: Gateway, command: Command, fields: Fields) -> Any:
    """Search. Without `scope`, everything of the user, with what was just said in the conversation."""
    chat = ["current_chat"] if "conversation_id" in fields else []
    fields.setdefault("scope", [*chat, "all_user_memory"])
    is_brief = fields.pop("brief", False)
    if is_brief:
        fields.setdefault("raw", False)
    answer = send_json(gateway, command, fields)
    return {"results": [brief(item) for item in answer["results"]]} if is_brief else answer


def list_memories(gateway: Gateway, command: Command, fields: Fields) -> Any:
    is_brief = fields.pop("brief", False)
    answer = send_json(gateway, command, fields)
    return {**answer, "memories": [brief(item) for item in answer["memories"]]} if is_brief else answer


def brief(item: Fields) -> Fields:
    """Return what an answer to a user needs of a memory, without empty fields."""
    short = {name: item[name] for name in BRIEF_FIELDS if item.get(name)}
    files = [file["name"] for file in item.get("attachments", ())]
    return {**short, **({"files": files} if files else {})}


def upload_resource(gateway: Gateway, command: Command, fields: Fields) -> Any:
    path = Path(fields.pop("file"))
    filename = fields.pop("filename", path.name)
    mime_type = fields.pop("mime_type", "application/octet-stream")  # the gateway looks at the bytes and the name
    headers = {name: fields.pop(name) for name in HEADERS.keys() & fields.keys()}
    with opened(path) as file:
        return gateway.json(command.call(gateway.config, headers, Multipart(fields, file, filename, mime_type)))


def download_resource(gateway: Gateway, command: Command, fields: Fields) -> Any:
    output = Path(fields.pop("output"))
    with gateway.answer(command.call(gateway.config, fields)) as response:
        size_bytes = save(chunks(response, gateway.config), output)
    return {**fields, "path": str(output), "size_bytes": size_bytes}


def chunks(response: http.client.HTTPResponse, config: Config) -> Iterator[bytes]:
    left = int(response.getheader("Content-Length", "0"))
    while chunk := reading(lambda: response.read(CHUNK_BYTES), config):
        left -= len(chunk)
        yield chunk
    if left > 0:
        raise Unavailable(f"The download is incomplete: {left} bytes are missing.")


def save(pieces: Iterator[bytes], output: Path) -> int:
    """Write a new file and return its size in bytes."""
    try:
        with output.open("xb") as file:
            return written(pieces, file, output)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}.") from None


def written(pieces: Iterator[bytes], file: BinaryIO, output: Path) -> int:
    """Remove the file if the download fails."""
    try:
        return sum(map(file.write, pieces))
    except BaseException:
        file.close()
        output.unlink()
        raise


def add_memory(gateway: Gateway, command: Command, fields: Fields) -> Any:
    now_ms = fields.pop("timestamp", None) or int(time.time() * 1000)
    given = {name: fields.pop(name, None) for name in ("text", "role", "sender_id", "attach", "messages")}
    if given["messages"] is None:
        messages = [single_message(given)]
    elif any(given[name] for name in ("text", "role", "sender_id", "attach")):
        raise UsageError("Give either --messages, or --text with --role, --sender-id and --attach.")
    else:
        messages = read_messages(given["messages"])
    if named := fields.pop("participants", None):
        fields["participants"] = [participant(text) for text in named]
    user_id = gateway.config.user_id
    fields["messages"] = [completed(item, now_ms + place, user_id) for place, item in enumerate(messages)]
    return send_json(gateway, command, fields)


def store_memories(gateway: Gateway, command: Command, fields: Fields) -> Any:
    return send_json(gateway, command, {**fields, "memories": read_messages(fields["memories"])})


def participant(text: str) -> Fields:
    """Return a participant from `ID` or `ID=NAME`."""
    sender_id, _, name = text.partition("=")
    return {"id": sender_id, **({"name": name} if name else {})}


def single_message(given: Fields) -> Fields:
    text = sys.stdin.read() if given["text"] == "-" else given["text"]
    files = [attached(Path(name)) for name in given["attach"] or ()]
    if not text and not files:
        raise UsageError("Nothing to add: give --text, --attach FILE or --messages FILE.")
    message: Fields = {"role": given["role"] or "user", "content": text}
    if files:
        message["content"] = ([{"type": "text", "text": text}] if text else []) + files
    if given["sender_id"]:
        message["sender_id"] = given["sender_id"]
    return message


def send_profile(gateway: Gateway, command: Command, fields: Fields) -> Any:
    text = sys.stdin.read() if fields["content"] == "-" else fields["content"]
    try:
        fields["content"] = json.loads(text)
    except ValueError as error:
        raise UsageError(f"content is not valid JSON: {error}.") from None
    return send_json(gateway, command, fields)


def completed(message: Fields, timestamp_ms: int, user_id: str) -> Fields:
    """Add a time, and the user as the sender of user messages."""
    sender = {"sender_id": user_id} if message.get("role") == "user" and user_id else {}
    return {**sender, "timestamp": timestamp_ms, **message}


def read_messages(name: str) -> list[Fields]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        document = json.loads(text)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise UsageError(f"{name} is not valid JSON: {error}.") from None
    messages = document.get("messages") if isinstance(document, dict) else document
    if not isinstance(messages, list) or not all(isinstance(item, dict) for item in messages):
        raise UsageError(f'{name} must contain a list of messages, or {{"messages": [...]}}.')
    return messages


def attached(path: Path) -> Fields:
    with opened(path) as file:
        data = base64.b64encode(file.read()).decode("ascii")
    kind = content_type(guessed_type(path.name))
    return {"type": kind, "base64": data, "ext": path.suffix[1:].lower(), "name": path.name}


def opened(path: Path) -> BinaryIO:
    try:
        file = path.open("rb")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise UsageError(f"{path} is not a file.")
    return file


def guessed_type(filename: str) -> str:
    return mimetypes.guess_type(filename)[0] or "application/octet-stream"


def content_type(mime_type: str) -> str:
    """Return the kind of a content item, by the gateway's table."""
    major = mime_type.partition("/")[0]
    if major in ("image", "audio"):
        return major
    if mime_type in ("application/pdf", "text/html"):
        return mime_type.partition("/")[2]
    return "text" if major == "text" else "doc"


# --- the command line ------------------------------------------------------------------------------------------------


def json_object(text: str) -> Fields:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError
    return value


json_object.__name__ = "JSON object"  # argparse: "invalid JSON object value"

READERS: Mapping[str, Any] = {"integer": int, "number": float, "object": json_object}
MAX_CHOICES_SHOWN = 6
IF_MATCH = argument(
    "--if-match",
    dest="If-Match",
    metavar="ETAG",
    help="only if it has not changed since: an earlier ETag, '\"user-3\"' for version 3 of the user document",
)
NO_WAIT = switch("--no-wait", dest="Prefer", const="respond-async", help="do not wait for the ingestion")
HEADERS = {"Prefer": NO_WAIT, "If-Match": IF_MATCH}  # fields that go there
SAVE = argument(
    "--save", metavar="FILE", help="write the key to this file, readable by you only, instead of printing it"
)
BRIEF = argument("--brief", action="store_true", default=None, help="print only what an answer needs of each memory")
CONTENT = argument("content", help="document as JSON; - reads stdin")
CHANGES = argument("content", help="changes as JSON; null restores a default; - reads stdin")

COMMANDS = (
    Command("health", "health", ("health",)),
    Command(
        "create-user",
        "create_user",
        (
            "create-user u_123",
            "create-user u_123 --save ~/.memory-gateway-key",
        ),
        (
            argument("user_id", nargs="?", help="default: MEMORY_GATEWAY_USER_ID"),
            SAVE,
        ),
        run=new_key,
    ),
    Command(
        "describe-user",
        "describe_user",
        ("describe-user u_123 --name 'Ann Miller' --tenant acme",),
        (argument("user_id", help="the user ID"),),
    ),
    Command(
        "erase-user",
        "erase_user_by_id",
        ("erase-user u_123 --confirm erase:u_123",),
        (
            argument("user_id", help="the user ID"),
            argument("--confirm", required=True, help="erase: followed by the user ID, such as erase:u_123"),
        ),
    ),
    Command("portal-link", "create_portal_link", ("portal-link",)),
    Command(
        "browser-key",
        "create_browser_key",
        ("browser-key u_123 --scopes search --scopes decide",),
        (
            argument("user_id", help="the user ID"),
            argument(
                "--scopes",
                action="append",
                required=True,
                help="what the page may do: search, add, decide, files, controls",
            ),
        ),
    ),
    Command("list-keys", "list_keys", ("list-keys",)),
    Command(
        "issue-key",
        "issue_key",
        ("issue-key --label laptop --expires-at 2027-01-31T12:00:00+00:00",),
        (SAVE,),
        run=new_key,
    ),
    Command(
        "rotate-key",
        "rotate_key",
        (
            "rotate-key --grace-seconds 600",
            "rotate-key --save ~/.memory-gateway-key --grace-seconds 0",
        ),
        (
            argument(
                "--grace-seconds",
                type=int,
                help="seconds for which the old key stays valid; with --save at least 600, but 0 revokes it once the "
                "new key is saved",
            ),
            SAVE,
        ),
        run=new_key,
    ),
    Command("revoke-key", "revoke_key", ("revoke-key 0190b0c2-0000-7000-8000-000000000000",)),
    Command(
        "upload-resource",
        "upload_resource",
        ('upload-resource ./contract.pdf --title "合同文件" --description "2026 年付款合同"',),
        (
            argument("file", help="path of the file"),
            argument("--filename", help="file name to store (default: that of the file)"),
            argument("--mime-type", help="MIME type (default: detected by the gateway)"),
        ),
        run=upload_resource,
    ),
    Command(
        "register-resource",
        "register_resource",
        ("register-resource chart.png minio://files/u_123/chart.png --ingest-uri https://minio.example/chart.png",),
    ),
    Command(
        "list-resources",
        "list_resources",
        (
            "list-resources",
            "list-resources --limit 20",
        ),
    ),
    Command("get-resource", "get_resource", ("get-resource r_xxx",)),
    Command(
        "download-resource",
        "get_resource_content",
        ("download-resource r_xxx --output ./contract.pdf",),
        (argument("--output", "-o", required=True, help="file to write; must not exist yet"),),
        run=download_resource,
    ),
    Command("update-resource", "label_resource", ("update-resource r_xxx --tags contract --tags signed",)),
    Command("delete-resource", "delete_resource", ("delete-resource r_xxx",)),
    Command("restore-resource", "restore_resource", ("restore-resource r_xxx",)),
    Command(
        "add-memory",
        "add_messages",
        (
            'add-memory chat:c_456 --text "记住:我偏好简洁的中文说明"',
            'add-memory chat:c_456 --text "The sound of the bell" --attach ./bell.wav',
            "add-memory chat:c_456 --role assistant --sender-id helper --text - < answer.txt",
            "add-memory chat:c_456 --messages messages.json --participant u_7=Ben",
        ),
        (
            argument("--text", help="text of the message; - reads stdin"),
            argument(
                "--role", choices=("user", "assistant", "tool", "system"), help="role of the sender (default: user)"
            ),
            argument("--sender-id", help="sender ID (default for role user: MEMORY_GATEWAY_USER_ID)"),
            argument(
                "--timestamp",
                type=int,
                help="Unix milliseconds (default: now); a repeated message with the same time is stored once",
            ),
            argument("--attach", action="append", metavar="FILE", help="file to attach; may be repeated"),
            argument("--messages", metavar="FILE", help="JSON list of messages, instead of --text; - reads stdin"),
            argument(
                "--participant",
                dest="participants",
                action="append",
                metavar="ID[=NAME]",
                help="another speaker of a group chat, whose messages are memories of the user; may be repeated",
            ),
        ),
        run=add_memory,
    ),
    Command("flush-memory", "flush_session", ("flush-memory chat:c_456",)),
    Command(
        "store-memory",
        "store_memory",
        (
            'store-memory "I prefer short answers." --tags style',
            'store-memory "The customer pays by invoice." --external-id crm-17 --metadata \'{"source": "crm"}\'',
        ),
    ),
    Command(
        "store-memories",
        "store_memories",
        ("store-memories facts.json",),
        (argument("memories", metavar="FILE", help="JSON list of facts; - reads stdin"),),
        run=store_memories,
    ),
    Command(
        "make-context",
        "make_context",
        ('make-context --query "payment terms" --max-tokens 800',),
        reads_only=True,
    ),
    Command(
        "search-memory",
        "search_memories",
        (
            'search-memory "合同里的付款条款是什么?" --conversation-id c_456 --top-k 5',
            'search-memory "payment terms" --scope all_user_memory --method keyword --explain',
            'search-memory "payment terms" --brief',
            'search-memory "yesterday" --filters \'{"timestamp": {"gte": 1781172177000}}\'',
        ),
        (
            argument(
                "--scope",
                action="append",
                choices=("current_chat", "resources", "all_user_memory"),
                help="scope to search; may be repeated (default: all_user_memory, with --conversation-id also "
                "current_chat)",
            ),
            BRIEF,
        ),
        reads_only=True,
        run=search_memory,
    ),
    Command(
        "list-memories",
        "list_memories",
        (
            "list-memories --limit 20",
            "list-memories --brief",
            "list-memories --session-id chat:c_456 --category user_memory_preference",
        ),
        (BRIEF,),
        run=list_memories,
    ),
    Command("get-memory", "get_memory", ("get-memory mem_abc",)),
    Command(
        "update-memory",
        "override_memory",
        ('update-memory mem_abc --text "修正后的记忆内容" --session-id resource:u_123:r_xxx',),
        (argument("--text", dest="override_text", metavar="TEXT", help="corrected text"),),
    ),
    Command(
        "delete-memory",
        "delete_memory",
        ('delete-memory mem_abc --session-id resource:u_123:r_xxx --reason "用户手动删除"',),
    ),
    Command(
        "delete-memories",
        "delete_memories",
        (
            'delete-memories \'{"tags": ["draft"]}\' --dry-run',
            'delete-memories \'{"tags": ["draft"]}\' --expected-count 12',
        ),
    ),
    Command(
        "forget-memories",
        "forget_memories",
        (
            'forget-memories "green tea" --dry-run',
            'forget-memories "green tea" --expected-count 2',
        ),
    ),
    Command("get-deletion", "get_deletion", ("get-deletion b0a4f9d2-6f0c-4d6e-9a51-2f4f5a8f0c11",)),
    Command("undo-deletion", "undo_deletion", ("undo-deletion b0a4f9d2-6f0c-4d6e-9a51-2f4f5a8f0c11",)),
    Command(
        "export-user",
        "export_user",
        ("export-user --output ./memories.zip",),
        (argument("--output", "-o", required=True, help="file to write; must not exist yet"),),
        run=download_resource,
    ),
    Command("get-controls", "get_controls", ("get-controls",)),
    Command("tighten-controls", "tighten_controls", ("tighten-controls --paused chats --paused files",)),
    Command("get-expiry", "get_expiry", ("get-expiry",)),
    Command("set-expiry", "put_expiry", ('set-expiry \'{"full_context_user": 90, "tag:draft": 7}\'',)),
    Command("list-audit-events", "list_audit_events", ("list-audit-events --limit 20",)),
    Command(
        "delete-sender",
        "delete_memories_of_sender",
        ('delete-sender u_7 --session-id chat:c_456 --reason "left the group"',),
    ),
    Command("restore-memory", "restore_memory", ("restore-memory mem_abc",)),
    Command("remove-override", "undo_override", ("remove-override mem_abc",)),
    Command("list-trash", "list_trash", ("list-trash",)),
    Command("get-profiles", "get_profiles", ("get-profiles",)),
    Command("get-user-profile", "get_user_memory", ("get-user-profile",)),
    Command(
        "replace-user-profile", "put_user_memory", ("replace-user-profile - < user.json",), (CONTENT,), run=send_profile
    ),
    Command(
        "change-user-profile",
        "patch_user_memory",
        (
            'change-user-profile \'{"timezone": "Asia/Shanghai"}\'',
            'change-user-profile \'{"people": [{"name": "小林", "role": "editor"}]}\' --merge-lists --agent-id helper',
        ),
        (CHANGES,),
        run=send_profile,
    ),
    Command("get-work-profile", "get_work_memory", ("get-work-profile",)),
    Command(
        "replace-work-profile", "put_work_memory", ("replace-work-profile - < work.json",), (CONTENT,), run=send_profile
    ),
    Command(
        "change-work-profile",
        "patch_work_memory",
        ('change-work-profile \'{"current_projects": [{"name": "官网", "status": "paused"}]}\' --merge-lists',),
        (CHANGES,),
        run=send_profile,
    ),
    Command("get-profile-prompt", "get_profile_prompt", ("get-profile-prompt router --max-tokens 500",)),
    Command("get-profile-schema", "get_profile_schema", ("get-profile-schema user",)),
    Command("list-profile-history", "list_profile_history", ("list-profile-history user",)),
    Command("get-profile-version", "get_profile_version", ("get-profile-version user 3",)),
    Command("restore-profile", "restore_profile", ("restore-profile user 3",)),
    Command(
        "list-sessions",
        "list_sessions",
        (
            "list-sessions",
            "list-sessions --deleted",
        ),
    ),
    Command("get-session", "get_session", ("get-session chat:c_456",)),
    Command("delete-session", "delete_session", ("delete-session chat:c_456",)),
    Command("restore-session", "restore_session", ("restore-session chat:c_456",)),
)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memory_gateway.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        add_command(commands, command)
    return parser


def add_command(commands: Any, command: Command) -> None:
    examples = "\n".join(f"  memory_gateway.py {example}" for example in command.examples)
    summary = command.described["summary"]
    parser = commands.add_parser(
        command.name,
        help=summary,
        description=f"{summary}: {command.method} {command.path}",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for item in command.arguments:
        parser.add_argument(*item.flags, **item.options)
    parser.add_argument(
        "--timeout",
        type=float,
        default=ANSWER_SECONDS,
        metavar="SECONDS",
        help="seconds to wait for a response (default: %(default)g)",
    )


def main(arguments: Sequence[str], environ: Mapping[str, str], *, sleep: Callable[[float], None] = time.sleep) -> int:
    """Run one command and return the exit code."""
    given = vars(build_parser().parse_args(arguments))
    name, timeout = given.pop("command"), given.pop("timeout")
    command = next(item for item in COMMANDS if item.name == name)
    fields = {name: value for name, value in given.items() if value is not None}
    try:
        gateway = Gateway(Config.from_environ(environ), timeout, sleep)
        answer = command.run(gateway, command, fields)
    except ClientError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    sys.stdout.write(json.dumps(answer, ensure_ascii=False, indent=2) + "\n")
    return 0


def speak_utf8() -> None:
    """Use UTF-8 regardless of the locale."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    speak_utf8()
    sys.exit(main(sys.argv[1:], os.environ))
