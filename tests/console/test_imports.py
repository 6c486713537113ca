"""Import of a file of another store in the panel: upload, plan, job and undo."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEvent
from operations import files, jobs
from operations.models import Job
from store.models import Memory, Session
from tests.bombs import MAKERS
from tests.conftest import Person
from tests.memories.calls import say
from tests.operations.test_import_from import EPISODES, NOTES, state

pytestmark = pytest.mark.django_db(transaction=True)
EPISODE_FILE = "default_app/default_project/users/ann/episodes/episode-2026-05-28.md"


def zipped(files: dict[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def upload(client: Client, source: str, content: bytes, **values: str) -> Any:
    data = {"user": "alice", "source": source, "category": "user_memory_fact", **values}
    return client.post(reverse("console:import"), {**data, "file": SimpleUploadedFile("export", content)})


def start(client: Client, planned: Any) -> Job:
    """Confirm a plan and run its job, as the worker does."""
    answer = client.post(reverse("console:import-run"), {"plan": planned.context["sealed"]})
    assert answer.status_code == 302
    job = jobs.run_next()
    assert job is not None
    assert str(job.pk) in answer.url
    return job


def uploads(storage: Path) -> list[Path]:
    return list(storage.glob(".archives/*/*"))


def test_mem0s_export_is_planned_imported_and_undone(admin_client: Client, alice: Person, storage: Path) -> None:
    say(alice, "chat:c_1", "I have a cat.")
    before = state(alice)
    items = [{"id": "1", "memory": "Prefers tea.", "user_id": "ann"}, {"id": "2", "memory": ""}]
    planned = upload(admin_client, "mem0", json.dumps(items).encode())
    assert planned.status_code == 200
    text = planned.content.decode()
    assert "Import 1 memory" in text
    assert "Not imported: without text" in text
    assert state(alice) == before
    assert len(uploads(storage)) == 1
    job = start(admin_client, planned)
    assert (job.status, job.result) == ("done", {"made": 1, "left": 0})
    assert (job.actor_kind, job.actor) == ("operator", "admin")
    assert Memory.objects.filter(text="Prefers tea.", session__session_id="import_mem0").count() == 1
    assert uploads(storage) == []
    page = admin_client.get(reverse("console:job", args=[job.pk])).content.decode()
    assert "Undo all" in page
    assert admin_client.post(reverse("console:job-undo", args=[job.pk])).status_code == 302
    assert state(alice) == before
    assert AuditEvent.objects.filter(action="job.import_from", actor="admin").count() == 1


@pytest.mark.parametrize(
    ("source", "files", "words"),
    [
        ("markdown", {"a.md": NOTES, ".git/b.md": "Hidden.", "c.txt": "x"}, {"Brew", "Boil"}),
        ("everos-markdown", {EPISODE_FILE: EPISODES}, {"climbing", "piano"}),
    ],
)
def test_zip_archives_of_markdown(
    admin_client: Client, alice: Person, source: str, files: dict[str, str | bytes], words: set[str]
) -> None:
    planned = upload(admin_client, source, zipped(files))
    assert planned.context["planned"].new == len(words)
    assert start(admin_client, planned).status == "done"
    texts = list(Memory.objects.values_list("text", flat=True))
    assert len(texts) == len(words)
    assert all(word in " ".join(texts) for word in words)


def link(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.external_attr = 0o120777 << 16
    return member


def damaged(method: int) -> bytes:
    """Return an archive whose only member is not what its compression method writes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        archive.writestr("a.md", "Text" * 1000)
    content = bytearray(made.getvalue())
    content[40:50] = b"\xff" * 10
    return bytes(content)


def hostile() -> dict[str, bytes]:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(link("a.md"), "/etc/passwd")
    encrypted = bytearray(zipped({"a.md": "Text"}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[encrypted.find(signature) + offset] |= 1
    return {
        "parent": zipped({"../a.md": "Text"}),
        "inner parent": zipped({"a/../../b.md": "Text"}),
        "backslash": zipped({"..\\a.md": "Text"}),
        "absolute": zipped({"/etc/a.md": "Text"}),
        "drive": zipped({"C:/a.md": "Text"}),
        "link": made.getvalue(),
        "bomb": zipped({"a.md": b"a" * 20_000_000}),
        "encrypted": bytes(encrypted),
        "no archive": b"# Text",
        "cut off": zipped({"a.md": "Text" * 1000})[:-30],
        "beginning cut off": zipped({"a.md": "Text" * 1000})[4:],
        **{f"damaged {method}": damaged(method) for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)},
        "damaged": zipped({"a.md": "Text" * 1000}).replace(b"Text", b"text"),
        **{name: MAKERS[name]()[2] for name in MAKERS if "zip" in name or "overlap" in name},
    }


HOSTILE = hostile()


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "damaged"])
@pytest.mark.parametrize("source", ["markdown", "everos-markdown"])
def test_hostile_archives_are_refused(
    admin_client: Client, alice: Person, storage: Path, source: str, name: str
) -> None:
    answer = upload(admin_client, source, HOSTILE[name])
    if answer.status_code == 200:
        assert name not in {"parent", "inner parent", "backslash", "absolute", "drive", "link", "bomb", "encrypted"}
        assert answer.context["planned"].new == 0
        return
    assert answer.status_code == 422
    assert "zip archive" in answer.content.decode()
    assert uploads(storage) == []
    assert not Job.objects.exists()


def test_a_changed_plan_is_refused(admin_client: Client, alice: Person) -> None:
    planned = upload(admin_client, "mem0", b'[{"memory": "Tea"}]')
    sealed = planned.context["sealed"]
    for plan in ("", sealed[:-3], "a" + sealed):
        assert admin_client.post(reverse("console:import-run"), {"plan": plan}).status_code == 400
    assert not Job.objects.exists()


def test_a_plan_starts_once(admin_client: Client, alice: Person) -> None:
    planned = upload(admin_client, "mem0", b'[{"memory": "Tea"}]')
    start(admin_client, planned)
    assert admin_client.post(reverse("console:import-run"), {"plan": planned.context["sealed"]}).status_code == 404
    assert Memory.objects.count() == 1


def test_an_unused_upload_is_removed_after_a_day(admin_client: Client, alice: Person, storage: Path) -> None:
    upload(admin_client, "mem0", b'[{"memory": "Tea"}]')
    assert files.remove_old_archives(timezone.now()) == 0
    assert files.remove_old_archives(timezone.now() + timedelta(days=1, minutes=1)) == 1
    assert uploads(storage) == []


@pytest.mark.parametrize(
    ("values", "content"),
    [({"user": "nobody"}, b"[]"), ({"category": "none"}, b"[]"), ({}, b"no JSON"), ({"source": "openclaw"}, b"[]")],
)
def test_a_wrong_form_is_shown_again(
    admin_client: Client, alice: Person, storage: Path, values: dict[str, str], content: bytes
) -> None:
    answer = upload(admin_client, values.pop("source", "mem0"), content, **values)
    assert answer.status_code == 422
    assert answer.context["form"].errors
    assert uploads(storage) == []
    assert not Session.objects.exists()


def test_a_file_above_the_limit_is_refused(admin_client: Client, alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES = 10
    answer = upload(admin_client, "mem0", b'[{"memory": "Tea"}]')
    assert answer.status_code == 422
    assert "python manage.py import_from" in answer.content.decode()
