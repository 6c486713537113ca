"""Addresses in messages that are not allowed or cannot be read: the message is stored with their names as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from core.background.tasks import Round
from core.errors import EngineRefused, OutcomeUnknown
from engines.registry import get_engine
from operations.external.delivery_retry import DeliveryRetry
from remote.models import OutboxEntry
from resources.models import Attachment
from store.models import Memory
from tests.conftest import Person
from tests.core.test_url_policy import HOSTILE, OTHER_BUCKETS
from tests.memories.calls import NOON_MS, call, send
from tests.object_store import Bucket
from tests.stub_upstream import Fault, StubUpstream
from tests.web import WebServer, page, web_server

pytestmark = pytest.mark.django_db(transaction=True)

METADATA = "http://169.254.169.254/latest/meta-data"
REFUSED = (
    METADATA,
    "http://10.0.0.1/a.pdf",
    "http://127.0.0.1:9/a.pdf",
    "http://localhost/a.pdf",
    "http://2130706433/",
    "gopher://example.org/a",
    "data:text/plain,a",
    "resource://alice/r_1",
    "s3:///a.txt",
    "s3://key:secret@documents/a.txt",
    "https://user@example.org/a.pdf",
)
"""Addresses that no client may name."""


@pytest.fixture
def upstream(settings: Any, storage: Path) -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = 1
        yield running


@pytest.fixture(params=["embedded", "upstream"])
def engine(request: pytest.FixtureRequest, storage: Path) -> StubUpstream | None:
    """The stub of EverOS; None with the embedded engine."""
    return request.getfixturevalue("upstream") if request.param == "upstream" else None


@pytest.fixture
def web(settings: Any) -> Iterator[WebServer]:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]
    with web_server() as running:
        yield running


def addresses(upstream: StubUpstream | None) -> list[str]:
    """Return the addresses that EverOS would read."""
    calls = upstream.calls("add") if upstream else []
    items = [item for one in calls for message in one["messages"] for item in message["content"]]
    return [item["uri"] for item in items if "uri" in item]


def add(person: Person, *items: dict[str, Any], at: int = NOON_MS, status: int = 200) -> dict[str, Any]:
    content = [{"type": "text", "text": "hi"}, *items]
    message = {"sender_id": person.user_id, "role": "user", "timestamp": at, "content": content}
    return call(person, "post", "/memories/add", status=status, session_id="chat:c1", messages=[message])


def document(uri: str, kind: str = "doc", **values: Any) -> dict[str, Any]:
    return {"type": kind, "uri": uri, "name": "x.txt", **values}


def warned(answer: dict[str, Any]) -> list[str]:
    return [warning["field"] for warning in answer.get("warnings", [])]


def texts() -> str:
    return "\n".join(Memory.objects.order_by("created_at_ms", "seq").values_list("text", flat=True))


def test_the_sample_of_the_source_document_is_stored(alice: Person, engine: StubUpstream | None) -> None:
    uri = "file:///home/tom/memory-gateway/tests/simple-multimodal-image.png"
    picture = {"type": "image", "uri": uri, "ext": "png", "name": "simple-multimodal-image.png"}
    assert warned(add(alice, picture)) == ["messages.0.content.1.uri"]
    assert texts() == f"hi\n[IMAGE: simple-multimodal-image.png] {uri}"
    assert addresses(engine) == []
    assert not Attachment.objects.exists()


def test_a_text_beside_the_address_stays(alice: Person, engine: StubUpstream | None) -> None:
    add(alice, {"type": "text", "text": "my notes", "uri": "file:///srv/notes.txt"})
    assert texts() == "hi\nmy notes\n[TEXT: notes.txt] file:///srv/notes.txt"
    assert addresses(engine) == []


@pytest.mark.parametrize("uri", [*OTHER_BUCKETS, "s3://own/gateway/u/r_1/a.txt", "S3://OWN/a.txt", "minio://own./a"])
@pytest.mark.parametrize("kind", ["doc", "image"])
def test_objects_in_other_buckets_are_text(
    alice: Person, engine: StubUpstream | None, settings: Any, uri: str, kind: str
) -> None:
    settings.MEMORY_GATEWAY_STORAGE_URL = "s3://own/gateway"
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = ["documents", "own"]
    [warning] = add(alice, document(uri, kind))["warnings"]
    assert warning["field"] == "messages.0.content.1.uri"
    assert warning["message"].startswith("is kept as text and was not read: The address must be in a bucket")
    assert f"[{kind.upper()}: x.txt] {uri}" in texts()
    assert addresses(engine) == []
    assert not Attachment.objects.exists()


def test_a_picture_in_an_allowed_bucket_is_sent_on(alice: Person, upstream: StubUpstream, settings: Any) -> None:
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = ["documents"]
    add(alice, document("minio://documents/a.png", "image"))
    send(alice)
    assert addresses(upstream) == ["minio://documents/a.png"]


def test_of_a_document_the_text_is_sent_on(alice: Person, upstream: StubUpstream, web: WebServer) -> None:
    web.pages["/x.txt"] = page(b"Pay within 30 days.")
    add(alice, document(web.url("/x.txt")))
    send(alice)
    [sent] = upstream.calls("add")[-1]["messages"]
    assert [item["text"] for item in sent["content"]] == ["hi", "[TEXT: x.txt]\nPay within 30 days."]


def test_documents_of_one_name_are_not_mixed(alice: Person, upstream: StubUpstream, web: WebServer) -> None:
    web.pages |= {"/1.txt": page(b"Pay within 30 days."), "/2.txt": page(b"Deliver in Hamburg.")}
    add(alice, document(web.url("/1.txt")), document(web.url("/2.txt")))
    send(alice)
    [sent] = upstream.calls("add")[-1]["messages"]
    names = [f"[DOC: x.txt] {web.url(path)}" for path in ("/1.txt", "/2.txt")]
    assert [item["text"] for item in sent["content"]] == ["hi", *names]


def test_an_object_in_an_allowed_bucket_is_read(
    alice: Person, bucket: Bucket, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.endpoint)
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = ["documents"]
    bucket.client.create_bucket(Bucket="documents")
    bucket.client.put_object(Bucket="documents", Key="a.txt", Body=b"Pay within 30 days.")
    assert "warnings" not in add(alice, document("s3://documents/a.txt"))
    assert "Pay within 30 days." in texts()
    assert warned(add(alice, document("s3://documents/none.txt"), at=NOON_MS + 1)) == ["messages.0.content.1.uri"]


@pytest.mark.parametrize("uri", REFUSED)
def test_addresses_that_no_client_may_name_stay_refused(
    alice: Person, engine: StubUpstream | None, settings: Any, uri: str
) -> None:
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = ["documents"]
    refused = add(alice, document("file:///etc/passwd"), document(uri), status=422)
    assert [error["field"] for error in refused["errors"]] == ["messages.0.content.2.uri"]
    assert not Memory.objects.exists()
    assert addresses(engine) == []


def test_hostile_addresses_are_refused_or_text(alice: Person, engine: StubUpstream | None) -> None:
    for number, uri in enumerate(HOSTILE):
        is_text = uri.lower().startswith("file:")
        answer = add(alice, document(uri), at=NOON_MS + number, status=200 if is_text else 422)
        problems = answer["warnings"] if is_text else answer["errors"]
        assert [problem["field"] for problem in problems] == ["messages.0.content.1.uri"], uri
    assert addresses(engine) == []
    assert not Attachment.objects.exists()


@pytest.mark.parametrize("status", ["404 Not Found", "503 Service Unavailable", "302 Found"])
def test_an_address_that_cannot_be_read_is_text_until_it_can(
    alice: Person, storage: Path, web: WebServer, status: str
) -> None:
    web.pages["/x.txt"] = page(b"", status)
    uri = web.url("/x.txt?X-Amz-Signature=abc")
    for _ in range(2):
        [warning] = add(alice, document(uri))["warnings"]
        assert warning["field"] == "messages.0.content.1.uri"
        assert status[:3] in warning["message"] or "redirects" in warning["message"]
        assert texts() == f"hi\n[DOC: x.txt] {web.url('/x.txt')}?[REDACTED]"
    assert not Attachment.objects.exists()
    web.pages["/x.txt"] = page(b"Pay within 30 days.")
    assert "warnings" not in add(alice, document(uri))
    assert texts() == "hi\nPay within 30 days."
    assert Attachment.objects.get().internal_uri == uri


def test_a_repeated_message_brings_no_deleted_text_back(alice: Person, storage: Path, web: WebServer) -> None:
    web.pages["/x.txt"] = page(b"", "404 Not Found")
    add(alice, document(web.url("/x.txt")))
    deleted = Memory.objects.get(text__startswith="[DOC").memory_id
    call(alice, "delete", f"/memories/{deleted}")
    web.pages["/x.txt"] = page(b"Pay within 30 days.")
    add(alice, document(web.url("/x.txt")))
    assert Memory.objects.filter(state="live").get().text == "hi"


@pytest.mark.parametrize(("status", "code"), [(415, "UNSUPPORTED"), (422, "INVALID_INPUT"), (500, "INTERNAL_ERROR")])
def test_an_address_that_everos_cannot_read_is_sent_as_text(
    alice: Person, upstream: StubUpstream, web: WebServer, status: int, code: str
) -> None:
    upstream.fault("add", Fault(status=status, body={"error": {"code": code, "message": "no"}}))
    uri = web.url("/x.png")
    assert warned(add(alice, document(uri, "image"))) == []
    send(alice)
    assert addresses(upstream) == [uri]
    [sent] = upstream.calls("add")[-1]["messages"]
    assert [item["type"] for item in sent["content"]] == ["text", "text"]
    assert sent["content"][1]["text"] == f"[IMAGE: x.txt] {uri}"
    assert OutboxEntry.objects.get().state == "buffered"
    calls = len(upstream.calls("add"))
    add(alice, document(uri, "image"))  # the session has it
    send(alice)
    assert len(upstream.calls("add")) == calls


def test_a_message_that_everos_refuses_is_kept_here(alice: Person, upstream: StubUpstream) -> None:
    upstream.fault("add", Fault(status=422))
    add(alice)
    with pytest.raises(EngineRefused):
        send(alice)
    assert texts() == "hi"


@pytest.mark.parametrize("uri", ["s3://files/secret.txt", METADATA, "file:///etc/passwd"])
def test_an_address_that_is_refused_now_is_resent_as_text(
    alice: Person, upstream: StubUpstream, settings: Any, uri: str
) -> None:
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = ["documents"]
    add(alice, document("s3://documents/a.png", "image"))
    upstream.fault("add", Fault(reset=True, acts=False))
    with pytest.raises(OutcomeUnknown):
        send(alice)
    Attachment.objects.all().delete()
    entry = OutboxEntry.objects.get()
    entry.message["content"][1]["uri"] = uri  # as an archive or an earlier version brings it
    entry.save(update_fields=["message"])
    upstream.requests.clear()
    assert DeliveryRetry()(Round(clock=lambda: timezone.now() + timedelta(minutes=10))) == 1
    assert addresses(upstream) == []
    assert f"[IMAGE: x.txt] {uri}" in json.dumps(list(upstream.calls("add")))
    assert not Attachment.objects.exists()
    assert get_engine().flush(alice.owner, "chat:c1").status == "extracted"


def test_warnings_are_in_the_language_of_the_request(alice: Person, storage: Path) -> None:
    message = {"sender_id": "alice", "role": "user", "timestamp": NOON_MS, "content": [document("file:///x.txt")]}
    response = alice.client.post(
        "/memories/add",
        {"session_id": "chat:c1", "messages": [message]},
        "application/json",
        headers={"Accept-Language": "zh-CN"},
    )
    assert response.headers["Content-Language"] == "zh-hans"
