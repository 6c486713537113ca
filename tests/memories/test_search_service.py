"""`memories.services.search`: scopes, merging of results, limits, files and decisions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.api.rendering import View, search_answer
from memories.models import Override, Tombstone
from memories.queries import decisions
from memories.services.scoped_hits import SCOPES, SearchCommand
from memories.services.search import SearchAnswer, search
from resources.models import Attachment, Resource
from tests.conftest import Person
from tests.memories.engines import ScriptedEngine, hit


def run_search(person: Person, engine: ScriptedEngine, *scopes: Any, **values: Any) -> SearchAnswer:
    command = SearchCommand(query="payment", scopes=frozenset(scopes or SCOPES), **values)
    return search(person.owner, command, engine=engine)


def ids_of(answer: SearchAnswer) -> list[str]:
    return [found.hit.memory_id for found in answer.results]


def make_resource(person: Person, resource_id: str = "r_1", name: str = "contract.pdf", **values: Any) -> Resource:
    """Create an extracted upload with its attachment."""
    session_id = f"resource:{person.user_id}:{resource_id}"
    fields = {"filename": name, "content_type": "pdf", "status": Resource.Status.EXTRACTED, **values}
    resource = Resource.objects.create(resource_id=resource_id, user_id=person.user_pk, session_id=session_id, **fields)
    make_attachment(person, session_id, name, resource=resource)
    return resource


def make_attachment(person: Person, session_id: str, name: str, **values: Any) -> Attachment:
    fields = {"source": Attachment.Source.MEMORY_ADD, "type": "pdf", "internal_uri": f"file:///srv/{name}", **values}
    return Attachment.objects.create(user_id=person.user_pk, session_id=session_id, name=name, **fields)


# --- scopes ----------------------------------------------------------------------------------------------------------


def test_all_scopes_are_searched_in_one_call(alice: Person) -> None:
    make_resource(alice)
    engine = ScriptedEngine([], [], [])
    run_search(alice, engine, conversation_id="c1")
    assert engine.calls == 1
    assert [request.session_ids for request in engine.received] == [("chat:c1",), ("resource:alice:r_1",), None]


def test_current_chat_without_a_conversation_calls_no_engine(alice: Person) -> None:
    engine = ScriptedEngine()
    answer = run_search(alice, engine, "current_chat")
    assert (engine.calls, ids_of(answer), answer.scopes["current_chat"].asked) == (0, [], 0)


def test_resources_without_any_resource_calls_no_engine(alice: Person) -> None:
    engine = ScriptedEngine()
    run_search(alice, engine, "resources")
    assert engine.calls == 0


@pytest.mark.parametrize(
    "columns",
    [
        *({"status": status} for status in ("pending", "ingesting", "empty", "failed")),
        {"state": "trashed"},
        {"state": "trashed", "status": "failed", "searchable_at": datetime(2026, 1, 1, tzinfo=UTC)},
        {"state": "purged"},
    ],
)
def test_only_live_extracted_resources_are_searched(alice: Person, columns: dict[str, Any]) -> None:
    make_resource(alice, **columns)
    engine = ScriptedEngine()
    run_search(alice, engine, "resources")
    assert engine.calls == 0


def test_resources_of_another_scope_are_not_searched(alice: Person) -> None:
    make_resource(alice, project_id="other")
    engine = ScriptedEngine()
    run_search(alice, engine, "resources")
    assert engine.calls == 0


def test_only_the_first_scope_requests_the_profile(alice: Person) -> None:
    make_resource(alice)
    engine = ScriptedEngine([], [], [])
    run_search(alice, engine, conversation_id="c1", include_profile=True)
    assert [request.include_profile for request in engine.received] == [True, False, False]


# --- merging ---------------------------------------------------------------------------------------------------------


def test_a_memory_of_two_scopes_has_its_best_score_and_most_specific_scope(alice: Person) -> None:
    engine = ScriptedEngine([hit("m", 0.3)], [hit("m", 0.9)])
    answer = run_search(alice, engine, "current_chat", "all_user_memory", conversation_id="c1")
    assert [(found.hit.score, found.scope) for found in answer.results] == [(0.9, "current_chat")]


def test_results_are_sorted_by_score_and_those_without_are_last(alice: Person) -> None:
    engine = ScriptedEngine([hit("none", None), hit("low", 0.1), hit("zero", 0.0), hit("high", 2.5)])
    assert ids_of(run_search(alice, engine, "all_user_memory")) == ["high", "low", "zero", "none"]


def test_equal_scores_are_ordered_by_time_and_then_by_id(alice: Person) -> None:
    hits = [hit("b", created_at_ms=5), hit("a", created_at_ms=5), hit("new", created_at_ms=9)]
    for order in (hits, hits[::-1]):
        assert ids_of(run_search(alice, ScriptedEngine(order), "all_user_memory")) == ["new", "a", "b"]


def test_each_scope_returns_at_most_top_k(alice: Person) -> None:
    chat = [hit(f"c{number}", 0.1) for number in range(5)]
    everything = [hit(f"a{number}", 0.9) for number in range(5)]
    answer = run_search(
        alice, ScriptedEngine(chat, everything), "current_chat", "all_user_memory", conversation_id="c1", top_k=3
    )
    assert ids_of(answer) == ["a0", "a1", "a2", "c0", "c1", "c2"]


def test_profiles_and_unprocessed_messages_do_not_count_towards_top_k(alice: Person) -> None:
    extras = [hit("p", None, memory_type="profile"), hit("u", 0.95, memory_type="unprocessed_message")]
    engine = ScriptedEngine([*extras, hit("one", 0.9), hit("two", 0.8)])
    assert ids_of(run_search(alice, engine, "all_user_memory", top_k=1)) == ["u", "one", "p"]


def test_a_degraded_method_has_a_reason(alice: Person) -> None:
    answer = run_search(alice, ScriptedEngine([hit("m")], degraded="no endpoint"), "all_user_memory")
    report = answer.scopes["all_user_memory"]
    assert (answer.method, report.degraded, report.found, report.sessions) == ("keyword", "no endpoint", 1, None)


# --- untrusted hits --------------------------------------------------------------------------------------------------


def test_hits_of_other_sessions_are_dropped(alice: Person) -> None:
    engine = ScriptedEngine([hit("own"), hit("foreign", session_id="chat:c2")])
    assert ids_of(run_search(alice, engine, "current_chat", conversation_id="c1")) == ["own"]


@pytest.mark.parametrize("session_id", ["resource:bob:r_1", "memory_edit:bob", "resource:alice.b:r_1"])
def test_hits_of_sessions_that_name_another_user_are_dropped(alice: Person, session_id: str) -> None:
    engine = ScriptedEngine([hit("foreign", session_id=session_id), hit("own", session_id="memory_edit:alice")])
    assert ids_of(run_search(alice, engine, "all_user_memory")) == ["own"]


def test_a_profile_without_a_session_belongs_to_every_scope(alice: Person) -> None:
    engine = ScriptedEngine([hit("p", None, memory_type="profile", session_id=None), hit("e", session_id=None)])
    assert ids_of(run_search(alice, engine, "current_chat", conversation_id="c1")) == ["p"]


# --- files -----------------------------------------------------------------------------------------------------------


def attached_names(person: Person, raw: dict[str, Any], session_id: str = "chat:c1") -> list[str]:
    answer = run_search(person, ScriptedEngine([hit("m", raw=raw, session_id=session_id)]), "all_user_memory")
    return sorted(row.name for row in answer.results[0].attachments)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("contract.pdf", "contract.pdf"),
        ("contract.pdf", "see CONTRACT.PDF."),
        ("contract.pdf", "[PDF: contract.pdf]\nthe text"),
        ("contract.pdf", "file:///srv/contract.pdf?x=1"),
        ("合同.pdf", "请看合同.pdf附件"),
        ("Résumé.pdf", "the re\u0301sume\u0301.pdf of"),
    ],
)
def test_a_file_whose_full_name_is_in_a_string_is_attached(alice: Person, name: str, text: str) -> None:
    make_attachment(alice, "chat:c1", name)
    assert attached_names(alice, {"deep": [{"episode": text}]}) == [name]


@pytest.mark.parametrize(
    "raw",
    [
        {"episode": "contract"},
        {"episode": "mycontract.pdf"},
        {"episode": "old-contract.pdf"},
        {"episode": "contract.pdf.zip"},
        {"contract.pdf": "only a key"},
    ],
)
def test_a_file_whose_full_name_is_not_in_a_string_is_not_attached(alice: Person, raw: dict[str, Any]) -> None:
    make_attachment(alice, "chat:c1", "contract.pdf")
    assert attached_names(alice, raw) == []


def test_a_resource_is_attached_to_all_hits_of_its_session(alice: Person) -> None:
    make_resource(alice)
    make_attachment(alice, "resource:alice:r_1", "photo.png")
    assert attached_names(alice, {"episode": "thirty days"}, "resource:alice:r_1") == ["contract.pdf"]


def test_files_of_other_sessions_and_users_are_not_attached(alice: Person, bob: Person) -> None:
    make_attachment(alice, "chat:c2", "contract.pdf")
    make_attachment(bob, "chat:c1", "contract.pdf")
    make_attachment(alice, "chat:c1", "contract.pdf", project_id="other")
    assert attached_names(alice, {"episode": "contract.pdf"}) == []


def test_only_hits_of_resource_sessions_have_a_resource(alice: Person) -> None:
    hits = [hit("r", 0.9, session_id="resource:alice:r_1"), hit("e", 0.8, session_id="memory_edit:alice")]
    answer = search_answer(run_search(alice, ScriptedEngine(hits), "all_user_memory"), View("x"))
    assert [(result["resource_id"], result["resource_uri"]) for result in answer["results"]] == [
        ("r_1", "resource://alice/r_1"),
        (None, None),
    ]


# --- decisions that the engine does not know -------------------------------------------------------------------------


def add_decision(person: Person, kind: type[Tombstone | Override], memory_id: str = "", **values: Any) -> None:
    scope = {"app_id": "default", "project_id": "default"}
    kind.objects.create(user_id=person.user_pk, memory_id=memory_id, **{**scope, **values})


def test_deleted_hits_are_dropped_and_counted(alice: Person) -> None:
    add_decision(alice, Tombstone, "gone")
    add_decision(alice, Tombstone, session_id="chat:c2")
    hits = [hit("gone", 0.9), hit("with-session", 0.8, session_id="chat:c2"), hit("one", 0.5), hit("two", 0.4)]
    answer = run_search(alice, ScriptedEngine(hits), "all_user_memory", top_k=1)
    assert ids_of(answer) == ["one"]
    assert answer.scopes["all_user_memory"].hidden == 2


def test_only_active_decisions_of_the_owner_apply(alice: Person, bob: Person) -> None:
    add_decision(bob, Tombstone, "m")
    add_decision(alice, Tombstone, "m", project_id="other")
    add_decision(alice, Tombstone, "m", undone_at=timezone.now())
    add_decision(alice, Override, "m", original_text="text of m", text="new", undone_at=timezone.now())
    (found,) = run_search(alice, ScriptedEngine([hit("m")]), "all_user_memory").results
    assert (found.hit.text, found.override_id) == ("text of m", None)


def test_an_override_replaces_the_old_text_in_raw_too(alice: Person) -> None:
    add_decision(alice, Override, "m", original_text="text of m", text="new words")
    raw = {"episode": "text of m", "atomic_facts": [{"content": "text of m, and more"}], "summary": "else"}
    answer = run_search(alice, ScriptedEngine([hit("m", raw=raw)]), "all_user_memory")
    (found,) = answer.results
    assert found.hit.text == "new words"
    assert found.hit.raw == {
        "episode": "new words",
        "atomic_facts": [{"content": "new words, and more"}],
        "summary": "else",
    }
    assert found.override_id is not None
    assert answer.scopes["all_user_memory"].replaced == 1


def test_decisions_are_found_by_index(alice: Person) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL plans by what the tables hold")
    names = [f"name-{number}" for number in range(20)]
    with CaptureQueriesContext(connection) as captured:
        decisions(alice.owner, names, names)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {captured[0]['sql']}")
        plans = [row[3] for row in cursor.fetchall() if "SEARCH memories_tombstone" in row[3]]
    assert ["session_id=?" in plan for plan in plans] == [False, True]
    assert all("memory_id=?" in plan for plan in plans[:1])
