"""Second reading of PDF pages with pdfium, where the parser is wrong.

These are right-to-left lines, vertical text, letter spacing, words divided at the ends of lines, annotations, and
pictures of pages.
"""

import contextlib
import ctypes
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median
from typing import Final, Self

import pypdfium2
import pypdfium2.raw as pdfium

from documents.rows import Row

STAMP_WORDS: Final = 20
"""A page with fewer words of text is a scan if a picture covers most of it."""
_PICTURE_SHARE: Final = 0.7
_RIGHT_TO_LEFT: Final = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_SPACED: Final = re.compile(r"(?:[^\W\d_] +){4,}[^\W\d_]")
_DIVIDED: Final = re.compile(r"\b([^\W\d_]+)-\n(?=[a-z\u00df-\u00ff])")
_COMPOUNDS: Final = frozenset({"well", "self", "non", "half", "ex", "all", "ill", "so", "co", "e"})
"""First parts of words that keep their hyphen."""
_SPACE: Final = 0.12
_GAP: Final = 1.8
_LEAST_SINGLE: Final = 8
_LEFT_TO_RIGHT_RUN: Final = re.compile(
    r"[%$€£]?[A-Za-z\u00c0-\u024f\d](?:[^\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]*[A-Za-z\u00c0-\u024f\d])?[%$€£]?"
)
_WITHOUT_COMMENT: Final = frozenset({pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_WIDGET, pdfium.FPDF_ANNOT_POPUP})
_MIRRORED: Final = str.maketrans("()[]{}<>«»", ")(][}{><»«")


@dataclass(frozen=True, slots=True)
class _Letter:
    """A character of a page with its place in points."""

    text: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return max(self.top - self.bottom, 0.1)

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def is_right_to_left(text: str) -> bool:
    """Return True if a text has letters of Hebrew, Arabic or a related script."""
    return bool(_RIGHT_TO_LEFT.search(text))


def undivided(text: str) -> str:
    """Return a text whose words are not divided at the ends of lines."""
    return _DIVIDED.sub(lambda match: match[1] + "-" * (match[1].lower() in _COMPOUNDS), text)


