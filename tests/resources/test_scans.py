"""Pictures and scanned pages: their text is found with page and place, or the answer names what is needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from PIL import Image

from core.background import tasks
from documents import ocr
from resources.models import Resource
from store.models import Memory
from tests import scans
from tests.conftest import SHARED, Person
from tests.resources.forms import upload

pytestmark = pytest.mark.django_db(transaction=True)
with_ocr = pytest.mark.skipif(
    not (ocr.is_available("rapidocr") and scans.FONT.exists()), reason="the extra `ocr` or a Chinese font is missing"
)


def found(person: Person, query: str) -> list[dict[str, Any]]:
    body = {**person.credentials, "query": query}
    answer = Client().post("/memories/search", body, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]  # type: ignore[no-any-return]


@with_ocr
@pytest.mark.slow
def test_a_scanned_page_is_found_with_its_page_and_place(alice: Person, settings: Any, tmp_path: Any) -> None:
    settings.MEMORY_GATEWAY_OCR = "rapidocr"
    settings.MEMORY_GATEWAY_DB_PATH = tmp_path / "data.sqlite3"
    pages = [scans.page(["The first page names the parties."], 1), scans.page(["逾期付款的违约金为千分之三。"], 2)]
    assert upload(alice, scans.pdf(pages), "scan.pdf").json()["status"] == "extracted"
    raw = found(alice, "逾期付款的违约金")[0]["raw"]
    assert raw["page"] == 2
    left, top, right, bottom = raw["box"]
    assert 0 <= left < right <= 1
    assert 0 <= top < bottom < 0.3


@with_ocr
def test_a_picture_is_found_by_its_name_and_by_its_text(alice: Person, settings: Any, tmp_path: Any) -> None:
    settings.MEMORY_GATEWAY_OCR = "rapidocr"
    settings.MEMORY_GATEWAY_DB_PATH = tmp_path / "data.sqlite3"
    image = scans.page(["Locker combination 4711 expires in October."], is_damaged=False).crop((0, 0, scans.WIDTH, 300))
    assert upload(alice, scans.png(image), "whiteboard.png").json()["status"] == "extracted"
    assert "4711" in found(alice, "locker combination")[0]["text"]
    assert any("whiteboard.png" in hit["text"] for hit in found(alice, "whiteboard"))


def chinese_pages() -> list[str]:
    """Return 20 paragraphs of the passages for development, which are not part of the project."""
    lines = (SHARED / "eval" / "passages_zh_dev.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines[:400] if '"memory"' in line]
    return [text[:350] for text in texts if len(text) > 350][:20]


def english_pages() -> list[str]:
    """Return 20 parts of the conversations for development, which are not part of the project."""
    samples = json.loads((SHARED / "eval" / "conversations_dev.json").read_text("utf-8"))
    sessions = [turns for turns in samples[0]["conversation"].values() if isinstance(turns, list)]
    text = " ".join(turn["text"] for turns in sessions for turn in turns)
    words = "".join(character if character.isascii() else " " for character in text).split()
    return [" ".join(words[start : start + 120]) for start in range(0, 20 * 120, 120)]


@pytest.mark.torture
@pytest.mark.skipif(not (SHARED / "eval").exists(), reason="the texts (../shared/eval) are not on this machine")
@with_ocr
@pytest.mark.parametrize("pages_of", [chinese_pages, english_pages])
@pytest.mark.parametrize("kind", ["pdf", "pictures"])
def test_scans_of_real_texts_are_read_and_each_page_is_found(
    alice: Person, settings: Any, tmp_path: Any, kind: str, pages_of: Callable[[], list[str]]
) -> None:
    """200 dpi with skew, perspective, shadow and noise: at most 3 % of the characters are wrong."""
    settings.MEMORY_GATEWAY_OCR = "rapidocr"
    settings.MEMORY_GATEWAY_DB_PATH = tmp_path / "data.sqlite3"
    assert all(pages_of())
    texts = pages_of() if kind == "pdf" else pages_of()[:5]
    images = [scans.page([text], seed) for seed, text in enumerate(texts)]
    if kind == "pdf":
        upload(alice, scans.pdf(images), "scan.pdf")
    else:
        for number, image in enumerate(images, 1):
            upload(alice, scans.png(image), f"picture{number}.png")
    assert tasks.wait_until_idle(3600)
    rows = Memory.objects.filter(user_id=alice.user_pk).order_by("pk")
    read = dict.fromkeys(range(1, len(texts) + 1), "")
    for row in rows:
        if "page" in row.payload:
            number = row.payload["page"] or int("".join(filter(str.isdigit, row.payload["filename"])))
            read[number] += row.text
    errors = [scans.character_error(text, read[number]) for number, text in enumerate(texts, 1)]
    print(f"character error: mean {sum(errors) / len(errors):.2%}, worst page {max(errors):.2%}")  # noqa: T201
    assert sum(errors) / len(errors) <= 0.03
    for number, text in enumerate(texts, 1):
        middle = len(text) // 2
        best = found(alice, text[middle : middle + 60])[0]
        assert best["place"]["page"] == (number if kind == "pdf" else None)
        assert kind == "pdf" or best["raw"]["filename"] == f"picture{number}.png"


def test_without_recognition_an_unread_pdf_names_the_extra(alice: Person) -> None:
    blank = scans.pdf([Image.new("L", (100, 100), 255)])
    assert upload(alice, blank, "scan.pdf").json()["status"] == "empty"
    assert "memory-gateway[ocr]" in Resource.objects.get().error_message


def test_a_damaged_picture_is_found_by_its_name(alice: Person, settings: Any, tmp_path: Any) -> None:
    if not ocr.is_available("rapidocr"):
        pytest.skip("the extra `ocr` is not installed")
    settings.MEMORY_GATEWAY_OCR = "rapidocr"
    settings.MEMORY_GATEWAY_DB_PATH = tmp_path / "data.sqlite3"
    damaged = scans.png(Image.new("L", (300, 300), 9))[:120]
    assert upload(alice, damaged, "garden.png").json()["status"] == "extracted"
    assert len(found(alice, "garden")) == 1


def test_health_names_what_recognizes_text(db: None) -> None:
    assert Client().get("/health").json()["backend"]["data"]["ocr"] == {"engine": "off"}
