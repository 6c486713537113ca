"""Fetch the file of a `uri` item, which the embedded engine reads itself.

The gateway reads a caller's address from inside the operator's network, so the address is checked again at this time
and the file must meet the limits of an upload: its size, and the type detected from its bytes. Connections are made to
the checked IP addresses only, because the host name may resolve to others next time; TLS still verifies the host name.
No error message contains the address, which may be a secret.
"""

import os
import ssl
import stat
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.module_loading import import_string

from core.errors import EngineError, EngineUnavailable, Unreadable
from core.messages import Translatable as _
from core.network.http_client import (
    CertificateRejected,
    Deadline,
    Disconnected,
    HttpClient,
    HttpError,
    LimitExceeded,
    NotHttp,
    TimedOut,
    TooLarge,
    Undecodable,
    chunks,
)
from core.network.url_policy import (
    WEB_SCHEMES,
    AddressPolicy,
    BadAddress,
    Resolver,
    base_and_path,
    bucket_and_key,
    check_uri,
    file_path,
    is_file,
    reachable_addresses,
    resolve,
)
from documents import mime_types
from documents.sniff import HEAD_BYTES, TypeMismatch, sniff, with_charset
from store.types import ContentItem

Fetch = Callable[[ContentItem], AbstractContextManager[ContentItem]]

SECONDS = 60.0
"""Time limit for one file, from the connection to its last byte."""
MAX_FETCHES = 4
"""The most concurrent fetches of this process; others wait for `QUEUE_SECONDS` and then fail as unavailable."""
QUEUE_SECONDS = 10.0
INCOMING = ".incoming"
"""The folder of the storage for incomplete files. After a crash they are removed with interrupted uploads."""
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
_TEMPORARY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}


class Fetcher:
    """Calls return a context manager: an item with a temporary `file` instead of its `uri`, and the detected type.

    The file is deleted when the block ends. Raises: `Unreadable` (permanent), `EngineUnavailable` (temporary).
    """

    def __init__(
        self,
        *,
        resolver: Resolver = resolve,
        tls: ssl.SSLContext | None = None,
        seconds: float = SECONDS,
        queue_seconds: float = QUEUE_SECONDS,
    ) -> None:
        self._resolver = resolver
        self._tls = tls
        self._seconds = seconds
        self._queue_seconds = queue_seconds
        self._slots = threading.BoundedSemaphore(MAX_FETCHES)

    @contextmanager
    def __call__(self, item: ContentItem) -> Iterator[ContentItem]:
        folder = Path(settings.MEMORY_GATEWAY_STORAGE_DIR) / INCOMING
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as temporary:
            file = cast("BinaryIO", temporary)
            if not self._slots.acquire(timeout=self._queue_seconds):
                raise EngineUnavailable(_("Too many files are being fetched. Try again later."), retry_after_seconds=5)
            try:
                declared: list[str] = []
                with closing(self._pieces(item.ingest_uri or item.uri or "", declared)) as pieces:
                    for piece in pieces:
                        _write(file, piece)
            finally:
                self._slots.release()
            file.seek(0)
            try:
                mime_type = sniff(file.read(HEAD_BYTES), item.name or "", item.mime_type)
            except TypeMismatch as error:
                raise Unreadable(error.message) from None
            allowed = settings.MEMORY_GATEWAY_ALLOWED_MIME_TYPES
            if not mime_types.is_allowed(mime_type, allowed):
                raise Unreadable(
                    _(
                        "The file is of type %(type)s, which is not accepted; accepted types are %(types)s.",
                        type=mime_type,
                        types=", ".join(allowed),
                    )
                )
            kind, path = mime_types.content_type_of(mime_type, item.name or ""), Path(temporary.name)
            mime_type = with_charset(mime_type, (*declared, item.mime_type)[0])
            yield replace(item, type=kind, file=path, uri=None, ingest_uri=None, mime_type=mime_type)

    def _pieces(self, uri: str, declared: list[str]) -> Generator[bytes]:
        """Yield the bytes of a file, and add the type that a web server declares to `declared`."""
        policy = AddressPolicy.from_settings()
        max_bytes: int = settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES
        try:
            scheme = urlsplit(uri).scheme.lower()
            if scheme in WEB_SCHEMES:
                addresses = reachable_addresses(uri, policy, resolver=self._resolver)
                return _web_pieces(
                    uri, addresses, Deadline.after(self._seconds), max_bytes, tls=self._tls, declared=declared
                )
            if is_file(uri):
                return _local_pieces(file_path(uri, policy), max_bytes)
            check_uri(uri, policy)
            return _object_pieces(*bucket_and_key(uri, policy), Deadline.after(self._seconds), max_bytes)
        except BadAddress as error:
            raise Unreadable(_("The address %(cause)s.", cause=error.message)) from None


