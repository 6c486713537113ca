"""A page is drawn with the passage marked, in a limited child process."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.errors import Unreadable
from documents import mime_types as mt
from documents import rendering
from documents.document import MIB
from tests import bombs, scans

pytestmark = pytest.mark.skipif(not rendering.is_available(), reason="the extra `ocr` is not installed")


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "file"
    path.write_bytes(data)
    return path


def marked_part(drawn: bytes) -> tuple[float, float, float, float] | None:
    """Return the bounds of the marks, as fractions of the image."""
    image = Image.open(io.BytesIO(drawn))
    assert image.format == "JPEG"
    assert max(image.size) <= 1600
    values = np.asarray(image.convert("RGB")).astype(int)
    rows, columns = np.nonzero(values[:, :, 0] - values[:, :, 2] > 40)
    if not len(rows):
        return None
    height, width = values.shape[:2]
    return columns.min() / width, rows.min() / height, columns.max() / width, rows.max() / height


def test_the_box_of_recognized_text_is_marked(tmp_path: Path) -> None:
    path = written(tmp_path, scans.pdf([Image.new("L", (600, 800), 255)] * 2))
    found = marked_part(rendering.draw_page(path, mt.PDF, 2, box=(0.25, 0.5, 0.75, 0.625)))
    assert found == pytest.approx((0.25, 0.5, 0.75, 0.625), abs=0.02)


def test_the_lines_of_a_text_are_marked(tmp_path: Path) -> None:
    path = written(tmp_path, bombs.pages_pdf(["The first page.", "Payment is due within thirty days."]))
    whole = marked_part(rendering.draw_page(path, mt.PDF, 2, text="Payment is  due within thirty days."))
    part = marked_part(rendering.draw_page(path, mt.PDF, 2, text="thirty days."))
    assert whole is not None
    assert part is not None
    assert whole[0] < part[0] < whole[2]
    assert marked_part(rendering.draw_page(path, mt.PDF, 1, text="Payment is due within thirty days.")) is None


def test_a_text_that_is_there_twice_is_not_marked(tmp_path: Path) -> None:
    path = written(tmp_path, bombs.pages_pdf(["due in May and due in May"]))
    assert marked_part(rendering.draw_page(path, mt.PDF, 1, text="due in May")) is None


def test_a_picture_is_drawn_with_and_without_a_mark(tmp_path: Path) -> None:
    path = written(tmp_path, scans.png(Image.new("RGB", (3000, 100), "white")))
    assert marked_part(rendering.draw_page(path, "image/png", 1)) is None
    found = marked_part(rendering.draw_page(path, "image/png", 1, box=(0.1, 0.2, 0.3, 0.8)))
    assert found == pytest.approx((0.1, 0.2, 0.3, 0.8), abs=0.1)


@pytest.mark.parametrize(
    ("data", "mime", "page"),
    [
        pytest.param(scans.png(Image.new("1", (60_000, 2_000))), "image/png", 1, id="60,000 pixels wide"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "image/png", 1, id="no picture"),
        pytest.param(b"%PDF-1.7 " + b"\0" * 100, mt.PDF, 1, id="no PDF"),
        pytest.param(bombs.pages_pdf(["one page"]), mt.PDF, 9, id="no such page"),
        pytest.param(scans.png(Image.new("L", (9, 9))), "image/png", 2, id="no such frame"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, data: bytes, mime: str, page: int) -> None:
    with pytest.raises(Unreadable):
        rendering.draw_page(written(tmp_path, data), mime, page, text="a passage of words")


def test_time_and_memory_are_limited(tmp_path: Path) -> None:
    path = written(tmp_path, scans.png(Image.effect_noise((6000, 6000), 100)))
    with pytest.raises(Unreadable, match="MB of memory"):
        rendering.draw_page(path, "image/png", 1, limits=replace(rendering.LIMITS, memory_bytes=64 * MIB))
    with pytest.raises(Unreadable, match="seconds"):
        rendering.draw_page(path, "image/png", 1, limits=replace(rendering.LIMITS, seconds=0.05))


def test_only_pictures_and_pages_of_a_pdf_can_be_drawn() -> None:
    assert rendering.can_draw("image/png", None)
    assert rendering.can_draw(mt.PDF, 3)
    assert not rendering.can_draw(mt.PDF, None)
    assert not rendering.can_draw(mt.SVG, None)
    assert not rendering.can_draw("audio/wav", 1)
    assert not rendering.can_draw(None, 1)
