"""Search with the embedded engine: matches, their order and the number of statements."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.errors import InvalidInput
from engines.embedded.engine import EmbeddedEngine
from store.index import postgresql
from store.models import Memory, Session
from store.search import records
from store.types import Owner, SearchRequest
from tests.conftest import Person
from tests.store.conftest import NOON_MS, file_message, remember, search, text_message, texts

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_chinese_word_of_two_characters_finds_its_memory(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "甲方应在三十日内付款。", "今天天气很好。")
    assert texts(search(engine, alice.owner, "付款")) == ["甲方应在三十日内付款。"]
    assert texts(search(engine, alice.owner, "款")) == ["甲方应在三十日内付款。"]


def test_an_english_word_finds_its_inflections(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "The payments were delayed.", "She bought a house.", "Nothing else.")
    assert texts(search(engine, alice.owner, "paying a payment")) == ["The payments were delayed."]
    assert texts(search(engine, alice.owner, "did she buy it?")) == ["She bought a house."]


def test_a_file_is_found_by_the_common_names_of_its_type(engine: EmbeddedEngine, alice: Person, tmp_path: Path) -> None:
    photo = tmp_path / "dsc_0815.jpg"
    photo.write_bytes(b"\xff\xd8\xff")
    engine.add(alice.owner, "resource:alice:r_1", [file_message(photo, kind="image", mime_type="image/jpeg")])
    remember(engine, alice.owner, "We met at noon.")
    assert (
        texts(search(engine, alice.owner, "the photo"))
        == texts(search(engine, alice.owner, "照片"))
        == ["dsc_0815.jpg"]
    )


def test_another_user_finds_nothing(engine: EmbeddedEngine, alice: Person, charlie: Person) -> None:
    remember(engine, alice.owner, "The payment is due.")
    assert search(engine, charlie.owner, "payment") == []


def test_another_project_of_the_same_user_finds_nothing(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "The payment is due.")
    assert search(engine, Owner(alice.user_pk, "alice", "default", "other"), "payment") == []
    assert search(engine, Owner(alice.user_pk, "alice", "other", "default"), "payment") == []


@pytest.mark.parametrize(
    "query",
    ['"', "*", "NEAR", "AND", "OR NOT", "payment*", '"payment', "NEAR(payment, 2)", "payment AND", "tokens:payment",
     "-payment", "'); DROP TABLE store_memory; --", "\\", "':*A", "a" * 2000, "付" * 2000, "% _",
     "\x00", "\ud800", " ", "𝒫ayment", "{}[]()^~"],
)  # fmt: skip
def test_query_operators_and_unusual_queries_are_harmless(engine: EmbeddedEngine, alice: Person, query: str) -> None:
    remember(engine, alice.owner, "The payment is due.")
    for hit in search(engine, alice.owner, query):
        assert hit.text == "The payment is due."


def test_a_sign_finds_the_memory_that_contains_it(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, 'Use "quotes" here', "a -> b", "2 * 3", "this AND that", "🎉", "C:\\temp it's")
    expected = {
        '"': 'Use "quotes" here',
        "->": "a -> b",
        "*": "2 * 3",
        "AND": "this AND that",
        "🎉": "🎉",
        "\\": "C:\\temp it's",
    }
    for query, text in expected.items():
        assert texts(search(engine, alice.owner, query))[0] == text


def test_a_rare_word_weighs_more_than_a_common_one(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, *[f"the meeting number {word}" for word in "abcdefgh"], "a zebra")
    assert texts(search(engine, alice.owner, "zebra meeting"))[0] == "a zebra"


def test_equal_memories_are_ordered_latest_first(engine: EmbeddedEngine, alice: Person) -> None:
    for number in (2, 3, 1):
        engine.add(alice.owner, f"chat:{number}", [text_message(f"payment {number}a", at=NOON_MS + number)])
    assert texts(search(engine, alice.owner, "payment")) == ["payment 3a", "payment 2a", "payment 1a"]


def test_a_turn_next_to_a_match_ranks_before_a_similar_one_elsewhere(engine: EmbeddedEngine, alice: Person) -> None:
    remember(
        engine,
        alice.owner,
        "Where did you go on holiday with your sister?",
        "We took a trip to Norway.",
        session="chat:a",
    )
    remember(engine, alice.owner, "We took a trip to Sweden.", "Fine.", session="chat:b")
    found = texts(search(engine, alice.owner, "holiday trip with the sister"))
    assert found.index("We took a trip to Norway.") < found.index("We took a trip to Sweden.")


def test_turns_of_the_named_speaker_rank_first(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "Melanie: I paint lakes.", session="chat:a")
    remember(engine, alice.owner, "Caroline: I paint lakes.", session="chat:b")
    assert texts(search(engine, alice.owner, "What does Melanie paint?"))[0] == "Melanie: I paint lakes."
    assert texts(search(engine, alice.owner, "What does Caroline paint?"))[0] == "Caroline: I paint lakes."


def test_turns_of_the_named_speaker_rank_first_on_every_fact_page(engine: EmbeddedEngine, alice: Person) -> None:
    """A fact page contains 256 memories and has its own list of names."""
    remember(engine, alice.owner, "Caroline: I paint lakes.", *["Caroline: Nothing new."] * 270, session="chat:a")
    remember(engine, alice.owner, "Melanie: I paint lakes.", session="chat:b")
    for name in ("Melanie", "Caroline"):
        assert texts(search(engine, alice.owner, f"What does {name} paint?"))[0] == f"{name}: I paint lakes."


def test_a_turn_is_found_by_its_date(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(
        alice.owner,
        "chat:c1",
        [text_message("We met", at=NOON_MS), text_message("We parted", at=NOON_MS + 5 * 86_400_000)],
    )
    assert texts(search(engine, alice.owner, "2026年5月28日")) == ["We met"]
    assert texts(search(engine, alice.owner, "in May 2026")) == ["We met"]
    assert texts(search(engine, alice.owner, "on 27 May 2026")) == []


def test_scores_are_between_zero_and_one_and_the_sum_of_their_parts(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, *["payment " * count for count in range(1, 40)])
    hits = search(engine, alice.owner, "payment alice")
    assert len(hits) == 39
    for rank, hit in enumerate(hits, start=1):
        leg = hit.legs["keyword"]
        assert hit.score is not None
        assert 0 < hit.score <= 1
        assert hit.score == hit.raw["score"] == leg["score"] == pytest.approx(sum(leg["parts"].values()))
        assert leg["rank"] == rank
        assert leg["matched"] == ["payment"]


def test_the_score_of_a_memory_does_not_depend_on_the_sessions_searched(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "payment due", "payment late", session="chat:a")
    remember(engine, alice.owner, "payment made", session="chat:b")
    everywhere = {hit.memory_id: hit.score for hit in search(engine, alice.owner, "late payment")}
    for hit in search(engine, alice.owner, "late payment", session_ids=("chat:a",)):
        assert everywhere[hit.memory_id] == hit.score


def test_only_the_requested_sessions_are_searched(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "payment a", session="chat:a")
    remember(engine, alice.owner, "payment b", session="chat:b")
    many = (*(f"chat:{number}" for number in range(2000)), "chat:b")
    assert texts(search(engine, alice.owner, "payment", session_ids=many)) == ["payment b"]
    assert search(engine, alice.owner, "payment", session_ids=()) == []


def test_only_the_requested_agent_is_searched(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(
        alice.owner,
        "chat:a",
        [text_message("payment by me"), text_message("payment by main", by="main", role="assistant", at=NOON_MS + 1)],
    )
    assert texts(search(engine, alice.owner, "payment", agent_id="main")) == ["payment by main"]


def test_filters_narrow_the_results(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "payment a", "payment b", session="chat:a")
    remember(engine, alice.owner, "payment c", session="chat:b")
    late = {"AND": [{"session_id": "chat:a"}, {"timestamp": {"gt": NOON_MS}}]}
    assert texts(search(engine, alice.owner, "payment", filters=late)) == ["payment b"]
    assert search(engine, alice.owner, "payment", filters={"type": "Document"}) == []
    assert (
        len(search(engine, alice.owner, "payment", filters={"parent_type": "session", "sender_id": {"in": ["alice"]}}))
        == 3
    )
    with pytest.raises(InvalidInput):
        search(engine, alice.owner, "payment", filters={"user_id": "bob"})


def test_top_k_counts_memories_and_unprocessed_messages_separately(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, *[f"payment {number}" for number in range(5)], session="chat:a")
    engine.add(alice.owner, "chat:b", [text_message(f"payment {number}", at=NOON_MS + number) for number in range(5)])
    kinds = [hit.memory_type for hit in search(engine, alice.owner, "payment", top_k=2)]
    assert sorted(kinds) == ["episode", "episode", "unprocessed_message", "unprocessed_message"]


def test_hidden_memories_do_not_count_toward_top_k(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, *["payment payment"] * 5, "a payment of three", session="chat:a")
    remember(engine, alice.owner, "payment payment", session="chat:hidden")
    remember(engine, alice.owner, "payment payment", session="chat:deleted")
    payments = Memory.objects.filter(text="payment payment", session__session_id="chat:a")
    payments.update(state="trashed", state_since=LONG_AGO)
    Session.objects.filter(session_id="chat:hidden").update(state="trashed", state_since=LONG_AGO)
    Session.objects.filter(session_id="chat:deleted").update(state="purged")
    assert texts(search(engine, alice.owner, "payment", top_k=1)) == ["a payment of three"]


def test_any_number_of_requests_costs_two_statements(
    engine: EmbeddedEngine, alice: Person, django_assert_num_queries: Any
) -> None:
    remember(engine, alice.owner, "payment a", "contract b")
    requests = [SearchRequest("payment"), SearchRequest("payment", session_ids=("chat:c1",)), SearchRequest("contract")]
    with django_assert_num_queries(2):
        found = engine.search(alice.owner, requests)
    assert [texts(list(result.hits)) for result in found] == [["payment a"], ["payment a"], ["contract b"]]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL knows how many memories a user has")
@pytest.mark.parametrize("memory_ids", [[], ["em_1"]])
def test_reading_a_few_memories_does_not_scan_all_of_the_user(
    engine: EmbeddedEngine, alice: Person, memory_ids: list[str]
) -> None:
    remember(engine, alice.owner, "payment", "invoice")
    with CaptureQueriesContext(connection) as captured, connection.cursor() as cursor:
        assert (
            len(records.rows_and_overridden(alice.owner, Memory.objects.values_list("pk", flat=True), memory_ids)) == 2
        )
        cursor.execute(f"EXPLAIN QUERY PLAN {captured[-1]['sql']}")
        steps = [step for *_, step in cursor.fetchall() if " m " in step]
    assert steps
    assert all("(rowid=?)" in step or "(memory_id=?" in step for step in steps)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no other plan for a full-text query")
@pytest.mark.parametrize("words", [1, 60])
def test_a_query_does_not_scan_the_memories_of_others(engine: EmbeddedEngine, alice: Person, words: int) -> None:
    remember(engine, alice.owner, "word0")
    with CaptureQueriesContext(connection) as captured, connection.cursor() as cursor:
        postgresql.add(cursor, "others", [(-number, f"word{number % 90} day") for number in range(1, 5001)])
        cursor.execute("ANALYZE store_keywords")
        assert texts(search(engine, alice.owner, " ".join(f"word{number}" for number in range(words)))) == ["word0"]
        [statement] = [query["sql"] for query in captured if "store_keywords k" in query["sql"]]
        cursor.execute(f"EXPLAIN {statement}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "store_keywords_tokens" in plan, plan


def test_a_query_without_matches_costs_one_statement(
    engine: EmbeddedEngine, alice: Person, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        assert search(engine, alice.owner, "payment") == []
    with django_assert_num_queries(0):
        assert search(engine, alice.owner, "   ") == []


def test_hybrid_without_a_model_falls_back_to_keyword_and_reports_it(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "payment a")
    [result] = engine.search(alice.owner, [SearchRequest("payment", method="hybrid")])
    assert result.method == "keyword"
    assert "No embedding model is configured" in (result.degraded or "")
    assert len(result.hits) == 1


@pytest.mark.parametrize("method", ["vector", "agentic"])
def test_a_method_without_its_endpoint_is_rejected(engine: EmbeddedEngine, alice: Person, method: Any) -> None:
    with pytest.raises(InvalidInput, match=f"{method} needs a model that is not configured; use keyword or hybrid"):
        search(engine, alice.owner, "payment", method=method)


def test_the_record_of_an_episode_has_the_shape_of_everos(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "payment a")
    [hit] = search(engine, alice.owner, "payment")
    assert hit.raw == {
        "id": hit.memory_id, "user_id": "alice", "app_id": "default", "project_id": "default", "session_id": "chat:c1",
        "timestamp": "2026-05-28T20:26:40.000Z", "sender_ids": ["alice"], "summary": "payment a",
        "subject": "alice, 2026-05-28", "episode": "payment a", "type": "Conversation", "category": "full_context_user",
        "score": hit.score, "atomic_facts": [],
    }  # fmt: skip


def test_the_record_of_an_unprocessed_message_has_the_shape_of_everos(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [text_message("payment a", by="main", role="assistant")])
    [hit] = search(engine, alice.owner, "payment")
    assert hit.memory_type == "unprocessed_message"
    assert hit.raw == {
        "id": hit.memory_id, "app_id": "default", "project_id": "default", "session_id": "chat:c1", "sender_id": "main",
        "sender_name": None, "role": "assistant", "content": "payment a", "timestamp": "2026-05-28T20:26:40.000Z",
        "tool_calls": None, "tool_call_id": None,
    }  # fmt: skip


def test_a_thing_before_a_colon_is_no_speaker_whose_name_says_nothing(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "Running shoes: size 44", "Nothing else.")
    assert texts(search(engine, alice.owner, "What running shoes do I wear?")) == ["Running shoes: size 44"]
