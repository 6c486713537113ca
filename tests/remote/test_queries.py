"""The states of sessions at the remote, the figures of the outbox, and the lists of what waits and was refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.times import isoformat
from engines.attached import AttachedEngine
from remote import outbox, queries, remote_sessions
from remote.models import OutboxEntry
from remote.queries import Address, RemoteState
from store.models import Residue, Session
from tests.conftest import Person
from tests.memories.calls import upload
from tests.remote.conftest import NOON, deliver, message_of
from tests.store.conftest import text_message
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)
REFUSED = "The memory engine refused the request: the content is not accepted."


def add(engine: AttachedEngine, person: Person, session_id: str, *texts: str) -> Session:
    messages = [message_of(person.owner, text, NOON + number) for number, text in enumerate(texts)]
    engine.add(person.owner, session_id, messages)
    return session_of(person, session_id)


def session_of(person: Person, session_id: str) -> Session:
    return Session.objects.get(user=person.user_pk, session_id=session_id)


def state_of(session: Session) -> RemoteState:
    session.refresh_from_db()
    return queries.states_of([session])[session.pk]


def stored_at(session: Session) -> Any:
    return OutboxEntry.objects.filter(session=session).earliest("pk").recorded_at


def test_a_session_goes_from_pending_to_sent_to_derived(engine: AttachedEngine, alice: Person) -> None:
    session = add(engine, alice, "chat:1", "tea")
    assert state_of(session) == RemoteState("pending", stored_at(session))
    deliver(engine, alice.owner)
    assert state_of(session) == RemoteState("sent", stored_at(session))
    engine.flush(alice.owner, "chat:1")
    derived = state_of(session)
    assert derived == RemoteState("derived", session.searchable_at)
    assert derived.since is not None
    add(engine, alice, "chat:1", "tea", "cake")
    assert state_of(session).state == "pending"


def test_a_message_whose_outcome_is_unknown_waits(engine: AttachedEngine, alice: Person) -> None:
    session = add(engine, alice, "chat:1", "tea")
    assert outbox.take(session) is not None
    assert state_of(session).state == "pending"


def test_a_flushed_session_without_derived_memories_was_sent(engine: AttachedEngine, alice: Person) -> None:
    session = add(engine, alice, "chat:1", "tea")
    OutboxEntry.objects.update(state="flushed", flush_id="f")
    assert state_of(session) == RemoteState("sent", stored_at(session))


def test_a_refused_message_says_why(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    session = refused_session(engine, stub, alice)
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "cake", NOON + 1)])
    assert state_of(session) == RemoteState("refused", stored_at(session), REFUSED)
    assert state_of(session).as_json() == {
        "state": "refused",
        "since": isoformat(stored_at(session)),
        "detail": REFUSED,
    }


def refused_session(engine: AttachedEngine, stub: StubUpstream, person: Person, name: str = "chat:1") -> Session:
    session = add(engine, person, name, "tea")
    stub.fault("add", Fault(status=422))
    with pytest.raises(Exception, match="not accepted"):
        deliver(engine, person.owner, name)
    return session


def test_nothing_of_a_session_without_entries_is_for_the_remote(
    engine: AttachedEngine, alice: Person, settings: Any
) -> None:
    session = add(engine, alice, "chat:1", "tea")
    OutboxEntry.objects.update(state="withheld")
    assert state_of(session) == queries.OFF
    OutboxEntry.objects.update(state="buffered")
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://another.invalid"
    assert state_of(session) == queries.OFF
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = ""
    with CaptureQueriesContext(connection) as captured:
        assert queries.states_of([session]) == {session.pk: queries.OFF}
    assert len(captured) == 0


def test_the_states_of_any_number_of_sessions_take_three_statements(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    found = [refused_session(engine, stub, alice)]
    for number in range(2, 6):
        found.append(add(engine, alice, f"chat:{number}", "tea"))
        deliver(engine, alice.owner, f"chat:{number}")
        engine.flush(alice.owner, f"chat:{number}")
    with CaptureQueriesContext(connection) as captured:
        states = queries.states_of(found)
    assert [states[session.pk].state for session in found] == ["refused", *["derived"] * 4]
    assert len(captured) == 3


def test_the_state_of_a_file_is_that_of_its_session(alice: Person, stub: StubUpstream, storage: Any) -> None:
    file = upload(alice)
    place = (alice.owner, file["session_id"])
    session = session_of(alice, file["session_id"])
    assert queries.states_of_files([place]) == queries.states_of_files({place}) == {place: state_of(session)}
    assert state_of(session).state != "off"
    assert queries.states_of_files([]) == {}


def test_the_figures_count_entries_by_state_and_what_remotes_hold(
    engine: AttachedEngine, alice: Person, bob: Person
) -> None:
    add(engine, alice, "chat:1", *(f"text {number}" for number in range(7)))
    add(engine, bob, "chat:1", "tea")
    states = ["pending", "unconfirmed", "unconfirmed", "buffered", "refused", "withheld", "flushed", "pending"]
    rows = list(OutboxEntry.objects.order_by("pk"))
    for row, state in zip(rows, states, strict=True):
        OutboxEntry.objects.filter(pk=row.pk).update(state=state)
    session = add(engine, bob, "chat:2", "a", "b", "c", "d")
    OutboxEntry.objects.filter(session=session).update(base_url="http://former.invalid", state="flushed")
    OutboxEntry.objects.filter(pk=OutboxEntry.objects.latest("pk").pk).update(state="pending")
    Residue.objects.create(digest="0" * 64)
    found = queries.summary()
    assert found == queries.Summary(
        waiting=4, oldest=rows[0].recorded_at, sessions=2, unconfirmed=2, buffered=1, refused=1, withheld=1, residue=1,
        others=[Address("http://former.invalid", 3, 1)],
    )  # fmt: skip
    waiting = list(queries.waiting_sessions().order_by("pk"))
    assert [(one.session_id, one.user.user_id) for one in waiting] == [("chat:1", "alice"), ("chat:1", "bob")]
    assert [queries.waiting_of(waiting)[one.pk] for one in waiting] == [
        (3, rows[0].recorded_at),
        (1, rows[7].recorded_at),
    ]
    assert [entry.pk for entry in queries.refused_entries()] == [rows[4].pk]


def test_a_remote_is_used_if_one_is_attached_or_was(alice: Person, settings: Any) -> None:
    assert not queries.is_used()
    Residue.objects.create(digest="0" * 64)
    assert queries.is_used()
    Residue.objects.all().delete()
    session = remote_sessions.claim(alice.owner, "chat:1")
    outbox.record(session, outbox.by_id("chat:1", [text_message("tea")]), {})
    assert queries.is_used()
    OutboxEntry.objects.all().delete()
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://everos.invalid"
    assert queries.is_used()


FIGURES: list[tuple[str, Callable[[], Any]]] = [
    ("outbox_waiting_user", queries.summary),
    ("outbox_refused", lambda: list(queries.refused_entries().order_by("-pk")[:50])),
    ("outbox_waiting_user", lambda: list(queries.waiting_sessions().order_by("-pk")[:50])),
]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by how much there is")
@pytest.mark.parametrize(("index", "read"), FIGURES)
def test_lists_and_figures_use_their_index(index: str, read: Callable[[], Any], alice: Person, stub: Any) -> None:
    with CaptureQueriesContext(connection) as captured:
        read()
    steps = plan(captured[0]["sql"])
    assert any(f"INDEX {index}" in step for step in steps), steps


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by how much there is")
def test_no_figure_reads_all_entries_of_the_table(alice: Person, stub: Any) -> None:
    """The addresses are read from an index."""
    with CaptureQueriesContext(connection) as captured:
        queries.summary()
    found = [step for query in captured for step in plan(query["sql"]) if "remote_outboxentry" in step]
    assert len(found) == 5
    assert all("INDEX outbox_" in step for step in found), found


def plan(statement: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        return [f"{step} " for *_, step in cursor.fetchall()]
