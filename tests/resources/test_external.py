"""POST /resources/external: an external file is recorded and read once; its one-time address is stored encrypted."""

from __future__ import annotations

import hashlib
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent, Principal
from core.background import tasks
from core.background.leases import new_holder
from core.errors import EngineUnavailable
from resources.models import Attachment, Resource
from resources.services import Registration, claims, ingest, purge, register
from resources.services.unfinished import Kind, unfinished_ingestions
from store.models import Memory
from tests.conftest import Person
from tests.core.test_url_policy import HOSTILE, listener
from tests.fake_engine import RecordingEngine
from tests.object_store import Bucket
from tests.resources.forms import upload
from tests.resources.queueing import ingesting_by
from tests.stub_upstream import Fault, StubUpstream
from tests.web import Answer, WebServer, dripping, page, web_server

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["listener"]

TEXT = "付款期限为收到发票后 30 天内。".encode()
DIGEST = hashlib.sha256(TEXT).hexdigest()
SOURCE = "minio://beaver-user-files/users/alice/outputs/contract.txt"
SECRET = "S3cr3tSignature"
SIGNED = f"?X-Amz-Credential=k3yId&X-Amz-Signature={SECRET}&response-content-type={SECRET}"
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000") + bytes(60)


@pytest.fixture(autouse=True)
def allow_loopback(settings: Any) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]
    settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.0


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages["/contract.txt"] = page(TEXT)
        yield server


def post(person: Person, /, **fields: Any) -> Any:
    """POST /resources/external with default fields; `...` removes a field."""
    body = {"filename": "contract.txt", "source_uri": SOURCE} | fields
    body = {name: value for name, value in body.items() if value is not ...}
    return person.client.post("/resources/external", body, content_type="application/json")


def registered(person: Person, /, **fields: Any) -> dict[str, Any]:
    """Return the list's entry of the registered resource."""
    response = post(person, **fields)
    assert response.status_code == 200, response.content
    answer = response.json()
    [item] = person.client.get(f"/resources/{answer['resource_id']}").json()["resources"]
    assert item["status"] == answer["status"]
    return dict(item)


def search_results(person: Person, query: str, **values: Any) -> list[dict[str, Any]]:
    body = {"query": query, "scope": ["resources"], "method": "keyword", **values}
    response = person.client.post("/memories/search", body, content_type="application/json")
    assert response.status_code == 200, response.content
    return list(response.json()["results"])


def test_it_returns_the_documented_fields(alice: Person, web: WebServer) -> None:
    body = {
        "user_id": "alice",
        "user_key": alice.user_key,
        "app_id": "default",
        "project_id": "default",
        "filename": "contract.txt",
        "mime_type": "text/plain",
        "size_bytes": len(TEXT),
        "sha256": DIGEST.upper(),
        "source_uri": SOURCE,
        "ingest_uri": web.url("/contract.txt" + SIGNED),
        "title": "合同文件",
        "description": "2026 年付款合同",
    }
    response = Client().post("/resources/external", body, content_type="application/json")
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


def test_it_stores_row_and_attachment_but_no_file(alice: Person, web: WebServer, storage: Path) -> None:
    given = {"size_bytes": len(TEXT), "sha256": DIGEST, "title": "T", "description": "D", "app_id": "shop"}
    item = registered(alice, ingest_uri=web.url("/contract.txt"), mime_type="Text/Plain; charset=utf-8", **given)
    resource = Resource.objects.get()
    assert (resource.origin, resource.source_uri, resource.storage_path) == ("external", SOURCE, "")
    assert (resource.filename, resource.title, resource.description) == ("contract.txt", "T", "D")
    assert (resource.size_bytes, resource.sha256, resource.app_id) == (len(TEXT), DIGEST, "shop")
    assert (resource.content_type, resource.mime_type) == ("text", "text/plain")
    assert (resource.lease_holder, resource.leased_until) == ("", None)
    attachment = Attachment.objects.get()
    assert (attachment.source, attachment.internal_uri) == ("external_resource", SOURCE)
    assert (attachment.session_id, attachment.name, attachment.type) == (item["session_id"], "contract.txt", "text")
    assert (attachment.app_id, attachment.sha256, attachment.resource_id) == ("shop", DIGEST, item["resource_id"])
    assert [path for path in storage.rglob("*") if path.is_file()] == []


def test_it_is_audited(alice: Person, web: WebServer) -> None:
    resource_id = registered(alice, ingest_uri=web.url("/contract.txt"))["resource_id"]
    event = AuditEvent.objects.get(action="resource.register")
    assert (event.subject_id, event.user_id) == (resource_id, "alice")


