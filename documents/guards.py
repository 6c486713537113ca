"""Checks on archives and PDFs before a parser reads them. They run in the sandbox, with the parser.

Headers are not trusted: sizes are counted while decompressing, and an XML parser looks for declarations.
"""

import contextlib
import io
import re
import struct
import sys
import zipfile
import zlib
from typing import Final
from xml.parsers import expat

from core.messages import MessageError, Translatable
from core.messages import Translatable as _
from documents import mime_types as mt
from documents.document import MIB, Limits
from documents.sniff import OLE_MAGIC

ENCRYPTED: Final = _("The document is encrypted or protected by a password: remove the protection and send it again.")
DAMAGED: Final = _("The document is damaged: open it in the program that it was made with, save it again and send it.")
TOO_LARGE: Final = _("The document is too large after decompression: send it in smaller parts.")

_IMAGE: Final = re.compile(r"\.(?:png|jpe?g|gif|bmp|tiff?|webp)$", re.IGNORECASE)
_XLSB: Final = "xl/workbook.bin"
_FONT_METHODS: Final = frozenset({b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC"})
"""Ways to encrypt the fonts of a book, whose text can be read."""
_MAIN_PARTS: Final = {
    mt.DOCX: "word/",
    mt.XLSX: "xl/",
    mt.PPTX: "ppt/",
    mt.EPUB: "META-INF/container.xml",
    **dict.fromkeys((mt.ODT, mt.ODS, mt.ODP), "content.xml"),
}
"""The beginning of the name of a member that each package has."""
_CHUNK: Final = 65_536
_SECTOR: Final = 512
_RATIO_FREE_BYTES: Final = 10 * MIB
"""The decompressed size below which any ratio is allowed: empty sheets compress very well."""
_MAX_OBJECT_NUMBER: Final = 8_388_607  # PDF 32000-1, annex C


class Refused(MessageError):
    """Raised if a document must not or cannot be read. `message` gives the reason and what to do."""

    message: Translatable


def check_zip(data: bytes, mime: str, limits: Limits) -> None:
    """Check an archive. Raises: `Refused` if it is damaged, encrypted or a zip bomb, or if its XML declares a DTD."""
    if data.startswith(OLE_MAGIC):
        raise Refused(ENCRYPTED)  # Office's format for a .docx with a password
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > limits.zip_members:
                raise Refused(
                    _(
                        "The document has more than %(number)s parts inside: save it again and send it.",
                        number=f"{limits.zip_members:,}",
                    )
                )
            if mime == mt.XLSX and _XLSB in archive.NameToInfo:
                raise Refused(_("Binary workbooks (.xlsb) are not supported: save it as .xlsx and send it."))
            if not any(name.startswith(_MAIN_PARTS.get(mime, "")) for name in archive.NameToInfo):
                raise Refused(
                    _("The file is a ZIP archive, not a document of this type: unpack it and send its files.")
                )
            if mime == mt.EPUB and _is_protected_book(archive):
                raise Refused(ENCRYPTED)
            left = limits.zip_bytes
            for member in members:
                left -= _check_member(archive, member, mime, limits, left)
    except (zipfile.BadZipFile, zlib.error, ValueError, OverflowError, NotImplementedError, struct.error) as error:
        raise Refused(DAMAGED) from error


def _is_protected_book(archive: zipfile.ZipFile) -> bool:
    """Return True if more than the fonts of a book are encrypted."""
    with contextlib.suppress(KeyError):
        with archive.open("META-INF/encryption.xml") as content:
            methods = re.findall(rb"EncryptionMethod\s[^>]*Algorithm\s*=\s*[\"']([^\"']*)", content.read(_CHUNK))
        return any(method not in _FONT_METHODS for method in methods)
    return False


def images_in(data: bytes) -> int:
    """Return the number of pictures in an archive that was checked, without its thumbnail."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return sum(1 for name in archive.namelist() if _IMAGE.search(name) and "thumbnail" not in name.lower())


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, mime: str, limits: Limits, left: int) -> int:
    """Decompress one member and return its real size in bytes. Raises: `Refused`."""
    if member.flag_bits & 1:
        raise Refused(ENCRYPTED)
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise Refused(
            _("The document is compressed in an unusual way. Save it again with an office program and upload it.")
        )
    member.file_size = sys.maxsize  # otherwise reading would stop at the size that the header claims
    member.CRC = None  # type: ignore[assignment]
    prolog = _Prolog()
    size = 0
    with archive.open(member) as content, contextlib.suppress(EOFError):  # truncated: the document's parser reports it
        while chunk := content.read(_CHUNK):
            size += len(chunk)
            is_bomb = size > _RATIO_FREE_BYTES and size > limits.zip_ratio * max(1, member.compress_size)
            if size > left or is_bomb:
                raise Refused(TOO_LARGE)
            prolog.feed(chunk)
    # EPUB's pages are XHTML with a doctype, and office programs write external ones to macros and formulas of ODF. The
    # documents in a ZIP are checked when they are read.
    has_wrong_doctype = prolog.has_doctype and mime not in {mt.EPUB, mt.ODT, mt.ODS, mt.ODP}
    if mime != mt.ZIP and (prolog.has_entities or has_wrong_doctype):
        raise Refused(
            _("The document declares XML entities or a document type: save it again in an office program and send it.")
        )
    return size


class _Prolog:
    """Finds declarations before the root element of a member, if it is XML, whatever its name."""

    def __init__(self) -> None:
        self.has_doctype = self.has_entities = self._is_over = False
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._on_doctype
        self._parser.StartElementHandler = self._stop

    def feed(self, chunk: bytes) -> None:
        try:
            if not self._is_over:
                self._parser.Parse(chunk)
        except expat.ExpatError:  # the root, or XML that is not well-formed, which the document's parser reports
            self._is_over = True

    def _on_doctype(self, _name: str, _system: str | None, _public: str | None, has_subset: int) -> None:
        self.has_doctype, self.has_entities = True, bool(has_subset)

    def _stop(self, _name: str, _attributes: dict[str, str]) -> None:
        raise expat.ExpatError


def is_protected_doc(data: bytes) -> bool:
    """Return True if the header of a Word 97 document says that it is encrypted or obfuscated."""
    headers = (data[start : start + 12] for start in range(_SECTOR, len(data) - 12, _SECTOR))
    return any(header[:2] == b"\xec\xa5" and header[11] & 1 for header in headers)


def is_broken_pdf(data: bytes) -> bool:
    """Return True if a PDF's cross-reference table is missing or invalid.

    Then "no text" means damage, not an empty page.
    """
    starts: list[bytes] = re.findall(rb"startxref\s+(\d{1,12})", data[-2048:])
    if not starts:
        return True
    table = data[int(starts[-1]) + max(0, data.find(b"%PDF-", 0, 1024)) :]
    if not table.lstrip().startswith(b"xref"):
        return not re.match(rb"\s*\d+\s+\d+\s+obj", table)
    sections = re.findall(rb"^(\d+) (\d+) *$", table.partition(b"trailer")[0], re.MULTILINE)
    return any(int(first) + int(count) > _MAX_OBJECT_NUMBER for first, count in sections)
