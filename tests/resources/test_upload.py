"""POST /resources."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client

from accounts.models import AuditEvent
from core.background import tasks
from resources.api.multipart import MAX_PARTS
from resources.models import Attachment, Resource
from store.models import Memory
from tests.conftest import Person
from tests.resources.forms import BOUNDARY, CONTENT_TYPE, Form, files_below, upload

pytestmark = pytest.mark.django_db(transaction=True)

PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000") + bytes(60)


def test_it_returns_the_documented_fields(alice: Person) -> None:
    response = upload(alice, title="合同文件", description="2026 年付款合同")
    assert response.status_code == 200
    answer = response.json()
    resource_id = answer["resource_id"]
    assert list(answer) == ["resource_id", "session_id", "uri", "status"]
    assert answer == {
        "resource_id": resource_id,
        "session_id": f"resource:alice:{resource_id}",
        "uri": f"resource://alice/{resource_id}",
        "status": "extracted",
    }


def test_credentials_in_the_form_authenticate(alice: Person) -> None:
    form = Form().text("user_id", "alice").text("user_key", alice.user_key).text("app_id", "default")
    response = form.text("project_id", "default").file(b"Some text.").post(Client())
    assert response.status_code == 200


def test_the_file_may_come_before_the_credentials(alice: Person) -> None:
    form = Form().file(b"Some text.").text("user_key", alice.user_key).text("user_id", "alice")
    assert form.post(Client()).status_code == 200


def test_it_stores_file_row_and_attachment(alice: Person, storage: Path) -> None:
    data = "付款期限为收到发票后 30 天内。".encode()
    upload(alice, data, "合同.txt", app_id="shop", project_id="p1", title="T", description="D")
    resource = Resource.objects.get()
    path = storage / resource.storage_path
    assert path.read_bytes() == data
    assert path.stat().st_mode & 0o777 == 0o600
    assert resource.storage_path == f"{alice.user_pk}/{resource.resource_id}/content.txt"
    assert (resource.filename, resource.title, resource.description) == ("合同.txt", "T", "D")
    assert (resource.app_id, resource.project_id) == ("shop", "p1")
    assert (resource.size_bytes, resource.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert (resource.content_type, resource.mime_type) == ("text", "text/plain")
    attachment = Attachment.objects.get()
    assert attachment.source == Attachment.Source.UPLOAD
    assert (attachment.session_id, attachment.name, attachment.type) == (resource.session_id, "合同.txt", "text")
    assert attachment.internal_uri == resource.storage_path
    assert (attachment.app_id, attachment.project_id, attachment.sha256) == ("shop", "p1", resource.sha256)


def test_it_is_audited(alice: Person) -> None:
    resource_id = upload(alice).json()["resource_id"]
    event = AuditEvent.objects.get(action="resource.upload")
    assert (event.subject_id, event.user_id) == (resource_id, "alice")


@pytest.mark.parametrize(
    ("encoding", "sent", "stored"),
    [
        ("koi8-r", "text/plain; charset=KOI8-R", "text/plain; charset=koi8-r"),
        ("utf-8", "text/plain; charset=utf-8", "text/plain"),
        ("utf-8", "text/plain; charset=rot13", "text/plain"),
        ("utf-8", "text/plain; charset=us-ascii", "text/plain"),
    ],
)
def test_the_encoding_that_the_part_declares_is_used(alice: Person, encoding: str, sent: str, stored: str) -> None:
    answer = Form().file("офис".encode(encoding), content_type=sent).post(alice.client).json()
    assert Resource.objects.get().mime_type == stored
    assert Memory.objects.get(session__session_id=answer["session_id"]).text == "офис"
    with closing(alice.client.get(f"/resources/{answer['resource_id']}/content")) as content:
        assert content.headers["Content-Type"] == stored


def test_the_texts_of_a_drawing_are_found(alice: Person) -> None:
    drawing = b"<svg xmlns='http://www.w3.org/2000/svg'><title>Cellar plan</title><text>The valve is here</text></svg>"
    session_id = upload(alice, drawing, "plan.svg").json()["session_id"]
    assert Memory.objects.filter(session__session_id=session_id, text__contains="The valve is here").exists()


def test_respond_async_returns_before_the_ingestion(alice: Person) -> None:
    response = Form().file(b"Some text.").post(alice.client, Prefer="wait=5, respond-async")
    assert response.status_code == 202
    answer = response.json()
    assert answer["status"] in {"ingesting", "extracted"}
    assert response.headers["Preference-Applied"] == "respond-async"
    assert response.headers["Location"] == f"/resources/{answer['resource_id']}"
    assert tasks.wait_until_idle(30)
    assert Resource.objects.get().status == "extracted"


def test_an_empty_file_is_a_resource(alice: Person) -> None:
    response = upload(alice, b"", "empty.txt")
    assert response.status_code == 200
    assert Resource.objects.get().size_bytes == 0


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("合同 2026.txt", "合同 2026.txt"),
        ("ºÏÍ¬.txt", "ºÏÍ¬.txt"),
        ("a&amp;b.txt", "a&amp;b.txt"),
        ("../../etc/passwd", "passwd"),
        ("C:\\\\Users\\\\me\\\\notes.txt", "notes.txt"),
        ("/", "unnamed.txt"),
        ("..", "unnamed.txt"),
        ("invoice\u202efdp.txt", "invoicefdp.txt"),
        ("tab\there.txt", "tabhere.txt"),
        ("长" * 300 + ".txt", "长" * 251 + ".txt"),
        ('say \\"hi\\"; now.txt', 'say "hi"; now.txt'),
    ],
)
def test_file_names_are_cleaned_but_otherwise_kept(alice: Person, sent: str, expected: str) -> None:
    assert upload(alice, b"Some text.", sent).status_code == 200
    assert Resource.objects.get().filename == expected


def test_an_encoded_file_name_takes_precedence(alice: Person) -> None:
    name = quote("合同" * 120 + ".txt")
    disposition = f'form-data; name="file"; filename="x.txt"; filename*=UTF-8\'\'{name}'.encode()
    assert Form().part(disposition, b"Some text.").post(alice.client).status_code == 200
    assert Resource.objects.get().filename == "合同" * 120 + ".txt"


def test_a_file_name_in_gbk_is_decoded(alice: Person) -> None:
    assert Form().file(b"Some text.", "合同.txt".encode("gbk")).post(alice.client).status_code == 200
    assert Resource.objects.get().filename == "合同.txt"


def test_a_file_without_a_name_gets_a_default_name(alice: Person) -> None:
    assert Form().file(b"Some text.", "").post(alice.client).status_code == 200
    assert Resource.objects.get().filename == "unnamed.txt"


@pytest.mark.parametrize("form", [Form().text("title", "x"), Form().file(b"", "")], ids=["no part", "nothing chosen"])
def test_a_missing_file_is_422(alice: Person, storage: Path, form: Form) -> None:
    response = form.post(alice.client)
    assert response.status_code == 422
    assert response.json()["errors"] == [{"field": "file", "message": "is required"}]
    assert files_below(storage) == []


def test_two_files_are_422(alice: Person, storage: Path) -> None:
    response = Form().file(b"One.").file(b"Two.").post(alice.client)
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "file"
    assert_nothing_kept(storage)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", "x" * 501),
        ("title", "a\x00b"),
        ("title", b"\xff\xfe"),
        ("title", b"\xed\xa0\x80"),
        ("description", "x" * 10_001),
        ("description", "x" * 70_000),
        ("app_id", "../up"),
        ("project_id", ""),
        ("color", "red"),
    ],
)
def test_an_invalid_field_is_named(alice: Person, storage: Path, field: str, value: str | bytes) -> None:
    response = Form().file(b"Some text.").text(field, value).post(alice.client)
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == field
    assert_nothing_kept(storage)


@pytest.mark.parametrize(("field", "limit"), [("title", 500), ("description", 10_000)])
def test_a_too_long_text_is_an_error_with_the_limit(alice: Person, field: str, limit: int) -> None:
    [error] = Form().file(b"Some text.").text(field, "x" * (limit + 1)).post(alice.client).json()["errors"]
    assert error == {"field": field, "message": f"must have at most {limit} characters"}


def test_texts_up_to_the_limit_are_accepted(alice: Person) -> None:
    assert upload(alice, title="题" * 500, description="述" * 10_000).status_code == 200


def test_a_file_above_the_size_limit_is_413(alice: Person, storage: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES = 1000
    assert upload(alice, b"x" * 1000).status_code == 200
    response = upload(alice, b"y" * 1001)
    assert response.status_code == 413
    assert "1000 bytes" in response.json()["detail"]
    assert Resource.objects.count() == 1
    assert len(files_below(storage)) == 1


def test_a_content_length_above_the_limit_is_413_before_the_body(alice: Person) -> None:
    response = alice.client.generic(
        "POST", "/resources", b"x", content_type=CONTENT_TYPE, CONTENT_LENGTH=str(100 * 2**20)
    )
    assert response.status_code == 413


def test_a_type_that_is_not_accepted_is_415(alice: Person, storage: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_MIME_TYPES = ["image/*", "application/pdf"]
    response = upload(alice, b"Some text.")
    assert response.status_code == 415
    assert "text/plain" in response.json()["detail"]
    assert "image/*, application/pdf" in response.json()["detail"]
    assert_nothing_kept(storage)
    assert upload(alice, PNG, "dot.png").status_code == 200


@pytest.mark.parametrize(
    ("data", "filename"), [(b"MZ\x90\x00" + bytes(500), "report.pdf"), (b"\x7fELF" + bytes(9000), "program")]
)
def test_the_content_decides_the_type(alice: Person, storage: Path, data: bytes, filename: str) -> None:
    assert upload(alice, data, filename).status_code == 415
    assert_nothing_kept(storage)


def test_too_many_files_for_the_quota_are_507(alice: Person, bob: Person, storage: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_QUOTA_FILES = 1
    first = upload(alice, b"One.").json()
    response = upload(alice, b"Two.")
    assert response.status_code == 507
    assert "files, and the limit is" in response.json()["detail"]
    assert upload(alice, b"One.").json()["resource_id"] == first["resource_id"]
    assert upload(bob, b"Two.").status_code == 200
    assert len(files_below(storage)) == 2


def test_too_many_bytes_for_the_quota_are_507(alice: Person, storage: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_QUOTA_BYTES = 10
    upload(alice, b"12345678")
    response = upload(alice, b"abc")
    assert response.status_code == 507
    assert "bytes of files, this one has" in response.json()["detail"]
    assert upload(alice, b"ab").status_code == 200
    assert len(files_below(storage)) == 2


def test_too_little_free_disk_is_507(alice: Person, storage: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_MIN_FREE_DISK_BYTES = 2**62
    response = upload(alice)
    assert response.status_code == 507
    assert "bytes free, so nothing was stored" in response.json()["detail"]
    assert_nothing_kept(storage)


@pytest.mark.parametrize("missing_bytes", [3, 20, len(BOUNDARY) + 6])
def test_an_incomplete_body_is_400_and_leaves_no_file(alice: Person, storage: Path, missing_bytes: int) -> None:
    body = Form().file(b"Some text that goes on.").whole()[:-missing_bytes]
    response = alice.client.generic("POST", "/resources", body, content_type=CONTENT_TYPE)
    assert response.status_code == 400
    assert_nothing_kept(storage)


def test_content_that_resembles_the_boundary_is_kept(alice: Person, storage: Path) -> None:
    data = (f"\r\n--{BOUNDARY[:-1]}\r\n--\r".encode() + bytes(range(32, 127))) * 3000  # many chunks
    assert upload(alice, data, "notes.txt").status_code == 200
    assert (storage / Resource.objects.get().storage_path).read_bytes() == data


def test_too_many_parts_are_422(alice: Person, storage: Path) -> None:
    form = Form().file(b"Some text.")
    for _ in range(MAX_PARTS):
        form.file(b"", "")
    response = form.post(alice.client)
    assert response.status_code == 422
    assert str(MAX_PARTS) in response.json()["detail"]
    assert_nothing_kept(storage)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"x", "multipart/form-data"),
        (b"x", "multipart/form-data; boundary="),
        (b"x", "multipart/form-data; boundary=" + "x" * 71),
        (b"x" * 20_000, CONTENT_TYPE),
        (f"--{BOUNDARY}\r\nContent-Type: text/plain\r\n\r\nx\r\n--{BOUNDARY}--".encode(), CONTENT_TYPE),
        (Form().part(b"form-data; name=\"file\"; filename*=foo''x", b"x").whole(), CONTENT_TYPE),
    ],
)
def test_a_malformed_form_is_400_and_not_logged(
    alice: Person, storage: Path, body: bytes, content_type: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = alice.client.generic("POST", "/resources", body, content_type=content_type)
    assert response.status_code == 400
    assert [record.name for record in caplog.records if record.levelname != "INFO"] == []
    assert_nothing_kept(storage)


@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", "text/plain"])
def test_other_content_types_are_415_and_name_the_right_one(alice: Person, content_type: str) -> None:
    response = alice.client.generic("POST", "/resources", b"{}", content_type=content_type)
    assert response.status_code == 415
    assert "multipart/form-data" in response.json()["detail"]


@pytest.mark.parametrize("user_key", ["uk_" + "A" * 43, ""])
def test_a_wrong_key_in_the_form_is_401_and_leaves_no_file(alice: Person, storage: Path, user_key: str) -> None:
    response = Form().file(b"Some text.").text("user_id", "alice").text("user_key", user_key).post(Client())
    assert response.status_code == 401
    assert_nothing_kept(storage)


def test_an_upload_without_a_key_is_401_and_leaves_no_file(alice: Person, storage: Path) -> None:
    assert Form().file(b"Some text.").post(Client()).status_code == 401
    assert_nothing_kept(storage)


def test_a_wrong_header_is_401_before_the_body(alice: Person, storage: Path) -> None:
    client = Client(headers={"Authorization": "Bearer uk_" + "A" * 43})
    assert Form().file(b"Some text.").post(client).status_code == 401
    assert not storage.exists()


def test_a_form_with_credentials_of_another_user_than_the_header_is_refused(
    alice: Person, bob: Person, storage: Path
) -> None:
    assert Form().file(b"Some text.").text("user_id", "bob").post(alice.client).status_code == 403
    both = Form().file(b"Some text.").text("user_id", "bob").text("user_key", bob.user_key)
    assert both.post(alice.client).status_code == 400
    assert_nothing_kept(storage)


def test_the_same_bytes_are_the_same_resource(alice: Person, storage: Path) -> None:
    first = upload(alice, b"Same.", "one.txt").json()
    second = upload(alice, b"Same.", "two.txt").json()
    assert second == first
    assert len(files_below(storage)) == 1
    assert Resource.objects.get().attempts == 1


def test_concurrent_uploads_of_the_same_bytes_are_one_resource(alice: Person, storage: Path) -> None:
    uploads = 6
    start = threading.Barrier(uploads)

    def send(number: int) -> str:
        start.wait(10)
        try:
            return str(upload(alice, b"Same.", f"{number}.txt").json()["resource_id"])
        finally:
            connection.close()

    with ThreadPoolExecutor(uploads) as pool:
        assert len(set(pool.map(send, range(uploads)))) == 1
    assert len(files_below(storage)) == 1
    assert Resource.objects.get().attempts == 1


def test_the_same_bytes_of_another_scope_or_user_are_another_resource(alice: Person, bob: Person) -> None:
    ids = {
        upload(alice, b"Same.").json()["resource_id"],
        upload(alice, b"Same.", app_id="shop").json()["resource_id"],
        upload(alice, b"Same.", project_id="p1").json()["resource_id"],
        upload(bob, b"Same.").json()["resource_id"],
    }
    assert len(ids) == 4


def test_a_duplicate_of_a_failed_resource_is_ingested_again(alice: Person) -> None:
    first = upload(alice, b"Same.").json()
    Resource.objects.update(status="failed", error_message="The memory engine was away.", attempts=7)
    assert upload(alice, b"Same.").json() == first
    resource = Resource.objects.get()
    assert (resource.status, resource.attempts, resource.error_message) == ("extracted", 1, "")


def test_a_duplicate_upload_restores_a_missing_file(alice: Person, storage: Path) -> None:
    upload(alice, b"Same.")
    path = storage / Resource.objects.get().storage_path
    path.unlink()
    upload(alice, b"Same.")
    assert path.read_bytes() == b"Same."


def test_after_deletion_the_same_bytes_are_a_new_resource(alice: Person) -> None:
    first = upload(alice, b"Same.").json()["resource_id"]
    alice.client.delete(f"/resources/{first}")
    second = upload(alice, b"Same.").json()
    assert second["resource_id"] != first
    assert second["status"] == "extracted"


def assert_nothing_kept(storage: Path) -> None:
    assert files_below(storage) == []
    assert not Resource.objects.exists()
