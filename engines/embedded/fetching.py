"""What lies at an address, as a file at hand while it is read: this engine is its own reader of `uri` items.

An address from a caller is reached from inside the operator's network, so it is checked again at the moment it is
read, and what comes is held to the same bounds as an upload: size, and the type that the bytes show.
"""

from __future__ import annotations

import os
import ssl
import stat
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from django.conf import settings

from core.bounded import LimitExceeded, chunks
from core.errors import EngineUnavailable, Unreadable
from core.http_client import Deadline
from core.url_policy import (
    WEB_SCHEMES,
    AddressPolicy,
    BadAddress,
    Resolver,
    check_uri,
    file_path,
    is_file,
    reachable_addresses,
    resolve,
)
from documents import mime_types
from documents.sniff import HEAD_BYTES, TypeMismatch, content_type_of, sniff
from engines.embedded.download import download
from store.types import ContentItem

Fetch = Callable[[ContentItem], AbstractContextManager[ContentItem]]

SECONDS = 60.0
"""For one file, from the connection to its last byte."""
AT_ONCE = 4
"""Files on their way in this process; more wait for `QUEUE_SECONDS` and are then refused for now."""
QUEUE_SECONDS = 10.0
INCOMING = ".incoming"
"""The folder of the storage where files arrive: what a crash leaves there is cleared away with broken uploads."""


class Fetcher:
    """Calling it gives an item whose `uri` is replaced by a `file`, and its claimed type by what the bytes are.

    The file is gone when the block ends. Errors: `Unreadable` where another try cannot help, `EngineUnavailable` where
    it may; no sentence repeats the address, which may be a secret.
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
        self._slots = threading.BoundedSemaphore(AT_ONCE)

    @contextmanager
    def __call__(self, item: ContentItem) -> Iterator[ContentItem]:
        with _temporary_file() as file:
            self._store(item.ingest_uri or item.uri or "", file)
            yield _as_file(item, Path(file.name), _head_of(file))

    def _store(self, uri: str, file: BinaryIO) -> None:
        if not self._slots.acquire(timeout=self._queue_seconds):
            raise EngineUnavailable("Too many files are being fetched at this moment.", retry_after_seconds=5)
        try:
            with closing(self._pieces(uri)) as pieces:
                for piece in pieces:
                    _write(file, piece)
        finally:
            self._slots.release()

    def _pieces(self, uri: str) -> Generator[bytes]:
        policy = AddressPolicy.from_settings()
        max_bytes: int = settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES
        try:
            scheme = urlsplit(uri).scheme.lower()
            if scheme in WEB_SCHEMES:
                addresses = reachable_addresses(uri, policy, resolver=self._resolver)
                deadline = Deadline.after(self._seconds)
                return download(uri, addresses, deadline=deadline, max_bytes=max_bytes, tls=self._tls)
            if is_file(uri):
                return _local_pieces(file_path(uri, policy), max_bytes)
            check_uri(uri, policy)
        except BadAddress as error:
            raise Unreadable(f"The address {error}.") from None
        raise Unreadable(f"An address of {scheme}:// cannot be read: an https:// address of the file is needed.")


def _local_pieces(path: Path, max_bytes: int) -> Generator[bytes]:
    """A file of this machine, from the folders that the operator opened for that."""
    with _opened(path) as file:
        try:
            yield from chunks(file, max_bytes)
        except LimitExceeded:
            raise Unreadable(f"The file is larger than {max_bytes} bytes (MEMORY_GATEWAY_MAX_UPLOAD_BYTES).") from None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        # Without O_NONBLOCK a pipe would hold us until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise Unreadable("There is no such file that the gateway may read.") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable("The address names something that is not a file.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


@contextmanager
def _temporary_file() -> Iterator[BinaryIO]:
    """Readable by this account alone, and removed at the end."""
    folder = Path(settings.MEMORY_GATEWAY_STORAGE_DIR) / INCOMING
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as file:
        yield file  # type: ignore[misc]  # the wrapper has every method of the file


def _write(file: BinaryIO, piece: bytes) -> None:
    rest = memoryview(piece)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        raise EngineUnavailable("The file could not be kept for reading: the disk of this gateway is full.") from None


def _head_of(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(HEAD_BYTES)


def _as_file(item: ContentItem, path: Path, head: bytes) -> ContentItem:
    name = item.name or ""
    try:
        mime_type = sniff(head, name, item.mime_type)
    except TypeMismatch as error:
        raise Unreadable(str(error)) from None
    allowed = settings.MEMORY_GATEWAY_ALLOWED_MIME_TYPES
    if not mime_types.is_allowed(mime_type, allowed):
        raise Unreadable(f"The file is {mime_type}, which is not taken here; allowed are {', '.join(allowed)}.")
    return replace(
        item, type=content_type_of(mime_type, name), file=path, uri=None, ingest_uri=None, mime_type=mime_type
    )
