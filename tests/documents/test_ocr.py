"""Text of pictures and scanned pages is recognized in a child process, page by page, without the network."""

from __future__ import annotations

import importlib
import io
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from core.errors import EngineUnavailable, Unreadable
from documents import mime_types as mt
from documents import ocr, ocr_child
from documents.child import PROJECT
from documents.document import MIB, Document, split
from documents.reader import read_document
from tests import bombs, scans

pytestmark = pytest.mark.skipif(not ocr.is_available("rapidocr"), reason="the extra `ocr` is not installed")
needs_font = pytest.mark.skipif(not scans.FONT.exists(), reason="the font Noto Sans CJK is not installed")

CHINESE = (
    "本合同由甲方与乙方于二〇二六年三月十二日在杭州签订，双方就仓库租赁事宜达成如下协议。",
    "租赁期限为三年，每月租金为人民币四万八千元整，逾期付款的，每日按欠款金额的千分之一支付违约金。",
)
ENGLISH = (
    "The tenant pays 4,800 euros on the fifth day of each month to the account named in annex two.",
    "Either party may terminate this agreement with ninety days of written notice.",
)


@pytest.fixture
def settings_of(tmp_path: Path) -> ocr.Ocr:
    # A test's machine may be busy: bounds of time are tested with short ones only.
    return ocr.Ocr("rapidocr", tmp_path / "ocr", replace(ocr.LIMITS, page_seconds=500))


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "file"
    path.write_bytes(data)
    return path


def pages_of(document: Document) -> dict[int | None, str]:
    texts: dict[int | None, str] = {}
    for block in document.blocks:
        texts[block.page] = texts.get(block.page, "") + " " + block.text
    return texts


@needs_font
@pytest.mark.slow
def test_scanned_pages_are_read_with_page_and_box(tmp_path: Path, settings_of: ocr.Ocr) -> None:
    images = [scans.page(CHINESE, 1), scans.page(ENGLISH, 2)]
    document = read_document(written(tmp_path, scans.pdf(images)), mt.PDF, ocr=settings_of)
    found = pages_of(document)
    for page, expected in ((1, "".join(CHINESE)), (2, " ".join(ENGLISH))):
        error = scans.character_error(expected, found[page])
        assert error <= 0.03, f"page {page}: {error:.1%} of the characters are wrong: {found[page]}"
    passages = split(document)
    assert [passage.page for passage in passages] == [1, 2]
    for passage in passages:
        assert passage.box is not None
        left, top, right, bottom = passage.box
        assert 0 <= left < 0.2
        assert 0.8 < right <= 1
        assert 0 <= top < 0.15
        assert 0.1 < bottom < 0.4
    assert not list(settings_of.folder.glob("*")), "the pages of a complete document are not kept"


@needs_font
def test_a_picture_is_read_without_a_page(tmp_path: Path, settings_of: ocr.Ocr) -> None:
    image = scans.page(ENGLISH, is_damaged=False).crop((0, 0, scans.WIDTH, 400))
    document = read_document(written(tmp_path, scans.png(image)), "image/png", ocr=settings_of)
    assert "ninety days" in document.text
    assert {block.page for block in document.blocks} == {None}


@needs_font
def test_only_pages_without_text_are_recognized(tmp_path: Path, settings_of: ocr.Ocr) -> None:
    path = written(tmp_path, bombs.pages_pdf(["alpha on one", "beta on two"]))
    document = read_document(path, mt.PDF, ocr=settings_of)
    assert document == read_document(path, mt.PDF)
    assert not settings_of.folder.exists(), "no page was given to the recognition"


def test_blank_pages_have_no_text(tmp_path: Path, settings_of: ocr.Ocr) -> None:
    path = written(tmp_path, scans.tiff([Image.new("L", (200, 200), 255)] * 3))
    assert read_document(path, "image/tiff", ocr=settings_of) == Document(())


def test_pages_that_were_read_are_not_read_again(tmp_path: Path, settings_of: ocr.Ocr) -> None:
    path = written(tmp_path, scans.tiff([Image.new("L", (200, 200), 255)] * 3))
    impatient = replace(settings_of, limits=replace(settings_of.limits, seconds=0))
    with pytest.raises(EngineUnavailable, match="will continue"):
        ocr.recognize(path, "image/tiff", None, impatient)
    progress = ocr._Progress.of(path, settings_of)
    progress.add({"page": 1, "of": 3, "lines": [["kept from before", [0.1, 0.1, 0.5, 0.2]]]})
    with progress.file.open("ab") as file:
        file.write(b'{"page": 2, "of"')  # the process was killed here
    found = ocr.recognize(path, "image/tiff", None, settings_of)
    assert found == ocr.Recognized(((1, "kept from before", (0.1, 0.1, 0.5, 0.2)),), 3, (), ())
    assert not progress.file.exists()


