"""The report on the reading of a file is stored with its resource, and shown in answers, the panel and the doctor."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor
from documents.document import Block, Document
from documents.reading import Note, Reading
from engines.embedded import ingest
from operations.doctor import Doctor
from operations.reingest.reading import reread
from resources import services
from resources.models import Resource, check_reading
from store.models import Session
from tests.conftest import Person
from tests.resources.forms import upload

pytestmark = pytest.mark.django_db(transaction=True)

WHOLE = Reading("xberg", 12, 2, 2)
PARTIAL = Reading("xberg", 12, 3, 2, (Note("pages_without_text", 1, ("2",)), Note("parts_skipped", 1, ("diary.zip",))))
SENTENCES = [
    "Pages whose pictures were not read: 1 (2).",
    "Attachments or parts that were not read: 1 (diary.zip).",
]


@pytest.fixture
def read_as(monkeypatch: pytest.MonkeyPatch, storage: Path) -> Callable[[Reading], None]:
    """Return a function that lets each file be read as the same words with a given reading."""

    def set_reading(reading: Reading) -> None:
        document = Document((Block("Harbor crane", 1, None),), reading=reading)
        monkeypatch.setattr(ingest, "read_document", lambda *_args, **_options: document)

    return set_reading


def get(person: Person, resource_id: str) -> dict[str, Any]:
    found: dict[str, Any] = person.client.get(f"/resources/{resource_id}").json()["resources"][0]
    return found


def test_a_file_that_was_read_in_part_says_so(alice: Person, read_as: Callable[[Reading], None]) -> None:
    read_as(PARTIAL)
    answer = upload(alice).json()
    assert answer["status"] == "extracted"
    reading = answer["reading"]
    assert (reading["pages"], reading["pages_read"], reading["characters"]) == (3, 2, 12)
    assert reading["is_partial"] is True
    assert [note["code"] for note in reading["notes"]] == ["pages_without_text", "parts_skipped"]
    assert [note["message"] for note in reading["notes"]] == SENTENCES
    assert get(alice, answer["resource_id"])["reading"] == reading


def test_a_file_that_was_read_whole_is_answered_as_before(alice: Person, read_as: Callable[[Reading], None]) -> None:
    read_as(WHOLE)
    answer = upload(alice).json()
    assert set(answer) == {"resource_id", "session_id", "uri", "status"}
    assert get(alice, answer["resource_id"])["reading"] == WHOLE.as_json()


def test_a_plain_text_has_a_reading(alice: Person, storage: Path) -> None:
    answer = upload(alice, b"The quarterly report.").json()
    assert get(alice, answer["resource_id"])["reading"]["characters"] == 21


def test_the_panel_shows_and_filters_files_that_were_read_in_part(
    admin_client: Client, alice: Person, read_as: Callable[[Reading], None]
) -> None:
    read_as(WHOLE)
    whole = upload(alice, b"one", "whole.txt").json()["resource_id"]
    read_as(PARTIAL)
    partial = upload(alice, b"two", "partial.txt").json()["resource_id"]
    page = admin_client.get(f"/admin/memory/resources/{partial}/").content.decode()
    assert "The file was read in part" in page
    assert all(sentence in page for sentence in SENTENCES)
    assert "read in part" not in admin_client.get(f"/admin/memory/resources/{whole}/").content.decode()
    listed = admin_client.get("/admin/memory/resources/?reading=part").content.decode()
    assert "partial.txt" in listed
    assert "whole.txt" not in listed


def test_the_doctor_counts_files_that_were_read_in_part(alice: Person, read_as: Callable[[Reading], None]) -> None:
    def found() -> list[str]:
        return [finding.text for finding in Doctor().examine() if finding.check == "readings"]

    assert found() == ["No file is known to have been read in part."]
    read_as(PARTIAL)
    upload(alice)
    assert found()[0].startswith("1 files were read in part.")


def test_a_file_that_is_read_again_has_the_new_reading(alice: Person, read_as: Callable[[Reading], None]) -> None:
    read_as(PARTIAL)
    resource_id = upload(alice).json()["resource_id"]
    read_as(WHOLE)
    reread(Session.objects.get(session_id__endswith=resource_id))
    assert get(alice, resource_id)["reading"]["is_partial"] is False


def test_a_purge_removes_the_names_of_parts(alice: Person, read_as: Callable[[Reading], None]) -> None:
    read_as(PARTIAL)
    resource_id = upload(alice).json()["resource_id"]
    actor = Actor.command("tests")
    services.delete_as(alice.user_pk, alice.user_id, resource_id, actor=actor, at=timezone.now())
    services.purge(resource_id, actor=actor)
    assert Resource.objects.get(pk=resource_id).reading is None


def test_only_readings_can_be_imported() -> None:
    stored = PARTIAL.as_json()
    check_reading(stored)
    changes: list[dict[str, Any]] = [
        {"parser": 1},
        {"notes": 1},
        {"is_partial": False},
        {"pages": "3"},
        {"certainty": 2.0},
    ]
    changes.append({"notes": [{"code": "unknown", "count": 1, "names": []}]})
    for wrong in ([], {}, *({**stored, **change} for change in changes)):
        with pytest.raises(ValidationError):
            check_reading(wrong)


def test_archives_are_read_only_if_the_operator_allows_them(alice: Person, storage: Path, settings: Any) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("a.txt", "The valve code is 4711.")
        archive.writestr("tool.bin", bytes(range(256)))
    assert upload(alice, data.getvalue(), "notes.zip").status_code == 415
    part = {"type": "doc", "name": "notes.zip", "base64": base64.b64encode(data.getvalue()).decode()}
    message = {"sender_id": alice.user_id, "role": "user", "timestamp": 1, "content": [part]}
    body = {"session_id": "chat:c_1", "messages": [message]}
    refused = alice.client.post("/memories/add", body, content_type="application/json")
    assert refused.status_code == 422
    assert "unpack it" in refused.content.decode()
    settings.MEMORY_GATEWAY_ALLOWED_MIME_TYPES = ("application/zip",)
    answer = upload(alice, data.getvalue(), "notes.zip").json()
    assert answer["status"] == "extracted"
    assert [note["names"] for note in answer["reading"]["notes"]] == [["tool.bin"]]
