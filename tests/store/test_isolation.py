"""Users are isolated: random operations on the engine agree with a model made of dictionaries."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import EngineRefused
from engines.embedded.engine import EmbeddedEngine
from store import derived
from store.index import keyword
from store.models import IndexStatistics, Memory, Session
from store.types import Owner, SearchRequest
from tests.conftest import Person, make_person
from tests.store.conftest import NOON_MS, remember, search, text_message, texts
from tests.store.index_state import assert_consistent

NAMES = ("a", "A", "a.b", "b")
SESSIONS = ("chat:c1", "chat:c2", "resource:a:r_1")
PROJECTS = ("default", "p2")
WORDS = ("payment", "zebra", "付款", "合同", "2026-05-01", "🎉", "O'Brien", "C++")

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "flush", "delete"]),
        st.sampled_from(NAMES),
        st.sampled_from(PROJECTS),
        st.sampled_from(SESSIONS),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
        st.integers(1, 3),
    ),
    max_size=25,
)


class ModelEngine:
    """Model of the engine: the texts of each owner in plain dictionaries."""

    def __init__(self) -> None:
        self.texts: defaultdict[Owner, dict[str, dict[tuple[str, int], str]]] = defaultdict(lambda: defaultdict(dict))
        self.deleted: set[tuple[Owner, str]] = set()

    def apply(self, engine: EmbeddedEngine, owner: Owner, operation: str, session: str, text: str, at: int) -> None:
        if operation == "delete":
            engine.delete(owner, session)
            self.deleted.add((owner, session))
            self.texts[owner].pop(session, None)
        elif operation == "flush":
            engine.flush(owner, session)
        else:
            self.add(engine, owner, session, text, at)

    def add(self, engine: EmbeddedEngine, owner: Owner, session: str, text: str, at: int) -> None:
        message = text_message(text, by=owner.user_id, at=NOON_MS + at)
        if (owner, session) in self.deleted:
            with pytest.raises(EngineRefused):
                engine.add(owner, session, [message])
            return
        engine.add(owner, session, [message])
        self.texts[owner][session][text, at] = text

    def matches(self, owner: Owner, word: str, sessions: tuple[str, ...]) -> list[str]:
        return sorted(
            text for session in sessions for text in self.texts[owner][session].values() if word in text.split()
        )


def search_words(engine: EmbeddedEngine, owner: Owner, sessions: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the matches of each word in the sessions."""
    requests = [SearchRequest(word, top_k=100, session_ids=sessions) for word in WORDS]
    results = engine.search(owner, requests)
    return {word: sorted(texts(list(result.hits))) for word, result in zip(WORDS, results, strict=True)}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OPERATIONS)
def test_users_find_all_their_own_memories_and_no_others(
    engine: EmbeddedEngine, users: dict[str, Person], operations: list[Any]
) -> None:
    with transaction.atomic():
        model = ModelEngine()
        owners = {(name, p): Owner(users[name].user_pk, name, "default", p) for name in NAMES for p in PROJECTS}
        for operation, name, project, session, text, at in operations:
            model.apply(engine, owners[name, project], operation, session, text, at)
        for owner in owners.values():
            assert_consistent(owner)
            assert search_words(engine, owner, SESSIONS) == {
                word: model.matches(owner, word, SESSIONS) for word in WORDS
            }
            some = SESSIONS[:1]
            assert search_words(engine, owner, some) == {word: model.matches(owner, word, some) for word in WORDS}
        transaction.set_rollback(True)


@pytest.fixture
def users(db: Any) -> dict[str, Person]:
    return {name: make_person(name) for name in NAMES}