def test_pages_beyond_the_limit_are_left_out(tmp_path: Path, settings_of: ocr.Ocr) -> None:
    path = written(tmp_path, scans.tiff([Image.new("L", (200, 200), 255)] * 4))
    limited = replace(settings_of, limits=replace(settings_of.limits, pdf_pages=2))
    assert ocr.recognize(path, "image/tiff", None, limited).skipped == (3, 4)


def test_a_page_that_takes_too_much_memory_is_skipped(tmp_path: Path, settings_of: ocr.Ocr) -> None:
    path = written(tmp_path, scans.png(Image.effect_noise((2000, 2000), 100)))
    small = replace(settings_of, limits=replace(settings_of.limits, memory_bytes=64 * MIB))
    assert ocr.recognize(path, "image/png", None, small) == ocr.Recognized((), 1, (1,), ())


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(scans.png(Image.new("1", (60_000, 2_000))), id="60,000 pixels wide"),
        pytest.param(scans.png(Image.new("L", (300, 300), 9))[:120], id="truncated"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + b"\0" * 100, id="no picture"),
    ],
)
def test_hostile_pictures_are_refused(tmp_path: Path, settings_of: ocr.Ocr, data: bytes) -> None:
    with pytest.raises(Unreadable):
        read_document(written(tmp_path, data), "image/png", ocr=settings_of)


def test_nothing_is_downloaded() -> None:
    """The models come with the package; every attempt to connect would fail this test."""
    script = """
import socket
def refuse(*args): raise SystemExit(f"the recognition connects: {args}")
socket.socket.connect = socket.getaddrinfo = refuse
from PIL import Image, ImageDraw, ImageFont
from documents.ocr_child import _rapidocr
print(list(_rapidocr(None)(Image.new("RGB", (200, 200), "white"))))
"""
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True, timeout=500, check=False
    )
    assert (result.returncode, result.stdout.strip()) == (0, "[]"), result.stderr


@pytest.fixture
def stub_tesseract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that answers like tesseract, if it is called like it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "tesseract"
    columns = [
        "level",
        "page_num",
        "block_num",
        "par_num",
        "line_num",
        "word_num",
        "left",
        "top",
        "width",
        "height",
        "conf",
        "text",
    ]
    words = (("Total", 20, 40), ("42", 90, 20))
    rows = ["\t".join(columns), "\t".join(["1"] + ["0"] * 9 + ["-1", ""])]
    rows += [
        "\t".join(["5", "1", "1", "1", "1", "1", str(left), "30", str(width), "10", "96", word])
        for word, left, width in words
    ]
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "if sys.argv[1:] == ['--list-langs']: sys.exit(print('List of languages:\\nchi_sim\\neng\\nrus'))\n"
        "assert sys.argv[1:] == 'stdin stdout -l rus+eng --dpi 200 tsv'.split(), sys.argv\n"
        "assert sys.stdin.buffer.read(8) == b'\\x89PNG\\r\\n\\x1a\\n'\n"
        f"print({chr(10).join(rows)!r})\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("stub_tesseract")
def test_tesseract_is_an_alternative(tmp_path: Path, settings_of: ocr.Ocr) -> None:
    image = Image.new("L", (200, 100), 255)
    image.paste(0, (20, 30, 110, 40))
    path = written(tmp_path, scans.png(image))
    languages = ocr.models_of("tesseract", "rus+eng")
    found = ocr.recognize(path, "image/png", None, replace(settings_of, engine="tesseract", models=languages))
    assert found == ocr.Recognized(((None, "Total 42", (0.1, 0.3, 0.55, 0.4)),), 1, (), (), 0.96)


@pytest.mark.usefixtures("stub_tesseract")
def test_absent_models_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no data of deu, heb: install its language packages"):
        ocr.models_of("tesseract", "deu+eng+heb")
    (tmp_path / "korean_det_mobile.onnx").touch()
    with pytest.raises(ValueError, match="has no recognition models"):
        ocr.models_of("rapidocr", str(tmp_path))
    (tmp_path / "korean_rec_mobile.onnx").touch()
    assert ocr.models_of("rapidocr", str(tmp_path)) == (str(tmp_path / "korean_rec_mobile.onnx"),)
    assert ocr.models_of("rapidocr", "") == ocr.models_of("off", "/absent") == ()


