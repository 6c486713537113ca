"""Images of PDF pages and of pictures, for sandboxed children. Needs pypdfium2 and Pillow."""

import io
from collections.abc import Iterator, Sequence
from typing import Final

import pypdfium2
from PIL import Image, ImageOps

from documents import guards
from documents.guards import Refused

MAX_SIDE: Final = 2_400
"""The longest side that is recognized, in pixels: A4 at 200 dpi."""
_FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "ICO")
_MAX_PIXELS: Final = 64_000_000
_DOTS_PER_POINT: Final = 200 / 72


def pdf_pages(
    data: bytes, wanted: Sequence[int] | None, max_side: int = MAX_SIDE
) -> Iterator[tuple[int, int, Image.Image]]:
    """Yield the number of each wanted page, the number of all pages, and the image. Raises: `Refused`."""
    document = opened(data)
    for number in wanted or range(1, len(document) + 1):
        page = page_of(document, number)
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


def opened(data: bytes) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise Refused(guards.DAMAGED) from error


def page_of(document: pypdfium2.PdfDocument, number: int) -> pypdfium2.PdfPage:
    try:
        return document[number - 1]
    except (pypdfium2.PdfiumError, IndexError) as error:
        raise Refused(guards.DAMAGED) from error
