"""`manage.py backfill`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from engines.registry import get_engine
from operations.management.commands import backfill
from resources.models import Attachment
from store.models import DayCount, Memory, Session
from tests.conftest import Person
from tests.remote.conftest import NOON, message_of
from tests.resources.forms import stored_resource, upload
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stub(settings: Any, storage: Path) -> Iterator[StubUpstream]:
    settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = 1
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        yield running


def run(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("backfill", *arguments, "--json", stdout=out, stderr=StringIO())
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def add_to_everos(stub: StubUpstream, user_id: str, session_id: str, text: str) -> None:
    """Create an episode in EverOS that the gateway does not know."""
    message = {"sender_id": user_id, "role": "user", "timestamp": NOON, "content": text}
    stub.store.add({"session_id": session_id, "messages": [message]})
    stub.store.flush({"session_id": session_id})


def test_files_without_attachments_get_them(alice: Person, bob: Person, storage: Path) -> None:
    upload(alice)
    uploaded = Attachment.objects.values("session_id", "source", "type", "name", "internal_uri", "sha256").get()
    Attachment.objects.all().delete()
    stored_resource(bob)
    stored_resource(bob, origin="external", source_uri="s3://bucket/notes.txt")
    assert run("attachments", "--user", "alice") == {"kind": "attachments", "attachments": 1}
    assert Attachment.objects.values("session_id", "source", "type", "name", "internal_uri", "sha256").get() == uploaded
    assert run("attachments")["attachments"] == 2
    assert run("attachments")["attachments"] == 0
    external = Attachment.objects.get(source="external_resource")
    assert external.internal_uri == "s3://bucket/notes.txt"


def test_memories_that_everos_already_had_become_visible(stub: StubUpstream, alice: Person, bob: Person) -> None:
    add_to_everos(stub, "alice", "chat:old", "the bicycle is red")
    add_to_everos(stub, "bob", "chat:his", "the car is blue")
    assert run("sessions", "--user", "alice") == {"kind": "sessions", "sessions": 1, "memories": 1, "failed": 0}
    assert Session.objects.get().session_id == "chat:old"
    listed = alice.client.get("/memories").json()["memories"]
    assert [item["text"] for item in listed] == ["alice said: the bicycle is red"]
    assert run("sessions")["sessions"] == 1
    assert run("sessions") == {"kind": "sessions", "sessions": 0, "memories": 0, "failed": 0}
    assert len(bob.client.get("/memories").json()["memories"]) == 1


@pytest.mark.parametrize(
    "name", ["resource:bob:r_1", "memory_edit:bob", "chat:x~0123456789abcdef", "chat:x+" + "a" * 32]
)
def test_sessions_of_other_users_and_abandoned_ones_are_not_imported(
    stub: StubUpstream, alice: Person, name: str
) -> None:
    add_to_everos(stub, "alice", name, "the bicycle is red")
    assert run("sessions")["sessions"] == 0
    assert not Session.objects.exists()


def test_a_session_id_in_use_by_another_user_is_not_imported(stub: StubUpstream, alice: Person, bob: Person) -> None:
    get_engine().add(bob.owner, "chat:shared", [message_of(bob.owner, "the car is blue")])
    add_to_everos(stub, "alice", "chat:shared", "the bicycle is red")
    assert run("sessions", "--user", "alice")["sessions"] == 0
    assert alice.client.get("/sessions").json()["sessions"] == []


def test_a_deleted_session_is_not_imported(stub: StubUpstream, alice: Person) -> None:
    get_engine().add(alice.owner, "chat:gone", [message_of(alice.owner, "the car is blue")])
    get_engine().flush(alice.owner, "chat:gone")
    get_engine().delete(alice.owner, "chat:gone")
    assert run("sessions")["sessions"] == 0
    assert not Memory.objects.exists()


def test_memories_extracted_late_are_copied(stub: StubUpstream, alice: Person) -> None:
    get_engine().add(alice.owner, "chat:1", [message_of(alice.owner, "the car is blue")])
    get_engine().flush(alice.owner, "chat:1")
    add_to_everos(stub, "alice", "chat:1", "the bicycle is red")
    assert run("memories") == {"kind": "memories", "memories": 1, "failed": 0}
    assert Memory.objects.filter(memory_type="episode", is_covered=False).count() == 2


def test_concurrent_writes_do_not_stop_the_copy(
    stub: StubUpstream, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        get_engine().add(alice.owner, f"chat:{number}", [message_of(alice.owner, "the car is blue")])
        get_engine().flush(alice.owner, f"chat:{number}")
        add_to_everos(stub, "alice", f"chat:{number}", "the bicycle is red")
    monkeypatch.setattr(backfill, "_BATCH", 2)

    def write_elsewhere(*_: object) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(_write).result()

    def _write() -> None:
        try:
            Session.objects.filter(session_id="chat:0").update(flushed_at=None)
        finally:
            connections.close_all()

    assert backfill.memories(None, write_elsewhere) == {"memories": 4, "failed": 0}


def test_an_unavailable_upstream_is_reported(stub: StubUpstream, alice: Person) -> None:
    stub.fault("get", Fault(status=503, body={"error": {"code": "X", "message": "no"}}))
    with pytest.raises(CommandError) as refused:
        run("sessions")
    assert refused.value.returncode == 2


def test_without_an_upstream_the_command_fails(alice: Person) -> None:
    with pytest.raises(CommandError, match="MEMORY_GATEWAY_BACKEND_BASE_URL"):
        run("memories")


def test_rollups_are_recounted(alice: Person) -> None:
    get_engine().add(alice.owner, "chat:1", [message_of(alice.owner, "the car is blue")])
    get_engine().flush(alice.owner, "chat:1")
    DayCount.objects.all().delete()
    run("rollups")
    assert DayCount.objects.exists()


def test_embeddings_need_an_endpoint(alice: Person) -> None:
    with pytest.raises(CommandError, match="MEMORY_GATEWAY_MODELS"):
        run("embeddings")
    with pytest.raises(CommandError, match="Omit --user"):
        run("embeddings", "--user", "alice")


def test_an_unknown_user_is_rejected() -> None:
    with pytest.raises(CommandError, match="no such user"):
        run("attachments", "--user", "nobody")