class PdfText:
    """An open PDF. Without pages if pdfium cannot open it: the parser is more tolerant."""

    def __init__(self, data: bytes) -> None:
        self._document: pypdfium2.PdfDocument | None = None
        with contextlib.suppress(pypdfium2.PdfiumError):
            self._document = pypdfium2.PdfDocument(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._document:
            self._document.close()

    def rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the parser's rows, or those of pdfium for pages that it reads better."""
        for number, of_page in groupby(rows, key=lambda row: row[1]):
            page = list(of_page)
            text = "\n".join(row for _kind, _page, row in page)
            if number and is_right_to_left(text) and (lines := self._lines(number)):
                yield from _paragraphs(lines, number)
            elif number and _is_vertical(text) and (columns := self._columns(number)):
                yield "paragraph", number, columns
            else:
                yield from ((kind, number, self._mended(row, number)) for kind, _page, row in page)

    def scans(self, rows: Iterable[Row]) -> list[int]:
        """Return the pages that a picture covers and that have few words: their text is in the picture."""
        words: dict[int, int] = {}
        for _kind, page, text in rows:
            words[page or 0] = words.get(page or 0, 0) + len(text.split())
        pages = range(1, len(self._document) + 1) if self._document else range(0)
        return [number for number in pages if 0 < words.get(number, 0) < STAMP_WORDS and self._is_picture(number)]

    def comments(self) -> Iterator[Row]:
        """Yield the texts of annotations: comments, and text that was written on a page."""
        for number, annotation in self._annotations():
            if pdfium.FPDFAnnot_GetSubtype(annotation) not in _WITHOUT_COMMENT:
                size = pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", None, 0)
                text = (ctypes.c_ushort * (size // 2))()
                pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", text, size)
                yield "paragraph", number, bytes(text).decode("utf-16-le", "replace").strip("\0")

    def attachments(self) -> Iterator[tuple[str, bytes]]:
        """Yield the names and bytes of embedded files, of the document and then of its pages."""
        if not self._document:
            return
        files = [
            pdfium.FPDFDoc_GetAttachment(self._document, at)
            for at in range(pdfium.FPDFDoc_GetAttachmentCount(self._document))
        ]
        for found in (*files, *(pdfium.FPDFAnnot_GetFileAttachment(one) for _number, one in self._annotations())):
            with contextlib.suppress(pypdfium2.PdfiumError):
                if found:
                    file = pypdfium2.PdfAttachment(found, self._document)
                    yield file.get_name(), bytes(file.get_data())

    def _annotations(self) -> Iterator[tuple[int, pdfium.FPDF_ANNOTATION]]:
        """Yield each annotation with the number of its page; it is closed when the next one is asked for."""
        for number in range(1, len(self._document) + 1 if self._document else 1):
            page = self._page(number)
            for at in range(pdfium.FPDFPage_GetAnnotCount(page) if page else 0):
                annotation = pdfium.FPDFPage_GetAnnot(page, at)
                yield number, annotation
                pdfium.FPDFPage_CloseAnnot(annotation)

    def _page(self, number: int) -> pypdfium2.PdfPage | None:
        with contextlib.suppress(pypdfium2.PdfiumError, IndexError):
            return self._document[number - 1] if self._document else None
        return None

    def _is_picture(self, number: int) -> bool:
        page = self._page(number)
        if page is None:
            return False
        width, height = page.get_size()
        covered = 0.0
        for one in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3):
            left, bottom, right, top = one.get_bounds()
            covered += max(right - left, 0) * max(top - bottom, 0)
        return bool(covered >= _PICTURE_SHARE * width * height)

    def _letters(self, number: int) -> list[_Letter]:
        """Return the characters of a page without spaces; the text of those without a known meaning is empty."""
        page = self._page(number)
        if page is None:
            return []
        text, box = page.get_textpage(), pdfium.FS_RECTF()
        letters: list[_Letter] = []
        for at in range(text.count_chars()):
            letter = chr(pdfium.FPDFText_GetUnicode(text, at))
            if letter.isspace():
                continue
            if not letter.isprintable() or pdfium.FPDFText_HasUnicodeMapError(text, at) == 1:
                letter = ""  # its place is no gap between words
            if pdfium.FPDFText_GetLooseCharBox(text, at, ctypes.byref(box)):
                letters.append(_Letter(letter, box.left, box.bottom, box.right, box.top))
        return letters

    def _lines(self, number: int) -> list[list[_Letter]]:
        """Return the lines of a page from its top, each from the left."""
        lines: list[list[_Letter]] = []
        for letter in sorted(self._letters(number), key=lambda one: -one.middle):
            if lines and abs(lines[-1][0].middle - letter.middle) < lines[-1][0].height / 2:
                lines[-1].append(letter)
            else:
                lines.append([letter])
        return [sorted(line, key=lambda one: one.left + one.right) for line in lines]

    def _columns(self, number: int) -> str:
        """Return the text of columns from the right, each read downwards."""
        columns: list[list[_Letter]] = []
        for letter in sorted(self._letters(number), key=lambda one: -(one.left + one.right)):
            if columns and abs(columns[-1][0].left - letter.left) < letter.height / 2:
                columns[-1].append(letter)
            else:
                columns.append([letter])
        return "".join(one.text for column in columns for one in sorted(column, key=lambda one: -one.middle))

    def _mended(self, text: str, number: int | None) -> str:
        """Return a row with divided and letter-spaced words joined."""
        text = undivided(text)
        if number and _SPACED.search(text):
            lines = {_letters_of(one.text for one in line): line for line in self._lines(number)}
            text = _SPACED.sub(lambda match: _unspaced(match[0], lines), text)
        return text


def _letters_of(parts: Iterable[str]) -> str:
    return "".join("".join(parts).split())


def _unspaced(spaced: str, lines: dict[str, list[_Letter]]) -> str:
    """Return the words of letters that are spaced: gaps between words are wider than most."""
    wanted = _letters_of(spaced)
    for letters, line in lines.items():
        start = letters.find(wanted)
        if start >= 0 and len(letters) == len(line):
            part = line[start : start + len(wanted)]
            gaps = [after.left - before.right for before, after in pairwise(part)]
            usual = max(median(gaps), 0)
            words = zip(part[1:], gaps, strict=True)
            return part[0].text + "".join(f" {one.text}" if gap > usual * _GAP else one.text for one, gap in words)
    return spaced


def _is_vertical(text: str) -> bool:
    """Return True if most of the parser's words are single characters of Chinese or Japanese."""
    words = text.replace("|", " ").split()
    single = sum(1 for word in words if len(word) == 1 and _CJK.match(word))
    return single >= _LEAST_SINGLE and single * 2 > len(words)


def _paragraphs(lines: Sequence[list[_Letter]], page: int) -> Iterator[Row]:
    """Yield the paragraphs of lines: a gap of more than usual between two lines begins one."""
    gaps = [before[0].middle - after[0].middle for before, after in pairwise(lines)]
    usual = min(gaps, default=0.0)
    usual_height = median(line[0].height for line in lines)
    texts: list[str] = []
    for line, gap in zip(lines, [0.0, *gaps], strict=True):
        is_heading = line[0].height > usual_height * 1.25
        if texts and (gap > usual * 1.4 or is_heading):
            yield "paragraph", page, " ".join(texts)
            texts = []
        if is_heading:
            yield "heading", page, _logical(line)
        else:
            texts.append(_logical(line))
    if texts:
        yield "paragraph", page, " ".join(texts)


def _logical(line: Sequence[_Letter]) -> str:
    """Return the text of a line in the order in which it is read, in the letters' usual forms."""
    units: list[str] = []
    last: _Letter | None = None
    for letter in line:
        if last is not None and letter.text and (unicodedata.combining(letter.text) or _is_one_sign(last, letter)):
            units[-1] += letter.text
            continue
        if last is not None and letter.left - last.right > _SPACE * letter.height:
            units.append(" ")
        units.append(letter.text)
        last = letter
    joined = "".join(units)
    right = len(_RIGHT_TO_LEFT.findall(joined))
    left = sum(1 for one in joined if one.isalpha()) - right
    if left > right:  # only the words of the other direction are turned
        parts = re.split(f"({_RIGHT_TO_LEFT.pattern}(?:[^A-Za-z0-9]*{_RIGHT_TO_LEFT.pattern})*)", joined)
        return "".join(_turned(list(part)) if at % 2 else part for at, part in enumerate(parts))
    return _turned(units)


def _is_one_sign(first: _Letter, second: _Letter) -> bool:
    """Return True if two right-to-left letters are written as one sign, as lam and alef are: they keep their order."""
    return (first.left, first.right) == (second.left, second.right) and is_right_to_left(first.text + second.text)


def _turned(units: list[str]) -> str:
    text = "".join(reversed(units)).translate(_MIRRORED)
    text = _LEFT_TO_RIGHT_RUN.sub(lambda match: match[0][::-1], text)
    return "".join(unicodedata.normalize("NFKC", one) if one >= "\ufb1d" else one for one in text)
