"""`AttachedEngine.search`: the requests that are sent to EverOS, and the hits that callers get."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.persistence.checked_rows import check_row
from core.storable import check_json, check_ms, check_text
from engines.attached import AttachedEngine
from remote import mirror
from remote.client.failures import NotConfigured
from remote.everos import EverOS
from store.models import Session
from store.types import Hit, ListRequest, SearchRequest
from tests.conftest import Person
from tests.remote.conftest import NOON, MockedEverOS, add_and_send, make_client, message_of, no_wait
from tests.stub_upstream import Fault, StubUpstream

CALLER_FILTERS = {"timestamp": {"gte": "2026-05-28T20:26:40+00:00"}}


def remember(engine: AttachedEngine, person: Person, session_id: str, text: str, **values: Any) -> None:
    engine.add(person.owner, session_id, [message_of(person.owner, text, **values)])
    engine.flush(person.owner, session_id)


def search_hits(engine: AttachedEngine, person: Person, **values: Any) -> list[Hit]:
    request = SearchRequest(**{"query": "tea", **values})
    return list(engine.search(person.owner, [request])[0].hits)


def sent_filters(stub: StubUpstream) -> list[Any]:
    return [body.get("filters") for body in stub.calls("search")]


def answer(**lists: Any) -> Fault:
    return Fault(body={"request_id": "x", "data": lists})


def episode(person: Person, session_id: str | None = "chat:1", **values: Any) -> dict[str, Any]:
    return {
        "id": f"{person.user_id}_ep_20261120_{values.get('number', 1):08d}",
        "user_id": person.user_id,
        "app_id": "default",
        "project_id": "default",
        "session_id": session_id,
        "timestamp": "2026-11-20T08:42:18.280000Z",
        "sender_ids": [person.user_id],
        "episode": "tea",
        "type": "Conversation",
        "score": 0.5,
        **values,
    }


@pytest.fixture
def chat(engine: AttachedEngine, alice: Person) -> Session:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    return Session.objects.get(user_id=alice.user_pk)


def test_a_message_is_found(engine: AttachedEngine, alice: Person) -> None:
    remember(engine, alice, "chat:1", "我喜欢绿茶 tea")
    [hit] = search_hits(engine, alice, query="绿茶", session_ids=("chat:1",))
    assert (hit.session_id, hit.memory_type, hit.created_at_ms) == ("chat:1", "episode", NOON)
    assert "绿茶" in hit.text
    assert hit.raw["session_id"] == "chat:1"
    assert hit.legs["remote"]["rank"] == 1


def test_one_session_is_sent_as_a_top_level_filter(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, chat: Session
) -> None:
    search_hits(engine, alice, session_ids=("chat:1",))
    search_hits(engine, alice, session_ids=("chat:1",), filters=CALLER_FILTERS)
    assert sent_filters(stub) == [{"session_id": "chat:1"}, {"session_id": "chat:1", "AND": [CALLER_FILTERS]}]


def test_times_in_filters_are_sent_with_their_time_zone(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    for moment, sent in {
        946_684_800_000: "2000-01-01T00:00:00+00:00",
        NOON + 1: "2026-06-11T10:02:57.001000+00:00",
        NOON // 1000: "2026-06-11T10:02:57+00:00",
        "2026-06-11": "2026-06-11T00:00:00+00:00",
        "2026-06-11T18:00:00+08:00": "2026-06-11T18:00:00+08:00",
    }.items():
        search_hits(engine, alice, session_ids=None, filters={"timestamp": {"gte": moment}})
        assert sent_filters(stub)[-1] == {"AND": [{"timestamp": {"gte": sent}}]}


def test_many_sessions_are_searched_in_batches(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    session_ids = tuple(f"resource:alice:r_{number}" for number in range(7))
    for session_id in session_ids:
        remember(engine, alice, session_id, "tea")
    stub.requests.clear()
    hits = search_hits(engine, alice, session_ids=session_ids, filters=CALLER_FILTERS)
    assert {hit.session_id for hit in hits} == set(session_ids)
    sent = sorted((part for part in sent_filters(stub)), key=lambda part: len(str(part)))
    assert sent[0] == {"session_id": session_ids[6], "AND": [CALLER_FILTERS]}
    assert sent[1]["AND"][0] == CALLER_FILTERS
    assert [len(part["AND"][1]["session_id"]["in"]) for part in sent[1:]] == [3, 3]


def test_no_session_is_no_call(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    assert search_hits(engine, alice, session_ids=()) == []
    assert search_hits(engine, alice, session_ids=("chat:never",)) == []
    assert not stub.requests


def test_the_buffer_of_another_user_cannot_be_read(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, charlie: Person
) -> None:
    add_and_send(engine, alice.owner, "chat:1", [message_of(alice.owner, "my pin is 1234")])
    stub.requests.clear()
    assert search_hits(engine, charlie, session_ids=("chat:1",)) == []
    assert search_hits(engine, charlie, filters={"session_id": "chat:1"}) == []
    assert search_hits(engine, charlie, session_ids=None, filters={"OR": [{"session_id": "chat:1"}]}) == []
    # EverOS answers a top-level session id with raw messages.
    assert all("session_id" not in tree for tree in sent_filters(stub))
    assert [hit.memory_type for hit in search_hits(engine, alice, session_ids=("chat:1",))] == ["unprocessed_message"]


def test_users_with_the_same_session_id_find_their_own_memories(
    engine: AttachedEngine, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        remember(engine, person, "chat:1", f"{person.user_id} drinks tea")
    for person in (alice, bob):
        for values in ({"session_ids": ("chat:1",)}, {"session_ids": None}, {"filters": {"session_id": "chat:1"}}):
            [hit] = search_hits(engine, person, **values)
            assert hit.session_id == hit.raw["session_id"] == "chat:1"
            assert hit.text == f"{person.user_id} said: {person.user_id} drinks tea"


def test_records_of_other_users_are_dropped_and_counted(
    engine: AttachedEngine,
    stub: StubUpstream,
    alice: Person,
    bob: Person,
    chat: Session,
    caplog: pytest.LogCaptureFixture,
) -> None:
    raw_message = {
        "id": "m_chat:9_1_000",
        "session_id": "chat:9",
        "sender_id": "bob",
        "role": "user",
        "content": "pin",
        "timestamp": "2026-11-20T08:42:18Z",
    }
    hostile = answer(
        episodes=[
            episode(alice),
            episode(bob, number=2),
            episode(alice, "chat:of-bob", number=3),
            episode(alice, number=4, app_id="other"),
            episode(alice, None, number=5),
        ],
        profiles=[{"id": "bob", "user_id": "bob", "profile_data": {"summary": "secret"}, "score": None}],
        unprocessed_messages=[raw_message],
    )
    stub.fault("search", hostile)
    found = search_hits(engine, alice, session_ids=None, include_profile=True)
    assert sorted(hit.memory_id[-1] for hit in found) == ["1", "5"]
    # The record of a foreign session, which EverOS assigns to alice, is not logged.
    assert "dropped 4 records" in caplog.text
    stub.fault("search", hostile)
    assert {hit.memory_id[-1] for hit in search_hits(engine, alice, session_ids=("chat:1",))} == {"1", "5"}


def test_the_agent_of_another_user_with_the_same_name_stays_hidden(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        engine.add(
            person.owner,
            "chat:1",
            [message_of(person.owner, "tea", NOON), message_of(person.owner, "ok", NOON, "assistant", "main")],
        )
        engine.flush(person.owner, "chat:1")
    [hit] = search_hits(engine, alice, agent_id="main")
    assert (hit.memory_type, hit.session_id) == ("agent_case", "chat:1")
    assert hit.raw["agent_id"] == "main"
    assert hit.memory_id.startswith("main_ac_")
    assert alice.user_pk.hex not in str(hit)


def test_an_agent_is_searched_once_and_without_filters(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    remember(engine, alice, "chat:1", "tea", role="assistant", sender_id="main")
    remember(engine, alice, "chat:2", "tea", role="assistant", sender_id="main")
    requests = [
        SearchRequest("tea", agent_id="main", session_ids=("chat:1",)),
        SearchRequest("tea", agent_id="main", session_ids=("chat:1",), filters={"session_id": "chat:2"}),
        SearchRequest("tea", agent_id="main", session_ids=("chat:2",)),
    ]
    results = engine.search(alice.owner, requests)
    cases = [[hit for hit in result.hits if hit.memory_type == "agent_case"] for result in results]
    assert [[hit.session_id for hit in hits] for hits in cases] == [["chat:1"], [], ["chat:2"]]
    assert sent_filters(stub) == [None]


def test_the_profile_is_requested_once(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, chat: Session
) -> None:
    profile = {"id": "alice", "user_id": "alice", "profile_data": {"summary": "drinks tea"}, "score": None}
    stub.store.profiles.append({**profile, "app_id": "default", "project_id": "default"})
    requests = [
        SearchRequest("tea", session_ids=ids, include_profile=True) for ids in (("chat:never",), ("chat:1",), None)
    ]
    results = engine.search(alice.owner, requests)
    found = [hit for result in results for hit in result.hits if hit.memory_type == "profile"]
    assert [(hit.text, hit.score, hit.session_id) for hit in found] == [("drinks tea", None, None)]
    assert [body.get("include_profile", False) for body in stub.calls("search")].count(True) == 1


def test_the_type_filter_is_applied_by_the_gateway(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    remember(engine, alice, "chat:1", "tea")
    for tree, count in (
        ({"type": "Conversation"}, 1),
        ({"type": {"ne": "Conversation"}}, 0),
        ({"AND": [{"type": "Conversation"}, CALLER_FILTERS]}, 1),
        ({"OR": [{"type": "Other"}, {"timestamp": {"gte": 1}}]}, 1),
        ({"OR": [{"type": "Other"}, {"timestamp": {"lt": 1}}]}, 0),
        ({"OR": [{"type": "Conversation"}, {"timestamp": {"lt": 1}}]}, 1),
        ({"type": "Conversation", "parent_id": "x"}, 0),
    ):
        assert len(search_hits(engine, alice, filters=tree)) == count, tree
    assert "type" not in str(sent_filters(stub))


def test_no_filter_of_a_caller_widens_the_scope(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    remember(engine, alice, "chat:1", "tea one")
    remember(engine, alice, "chat:2", "tea two")
    stub.requests.clear()
    for tree in (
        {"session_id": "chat:2"},
        {"OR": [{"session_id": "chat:2"}, {}]},
        {"OR": []},
        {"AND": []},
        {"type": "x"},
    ):
        assert {hit.session_id for hit in search_hits(engine, alice, session_ids=("chat:1",), filters=tree)} <= {
            "chat:1"
        }
    assert all(tree["session_id"] == "chat:1" for tree in sent_filters(stub))


def test_raw_messages_do_not_reveal_files(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, chat: Session
) -> None:
    stub.store.buffers[("default", "default", "chat:1")]["m_chat:1_5_000"] = {
        "sender_id": "alice",
        "role": "user",
        "timestamp": 5000,
        "content": [{"type": "pdf", "base64": "c2VjcmV0", "ext": "pdf", "name": "contract.pdf"}],
        "BASE64": {"inner": "c2VjcmV0"},
    }
    hit = next(hit for hit in search_hits(engine, alice, session_ids=("chat:1",)) if hit.memory_id == "m_chat:1_5_000")
    assert hit.text == "contract.pdf"
    assert hit.raw["content"] == [{"type": "pdf", "ext": "pdf", "name": "contract.pdf"}]
    assert "c2VjcmV0" not in str(hit)


def test_scores_are_between_0_and_1_and_keep_their_order(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, chat: Session
) -> None:
    bm25 = answer(
        episodes=[episode(alice, number=number, score=score) for number, score in enumerate((0.0, 16.9, 2.0))]
    )
    stub.fault("search", bm25)
    hits = search_hits(engine, alice, method="keyword")
    assert [hit.legs["remote"]["score"] for hit in hits] == [16.9, 2.0, 0.0]
    assert all(hit.score is not None and 0 <= hit.score <= 1 for hit in hits)


def test_the_best_hits_of_all_batches_come_first_up_to_top_k(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    for number in range(7):
        remember(engine, alice, f"s{number}", "green tea" if number == 6 else "tea")
    hits = search_hits(
        engine, alice, query="green tea", session_ids=tuple(f"s{number}" for number in range(7)), top_k=2
    )
    assert len(hits) == 2
    assert hits[0].session_id == "s6"


def test_a_missing_score_sorts_last(engine: AttachedEngine, stub: StubUpstream, alice: Person, chat: Session) -> None:
    stub.fault("search", answer(episodes=[episode(alice, score=None), episode(alice, number=2, score=0.1)]))
    assert [hit.score for hit in search_hits(engine, alice)] == [0.1, None]


@pytest.mark.parametrize(
    "wrong",
    [
        {"score": "high"},
        {"score": True},
        {"timestamp": 5},
        {"episode": None},
        {"id": ""},
        {"session_id": 7},
        {"user_id": ["alice"]},
    ],
)
def test_an_answer_with_a_record_of_a_wrong_type_is_not_used(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, chat: Session, wrong: dict[str, Any]
) -> None:
    stub.fault("search", answer(episodes=[episode(alice, number=2), episode(alice, **wrong)]))
    [result] = engine.search(alice.owner, [SearchRequest("tea")])
    assert result.hits == ()
    assert str(result.degraded).startswith("The memory engine returned an unexpected response.")


def test_hybrid_without_embeddings_falls_back_to_keyword_and_reports_it(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    remember(engine, alice, "chat:1", "tea")
    missing = Fault(status=422, body={"error": {"code": "PROVIDER_NOT_CONFIGURED", "message": "no embedding"}})
    stub.fault("search", missing)
    [result] = engine.search(alice.owner, [SearchRequest("tea", method="hybrid")])
    assert (result.method, len(result.hits)) == ("keyword", 1)
    assert result.degraded
    stub.fault("search", missing)
    with pytest.raises(NotConfigured) as refused:
        engine.search(alice.owner, [SearchRequest("tea", method="vector")])
    assert refused.value.status == 422


def test_after_one_failing_batch_the_local_index_answers_alone(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    for number in range(7):
        remember(engine, alice, f"s{number}", "tea")
    stub.fault("search", Fault(status=503, body={}))
    hits = search_hits(engine, alice, session_ids=tuple(f"s{number}" for number in range(7)))
    assert len(hits) == 7
    assert all("keyword" in hit.legs for hit in hits)


def test_one_search_does_not_use_all_concurrent_calls(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    session_ids = tuple(f"s{number}" for number in range(60))
    Session.objects.bulk_create(
        Session(user_id=alice.user_pk, session_id=name, engine_session_id=name, kind="other") for name in session_ids
    )
    stub.latency_seconds = 0.02
    search_hits(engine, alice, session_ids=session_ids)
    assert len(stub.calls("search")) == 20
    assert 1 < stub.most_at_once["search"] <= 8


def test_a_search_takes_five_statements_regardless_of_its_size(engine: AttachedEngine, alice: Person) -> None:
    for number in range(9):
        remember(engine, alice, f"s{number}", "tea")
    requests = [SearchRequest("tea", session_ids=tuple(f"s{number}" for number in range(9))), SearchRequest("tea")]
    with CaptureQueriesContext(connection) as queries:
        results = engine.search(alice.owner, requests)
    assert [len(result.hits) for result in results] == [8, 8]
    # The sessions that are requested, those that EverOS returned, the copies of its memories, the local index, and what
    # was found in it.
    assert len(queries) == 5


def test_memories_of_a_deleted_session_are_dropped_without_a_warning(
    engine: AttachedEngine, alice: Person, caplog: pytest.LogCaptureFixture
) -> None:
    remember(engine, alice, "chat:1", "tea")
    engine.delete(alice.owner, "chat:1")
    assert search_hits(engine, alice) == []
    assert search_hits(engine, alice, session_ids=("chat:1",)) == []
    assert "dropped" not in caplog.text  # EverOS cannot delete, and still returns it


def test_memories_under_a_former_engine_session_id_are_dropped_without_a_warning(
    engine: AttachedEngine, alice: Person, caplog: pytest.LogCaptureFixture
) -> None:
    remember(engine, alice, "chat:1", "tea")
    Session.objects.update(engine_session_id="chat:1~moved")
    assert search_hits(engine, alice) == []
    assert "dropped" not in caplog.text


@pytest.mark.parametrize("session_id", ["chat:1 ", " chat:1", " ", "chat:1\u3000", "\xa0chat:1", " " + "x" * 127])
def test_session_ids_with_surrounding_white_space_keep_their_memories(
    engine: AttachedEngine, alice: Person, session_id: str
) -> None:
    """EverOS strips white space, which would assign the memory to another session or an unknown one."""
    remember(engine, alice, "chat:1", "green tea")
    remember(engine, alice, session_id, "black tea")
    found = {hit.text.rpartition(": ")[2]: hit.session_id for hit in search_hits(engine, alice)}
    assert found == {"green tea": "chat:1", "black tea": session_id}
    assert [hit.session_id for hit in search_hits(engine, alice, session_ids=(session_id,))] == [session_id]
    (listed,) = engine.list(alice.owner, ListRequest(session_id=session_id)).memories
    assert "black tea" in listed.text


HOSTILE = {
    "NUL": rb'"episode": "tea\u0000"',
    "lone surrogate": rb'"episode": "tea\ud800"',
    "lone surrogate in a key": rb'"\udfff": 1',
    "long integer": b'"count": ' + b"9" * 400,
    "integer of 5,000 digits": b'"count": ' + b"9" * 5000,
    "large float": b'"count": 1e300',
    "NaN": b'"count": NaN',
    "deep": b'"tree": ' + b"[" * 300 + b"]" * 300,
    "large": b'"details": "' + b"x" * (3 * 2**20) + b'"',
    "time before the calendar": b'"timestamp": "0001-01-01T00:00:00+14:00"',
    "time after the calendar": b'"timestamp": "9999-12-31T23:59:59-14:00"',
}
"""Fields of an episode that no database, JSON parser or calendar takes."""


def hostile_answer(person: Person, field: bytes) -> bytes:
    """Return an answer with an episode that has the field, and with an ordinary one."""
    name = field.partition(b'"')[2].partition(b'"')[0].decode()
    first = {key: value for key, value in episode(person, number=1).items() if key != name}
    bad, good = orjson.dumps(first)[:-1] + b", " + field + b"}", orjson.dumps(episode(person, number=2))
    return b'{"request_id": "x", "data": {"episodes": [%s, %s], "total_count": 2}}' % (bad, good)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_field_of_everos_makes_a_search_fail(mocked: MockedEverOS, alice: Person, name: str) -> None:
    """Its memory is found, with what cannot be stored replaced, and the others unchanged."""
    Session.objects.create(
        user_id=alice.user_pk, session_id="chat:1", engine_session_id="chat:1", kind="chat", flushed_at=timezone.now()
    )
    mocked.answer("memory/search", hostile_answer(alice, HOSTILE[name]))
    engine = AttachedEngine(EverOS(make_client(), batch_size=3, sleep=no_wait))
    bad, good = sorted(search_hits(engine, alice), key=lambda hit: hit.memory_id)
    assert bad.text.startswith("tea")
    for hit in (bad, good):
        check_text(hit.text)
        check_ms(hit.created_at_ms)
        assert len(orjson.dumps(check_json(hit.raw))) < 2**21
    assert good.raw == episode(alice, number=2)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_field_of_everos_prevents_a_copy(mocked: MockedEverOS, alice: Person, name: str) -> None:
    session = Session.objects.create(
        user_id=alice.user_pk, session_id="chat:1", engine_session_id="chat:1", kind="chat"
    )
    mocked.answer("memory/get", hostile_answer(alice, HOSTILE[name]))
    client = make_client()
    assert mirror.pull(client, alice.owner, session, client.deadline()) == 2
    for row in mirror.episodes(session):
        check_row(row)