def test_search_results_have_the_source_uri(alice: Person, bob: Person, web: WebServer) -> None:
    item = registered(alice, ingest_uri=web.url("/contract.txt"))
    [result] = search_results(alice, "付款期限")
    assert (result["resource_id"], result["resource_uri"]) == (item["resource_id"], item["uri"])
    assert result["attachments"] == [{"type": "text", "name": "contract.txt", "internal_uri": SOURCE}]
    assert search_results(bob, "付款期限") == []


def test_it_is_listed_only_for_its_owner(alice: Person, bob: Person, web: WebServer) -> None:
    item = registered(alice, ingest_uri=web.url("/contract.txt"))
    assert alice.client.get("/resources").json()["resources"] == [item]
    assert bob.client.get("/resources").json()["resources"] == []


def test_its_content_is_404_and_names_the_reason_only_to_its_owner(alice: Person, bob: Person, web: WebServer) -> None:
    address = f"/resources/{registered(alice, ingest_uri=web.url('/contract.txt'))['resource_id']}/content"
    of_alice, of_bob = alice.client.get(address), bob.client.get(address)
    assert of_alice.status_code == of_bob.status_code == 404
    assert "has no copy" in of_alice.json()["detail"]
    assert of_bob.json()["detail"] == "There is no such resource."


def test_without_ingest_uri_the_source_uri_is_read(alice: Person, web: WebServer) -> None:
    item = registered(alice, source_uri=web.url("/contract.txt"))
    assert item["status"] == "extracted"
    assert len(web.heads) == 1


def test_a_picture_is_found_by_its_title(alice: Person, web: WebServer) -> None:
    web.pages["/chart"] = page(PNG)
    chart = {"filename": "chart.png", "mime_type": "image/png", "title": "Revenue by quarter"}
    assert registered(alice, ingest_uri=web.url("/chart"), **chart)["status"] == "extracted"
    assert [result["attachments"][0]["name"] for result in search_results(alice, "revenue")] == ["chart.png"]


@pytest.mark.parametrize(("filename", "mime_type"), [("chart.png", "image/png"), ("call.mp3", "audio/mpeg")])
@pytest.mark.parametrize("address", ["in a store", "gone", "unreachable"])
def test_pictures_and_sound_are_found_though_their_address_cannot_be_read(
    alice: Person, web: WebServer, filename: str, mime_type: str, address: str
) -> None:
    web.pages["/gone"] = page(b"", "404 Not Found")
    uris = {"in a store": None, "gone": web.url("/gone"), "unreachable": "http://127.0.0.1:9/chart.png"}
    item = registered(alice, filename=filename, mime_type=mime_type, title="Revenue", ingest_uri=uris[address])
    assert (item["status"], item["error_message"]) == ("extracted", None)
    assert [result["attachments"][0]["name"] for result in search_results(alice, "revenue")] == [filename]


@pytest.mark.parametrize("answer", [page(b"", "404 Not Found"), page(b"", "503 Service Unavailable"), page(PNG)])
@pytest.mark.parametrize("name", ["title", "description"])
def test_a_document_that_cannot_be_read_is_found_by_its_title_until_it_can(
    alice: Person, bob: Person, web: WebServer, answer: Answer, name: str
) -> None:
    good, web.pages["/contract.txt"] = web.pages["/contract.txt"], answer
    item = registered(alice, ingest_uri=web.url("/contract.txt"), **{name: "Terms of delivery"})
    assert item["status"] == "failed"
    assert item["error_message"]
    [hit] = search_results(alice, "delivery")
    assert (hit["resource_id"], hit["attachments"][0]["name"]) == (item["resource_id"], "contract.txt")
    assert search_results(bob, "delivery") == []
    registered(alice, ingest_uri=web.url("/contract.txt"), **{name: "Payment"})
    assert search_results(alice, "delivery") == []
    assert len(search_results(alice, "payment")) == 1
    web.pages["/contract.txt"] = good
    assert registered(alice, ingest_uri=web.url("/contract.txt"), **{name: "Payment"})["status"] == "extracted"
    assert [row.text for row in Memory.objects.all()] == [TEXT.decode()]


def test_a_document_without_text_is_empty(alice: Person, web: WebServer) -> None:
    web.pages["/contract.txt"] = page(b"  \n")
    assert registered(alice, ingest_uri=web.url("/contract.txt"))["status"] == "empty"