def test_scores_do_not_depend_on_memories_of_others(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    remember(engine, alice.owner, "a late payment", "a zebra", "the payment plan of May")
    before = search(engine, alice.owner, "payment of the zebra")
    remember(engine, bob.owner, *["zebra zebra payment"] * 1, *[f"zebra {number}" for number in range(50)])
    assert search(engine, alice.owner, "payment of the zebra") == before


def test_the_same_session_id_of_two_users_is_two_sessions(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    remember(engine, alice.owner, "payment")
    remember(engine, bob.owner, "payment")
    assert Session.objects.filter(session_id="chat:c1").count() == 2
    assert len({memory.memory_id for memory in Memory.objects.all()}) == 2


def test_a_posting_that_refers_to_the_memory_of_another_user_is_ignored(
    engine: EmbeddedEngine, alice: Person, bob: Person
) -> None:
    """The owner prefix of the terms separates look-ups; the owner of each row is checked as well."""
    remember(engine, alice.owner, "the payment is my own")
    remember(engine, bob.owner, "payment")
    foreign = Memory.objects.get(user_id=bob.user_pk)
    derived.remove(bob.owner, {foreign.pk: keyword.entry_of(foreign)})
    derived.add(alice.owner, {foreign: keyword.IndexEntry.of({"payment": 9}, 1)})
    assert texts(search(engine, alice.owner, "payment", top_k=1)) == ["the payment is my own"]


MEMORIES_PER_USER = 1000


def add_memories_of_others(others: int) -> None:
    """Create a thousand memories for each of `others` users, which contain the words that the tests search for."""
    for number in range(others):
        person = make_person(f"other{number}")
        owner = person.owner
        session = Session.objects.create(user_id=owner.user_pk, session_id="chat:c1", kind="chat")
        first = number * MEMORIES_PER_USER + 1_000_000
        with connection.cursor() as cursor:
            cursor.execute(_MEMORIES.format(series=_series(first)), [*keyword.owner_values(owner), session.pk])
            prefix = keyword.prefix_of(owner)
            cursor.execute(_KEYWORDS[connection.vendor].format(series=_series(first), p=prefix))
        IndexStatistics.objects.create(
            user_id=owner.user_pk,
            app_id="default",
            project_id="default",
            documents=MEMORIES_PER_USER,
            tokens=MEMORIES_PER_USER * 4,
        )


def _series(first: int) -> str:
    last = first + MEMORIES_PER_USER - 1
    if connection.vendor == "postgresql":
        return f"SELECT n FROM generate_series({first}, {last}) AS series(n)"
    counted = f"SELECT {first} UNION ALL SELECT n + 1 FROM series WHERE n < {last}"
    return f"WITH RECURSIVE series(n) AS ({counted}) SELECT n FROM series"


_MEMORIES = """
    INSERT INTO store_memory (id, user_id, app_id, project_id, session_id, memory_id, agent_id, memory_type, category,
        sender_id, speaker, text, original_text, batch_id, seq, sources, supersedes,
        payload, created_at_ms, origin, is_indexed, token_count)
    SELECT n, %s, %s, %s, %s, 'm' || n, '', 'episode', '', 'other', 'other', 'a payment of zebra 付款', '', '',
        n, '[]', '[]', '{{}}', n, 'embedded', true, 4
    FROM ({series}) numbers
"""
_KEYWORDS = {
    "sqlite": "INSERT INTO store_keywords (rowid, tokens) "
    "SELECT n, '{p}payment {p}zebra {p}付款 {p}w' || (n % 500) FROM ({series}) numbers",
    "postgresql": "INSERT INTO store_keywords (memory_id, tokens) "
    "SELECT n, ('{p}payment:1 {p}zebra:1 {p}付款:1 {p}w' || (n % 500) || ':1')::tsvector FROM ({series}) numbers",
}


@pytest.mark.parametrize("others", [10, pytest.param(100, marks=pytest.mark.torture)])
def test_results_do_not_change_among_many_memories_of_others(
    engine: EmbeddedEngine, alice: Person, django_assert_num_queries: Any, others: int
) -> None:
    questions = ("payments", "付款", "zebras in May", "款")
    remember(engine, alice.owner, "a late payment", "甲方合同付款", "the zebra came in May")
    alone = [search(engine, alice.owner, question) for question in questions]
    assert all(alone)
    add_memories_of_others(others)
    with django_assert_num_queries(2 * len(questions)):
        assert [search(engine, alice.owner, question) for question in questions] == alone
    assert Memory.objects.count() == others * MEMORIES_PER_USER + 3
