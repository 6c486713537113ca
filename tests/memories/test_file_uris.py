"""`file://` addresses outside the allowed folders are neither accepted, stored nor sent on, with both engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from core.background.tasks import Round
from core.errors import EngineRefused
from engines.registry import get_engine
from operations.external.delivery_retry import DeliveryRetry
from resources import services
from resources.models import Attachment, Resource
from store.models import Memory
from tests.conftest import Person
from tests.core.test_url_policy import OUTSIDE, file_root
from tests.memories.calls import NOON_MS, call, say
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

REMEDY = "upload the file instead, or ask the operator to allow its folder"
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


@pytest.fixture(params=["local", "production"])
def profile(request: pytest.FixtureRequest, settings: Any) -> None:
    settings.IS_PRODUCTION = request.param == "production"


def sent(upstream: StubUpstream) -> str:
    return json.dumps(list(upstream.calls("add")), ensure_ascii=False)


def add(person: Person, uri: str, *, status: int) -> dict[str, Any]:
    content = [{"type": "text", "text": "look"}, {"type": "doc", "uri": uri, "name": "a.txt", "ext": "txt"}]
    message = {"sender_id": person.user_id, "role": "user", "timestamp": NOON_MS, "content": content}
    return call(person, "post", "/memories/add", status=status, session_id="chat:c1", messages=[message])


def register(person: Person, *, status: int, **uris: str) -> dict[str, Any]:
    return call(person, "post", "/resources/external", status=status, filename="a.txt", **uris)


@pytest.mark.usefixtures("profile")
def test_files_outside_the_roots_are_refused(alice: Person, engine: StubUpstream | None, folder: Path) -> None:
    for spelling in OUTSIDE.values():
        uri = spelling.format(root=folder, parent=folder.parent)
        added = add(alice, uri, status=422)
        source = register(alice, source_uri=uri, status=422)
        ingest = register(alice, source_uri="s3://bucket/a.txt", ingest_uri=uri, status=422)
        fields = [[error["field"] for error in answer["errors"]] for answer in (added, source, ingest)]
        assert fields == [["messages.0.content.1.uri"], ["source_uri"], ["ingest_uri"]], uri
    for model in (Memory, Attachment, Resource):
        assert not model.objects.exists()
    if engine is not None:
        assert engine.calls("add") == []


@pytest.mark.usefixtures("engine", "profile")
@pytest.mark.parametrize("roots", ["none", "one"])
def test_the_error_names_the_remedy(alice: Person, folder: Path, settings: Any, roots: str) -> None:
    if roots == "none":
        settings.MEMORY_GATEWAY_FILE_URI_ROOTS = []
    for answer in (
        add(alice, "file:///etc/passwd", status=422),
        register(alice, source_uri="file:///etc/passwd", status=422),
        register(alice, source_uri="s3://b/k", ingest_uri="file:///etc/passwd", status=422),
    ):
        assert REMEDY in answer["detail"]
        assert REMEDY in answer["errors"][0]["message"]


@pytest.mark.usefixtures("profile")
def test_files_below_a_root_are_accepted(alice: Person, engine: StubUpstream | None, folder: Path) -> None:
    uri = (folder / "a.txt").as_uri()
    add(alice, uri, status=200)
    register(alice, source_uri=uri, status=200)
    assert Resource.objects.get().status == "extracted"
    if engine is not None:
        assert sent(engine).count(uri) == 2


# --- existing rows ----------------------------------------------------------------------------------------------------


def _journal(person: Person, upstream: StubUpstream, uri: str, folder: Path) -> None:
    """Create an unconfirmed message in the journal whose address is no longer allowed."""
    allowed = (folder / "a.txt").as_uri()
    upstream.fault("add", Fault(reset=True, acts=False))
    add(person, allowed, status=503)
    row = Memory.objects.get()
    assert row.delivery_state == "unconfirmed"
    row.payload["message"]["content"][1]["uri"] = uri
    row.save(update_fields=["payload"])
    upstream.requests.clear()


@pytest.mark.parametrize("uri", SPELLED_AS_FILES)
def test_a_journaled_message_with_a_disallowed_file_is_not_resent(
    alice: Person, upstream: StubUpstream, folder: Path, uri: str
) -> None:
    _journal(alice, upstream, uri.format(root=folder, parent=folder.parent), folder)
    assert DeliveryRetry()(Round(clock=lambda: timezone.now() + timedelta(minutes=10))) == 0
    assert upstream.calls("add") == []
    assert not Memory.objects.exists()
    assert not Attachment.objects.exists()
    say(alice, "chat:c1", "the car is red")
    assert "the car is red" in sent(upstream)


@pytest.mark.slow
def test_a_flush_does_not_send_a_disallowed_file(alice: Person, upstream: StubUpstream, folder: Path) -> None:
    _journal(alice, upstream, "file:///etc/passwd", folder)
    with pytest.raises(EngineRefused, match=REMEDY):
        get_engine().flush(alice.owner, "chat:c1")
    assert upstream.calls("add") == []
    assert get_engine().flush(alice.owner, "chat:c1").status == "no_extraction"


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
