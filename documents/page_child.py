"""Sandboxed process that draws a page with a passage marked: `python -m documents.page_child JOB`.

The file comes on standard input; JOB is JSON `{"mime": …, "page": number from 1, "box": place or null, "text": the
passage, "parent": pid, "limits": {…}}`. Standard output receives a newline when the sandbox is ready, then JSON:
`{"image": JPEG in base64}` or `{"refused": [template, params]}`.
"""

import base64
import io
import os
import sys
from contextlib import suppress
from typing import Final

import orjson
from PIL import Image, ImageDraw

from documents import mime_types as mt
from documents import page_images
from documents.document import Box, Limits
from documents.guards import Refused
from documents.sandbox import enter_sandbox

_MAX_SIDE: Final = 1_600
_MARK: Final = (255, 196, 0, 80)
_LINE: Final = (190, 60, 0, 255)
_MARGIN: Final = 4


def main() -> None:
    job = orjson.loads(sys.argv[1])
    limits = Limits(**job["limits"])
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # nothing reads warnings of the libraries
    enter_sandbox(job["parent"], limits)
    _send(b"\n")  # later failures are caused by the document
    try:
        image = draw(sys.stdin.buffer.read(), job["mime"], job["page"], job["box"], job["text"])
        _send(orjson.dumps({"image": base64.b64encode(image).decode()}))
    except Refused as refusal:
        _send(orjson.dumps({"refused": [refusal.message.template, refusal.message.params]}))
    os._exit(0)


def _send(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def draw(data: bytes, mime: str, number: int, box: Box | None, text: str) -> bytes:
    """Return a page as JPEG, with the box marked, or without one the lines of the text. Raises: `Refused`."""
    pages = page_images.pdf_pages if mime == mt.PDF else page_images.frames
    image = next(pages(data, [number], _MAX_SIDE))[2]
    boxes = [box] if box else page_images.boxes_of(data, number, text) if mime == mt.PDF else []
    output = io.BytesIO()
    _marked(image, boxes).save(output, "JPEG", quality=85)
    return output.getvalue()


def _marked(image: Image.Image, boxes: list[Box]) -> Image.Image:
    layer = Image.new("RGBA", image.size)
    canvas, (width, height) = ImageDraw.Draw(layer), image.size
    for left, top, right, bottom in boxes:
        corners = (left * width - _MARGIN, top * height - _MARGIN, right * width + _MARGIN, bottom * height + _MARGIN)
        canvas.rectangle(corners, fill=_MARK, outline=_LINE, width=2)
    return Image.alpha_composite(image.convert("RGBA"), layer).convert("RGB")


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
