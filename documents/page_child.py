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


def draw(data: bytes, mime: str, number: int, box: Box | None, text: str) -> dict[str, str]:
    """Draw a page with the box marked, or without one the lines of the text. Raises: `Refused`."""
    pages = page_images.pdf_pages if mime == mt.PDF else page_images.frames
    image = next(pages(data, [number], _MAX_SIDE))[2]
    boxes = [box] if box else page_images.boxes_of(data, number, text) if mime == mt.PDF else []
    output = io.BytesIO()
    _marked(image, boxes).save(output, "JPEG", quality=85)
    return {"image": base64.b64encode(output.getvalue()).decode()}


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