def test_deleting_it_does_not_touch_the_external_file(alice: Person, tmp_path: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [tmp_path]
    (tmp_path / "contract.txt").write_bytes(TEXT)
    item = registered(alice, source_uri=(tmp_path / "contract.txt").as_uri())
    assert item["status"] == "extracted"
    response = alice.client.delete(f"/resources/{item['resource_id']}")
    assert (response.status_code, response.json()["status"]) == (200, "deleted")
    assert search_results(alice, "付款期限") == []
    assert purge(item["resource_id"], actor=Actor.command("tests"))
    assert (tmp_path / "contract.txt").read_bytes() == TEXT
    assert Resource.objects.get().retry_at is None
    assert not Attachment.objects.exists()
    assert not Memory.objects.exists()
    assert search_results(alice, "付款期限") == []


def test_respond_async_returns_before_the_ingestion(alice: Person, web: WebServer) -> None:
    body = {"filename": "contract.txt", "source_uri": SOURCE, "ingest_uri": web.url("/contract.txt")}
    headers = {"Prefer": "respond-async"}
    response = alice.client.post("/resources/external", body, content_type="application/json", headers=headers)
    assert response.status_code == 202
    assert response.headers["Location"] == f"/resources/{response.json()['resource_id']}"
    assert tasks.wait_until_idle(30)
    assert Resource.objects.get().status == "extracted"


@pytest.mark.parametrize(
    ("filename", "mime_type", "declared_type", "expected"),
    [
        ("chart.png", None, None, "image"),
        ("chart.png", None, "pdf", "image"),
        ("chart", "image/png", None, "image"),
        ("chart.txt", "application/pdf", "image", "pdf"),
        ("page", "text/html", "doc", "html"),
        ("page.txt", "application/octet-stream", "doc", "text"),
        ("data.json", None, None, "text"),
        ("letter.docx", None, "text", "doc"),
        ("song.mp3", None, None, "audio"),
        ("nobody knows", None, "audio", "audio"),
        ("nobody knows", None, None, "doc"),
    ],
)
def test_the_content_type_is_inferred(
    alice: Person, filename: str, mime_type: str | None, declared_type: str | None, expected: str
) -> None:
    item = registered(alice, filename=filename, mime_type=mime_type, content_type=declared_type)
    assert item["content_type"] == expected == Attachment.objects.get().type


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("filename", ...),
        ("filename", ""),
        ("filename", "x" * 1001),
        ("source_uri", ...),
        ("source_uri", ""),
        ("source_uri", None),
        ("source_uri", 7),
        ("source_uri", "minio://b/" + "x" * 2048),
        ("ingest_uri", ""),
        ("ingest_uri", "https://example.org/" + "x" * 2048),
        ("mime_type", "pdf"),
        ("mime_type", "application/pdf\n"),
        ("content_type", "video"),
        ("size_bytes", -1),
        ("size_bytes", 2**63),
        ("size_bytes", "12"),
        ("sha256", 123),
        ("title", "x" * 501),
        ("app_id", "../x"),
        ("session_id", "resource:bob:r_1"),
    ],
)
def test_invalid_fields_are_422_and_store_nothing(alice: Person, field: str, value: Any) -> None:
    response = post(alice, **{field: value})
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == [field]
    assert not Resource.objects.exists()


@pytest.mark.parametrize(
    ("filename", "mime_type", "field"),
    [("a.zip", None, "filename"), ("a", "video/mp4", "mime_type"), ("a.txt", "application/x-msdownload", "mime_type")],
)
def test_a_type_that_is_not_accepted_is_415(alice: Person, filename: str, mime_type: str | None, field: str) -> None:
    response = post(alice, filename=filename, mime_type=mime_type)
    assert response.status_code == 415
    assert [error["field"] for error in response.json()["errors"]] == [field]
    assert not Resource.objects.exists()


@pytest.mark.parametrize("field", ["source_uri", "ingest_uri"])
def test_hostile_addresses_are_422_without_a_connection(
    alice: Person, settings: Any, listener: Any, field: str
) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = []
    for uri in HOSTILE:
        response = post(alice, **{field: uri})
        assert response.status_code == 422, uri
        assert [error["field"] for error in response.json()["errors"]] == [field], uri
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert not Resource.objects.exists()


def test_private_addresses_are_refused_by_default(alice: Person, web: WebServer, settings: Any) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = []
    response = post(alice, ingest_uri=web.url("/contract.txt" + SIGNED))
    assert response.status_code == 422
    assert "ask the operator to allow its host" in response.json()["detail"]
    assert web.heads == []


