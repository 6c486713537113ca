"""Purges, erasures and re-ingests delete in EverOS 1.6, if the settings allow it; a deletion does not."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from django.db import IntegrityError
from django.utils import timezone

from accounts.audit import Actor
from core.background.tasks import Round
from engines.registry import attached_remote, get_engine
from operations import erase
from operations.cleanup import purge
from operations.external import engine_deletion
from operations.reingest import sending
from operations.reingest.plan import Target, plan
from operations.reingest.run import run as reingest
from remote.models import OutboxEntry, Resend
from store.models import Memory, PendingDeletion, Session
from store.types import Role
from tests.conftest import Person, make_person
from tests.memories.calls import call
from tests.operations.everos_gateway import gateway
from tests.remote.conftest import NOON, message_of
from tests.resources.people import RemotePerson, eventually
from tests.server import RunningServer
from tests.store.test_failures import Crash, failing_at_statement
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")
LATER = timedelta(days=2)


@pytest.fixture
def stub(settings: Any, storage: Path) -> Iterator[StubUpstream]:
    settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = 1
    settings.MEMORY_GATEWAY_EVEROS_DELETE = True
    with StubUpstream(version="1.6.0") as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        yield running


def tell(person: Person, session_id: str, *texts: str, agent: str = "") -> None:
    """Each text becomes one episode; with an agent, also one agent case."""
    for number, text in enumerate(texts):
        roles: list[tuple[Role, str]] = [("user", ""), *([("assistant", agent)] if agent else [])]  # type: ignore[list-item]
        said = [
            message_of(person.owner, text, NOON + number * 1000 + index, role, sender)
            for index, (role, sender) in enumerate(roles)
        ]
        get_engine().add(person.owner, session_id, said)
        get_engine().flush(person.owner, session_id)


def episode(text: str) -> Memory:
    return Memory.objects.get(memory_type="episode", is_covered=False, text__contains=text)


def held(stub: StubUpstream) -> list[str]:
    """Return the texts of the episodes that EverOS holds."""
    return [row["episode"].partition(": ")[2] for row in stub.store.episodes]


def run_worker(later: timedelta = timedelta(0)) -> bool:
    return bool(engine_deletion.delete_in_engine(Round(clock=lambda: timezone.now() + later)))


def purge_all() -> purge.Counts:
    return purge.purge_trash(older_than=timedelta(0), actor=ACTOR)


def deletions(stub: StubUpstream) -> list[Any]:
    return [*stub.calls("delete"), *stub.calls("delete_by_ids")]


def test_a_purged_memory_is_deleted_in_everos_and_a_deleted_one_is_not(stub: StubUpstream, alice: Person) -> None:
    tell(alice, "chat:c1", "The walnut rumour", "I like tea")
    memory_id = episode("walnut").memory_id
    call(alice, "delete", f"/memories/{memory_id}")
    assert not run_worker(LATER)
    assert deletions(stub) == []
    assert len(held(stub)) == 2
    assert purge_all().memories == 1
    row = PendingDeletion.objects.get()
    assert (row.owner_id, row.memory_id, row.engine_session_id) == ("alice", memory_id, "")
    run_worker()
    assert held(stub) == ["I like tea"]
    assert stub.calls("delete_by_ids") == [
        {
            "app_id": "default",
            "project_id": "default",
            "user_id": "alice",
            "memory_type": "episode",
            "memory_ids": [memory_id],
        }
    ]
    assert [row.accepted_count for row in PendingDeletion.objects.all()] == [1]
    run_worker(LATER)
    assert not PendingDeletion.objects.exists()
    assert len(deletions(stub)) == 1


def test_a_purged_session_is_deleted_for_the_user_and_their_agents_only(
    stub: StubUpstream, alice: Person, bob: Person
) -> None:
    """EverOS has one session for both users until the second one gets its own id."""
    tell(alice, "chat:c1", "The walnut rumour", agent="main")
    tell(alice, "chat:c2", "I like tea", agent="main")
    tell(bob, "chat:c1", "The chestnut rumour", agent="main")
    stub.store.episodes.append({**stub.store.episodes[0], "user_id": "carol", "id": "carol_ep_1"})
    call(alice, "delete", "/sessions/chat:c1")
    assert purge_all().sessions == 1
    run_worker()
    assert sorted((row["user_id"], row["session_id"].partition("+")[0]) for row in stub.store.episodes) == [
        ("alice", "chat:c2"),
        ("bob", "chat:c1"),
        ("carol", "chat:c1"),
    ]
    assert len(stub.store.agent_cases) == 2
    assert {key for body in stub.calls("delete") for key in body} >= {"user_id", "agent_id", "session_id"}
    assert all("session_id" in body and body.keys() & {"user_id", "agent_id"} for body in stub.calls("delete"))


def test_a_busy_session_is_retried_until_everos_accepts(stub: StubUpstream, alice: Person) -> None:
    tell(alice, "chat:c1", "The walnut rumour")
    call(alice, "delete", "/sessions/chat:c1")
    purge_all()
    stub.store.busy.add("chat:c1")
    run_worker()
    row = PendingDeletion.objects.get()
    assert (row.attempts, row.accepted_at) == (1, None)
    assert row.retry_at > timezone.now()
    run_worker()
    assert len(stub.calls("delete")) == 1  # its retry is not due
    stub.store.busy.clear()
    run_worker(timedelta(minutes=1))
    assert held(stub) == []
    assert PendingDeletion.objects.get().accepted_count == 1


@pytest.mark.parametrize("fault", [Fault(reset=True), Fault(reset=True, acts=True), Fault(status=500, body={})])
def test_a_deletion_survives_an_outage(stub: StubUpstream, alice: Person, fault: Fault) -> None:
    tell(alice, "chat:c1", "The walnut rumour", "I like tea")
    call(alice, "delete", f"/memories/{episode('walnut').memory_id}")
    purge_all()
    stub.fault("delete_by_ids", fault)
    run_worker()
    assert PendingDeletion.objects.get().accepted_at is None
    run_worker(timedelta(minutes=1))
    assert held(stub) == ["I like tea"]
    assert PendingDeletion.objects.get().accepted_at is not None


def test_a_call_that_may_still_run_is_waited_for(stub: StubUpstream, alice: Person) -> None:
    tell(alice, "chat:c1", "The walnut rumour")
    OutboxEntry.objects.update(state="unconfirmed")
    call(alice, "delete", "/sessions/chat:c1")
    purge_all()
    run_worker()
    assert deletions(stub) == []
    run_worker(timedelta(minutes=3))
    assert held(stub) == []


@pytest.mark.parametrize("version", ["1.5.1", "1.0.1", None])
def test_an_older_everos_is_never_asked(stub: StubUpstream, alice: Person, version: str | None) -> None:
    stub.version = version
    tell(alice, "chat:c1", "The walnut rumour")
    call(alice, "delete", "/sessions/chat:c1")
    purge_all()
    run_worker(LATER)
    receipt = erase.erase(alice.user_pk, actor=ACTOR)
    assert deletions(stub) == []
    assert "cannot delete" in receipt["residue"][0]
    assert receipt["remote"]["deletions"] == {"accepted": 0, "entries": 0, "pending": 1}


def test_nothing_is_recorded_or_sent_unless_the_setting_allows_it(
    stub: StubUpstream, alice: Person, settings: Any
) -> None:
    settings.MEMORY_GATEWAY_EVEROS_DELETE = False
    tell(alice, "chat:c1", "The walnut rumour")
    call(alice, "delete", "/sessions/chat:c1")
    purge_all()
    receipt = erase.erase(alice.user_pk, actor=ACTOR)
    run_worker(LATER)
    assert not PendingDeletion.objects.exists()
    assert deletions(stub) == []
    assert stub.calls("openapi.json") == []
    assert not get_engine().capabilities()["delete"]
    assert receipt["remote"]["deletions"] is None
    assert "cannot delete" in receipt["residue"][0]


def test_another_everos_never_gets_the_deletions_of_this_one(stub: StubUpstream, alice: Person, settings: Any) -> None:
    tell(alice, "chat:c1", "The walnut rumour")
    call(alice, "delete", "/sessions/chat:c1")
    purge_all()
    with StubUpstream(version="1.6.0") as other:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = other.url
        run_worker(LATER)
        assert deletions(other) == []
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
    run_worker(LATER)
    assert held(stub) == []


# --- erasures ---------------------------------------------------------------------------------------------------------


def test_an_erasure_says_what_everos_accepted(stub: StubUpstream, alice: Person, bob: Person) -> None:
    tell(alice, "chat:c1", "The walnut rumour", agent="main")
    tell(alice, "chat:c2", "I like tea")
    tell(bob, "chat:c1", "The chestnut rumour", agent="main")
    receipt = erase.erase(alice.user_pk, actor=ACTOR)
    assert [row["user_id"] for row in stub.store.episodes] == ["bob"]
    assert len(stub.store.agent_cases) == 1
    assert receipt["remote"]["deletions"] == {"accepted": 4, "entries": 3, "pending": 0}
    assert receipt["residue"][0].startswith("Accepted by EverOS: 4 deletions of 3 entries.")
    assert not PendingDeletion.objects.exists()
    assert all(body.get("user_id") is None or body.get("session_id") for body in stub.calls("delete"))


def test_an_erasure_during_an_outage_leaves_the_ids_until_everos_accepts(stub: StubUpstream, alice: Person) -> None:
    tell(alice, "chat:c1", "The walnut rumour")
    tell(alice, "chat:c2", "I like tea")
    stub.store.busy.add("chat:c1")
    receipt = erase.erase(alice.user_pk, actor=ACTOR)
    assert receipt["remote"]["deletions"] == {"accepted": 1, "entries": 1, "pending": 1}
    assert "has not accepted 1 deletions yet" in receipt["residue"][1]
    again = make_person("alice")
    tell(again, "chat:c1", "I am new here")
    stub.store.busy.clear()
    run_worker(timedelta(minutes=1))
    assert held(stub) == ["I am new here"]
    run_worker(LATER)
    assert not PendingDeletion.objects.exists()


@pytest.mark.slow
def test_an_erasure_that_crashes_at_any_statement_still_deletes_in_everos(stub: StubUpstream) -> None:
    for statements in range(1, 80):
        person = make_person(f"user{statements}")
        tell(person, "chat:c1", "The walnut rumour", agent="main")
        try:
            with failing_at_statement(statements, Crash):
                erase.erase(person.user_pk, actor=ACTOR)
        except Crash:
            receipt = erase.erase(person.user_pk, actor=ACTOR)
            assert receipt["remote"]["deletions"]["accepted"] >= 3
            assert receipt["remote"]["deletions"]["entries"] == 2
        else:
            break
        finally:
            run_worker(timedelta(minutes=5))
        assert held(stub) == []
        assert stub.store.agent_cases == []
        assert not PendingDeletion.objects.filter(accepted_at__isnull=True).exists()
    assert statements > 20


# --- re-ingests -------------------------------------------------------------------------------------------------------


def test_a_reingested_session_loses_its_former_copy_only(stub: StubUpstream, alice: Person) -> None:
    tell(alice, "chat:c1", "The walnut rumour")
    outcome = reingest(plan(Target()), actor=ACTOR, workers=1)
    assert outcome.failures == {}
    run_worker(LATER)
    assert held(stub) == ["The walnut rumour"]
    assert stub.store.episodes[0]["session_id"].startswith("chat:c1~")


def test_a_reingest_that_fails_deletes_nothing(stub: StubUpstream, alice: Person) -> None:
    tell(alice, "chat:c1", "The walnut rumour")
    session = Session.objects.get()
    remote = attached_remote()
    assert remote is not None
    sending.begin(alice.owner, "chat:c1", again=True)
    for statements in range(1, 200):
        try:
            with failing_at_statement(statements, Crash):
                remote.flush(alice.owner, "chat:c1")
        except Crash:
            assert PendingDeletion.objects.exists() is not Resend.objects.exists()
            if Resend.objects.exists():
                continue
        break
    assert statements > 20
    assert [one.engine_session_id for one in PendingDeletion.objects.all()] == [session.engine_session_id]


# --- a gateway that is killed -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_gateway_deletes_in_everos_after_its_restart(tmp_path: Path) -> None:
    with (
        StubUpstream(version="1.6.0") as stub,
        gateway(tmp_path, stub.url, MEMORY_GATEWAY_EVEROS_DELETE="true") as server,
    ):
        for kill in range(2):
            session_id = f"chat:c{kill}"
            person = RemotePerson.create(server, f"user{kill}")
            record(person, session_id, "The walnut rumour")
            stub.store.busy.add(session_id)
            receipt = requests.delete(
                f"{server.url}/users/user{kill}?confirm=erase:user{kill}", headers=person.headers, timeout=60
            ).json()
            assert receipt["remote"]["deletions"]["pending"] == 1, receipt
            restart(server)
            assert len(stub.store.episodes) == 1
            stub.store.busy.clear()
            assert eventually(lambda: stub.store.episodes == [], 60), stub.store.episodes
        assert "Traceback" not in server.log


def restart(server: RunningServer) -> None:
    server.kill()
    server.start()


def record(person: RemotePerson, session_id: str, text: str) -> None:
    message = {"sender_id": person.user_id, "role": "user", "timestamp": NOON, "content": text}
    for path, body in (("add", {"messages": [message]}), ("flush", {})):
        answer = requests.post(
            f"{person.server.url}/memories/{path}",
            json={"session_id": session_id, **body},
            headers=person.headers,
            timeout=30,
        )
        assert answer.status_code == 200, answer.text


def test_a_call_names_at_most_fifty_memories(stub: StubUpstream, alice: Person) -> None:
    rows = [
        PendingDeletion(
            base_url=stub.url,
            user_key=alice.user_pk,
            app_id="default",
            project_id="default",
            owner_id="alice",
            memory_id=f"alice_ep_{number}",
            queued_at=timezone.now(),
            retry_at=timezone.now(),
        )
        for number in range(engine_deletion.IDS_PER_CALL + 1)
    ]
    PendingDeletion.objects.bulk_create(rows)
    run_worker()
    assert [len(body["memory_ids"]) for body in stub.calls("delete_by_ids")] == [50, 1]


def test_the_database_refuses_a_deletion_of_all_that_a_user_has() -> None:
    now = timezone.now()
    row = PendingDeletion(
        base_url="http://127.0.0.1:1995", user_key=uuid.uuid4(), owner_id="ann", queued_at=now, retry_at=now
    )
    with pytest.raises(IntegrityError):
        row.save()
