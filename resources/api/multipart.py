"""Uploads as they stream in: text fields with a limit, one file straight to disk.

Django's own parser stops at header lines of a kilobyte and drops a file whose name is not UTF-8; this one reads the
parts itself, over Django's boundary streams.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, cast

from django.conf import settings
from django.http import QueryDict
from django.http.multipartparser import ChunkIter, InterBoundaryIter, LazyStream
from django.utils.datastructures import MultiValueDict
from django.utils.http import parse_header_parameters
from rest_framework.parsers import BaseParser, DataAndFiles

from memory_gateway.core.errors import BadRequest, InvalidInput
from resources.services import IncomingFile
from resources.services.receiving import require_size

FILE_FIELD = "file"
MAX_FIELD_BYTES = 64 * 1024
MAX_FIELDS = 50
MAX_HEADER_BYTES = 16 * 1024
# All that may stand around the file: the fields, the headers of the parts, the boundaries.
MAX_OVERHEAD_BYTES = 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_BOUNDARY = re.compile(r"[ -~]{0,69}[!-~]")
_PLAIN = {"", "7bit", "8bit", "binary"}


class _Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Part(NamedTuple):
    """`filename` is None for a text field, and empty for a file without a name."""

    name: str
    filename: str | None
    content_type: str


class UploadParser(BaseParser):
    """`multipart/form-data` with at most one file, in the field `file`.

    Errors: 400 for a malformed or unfinished body, 413 for too much, 415 and 507 from the file, 422 for wrong fields.
    Nothing stays on disk after an error.
    """

    media_type = "multipart/form-data"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> DataAndFiles[Any, Any]:
        meta: Mapping[str, Any] = (parser_context or {})["request"].META
        length = _content_length(meta)
        require_size(length - MAX_OVERHEAD_BYTES)
        body = _WholeBody(stream, _boundary(meta.get("CONTENT_TYPE", "")))
        form = _Form(expected_bytes=length)
        try:
            for part in body.parts():
                form.read(part)
            body.require_whole()
        except BaseException:
            form.close()
            raise
        return DataAndFiles(form.fields, form.files)


class _WholeBody:
    """The body in chunks, and whether its last boundary came: half an upload must never pass as a whole one."""

    def __init__(self, source: _Source, boundary: bytes) -> None:
        self.separator = b"--" + boundary
        self._source = source
        self._end = self.separator + b"--"
        self._tail = b""
        self._is_whole = False

    def __iter__(self) -> _WholeBody:
        return self

    def __next__(self) -> bytes:
        data = self._source.read(_CHUNK_BYTES)
        if not data:
            raise StopIteration
        window = self._tail + data
        self._is_whole = self._is_whole or self._end in window
        self._tail = window[-len(self._end) :]
        return data

    def parts(self) -> Iterator[LazyStream]:
        """What stands between the boundaries; each must be read to its end before the next."""
        yield from InterBoundaryIter(LazyStream(cast("ChunkIter", self)), self.separator)

    def require_whole(self) -> None:
        if not self._is_whole:
            raise BadRequest("The body ended before its last boundary: send the upload again.")


class _Form:
    """What came so far."""

    def __init__(self, expected_bytes: int) -> None:
        self.fields = QueryDict(mutable=True)
        self._incoming: IncomingFile | None = None
        self._expected_bytes = expected_bytes

    @property
    def files(self) -> MultiValueDict[str, IncomingFile]:
        return MultiValueDict({} if self._incoming is None else {FILE_FIELD: [self._incoming]})

    def read(self, stream: LazyStream) -> None:
        """Takes one part, whole."""
        part = _part(stream)
        if part is None:
            for _ in stream:
                continue
        elif part.name == FILE_FIELD:
            self._read_file(part, stream)
        elif part.filename is None:
            self._read_field(part.name, stream)
        else:
            raise InvalidInput.of_field(part.name, f"must be text; the file goes into the field '{FILE_FIELD}'")

    def close(self) -> None:
        if self._incoming is not None:
            self._incoming.close()

    def _read_field(self, name: str, stream: LazyStream) -> None:
        if len(self.fields) >= MAX_FIELDS:
            raise InvalidInput(f"The form has more than {MAX_FIELDS} fields.")
        data = stream.read(MAX_FIELD_BYTES + 1)
        if len(data) > MAX_FIELD_BYTES:
            raise InvalidInput.of_field(name, f"must be at most {MAX_FIELD_BYTES} bytes")
        if name in self.fields:
            raise InvalidInput.of_field(name, "is given twice: send it once")
        try:
            self.fields[name] = data.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidInput.of_field(name, "must be UTF-8 text") from None

    def _read_file(self, part: _Part, stream: LazyStream) -> None:
        first = next(stream, b"")
        if not first and not part.filename:
            return  # what a page sends when no file was chosen
        if self._incoming is not None:
            raise InvalidInput.of_field(FILE_FIELD, "is given twice: send one file per upload")
        expected = min(self._expected_bytes, _max_upload_bytes())
        incoming = self._incoming = IncomingFile(part.filename or "", part.content_type, expected)
        incoming.write(first)
        for chunk in stream:
            incoming.write(chunk)
        incoming.finish()


def _max_upload_bytes() -> int:
    limit: int = settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES
    return limit


def _content_length(meta: Mapping[str, Any]) -> int:
    try:
        return max(0, int(meta.get("CONTENT_LENGTH") or 0))
    except ValueError:
        raise BadRequest("Content-Length must be a number.") from None


def _boundary(content_type: str) -> bytes:
    try:
        boundary = parse_header_parameters(content_type)[1].get("boundary", "")
    except ValueError:
        boundary = ""
    if not _BOUNDARY.fullmatch(boundary):
        raise BadRequest("The Content-Type must name a boundary of 1 to 70 ASCII characters.")
    return boundary.encode("ascii")


def _part(stream: LazyStream) -> _Part | None:
    """The headers of a part; None for what is none, such as the text before the first boundary."""
    start = stream.read(MAX_HEADER_BYTES)
    head, end, rest = start.partition(b"\r\n\r\n")
    if not end:
        if len(start) == MAX_HEADER_BYTES:
            raise BadRequest(f"A part of the form has no headers, or more than {MAX_HEADER_BYTES} bytes of them.")
        return None
    stream.unget(rest)
    headers = {name.strip().lower(): value.strip() for name, _, value in map(_header, head.split(b"\r\n"))}
    disposition = _parameters(headers.get("content-disposition", ""))
    if disposition.get("name") is None:
        raise BadRequest("Every part of the form needs a Content-Disposition with a name.")
    if headers.get("content-transfer-encoding", "").lower() not in _PLAIN:
        raise BadRequest("Send the parts of the form as they are, without Content-Transfer-Encoding.")
    return _Part(disposition["name"], disposition.get("filename"), headers.get("content-type", ""))


def _header(line: bytes) -> tuple[str, str, str]:
    """Names come as UTF-8 from nearly everyone, and as GBK from a Chinese Windows shell."""
    for encoding in ("utf-8", "gb18030"):
        try:
            return line.decode(encoding).partition(":")
        except UnicodeDecodeError:
            continue
    return line.decode("utf-8", errors="replace").partition(":")


def _parameters(disposition: str) -> dict[str, str]:
    try:
        return parse_header_parameters(disposition)[1]
    except ValueError as error:
        raise BadRequest(f"A Content-Disposition cannot be read: {error}.") from None