def test_another_model_reads_a_page_that_the_first_cannot() -> None:
    def reader(text: str, score: float) -> ocr_child.Recognize:
        return lambda _image: iter([(text, (0.0, 0.0, 1.0, 0.1), score)] if text else [])

    image = Image.new("L", (200, 100), 255)
    readers = [reader("", 0), reader("Ключ", 0.95), reader("never asked", 0.99)]
    assert ocr_child._best(image, readers) == (0, [("Ключ", (0.0, 0.0, 1.0, 0.1), 0.95)])
    assert (
        ocr_child._best(image, [reader("3aKOH", 0.6), reader("Закон", 0.8), reader("Zakon", 0.7)])[1][0][0] == "Закон"
    )


@pytest.mark.slow
def test_a_model_of_the_setting_reads_a_page(tmp_path: Path) -> None:
    rapidocr = importlib.import_module("rapidocr")
    own = next((Path(str(rapidocr.__file__)).parent / "models").glob("*_rec_*.onnx"))
    copy = shutil.copy(own, tmp_path / "other_rec_small.onnx")
    image = Image.new("L", (500, 120), 255)
    ImageDraw.Draw(image).text((20, 30), "the valve is open", fill=0, font=ImageFont.load_default(40))
    assert [text for text, _box, _score in ocr_child._rapidocr(str(copy))(image.convert("RGB"))] == [
        "the valve is open"
    ]


def test_lines_become_paragraphs() -> None:
    lines = [
        ("The con-", (0.1, 0.10, 0.9, 0.12)),
        ("tract ends", (0.1, 0.13, 0.8, 0.15)),
        ("第一条：", (0.1, 0.30, 0.9, 0.32)),
        ("甲方", (0.1, 0.33, 0.9, 0.35)),
    ]
    assert list(ocr.paragraphs_of(lines)) == [
        ("The contract ends", (0.1, 0.10, 0.9, 0.15)),
        ("第一条：甲方", (0.1, 0.30, 0.9, 0.35)),
    ]


def repeated_scan(pages: int) -> bytes:
    """Return a PDF whose pages are the same image."""
    output = io.BytesIO()
    scans.page([ENGLISH[1]], 3).save(output, "JPEG", quality=60)
    image = b"/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/DCTDecode"
    kids = b" ".join(b"%d 0 R" % number for number in range(5, 5 + pages))
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</XObject<</I 3 0 R>>>>/Contents 4 0 R>>"
    return bombs.pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count %d/Kids[%b]>>" % (pages, kids),
            bombs.stream(output.getvalue(), image % (scans.WIDTH, scans.HEIGHT)),
            bombs.stream(b"595 0 0 842 0 0 cm /I Do"),
            *[page] * pages,
        ]
    )


@pytest.mark.torture
@needs_font
def test_bounds_hold_on_a_scan_of_2000_pages(tmp_path: Path, settings_of: ocr.Ocr) -> None:
    path = written(tmp_path, repeated_scan(2_000))
    hasty = replace(settings_of, limits=replace(settings_of.limits, seconds=120))
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(EngineUnavailable, match="will continue"):
        read_document(path, mt.PDF, ocr=hasty)
    assert time.monotonic() - began < 180
    first = len(ocr._Progress.of(path, settings_of).pages)
    assert first > 0
    with pytest.raises(EngineUnavailable, match="will continue"):
        read_document(path, mt.PDF, ocr=hasty)
    second = ocr._Progress.of(path, settings_of).pages
    print(f"pages in 120 s: {first}, then {len(second) - first}")  # noqa: T201
    assert len(second) > first, "the second attempt continues after the first"
    assert all("ninety days" in " ".join(text for text, _ in lines) for lines in second.values())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024, "kB of memory of this process"
    limited = replace(settings_of, limits=replace(settings_of.limits, pdf_pages=len(second)))
    document = read_document(path, mt.PDF, ocr=limited)
    assert document.truncated
    assert {block.page for block in document.blocks} == set(second)
    with pytest.raises(Unreadable, match="too many pages"):
        read_document(written(tmp_path, repeated_scan(2_001)), mt.PDF, ocr=limited)


@pytest.mark.torture
@needs_font
def test_twenty_scanned_pages_are_read(tmp_path: Path, settings_of: ocr.Ocr) -> None:
    texts = [
        [*(CHINESE if page % 2 else ENGLISH), f"编号{1000 + page}号" if page % 2 else f"Reference number {1000 + page}"]
        for page in range(1, 21)
    ]
    path = written(tmp_path, scans.pdf([scans.page(text, seed) for seed, text in enumerate(texts)]))
    found = pages_of(read_document(path, mt.PDF, ocr=settings_of))
    errors = [scans.character_error("".join(text), found[page]) for page, text in enumerate(texts, 1)]
    print(f"character error: mean {sum(errors) / len(errors):.2%}, worst page {max(errors):.2%}")  # noqa: T201
    assert sum(errors) / len(errors) <= 0.03
    assert all(str(1000 + page) in found[page] for page in range(1, 21))