def test_a_file_in_a_folder_that_is_no_longer_allowed_is_not_read(alice: Person, tmp_path: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [tmp_path]
    path = tmp_path / "contract.txt"
    assert registered(alice, source_uri=path.as_uri())["status"] == "failed"  # it is not there yet
    path.write_bytes(TEXT)
    settings.MEMORY_GATEWAY_FILE_URI_ROOTS = []
    resource = Resource.objects.get()
    Resource.objects.update(status="pending", lease_holder="", error_message="")
    ingest(resource.resource_id)
    [item] = alice.client.get(f"/resources/{resource.resource_id}").json()["resources"]
    assert item["status"] == "failed"
    assert "a folder that the operator allows" in item["error_message"]
    assert Resource.objects.get().retry_at is None


FAILURES: dict[str, tuple[Answer, str]] = {
    "gone": (page(b"", "404 Not Found"), "returned status 404"),
    "expired": (page(b"", "403 Forbidden"), "returned status 403"),
    "elsewhere": (page(b"", "302 Found", Location="http://127.0.0.1/"), "redirects to another"),
    "another type": (page(PNG), "image/png"),
    "too large": (page(b"", length=26 * 2**20), "larger than"),
}


@pytest.mark.parametrize("is_source", [True, False], ids=["source_uri", "ingest_uri"])
@pytest.mark.parametrize(("answer", "words"), FAILURES.values(), ids=FAILURES.keys())
def test_an_address_that_cannot_be_read_fails_permanently_with_a_reason(
    alice: Person, web: WebServer, answer: Answer, words: str, is_source: bool
) -> None:
    web.pages["/contract.txt"] = answer
    item = registered(alice, **{"source_uri" if is_source else "ingest_uri": web.url("/contract.txt")})
    assert item["status"] == "failed"
    assert words in item["error_message"]
    assert item["error_message"].endswith("Register it again with a new ingest_uri.")
    assert Resource.objects.get().retry_at is None


@pytest.mark.parametrize("failure", ["busy", "unreachable", "broken off"])
def test_a_temporary_failure_is_retried_from_the_source_uri(alice: Person, web: WebServer, failure: str) -> None:
    answers = {"busy": page(b"", "503 Service Unavailable"), "broken off": page(TEXT, length=99)}
    web.pages |= {"/contract.txt": answers.get(failure, page(b""))}
    uri = "http://127.0.0.1:9/contract.txt" if failure == "unreachable" else web.url("/contract.txt")
    item = registered(alice, source_uri=uri)
    assert item["status"] == "failed"
    resource = Resource.objects.get()
    assert resource.retry_at is not None
    if failure != "unreachable":
        web.pages["/contract.txt"] = page(TEXT)
        assert ingest(resource.resource_id).status == "extracted"


def test_a_temporary_failure_of_the_ingest_uri_is_retried_from_a_readable_source_uri(
    alice: Person, web: WebServer
) -> None:
    web.pages["/signed"] = page(b"", "503 Service Unavailable")
    item = registered(alice, source_uri=web.url("/contract.txt"), ingest_uri=web.url("/signed"))
    assert item["status"] == "failed"
    assert Resource.objects.get().retry_at is not None
    assert ingest(item["resource_id"]).status == "extracted"
    assert "GET /contract.txt " in web.heads[-1]


@pytest.mark.parametrize("uri", ["minio://files/contract.txt", "S3://BUCKET/contract.txt", "s3://own/r_1/a.txt"])
def test_other_buckets_are_refused(alice: Person, web: WebServer, settings: Any, uri: str) -> None:
    settings.MEMORY_GATEWAY_STORAGE_URL = "s3://own/gateway"
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = ["bucket", "own"]
    refused = {
        "source_uri": post(alice, source_uri=uri, ingest_uri=web.url("/contract.txt")),
        "ingest_uri": post(alice, source_uri="s3://bucket/contract.txt", ingest_uri=uri),
    }
    for field, response in refused.items():
        assert response.status_code == 422
        [error] = response.json()["errors"]
        assert error["field"] == field
        assert error["message"].startswith("must be in a bucket that MEMORY_GATEWAY_EXTERNAL_BUCKETS names")
    assert not Resource.objects.exists()


def test_a_bucket_that_is_no_longer_allowed_is_not_read(alice: Person, settings: Any) -> None:
    registered(alice, source_uri="https://nowhere.invalid/contract.txt")
    Resource.objects.update(source_uri="s3://files/contract.txt", status="pending", lease_holder="")
    ingest(Resource.objects.get().resource_id)
    resource = Resource.objects.get()
    assert (resource.status, resource.retry_at) == ("failed", None)
    assert "MEMORY_GATEWAY_EXTERNAL_BUCKETS" in resource.error_message


def test_a_file_in_an_allowed_bucket_is_read_and_retried_while_the_store_is_away(
    alice: Person, bucket: Bucket, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = ["beaver-user-files"]
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    item = registered(alice, source_uri=SOURCE)
    assert item["status"] == "failed"
    assert Resource.objects.get().retry_at is not None
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.endpoint)
    bucket.client.create_bucket(Bucket="beaver-user-files")
    bucket.client.put_object(Bucket="beaver-user-files", Key=SOURCE.split("/", 3)[3], Body=b"Pay within 30 days.")
    assert ingest(Resource.objects.get().resource_id).status == "extracted"
    assert Memory.objects.get().text == "Pay within 30 days."


def test_the_same_digest_in_the_same_scope_is_the_same_resource(alice: Person, web: WebServer) -> None:
    first = registered(alice, ingest_uri=web.url("/contract.txt"), sha256=DIGEST)
    again = registered(alice, source_uri="minio://bucket/b.txt", sha256=DIGEST.upper())
    assert again == first
    assert len(web.heads) == 1
    other = registered(alice, ingest_uri=web.url("/contract.txt"), sha256=DIGEST, project_id="p2")
    assert other["resource_id"] != first["resource_id"]


def test_digests_of_other_users_are_not_compared(alice: Person, bob: Person, web: WebServer) -> None:
    of_alice = registered(alice, ingest_uri=web.url("/contract.txt"), sha256=DIGEST)
    of_bob = registered(bob, ingest_uri=web.url("/contract.txt"), sha256=DIGEST)
    assert of_alice["resource_id"] != of_bob["resource_id"]


def test_a_registered_digest_does_not_replace_an_upload(alice: Person, web: WebServer) -> None:
    claimed = registered(alice, ingest_uri=web.url("/contract.txt"), sha256=hashlib.sha256(b"real").hexdigest())
    uploaded = upload(alice, b"real", "real.txt").json()
    assert uploaded["resource_id"] != claimed["resource_id"]
    web.pages["/contract.txt"] = page(b"other")
    later = registered(alice, ingest_uri=web.url("/contract.txt"), sha256=uploaded["resource_id"][2:] * 2)
    assert len({claimed["resource_id"], uploaded["resource_id"], later["resource_id"]}) == 3


def test_without_a_digest_every_registration_is_a_new_resource(alice: Person, web: WebServer) -> None:
    first = registered(alice, ingest_uri=web.url("/contract.txt"))
    again = registered(alice, ingest_uri=web.url("/contract.txt"))
    assert first["resource_id"] != again["resource_id"]


@pytest.mark.parametrize("digest", ["abc123...", "", "g" * 64, DIGEST + "\n"])
def test_a_digest_that_is_none_is_ignored_with_a_warning(alice: Person, web: WebServer, digest: str) -> None:
    fields = {"ingest_uri": web.url("/contract.txt"), "sha256": digest}
    answer = post(alice, **fields).json()
    warning = {"field": "sha256", "message": "was ignored: it is not the 64 hex digits of a SHA-256"}
    assert (answer["status"], answer["warnings"]) == ("extracted", [warning])
    assert Resource.objects.get().sha256 == ""
    assert post(alice, **fields).json()["resource_id"] != answer["resource_id"]


def test_after_deletion_it_is_a_new_resource(alice: Person, web: WebServer) -> None:
    first = registered(alice, ingest_uri=web.url("/contract.txt"), sha256=DIGEST)
    alice.client.delete(f"/resources/{first['resource_id']}")
    again = registered(alice, ingest_uri=web.url("/contract.txt"), sha256=DIGEST)
    assert again["resource_id"] != first["resource_id"]
    assert again["status"] == "extracted"


@pytest.mark.parametrize("same", ["digest", "place", "place, the digest being new"])
def test_a_failed_resource_is_ingested_again_from_the_new_ingest_uri(alice: Person, web: WebServer, same: str) -> None:
    known = {"sha256": DIGEST} if same == "digest" else {}
    failed = registered(alice, ingest_uri=web.url("/expired"), **known)
    assert failed["status"] == "failed"
    fresh = {"source_uri": "minio://bucket/b.txt"} if same == "digest" else {}
    fresh |= {} if same == "place" else {"sha256": DIGEST}
    again = registered(alice, ingest_uri=web.url("/contract.txt"), **fresh)
    assert (again["resource_id"], again["status"]) == (failed["resource_id"], "extracted")
    assert again["error_message"] is None
    assert Attachment.objects.get().internal_uri == fresh.get("source_uri", SOURCE)
    assert Resource.objects.get().source_uri == fresh.get("source_uri", SOURCE)


def test_registering_a_failed_resource_again_corrects_its_fields(alice: Person, web: WebServer) -> None:
    failed = registered(alice, ingest_uri=web.url("/contract.txt"), mime_type="application/pdf", title="Old")
    assert failed["status"] == "failed"
    again = registered(alice, ingest_uri=web.url("/contract.txt"), filename="合同.txt", title="New")
    assert again["resource_id"] == failed["resource_id"]
    assert (again["status"], again["content_type"], again["title"]) == ("extracted", "text", "New")
    assert [(one.name, one.type) for one in Attachment.objects.all()] == [("合同.txt", "text")]


def test_a_different_digest_at_the_same_address_is_a_new_resource(alice: Person, web: WebServer) -> None:
    failed = registered(alice, sha256="0" * 64)
    again = registered(alice, ingest_uri=web.url("/contract.txt"), sha256=DIGEST)
    assert again["resource_id"] != failed["resource_id"]
    assert Resource.objects.get(pk=failed["resource_id"]).status == "failed"


def test_registering_a_file_again_waits_for_its_running_ingestion(alice: Person, web: WebServer) -> None:
    release = threading.Event()

    def slow(connection: Any) -> None:
        release.wait(10)
        page(TEXT)(connection)

    web.pages["/slow"] = slow
    declared_type = Registration("contract.txt", SOURCE, web.url("/slow"), wait_seconds=0.0)
    first = register(principal(alice), declared_type)
    while not web.heads:
        time.sleep(0.01)
    holder = Resource.objects.get().lease_holder
    again = register(principal(alice), declared_type)
    assert (again.resource_id, again.status) == (first.resource_id, "ingesting")
    assert again.lease_holder == holder
    release.set()
    assert tasks.wait_until_idle(30)
    assert Resource.objects.get().status == "extracted"
    assert len(web.heads) == 1


def principal(person: Person) -> Any:
    return Principal(person.user_pk, person.user_id, uuid4())


def run_concurrently(count: int, call: Callable[[], Any]) -> list[Any]:
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(call())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("digest", ["", DIGEST], ids=["by place", "by digest"])
def test_concurrent_registrations_create_one_resource(alice: Person, web: WebServer, digest: str) -> None:
    release = threading.Event()

    def slow(connection: Any) -> None:
        release.wait(10)
        page(TEXT)(connection)

    web.pages["/slow"] = slow
    declared_type = Registration("contract.txt", SOURCE, web.url("/slow"), sha256=digest, wait_seconds=0.0)
    resource_ids = run_concurrently(8, lambda: register(principal(alice), declared_type).resource_id)
    release.set()
    assert tasks.wait_until_idle(30)
    assert len(resource_ids) == 8
    assert len(set(resource_ids)) == len(web.heads) == 1
    assert Resource.objects.get().status == "extracted"


ADDRESS = f"https://minio.example/contract.txt{SIGNED}"


def pending(person: Person, *, ingest_uri: str | None = ADDRESS, source_uri: str = SOURCE, **values: Any) -> Resource:
    """Create a resource as it is between its registration and its ingestion."""
    resource = Resource(
        user_id=person.user_pk,
        origin="external",
        filename="contract.txt",
        content_type="text",
        source_uri=source_uri,
        sealed_ingest_uri=claims.seal(ingest_uri),
        **values,
    )
    resource.session_id = f"resource:{person.user_id}:{resource.resource_id}"
    resource.save(force_insert=True)
    return resource


def left_by(person: Person, holder: str, **values: Any) -> Resource:
    """Create a resource as a worker that was killed left it."""
    soon = timezone.now() + timedelta(minutes=5)
    return pending(person, status="ingesting", lease_holder=holder, leased_until=soon, **values)


def test_the_one_time_address_is_stored_encrypted_until_the_ingestion_ends(alice: Person, web: WebServer) -> None:
    uri = web.url("/contract.txt")
    with ingesting_by(lambda **_: None):
        resource = register(principal(alice), Registration("contract.txt", SOURCE, uri, wait_seconds=0.0))
    sealed = Resource.objects.values_list("sealed_ingest_uri", flat=True)
    assert uri not in sealed.get()
    assert claims.ingest_uri_of(Resource.objects.get()) == uri
    assert [item.resource_id for item in unfinished_ingestions(timezone.now(), 10)] == [resource.resource_id]
    assert ingest(resource.resource_id).status == "extracted"
    assert sealed.get() == ""


@pytest.fixture(scope="module")
def dead_holder() -> str:
    """The holder of a process that has ended."""
    host, _, random = new_holder().rsplit(":", 2)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return f"{host}:{ended.pid}:{random}"


def test_any_worker_passes_the_one_time_address_to_the_engine(alice: Person) -> None:
    resource, engine = pending(alice), RecordingEngine()
    assert ingest(resource.resource_id, engine=engine).status == "extracted"
    [(_, _, (message,))] = engine.added
    assert message.content[0].ingest_uri == ADDRESS


def test_a_resource_that_another_worker_has_is_left_to_it(alice: Person) -> None:
    resource = left_by(alice, new_holder())
    assert unfinished_ingestions(timezone.now(), 10) == []
    assert ingest(resource.resource_id, engine=RecordingEngine()).status == "ingesting"


def test_after_a_crash_another_worker_reads_the_one_time_address(alice: Person, dead_holder: str) -> None:
    resource, engine = left_by(alice, dead_holder), RecordingEngine()
    assert [item.resource_id for item in unfinished_ingestions(timezone.now(), 10)] == [resource.resource_id]
    assert ingest(resource.resource_id, engine=engine).status == "extracted"
    [(_, _, (message,))] = engine.added
    assert message.content[0].ingest_uri == ADDRESS


def test_without_a_one_time_address_the_source_uri_is_read(alice: Person, web: WebServer) -> None:
    resource = pending(alice, ingest_uri=None, source_uri=web.url("/contract.txt"))
    assert ingest(resource.resource_id).status == "extracted"


def test_an_address_sealed_with_a_lost_key_is_registered_again(alice: Person, web: WebServer, settings: Any) -> None:
    resource = pending(alice)
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = []
    settings.SECRET_KEY = "another-" * 8
    ended = ingest(resource.resource_id)
    assert (ended.status, ended.retry_at) == ("failed", None)
    assert "Register it again with a new ingest_uri." in ended.error_message
    assert unfinished_ingestions(timezone.now(), 10, kinds=[Kind.PENDING, Kind.STALE, Kind.DUE]) == []
    assert claims.reset(Resource.objects.get(), web.url("/contract.txt"), timezone.now())
    assert ingest(resource.resource_id).status == "extracted"


def test_registering_again_takes_over_a_resource_that_a_crash_left(
    alice: Person, web: WebServer, dead_holder: str
) -> None:
    resource = left_by(alice, dead_holder)
    again = registered(alice, ingest_uri=web.url("/contract.txt"))
    assert (again["resource_id"], again["status"]) == (resource.resource_id, "extracted")


@pytest.mark.parametrize(("base_url", "failures"), [("http://127.0.0.1:9", 1), ("", 3)])
def test_a_retry_after_the_add_needs_no_ingest_uri(alice: Person, base_url: str, failures: int, settings: Any) -> None:
    resource = pending(alice)
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = base_url
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = []
    engine = RecordingEngine(failures={"flush": [EngineUnavailable("away")] * failures})
    failed = ingest(resource.resource_id, engine=engine, sleep=lambda _: None)
    assert failed.status == "failed"
    assert failed.retry_at is not None
    assert ingest(resource.resource_id, engine=engine).status == "extracted"
    assert len(engine.added) == 1


def test_fields_that_the_engine_has_are_not_changed(alice: Person) -> None:
    resource = pending(alice, status="failed", flush_sent_at=timezone.now())
    again = registered(alice, filename="other.txt")
    assert (again["resource_id"], again["filename"]) == (resource.resource_id, "contract.txt")


@pytest.fixture
def log_lines() -> Iterator[list[str]]:
    """Collect the lines of all loggers at all levels."""
    lines: list[str] = []

    class Recorder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    recorder, api, root = Recorder(), logging.getLogger("memory_gateway.api"), logging.getLogger()
    level = root.level
    root.setLevel(logging.DEBUG)
    for logger in (root, api):
        logger.addHandler(recorder)
    yield lines
    for logger in (root, api):
        logger.removeHandler(recorder)
    root.setLevel(level)


def all_stored_values() -> str:
    """Return every value of every table; for SQLite, every byte of its files."""
    if connection.vendor == "sqlite":
        name = str(connection.settings_dict["NAME"])
        return "".join(Path(name + end).read_bytes().decode("latin-1") for end in ("", "-wal"))
    with connection.cursor() as cursor:
        rows = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            rows += [[bytes(value) if isinstance(value, memoryview) else value for value in row] for row in cursor]
    return repr(rows)


SIGNED_ANSWERS: dict[str, Answer] = {
    "read": page(TEXT),
    "refused": page(SECRET.encode(), f"403 {SECRET}", X_Echo=SECRET, Location=f"http://x/{SECRET}"),
    "busy": page(SECRET.encode(), "503 Service Unavailable"),
    "no http": lambda connection: connection.sendall(b"nonsense\r\n"),
    "bad headers": lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\n: \r\n\x00: \r\n\r\n" + TEXT),
    "drip": dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n"),
}


@pytest.mark.parametrize("answer", SIGNED_ANSWERS.values(), ids=SIGNED_ANSWERS.keys())
def test_the_ingest_uri_is_neither_stored_nor_logged(
    alice: Person, web: WebServer, log_lines: list[str], answer: Answer
) -> None:
    web.pages[f"/{SECRET}/contract.txt"] = answer
    item = registered(alice, ingest_uri=web.url(f"/{SECRET}/contract.txt{SIGNED}"))
    assert SECRET in web.heads[0]
    database_text = all_stored_values()
    assert SOURCE in database_text
    assert any('"path":"/resources/external"' in line and SOURCE in line for line in log_lines)
    output = "\n".join(log_lines) + repr(item) + database_text
    assert SECRET not in output
    assert "k3yId" not in output


def test_a_refused_ingest_uri_is_neither_returned_nor_logged(alice: Person, log_lines: list[str]) -> None:
    response = post(alice, ingest_uri=f"gopher://{SECRET}/?{SECRET}", size_bytes=-1)
    assert response.status_code == 422
    assert SECRET not in response.content.decode() + "\n".join(log_lines)
    response = post(alice, ingest_uri=f"gopher://{SECRET}/?{SECRET}")
    assert response.status_code == 422
    assert SECRET not in response.content.decode() + "\n".join(log_lines)


@pytest.fixture
def everos_stub(settings: Any) -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        yield running


def test_everos_gets_the_ingest_uri_as_documented(alice: Person, everos_stub: StubUpstream, web: WebServer) -> None:
    signed = web.url("/chart.png" + SIGNED)
    item = registered(alice, filename="chart.png", ingest_uri=signed, title="T", description="D")
    assert item["status"] == "extracted"
    [call] = everos_stub.calls("add")
    [message] = call["messages"]
    assert (call["session_id"], message["sender_id"], message["role"]) == (item["session_id"], "alice", "user")
    extras = {"resource_id": item["resource_id"], "source": "external_resource", "title": "T", "description": "D"}
    assert message["content"] == [{"type": "image", "uri": signed, "ext": "png", "name": "chart.png", "extras": extras}]
    assert web.heads == []
    assert [result["attachments"][0]["internal_uri"] for result in search_results(alice, "chart")] == [SOURCE]


def test_errors_of_everos_do_not_reveal_the_ingest_uri(
    alice: Person, everos_stub: StubUpstream, log_lines: list[str]
) -> None:
    signed = f"https://127.0.0.1/presigned{SIGNED}"
    error = {"error": {"code": "INTERNAL_ERROR", "message": f"cannot fetch {signed} ({signed!r})"}}
    everos_stub.fault("add", Fault(status=500, body=error), times=20)
    item = registered(alice, ingest_uri=signed)
    assert item["status"] == "failed"
    assert item["error_message"].endswith("Register it again with a new ingest_uri.")
    output = "\n".join(log_lines) + repr(item) + all_stored_values()
    assert "[ADDRESS]" in output
    assert SECRET not in output
    assert "k3yId" not in output
    assert "/presigned" not in output


def test_an_unconfirmed_message_is_sent_again_with_the_new_ingest_uri(
    alice: Person, everos_stub: StubUpstream, settings: Any
) -> None:
    settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = 1
    everos_stub.fault("add", Fault(reset=True))
    failed = registered(alice, ingest_uri="https://127.0.0.1/expired")
    again = registered(alice, ingest_uri="https://127.0.0.1/fresh")
    assert (again["resource_id"], again["status"]) == (failed["resource_id"], "extracted")
    sent = [call["messages"][0] for call in everos_stub.calls("add")]
    assert [message["content"][0]["uri"] for message in sent] == [
        "https://127.0.0.1/expired",
        "https://127.0.0.1/fresh",
    ]
    assert len({message["timestamp"] for message in sent}) == 1
    assert len(everos_stub.store.episodes) == 1
