"""Sandboxed process that draws a page with a passage marked: `python -m documents.page_child JOB`.

The file comes on standard input; JOB is JSON `{"mime": …, "page": number from 1, "box": place or null, "text": the
passage, "parent": pid, "limits": {…}}`. The answer is `{"image": JPEG in base64}`.
"""

import base64
import io
from typing import Final

from PIL import Image, ImageDraw

from documents import mime_types as mt
from documents import page_images
from documents.document import Box
from documents.sandbox import discard_warnings, run

_MAX_SIDE: Final = 1_600
_MARK: Final = (255, 196, 0, 80)
_LINE: Final = (190, 60, 0, 255)
_MARGIN: Final = 4
_MIN_LETTERS: Final = 8
_ENDS: Final = 40


def draw(data: bytes, mime: str, number: int, box: Box | None, text: str) -> dict[str, str]:
    """Draw a page with the box marked, or without one the lines of the text. Raises: `Refused`."""
    pages = page_images.pdf_pages if mime == mt.PDF else page_images.frames
    image = next(pages(data, [number], _MAX_SIDE))[2]
    boxes = [box] if box else _boxes_of(data, number, text) if mime == mt.PDF else []
    output = io.BytesIO()
    _marked(image, boxes).save(output, "JPEG", quality=85)
    return {"image": base64.b64encode(output.getvalue()).decode()}


def _boxes_of(data: bytes, number: int, text: str) -> list[Box]:
    """Return the lines that a text takes on a PDF page; none if it is not there once, or the page is turned.

    Raises: `Refused`.
    """
    page = page_images.page_of(page_images.opened(data), number)
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


def _marked(image: Image.Image, boxes: list[Box]) -> Image.Image:
    layer = Image.new("RGBA", image.size)
    canvas, (width, height) = ImageDraw.Draw(layer), image.size
    for left, top, right, bottom in boxes:
        corners = (left * width - _MARGIN, top * height - _MARGIN, right * width + _MARGIN, bottom * height + _MARGIN)
        canvas.rectangle(corners, fill=_MARK, outline=_LINE, width=2)
    return Image.alpha_composite(image.convert("RGBA"), layer).convert("RGB")


if __name__ == "__main__":
    discard_warnings()
    run(lambda data, job, _limits: [draw(data, job["mime"], job["page"], job["box"], job["text"])])
