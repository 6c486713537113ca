"""Pictures and scanned pages: their text is found with page and place, or the answer names what is needed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from PIL import Image

from documents import ocr
from resources.models import Resource
from tests import scans
from tests.conftest import Person
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
