"""Scanned pages: text drawn at 200 dpi, then skewed, seen at an angle, shaded and covered with noise."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

FONT = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")
WIDTH, HEIGHT, MARGIN, SIZE = 1654, 2339, 160, 36


def wrapped(text: str, font: ImageFont.FreeTypeFont, width: int) -> list[str]:
    """Break English text between words and Chinese text between characters."""
    lines, line = [], ""
    words = text.split(" ") if text.isascii() else list(text)
    glue = " " if text.isascii() else ""
    for word in words:
        longer = line + glue + word if line else word
        if font.getlength(longer) > width and line:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line] if line else lines


def page(paragraphs: Sequence[str], seed: int = 0, *, is_damaged: bool = True) -> Image.Image:
    """Return one A4 page with the paragraphs."""
    chance = random.Random(seed)
    image = Image.new("L", (WIDTH, HEIGHT), 250)
    draw, font, top = ImageDraw.Draw(image), ImageFont.truetype(str(FONT), SIZE), MARGIN
    for paragraph in paragraphs:
        for line in wrapped(paragraph, font, WIDTH - 2 * MARGIN):
            draw.text((MARGIN, top), line, font=font, fill=30)
            top += round(SIZE * 1.4)
        top += SIZE * 2
    return _damaged(image, chance) if is_damaged else image


def _damaged(image: Image.Image, chance: random.Random) -> Image.Image:
    image = image.rotate(chance.uniform(-1.5, 1.5), Image.Resampling.BICUBIC, fillcolor=250)
    shift = [chance.uniform(0, 25) for _ in range(8)]
    corners = (shift[0], shift[1], shift[2], HEIGHT - shift[3], WIDTH - shift[4], HEIGHT - shift[5], WIDTH - shift[6])
    quad = (*corners, shift[7])
    image = image.transform((WIDTH, HEIGHT), Image.Transform.QUAD, quad, Image.Resampling.BICUBIC, fillcolor=250)
    values = np.asarray(image.filter(ImageFilter.GaussianBlur(0.6)), dtype=np.float32)
    shadow = np.linspace(chance.uniform(0.6, 0.8), 1.0, WIDTH, dtype=np.float32)
    noise = np.random.default_rng(chance.randrange(2**32)).normal(0, 8, values.shape)
    return Image.fromarray(np.clip(values * shadow + noise, 0, 255).astype(np.uint8))


def png(image: Image.Image) -> bytes:
    output = io.BytesIO()
    image.save(output, "PNG")
    return output.getvalue()


def pdf(pages: Sequence[Image.Image]) -> bytes:
    """Return a PDF of page images without text."""
    output = io.BytesIO()
    pages[0].save(output, "PDF", save_all=True, append_images=list(pages[1:]), resolution=200)
    return output.getvalue()


def tiff(pages: Sequence[Image.Image]) -> bytes:
    output = io.BytesIO()
    pages[0].save(output, "TIFF", save_all=True, append_images=list(pages[1:]))
    return output.getvalue()


def character_error(expected: str, found: str) -> float:
    """Return the edit distance without white space, per expected character."""
    first, second = "".join(expected.split()), "".join(found.split())
    row = list(range(len(second) + 1))
    for place, character in enumerate(first, 1):
        before, row[0] = row[0], place
        for other, candidate in enumerate(second, 1):
            before, row[other] = row[other], min(row[other] + 1, row[other - 1] + 1, before + (character != candidate))
    return row[-1] / max(1, len(first))
