"""`file://` addresses outside the allowed folders are kept as text, never read or sent on, with both engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from core.background.tasks import Round
from core.errors import OutcomeUnknown
from engines.registry import get_engine
from operations.external.delivery_retry import DeliveryRetry
from remote.models import OutboxEntry
from resources import services
from resources.models import Attachment, Resource
from store.models import Memory
from tests.conftest import Person
from tests.core.test_url_policy import OUTSIDE, file_root
from tests.memories.calls import NOON_MS, call, send
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

REMEDY = "upload the file instead, or ask the operator to allow its folder"
REFUSED = {"user", "backslashes", "all backslashes"}
SPELLED_AS_FILES = [uri for uri in OUTSIDE.values() if uri.lower().startswith("file:") and "\\" not in uri]


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    root = file_root(tmp_path / "files")
    settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [root]
    return root


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


def sent(upstream: StubUpstream) -> str:
    return json.dumps(list(upstream.calls("add")), ensure_ascii=False)


def _addresses(upstream: StubUpstream) -> list[str]:
    """Return the addresses that EverOS would read."""
    messages = [message for call in upstream.calls("add") for message in call["messages"]]
    return [item["uri"] for message in messages for item in message["content"] if "uri" in item]


def add(person: Person, uri: str, *, status: int, at: int = NOON_MS) -> dict[str, Any]:
    content = [{"type": "text", "text": "look"}, {"type": "doc", "uri": uri, "name": "a.txt", "ext": "txt"}]
    message = {"sender_id": person.user_id, "role": "user", "timestamp": at, "content": content}
    return call(person, "post", "/memories/add", status=status, session_id="chat:c1", messages=[message])


def register(person: Person, *, status: int, **uris: str) -> dict[str, Any]:
    return call(person, "post", "/resources/external", status=status, filename="a.txt", **uris)


def test_files_outside_the_roots_are_not_registered(alice: Person, engine: StubUpstream | None, folder: Path) -> None:
    for spelling in OUTSIDE.values():
        uri = spelling.format(root=folder, parent=folder.parent)
        source = register(alice, source_uri=uri, status=422)
        ingest = register(alice, source_uri="s3://bucket/a.txt", ingest_uri=uri, status=422)
        fields = [[error["field"] for error in answer["errors"]] for answer in (source, ingest)]
        assert fields == [["source_uri"], ["ingest_uri"]], uri
    assert not Resource.objects.exists()
    if engine is not None:
        assert engine.calls("add") == []


def test_files_outside_the_roots_are_text_in_messages(alice: Person, engine: StubUpstream | None, folder: Path) -> None:
    for number, (name, spelling) in enumerate(OUTSIDE.items()):
        uri = spelling.format(root=folder, parent=folder.parent)
        if name in REFUSED or not uri.lower().startswith("file:"):
            refused = add(alice, uri, status=422, at=NOON_MS + number)
            assert [error["field"] for error in refused["errors"]] == ["messages.0.content.1.uri"], uri
            continue
        [warning] = add(alice, uri, status=200, at=NOON_MS + number)["warnings"]
        assert warning["field"] == "messages.0.content.1.uri"
        assert REMEDY in warning["message"]
        assert Memory.objects.filter(text=f"look\n[DOC: a.txt] {uri}").exists(), uri
    assert not Attachment.objects.exists()
    assert not Memory.objects.filter(text__contains="root:").exists()
    if engine is not None:
        send(alice)
        assert not _addresses(engine)
        assert "look" in sent(engine)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("roots", ["none", "one"])
def test_the_error_names_the_remedy(alice: Person, folder: Path, settings: Any, roots: str) -> None:
    if roots == "none":
        settings.MEMORY_GATEWAY_FILE_URI_ROOTS = []
    for answer in (
        register(alice, source_uri="file:///etc/passwd", status=422),
        register(alice, source_uri="s3://bucket/k", ingest_uri="file:///etc/passwd", status=422),
    ):
        assert REMEDY in answer["detail"]
        assert REMEDY in answer["errors"][0]["message"]


def test_files_below_a_root_are_accepted(alice: Person, engine: StubUpstream | None, folder: Path) -> None:
    uri = (folder / "a.txt").as_uri()
    add(alice, uri, status=200)
    register(alice, source_uri=uri, status=200)
    assert Resource.objects.get().status == "extracted"
    if engine is not None:
        send(alice)
        assert _addresses(engine) == [uri]  # the registered file; of the message, the gateway sends what it has read
        assert (folder / "a.txt").read_text() in sent(engine)


# --- existing rows ----------------------------------------------------------------------------------------------------


def _unconfirmed(person: Person, upstream: StubUpstream, uri: str, folder: Path) -> None:
    """Create an unconfirmed message in the outbox whose address is no longer allowed."""
    add(person, (folder / "a.txt").as_uri(), status=200)
    upstream.fault("add", Fault(reset=True, acts=False))
    with pytest.raises(OutcomeUnknown):
        send(person)
    Attachment.objects.all().delete()
    entry = OutboxEntry.objects.get()
    assert entry.state == "unconfirmed"
    entry.message["content"][1]["uri"] = uri
    entry.save(update_fields=["message"])
    upstream.requests.clear()


@pytest.mark.parametrize("uri", SPELLED_AS_FILES)
def test_an_unconfirmed_message_with_a_disallowed_file_is_not_resent(
    alice: Person, upstream: StubUpstream, folder: Path, uri: str
) -> None:
    _unconfirmed(alice, upstream, uri.format(root=folder, parent=folder.parent), folder)
    assert DeliveryRetry()(Round(clock=lambda: timezone.now() + timedelta(minutes=10))) == 1
    assert "look" in sent(upstream)
    assert not _addresses(upstream)
    entry = OutboxEntry.objects.get()
    assert (entry.state, entry.message["content"][1]["uri"]) == ("buffered", None)
    assert not Attachment.objects.exists()


@pytest.mark.slow
def test_a_flush_does_not_send_a_disallowed_file(alice: Person, upstream: StubUpstream, folder: Path) -> None:
    _unconfirmed(alice, upstream, "file:///etc/passwd", folder)
    assert get_engine().flush(alice.owner, "chat:c1").status == "extracted"
    assert "[DOC: a.txt] file:///etc/passwd" in sent(upstream)
    assert not _addresses(upstream)


@pytest.mark.usefixtures("folder")
def test_a_registered_file_that_is_no_longer_allowed_is_not_ingested(
    alice: Person, engine: StubUpstream | None
) -> None:
    register(alice, source_uri="https://nowhere.invalid/a.txt", status=200)
    before = len(engine.calls("add")) if engine else 0
    Resource.objects.update(source_uri="file:///etc/passwd", status="pending", lease_holder="", flush_sent_at=None)
    services.ingest(Resource.objects.get().resource_id)
    resource = Resource.objects.get()
    assert (resource.status, resource.retry_at) == ("failed", None)
    assert REMEDY in (resource.error_message or "")
    assert not Memory.objects.filter(text__contains="root:").exists()
    if engine is not None:
        assert len(engine.calls("add")) == before
