"""Parse uploads as they stream in: text fields with a limit, and one file written to disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

from django.conf import settings
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from django.utils.http import parse_header_parameters
from python_multipart import MultipartParser
from python_multipart.exceptions import MultipartParseError
from rest_framework.parsers import BaseParser, DataAndFiles

from core.errors import BadRequest, InvalidInput
from resources.services import IncomingFile
from resources.services.receiving import require_size

FILE_FIELD = "file"
MAX_FIELD_BYTES = 64 * 1024
MAX_PARTS = 50
MAX_HEADER_BYTES = 16 * 1024
# Limit for everything except the file: fields, part headers, boundaries.
MAX_OVERHEAD_BYTES = 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_BOUNDARY = re.compile(r"[ -~]{0,69}[!-~]")
_PLAIN = {"", "7bit", "8bit", "binary"}


class _Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


class UploadParser(BaseParser):
    """Parse `multipart/form-data` with at most one file, in the field `file`.

    Raises: 400 for a malformed or unfinished body, 413 for too large, 415 and 507 for the file, 422 for wrong fields.
    Nothing stays on disk after an error.
    """

    media_type = "multipart/form-data"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> DataAndFiles[Any, Any]:
        meta: Mapping[str, Any] = (parser_context or {})["request"].META
        length = _content_length(meta)
        require_size(length - MAX_OVERHEAD_BYTES)
        form = UploadForm(expected_bytes=min(length, settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES))
        try:
            form.read(stream, _boundary(meta.get("CONTENT_TYPE", "")))
        except BaseException:
            form.close()
            raise
        return DataAndFiles(form.fields, form.files)


class UploadForm:
    """The fields and the file so far, and the part that is being read."""

    def __init__(self, expected_bytes: int) -> None:
        self.fields = QueryDict(mutable=True)
        self.files: MultiValueDict[str, IncomingFile] = MultiValueDict()
        self._expected_bytes = expected_bytes
        self._is_complete = self._is_in_headers = False
        self._parts = 0
        self._header_name, self._header_value = bytearray(), bytearray()
        self._headers: dict[str, str] = {}
        self._name = ""
        self._filename: str | None = None  # None for a text field, empty for a file without a name
        self._text = bytearray()
        self._incoming: IncomingFile | None = None

    def read(self, source: _Source, boundary: bytes) -> None:
        """Raise BadRequest for a malformed body and for one without its last boundary: it was cut off on its way."""
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin_part,
                "on_header_field": lambda data, start, end: self._header_name.extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._header_value.extend(data[start:end]),
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": self._read_data,
                "on_part_end": self._end_part,
                "on_end": self._end,
            },
            max_header_size=MAX_HEADER_BYTES,
        )
        delimiter = b"--" + boundary
        rest = b"\r\n"  # the first delimiter, too, begins a line
        try:
            while chunk := source.read(_CHUNK_BYTES):
                rest = self._write(parser, rest + chunk, delimiter)
            parser.write(rest)
        except MultipartParseError as error:
            raise BadRequest(f"The form cannot be read: {error}.") from None
        if not self._is_complete:
            raise BadRequest("The body ended before its last boundary: send the upload again.")

    def close(self) -> None:
        for incoming in self.files.getlist(FILE_FIELD):
            incoming.close()

    def _write(self, parser: MultipartParser, data: bytes, delimiter: bytes) -> bytes:
        """Write data to the parser, except for the end that needs what follows it, which is returned.

        A part without a body ends with the empty line after its headers (RFC 2046, 5.1.1), which some clients send for
        empty fields. The parser expects another line end before the next delimiter, so it gets one.
        """
        while True:
            if self._is_in_headers:
                end = data.find(b"\r\n\r\n") + 4
                if end < 4 or len(data) < end + len(delimiter):
                    if len(data) <= MAX_HEADER_BYTES:
                        return data
                    end = len(data)  # too large, or all there
                self._is_in_headers = False
                parser.write(data[:end])
                data = data[end:]
                if data.startswith(delimiter):
                    data = b"\r\n" + data
            line = b"\r\n" + delimiter + b"\r\n"
            end = data.find(line) + len(line)
            if end < len(line):
                kept = min(len(line) - 1, len(data))
                parser.write(data[: len(data) - kept])
                return data[len(data) - kept :]
            self._is_in_headers = True
            parser.write(data[:end])
            data = data[end:]

    def _begin_part(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise InvalidInput(f"The form has more than {MAX_PARTS} fields.")
        self._headers, self._text, self._incoming = {}, bytearray(), None

    def _end_header(self) -> None:
        self._headers[_decoded(self._header_name).lower()] = _decoded(self._header_value).strip()
        self._header_name, self._header_value = bytearray(), bytearray()

    def _end_headers(self) -> None:
        disposition = _parameters(self._headers.get("content-disposition", ""))
        if "name" not in disposition:
            raise BadRequest("Every part of the form needs a Content-Disposition with a name.")
        if self._headers.get("content-transfer-encoding", "").lower() not in _PLAIN:
            raise BadRequest("Send the parts of the form as they are, without Content-Transfer-Encoding.")
        self._name, self._filename = disposition["name"], disposition.get("filename")
        if self._name == FILE_FIELD:
            if self._filename:
                self._begin_file()
        elif self._filename is not None:
            raise InvalidInput.of_field(self._name, f"must be text; the file goes into the field '{FILE_FIELD}'")
        elif self._name in self.fields:
            raise InvalidInput.of_field(self._name, "is given twice: send it once")

    def _begin_file(self) -> IncomingFile:
        if self.files:
            raise InvalidInput.of_field(FILE_FIELD, "is given twice: send one file per upload")
        content_type = self._headers.get("content-type", "")
        self._incoming = IncomingFile(self._filename or "", content_type, self._expected_bytes)
        self.files[FILE_FIELD] = self._incoming
        return self._incoming

    def _read_data(self, data: bytes, start: int, end: int) -> None:
        if self._name == FILE_FIELD:
            # Browsers send a part without name and data when no file was chosen.
            incoming = self._incoming or self._begin_file()
            incoming.write(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > MAX_FIELD_BYTES:
            raise InvalidInput.of_field(self._name, f"must be at most {MAX_FIELD_BYTES} bytes")

    def _end_part(self) -> None:
        if self._incoming is not None:
            self._incoming.finish()
        elif self._name != FILE_FIELD:
            try:
                self.fields[self._name] = self._text.decode("utf-8")
            except UnicodeDecodeError:
                raise InvalidInput.of_field(self._name, "must be UTF-8 text") from None

    def _end(self) -> None:
        self._is_complete = True


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


def _decoded(header: bytearray) -> str:
    """Decode a file name: UTF-8, or GBK as Chinese Windows shells send it."""
    try:
        return header.decode("utf-8")
    except UnicodeDecodeError:
        return header.decode("gb18030", errors="replace")


def _parameters(disposition: str) -> dict[str, str]:
    try:
        return parse_header_parameters(disposition)[1]
    except ValueError as error:
        raise BadRequest(f"A Content-Disposition cannot be read: {error}.") from None
