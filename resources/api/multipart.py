"""Streaming parser of uploads: text fields of limited size, and one file that is written to disk as it arrives."""

from __future__ import annotations

import contextlib
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
from core.messages import Translatable as _
from resources.services import Incoming, IncomingFile
from resources.services.receiving import require_size

FILE_FIELD = "file"
MAX_FIELD_BYTES = 64 * 1024
MAX_PARTS = 50
MAX_HEADER_BYTES = 16 * 1024
# The limit of everything except the file: fields, part headers, boundaries.
MAX_OVERHEAD_BYTES = 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_BOUNDARY = re.compile(r"[ -~]{0,69}[!-~]")
_IDENTITY_ENCODINGS = {"", "7bit", "8bit", "binary"}


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
        context = parser_context or {}
        meta: Mapping[str, Any] = context["request"].META
        try:
            length = max(0, int(meta.get("CONTENT_LENGTH") or 0))
        except ValueError:
            raise BadRequest(_("Content-Length must be a number.")) from None
        boundary = ""
        with contextlib.suppress(ValueError):
            boundary = parse_header_parameters(meta.get("CONTENT_TYPE", ""))[1].get("boundary", "")
        if not _BOUNDARY.fullmatch(boundary):
            raise BadRequest(_("The Content-Type must name a boundary of 1 to 70 ASCII characters."))
        incoming: Incoming = context.get("incoming") or Incoming()
        incoming.size_bytes = length or None
        require_size(length - MAX_OVERHEAD_BYTES)
        incoming.size_bytes = None
        form = UploadForm(expected_bytes=min(length, settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES))
        try:
            form.read(stream, boundary.encode("ascii"))
        except BaseException:
            form.close()
            raise
        finally:
            for file in form.files.getlist(FILE_FIELD):
                incoming.filename, incoming.size_bytes = file.filename, file.size_bytes
        return DataAndFiles(form.fields, form.files)


class UploadForm:
    """A form that is being read: its fields and file so far, and the state of the current part."""

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
        """Read the whole form. Raises: `BadRequest` if it is malformed or incomplete (without its last boundary)."""
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin_part,
                "on_header_field": lambda data, start, end: self._header_name.extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._header_value.extend(data[start:end]),
                "on_header_end": self._add_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": self._read_data,
                "on_part_end": self._end_part,
                "on_end": lambda: setattr(self, "_is_complete", True),
            },
            max_header_size=MAX_HEADER_BYTES,
        )
        delimiter = b"--" + boundary
        rest = b"\r\n"  # because `_write` expects every delimiter at the start of a line
        try:
            while chunk := source.read(_CHUNK_BYTES):
                rest = self._write(parser, rest + chunk, delimiter)
            parser.write(rest)
        except MultipartParseError as error:
            raise BadRequest(_("The form cannot be read: %(error)s.", error=error)) from None
        if not self._is_complete:
            raise BadRequest(_("The body ended before its last boundary: send the upload again."))

    def close(self) -> None:
        for incoming in self.files.getlist(FILE_FIELD):
            incoming.close()

    def _write(self, parser: MultipartParser, data: bytes, delimiter: bytes) -> bytes:
        """Write data to the parser and return the rest, which cannot be interpreted without the following bytes.

        A part without a body ends with the empty line after its headers (RFC 2046, 5.1.1); some clients send empty
        fields in this form. The parser expects another line end before the next delimiter, so this adds one.
        """
        while True:
            if self._is_in_headers:
                end = data.find(b"\r\n\r\n") + 4
                if end < 4 or len(data) < end + len(delimiter):
                    if len(data) <= MAX_HEADER_BYTES:
                        return data
                    end = len(data)  # the parser raises the error for too large headers
                self._is_in_headers = False
                parser.write(data[:end])
                data = data[end:]
                if data.startswith(delimiter):
                    data = b"\r\n" + data
            line = b"\r\n" + delimiter + b"\r\n"
            end = data.find(line) + len(line)
            if end < len(line):
                rest_bytes = min(len(line) - 1, len(data))
                parser.write(data[: len(data) - rest_bytes])
                return data[len(data) - rest_bytes :]
            self._is_in_headers = True
            parser.write(data[:end])
            data = data[end:]

    def _begin_part(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise InvalidInput(_("The form has more than %(number)s fields.", number=MAX_PARTS))
        self._headers, self._text, self._incoming = {}, bytearray(), None

    def _add_header(self) -> None:
        self._headers[_decoded(self._header_name).lower()] = _decoded(self._header_value).strip()
        self._header_name, self._header_value = bytearray(), bytearray()

    def _end_headers(self) -> None:
        try:
            disposition = parse_header_parameters(self._headers.get("content-disposition", ""))[1]
        except (ValueError, TypeError) as error:  # TypeError: a parameter is given both whole and in sections
            raise BadRequest(_("A Content-Disposition cannot be read: %(error)s.", error=error)) from None
        if "name" not in disposition:
            raise BadRequest(_("Every part of the form needs a Content-Disposition with a name."))
        if self._headers.get("content-transfer-encoding", "").lower() not in _IDENTITY_ENCODINGS:
            raise BadRequest(_("Send the parts of the form as they are, without Content-Transfer-Encoding."))
        self._name, self._filename = disposition["name"], disposition.get("filename")
        if self._name == FILE_FIELD:
            if self._filename:
                self._begin_file()
        elif self._filename is not None:
            raise InvalidInput.of_field(
                self._name, _("must be text; the file goes into the field '%(field)s'", field=FILE_FIELD)
            )
        elif self._name in self.fields:
            raise InvalidInput.of_field(self._name, _("is given twice: send it once"))

    def _begin_file(self) -> IncomingFile:
        if self.files:
            raise InvalidInput.of_field(FILE_FIELD, _("is given twice: send one file per upload"))
        content_type = self._headers.get("content-type", "")
        self._incoming = IncomingFile(self._filename or "", content_type, self._expected_bytes)
        self.files[FILE_FIELD] = self._incoming
        return self._incoming

    def _read_data(self, data: bytes, start: int, end: int) -> None:
        if self._name == FILE_FIELD:
            # Only data begins a file without a name: browsers send neither if the user chose no file.
            incoming = self._incoming or self._begin_file()
            incoming.write(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > MAX_FIELD_BYTES:
            raise InvalidInput.of_field(self._name, _("must be at most %(number)s bytes", number=MAX_FIELD_BYTES))

    def _end_part(self) -> None:
        if self._incoming is not None:
            self._incoming.finish()
        elif self._name != FILE_FIELD:
            try:
                self.fields[self._name] = self._text.decode("utf-8")
            except UnicodeDecodeError:
                raise InvalidInput.of_field(self._name, _("must be UTF-8 text")) from None


def _decoded(header: bytearray) -> str:
    """Decode a header: UTF-8, or GBK, in which Chinese Windows shells send file names."""
    try:
        return header.decode("utf-8")
    except UnicodeDecodeError:
        return header.decode("gb18030", errors="replace")