def _local_pieces(path: Path, max_bytes: int) -> Generator[bytes]:
    """Yield the bytes of a file in a folder that the settings allow."""
    with ExitStack() as opened:
        try:
            file = opened.enter_context(open(path, "rb", opener=_open_regular_file))
        except OSError:
            raise Unreadable(_("The file does not exist, or the gateway may not read it.")) from None
        try:
            yield from chunks(file, max_bytes)
        except LimitExceeded:
            raise _too_large(max_bytes) from None


def _open_regular_file(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a pipe would wait for its writer.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise Unreadable(_("The address does not point to a file."))


def _object_pieces(bucket: str, key: str, deadline: Deadline, max_bytes: int) -> Generator[bytes]:
    """Yield the bytes of an object in a bucket that the settings allow."""
    try:
        with import_string("core.persistence.object_store.opened")(bucket, key) as file:
            for piece in chunks(file, max_bytes):
                if deadline.left_seconds <= 0:
                    raise EngineUnavailable(_("The address did not respond in time."))
                yield piece
    except FileNotFoundError:
        raise Unreadable(_("The file does not exist, or the gateway may not read it.")) from None
    except LimitExceeded:
        raise _too_large(max_bytes) from None


def _web_pieces(
    uri: str,
    addresses: Sequence[str],
    deadline: Deadline,
    max_bytes: int,
    *,
    tls: ssl.SSLContext | None,
    declared: list[str],
) -> Generator[bytes]:
    """Yield the bytes of a file over http or https from one of the checked IP `addresses`."""
    base_url, path = base_and_path(uri)
    try:
        with (
            HttpClient(base_url, headers=_HEADERS, addresses=addresses, tls=tls) as client,
            client.send("GET", path, None, deadline) as response,
        ):
            _require_file(response.status)
            declared += filter(None, [response.headers.get("content-type")])
            try:
                yield from response.pieces(max_bytes)
            except Disconnected:
                raise EngineUnavailable(_("The connection ended before the file was complete.")) from None
    except (HttpError, ValueError) as error:  # `from None`: the causes may contain the address
        raise _error_of(error, max_bytes) from None


def _require_file(status: int) -> None:
    # The standard phrase: the server's own phrase is untrusted text.
    named = f"{status} {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else str(status)
    if status in _TEMPORARY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise EngineUnavailable(_("The address returned status %(status)s.", status=named))
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise Unreadable(_("The address redirects to another one. Give the file's final address."))
    if status != HTTPStatus.OK:
        raise Unreadable(_("The address returned status %(status)s.", status=named))


def _error_of(error: HttpError | ValueError, max_bytes: int) -> EngineError:
    match error:
        case TooLarge():
            return _too_large(max_bytes)
        case CertificateRejected():
            return Unreadable(_("The TLS certificate of the address is not valid for its host."))
        case NotHttp() | ValueError():
            return Unreadable(_("The response of the address is not valid HTTP."))
        case Undecodable():
            return Unreadable(_("The address sends the file with an unsupported compression."))
        case TimedOut():
            return EngineUnavailable(_("The address did not respond in time."))
    return EngineUnavailable(_("The address cannot be reached."))


def _too_large(max_bytes: int) -> Unreadable:
    return Unreadable(_("The file is larger than the limit of %(number)s bytes.", number=max_bytes))


def _write(file: BinaryIO, piece: bytes) -> None:
    rest = memoryview(piece)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        raise EngineUnavailable(_("The file could not be read because the disk of the gateway is full.")) from None
