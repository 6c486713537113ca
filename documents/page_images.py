"""Images of PDF pages and of pictures, for sandboxed children. Needs pypdfium2 and Pillow."""

import io
from collections.abc import Iterator, Sequence
from typing import Final

import pypdfium2
from PIL import Image, ImageOps

from documents import guards
from documents.document import Box
from documents.guards import Refused

MAX_SIDE: Final = 2_400
"""The longest side that is recognized, in pixels: A4 at 200 dpi."""
_FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "ICO")
_MAX_PIXELS: Final = 64_000_000
_DOTS_PER_POINT: Final = 200 / 72
_MIN_LETTERS: Final = 8
_ENDS: Final = 40


def pdf_pages(
    data: bytes, wanted: Sequence[int] | None, max_side: int = MAX_SIDE
) -> Iterator[tuple[int, int, Image.Image]]:
    """Yield the number of each wanted page, the number of all pages, and the image. Raises: `Refused`."""
    document = _opened(data)
    for number in wanted or range(1, len(document) + 1):
        page = _page(document, number)
        scale = min(_DOTS_PER_POINT, max_side / max(*page.get_size(), 1))
        yield number, len(document), page.render(scale=scale).to_pil().convert("RGB")
        page.close()


def frames(
    data: bytes, wanted: Sequence[int] | None, max_side: int = MAX_SIDE
) -> Iterator[tuple[int, int, Image.Image]]:
    """Yield the pages of a TIFF file, or the first frame of another image, like `pdf_pages`. Raises: `Refused`."""
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            count = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
            for number in wanted or range(1, count + 1):
                image.seek(number - 1)
                if image.width * image.height > _MAX_PIXELS:
                    raise Refused(guards.TOO_LARGE)
                image.draft("RGB", (max_side, max_side))  # a large JPEG is decoded at a fraction of its size
                page = ImageOps.exif_transpose(image).convert("RGBA")
                page = Image.alpha_composite(Image.new("RGBA", page.size, "white"), page).convert("RGB")
                page.thumbnail((max_side, max_side))
                yield number, count, page
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise Refused(guards.DAMAGED) from error


def boxes_of(data: bytes, number: int, text: str) -> list[Box]:
    """Return the lines that a text takes on a PDF page; none if it is not there once, or the page is turned.

    Raises: `Refused`.
    """
    page = _page(_opened(data), number)
    left, bottom, right, top = page.get_bbox()
    if page.get_rotation() or right <= left or top <= bottom:
        return []
    found = page.get_textpage()
    written = found.get_text_range()
    places = [place for place, character in enumerate(written) if character.isalnum()]
    span = _span(_letters(written), _letters(text))
    if span is None:
        return []
    first, last = places[span[0]], places[span[1] - 1]
    rectangles = [found.get_rect(one) for one in range(found.count_rects(first, last + 1 - first))]
    width, height = right - left, top - bottom
    return [
        (_share(x0 - left, width), _share(top - y1, height), _share(x1 - left, width), _share(top - y0, height))
        for x0, y0, x1, y1 in rectangles
    ]


def _letters(text: str) -> str:
    return "".join(character.casefold()[:1] for character in text if character.isalnum())


def _span(letters: str, wanted: str) -> tuple[int, int] | None:
    """Return where a text begins and ends among the letters of a page, also if only its ends are as written there."""
    for head, tail in ((wanted, wanted), (wanted[:_ENDS], wanted[-_ENDS:])):
        if len(head) < _MIN_LETTERS or letters.count(head) != 1:
            continue
        start = letters.index(head)
        end = letters.find(tail, start) + len(tail)
        if len(tail) <= end <= start + 2 * len(wanted):
            return start, end
    return None


def _share(part: float, whole: float) -> float:
    return min(max(part / whole, 0.0), 1.0)


def _opened(data: bytes) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise Refused(guards.DAMAGED) from error


def _page(document: pypdfium2.PdfDocument, number: int) -> pypdfium2.PdfPage:
    try:
        return document[number - 1]
    except (pypdfium2.PdfiumError, IndexError) as error:
        raise Refused(guards.DAMAGED) from error
