"""Nobody ever finds, changes or weighs by what is another's: random work against plain dictionaries."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import EngineRefused
from engines.embedded.engine import EmbeddedEngine
from store.index import keyword
from store.models import IndexStatistics, Memory, Session
from store.types import Owner, SearchRequest
from tests.conftest import Person, make_person
from tests.store.conftest import NOON_MS, ask, remember, said, texts
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


class Oracle:
    """What each owner should find: a dictionary per owner, which knows nothing of indexes."""

    def __init__(self) -> None:
        self.said: defaultdict[Owner, dict[str, dict[tuple[str, int], str]]] = defaultdict(lambda: defaultdict(dict))
        self.deleted: set[tuple[Owner, str]] = set()

    def apply(self, engine: EmbeddedEngine, owner: Owner, operation: str, session: str, text: str, at: int) -> None:
        if operation == "delete":
            engine.delete(owner, session)
            self.deleted.add((owner, session))
            self.said[owner].pop(session, None)
        elif operation == "flush":
            engine.flush(owner, session)
        else:
            self._add(engine, owner, session, text, at)

    def _add(self, engine: EmbeddedEngine, owner: Owner, session: str, text: str, at: int) -> None:
        message = said(text, by=owner.user_id, at=NOON_MS + at)
        if (owner, session) in self.deleted:
            with pytest.raises(EngineRefused):
                engine.add(owner, session, [message])
            return
        engine.add(owner, session, [message])
        self.said[owner][session][text, at] = text

    def finds(self, owner: Owner, word: str, sessions: tuple[str, ...]) -> list[str]:
        return sorted(
            text for session in sessions for text in self.said[owner][session].values() if word in text.split()
        )


def found_by(engine: EmbeddedEngine, owner: Owner, sessions: tuple[str, ...]) -> dict[str, list[str]]:
    """What each word finds in the sessions."""
    requests = [SearchRequest(word, top_k=100, session_ids=sessions) for word in WORDS]
    results = engine.search(owner, requests)
    return {word: sorted(texts(list(result.hits))) for word, result in zip(WORDS, results, strict=True)}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OPERATIONS)
def test_everyone_finds_all_of_their_own_and_nothing_else(
    engine: EmbeddedEngine, people: dict[str, Person], operations: list[Any]
) -> None:
    with transaction.atomic():
        oracle = Oracle()
        owners = {(name, p): Owner(people[name].user_pk, name, "default", p) for name in NAMES for p in PROJECTS}
        for operation, name, project, session, text, at in operations:
            oracle.apply(engine, owners[name, project], operation, session, text, at)
        for owner in owners.values():
            assert_consistent(owner)
            assert found_by(engine, owner, SESSIONS) == {word: oracle.finds(owner, word, SESSIONS) for word in WORDS}
            some = SESSIONS[:1]
            assert found_by(engine, owner, some) == {word: oracle.finds(owner, word, some) for word in WORDS}
        transaction.set_rollback(True)


@pytest.fixture
def people(db: Any) -> dict[str, Person]:
    return {name: make_person(name) for name in NAMES}


def test_scores_do_not_depend_on_what_others_remember(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    remember(engine, alice.owner, "a late payment", "a zebra", "the payment plan of May")
    before = ask(engine, alice.owner, "payment of the zebra")
    remember(engine, bob.owner, *["zebra zebra payment"] * 1, *[f"zebra {number}" for number in range(50)])
    assert ask(engine, alice.owner, "payment of the zebra") == before


def test_the_same_ids_of_two_users_are_two_sessions(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    remember(engine, alice.owner, "payment")
    remember(engine, bob.owner, "payment")
    assert Session.objects.filter(session_id="chat:c1").count() == 2
    assert len({memory.memory_id for memory in Memory.objects.all()}) == 2


def test_a_posting_that_points_at_another_s_memory_is_not_believed(
    engine: EmbeddedEngine, alice: Person, bob: Person
) -> None:
    """The prefix keeps lookups apart; the rows' own owner is asked again."""
    remember(engine, alice.owner, "the payment is my own")
    remember(engine, bob.owner, "payment")
    foreign = Memory.objects.get(user_id=bob.user_pk)
    keyword.remove(bob.owner, {foreign.pk: keyword.entry_of(foreign)})
    keyword.add(alice.owner, {foreign: keyword.Entry.of({"payment": 9}, 1)})
    assert texts(ask(engine, alice.owner, "payment", top_k=1)) == ["the payment is my own"]


OTHERS, EACH = 100, 1000


def crowd() -> None:
    """100,000 memories of a hundred other users, holding the very words that the tests look for."""
    for number in range(OTHERS):
        person = make_person(f"other{number}")
        owner = person.owner
        session = Session.objects.create(user_id=owner.user_pk, session_id="chat:c1", kind="chat")
        first = number * EACH + 1_000_000
        with connection.cursor() as cursor:
            cursor.execute(_MEMORIES.format(series=_series(first)), [*keyword.owner_values(owner), session.pk])
            prefix = keyword.prefix_of(owner)
            cursor.execute(_KEYWORDS[connection.vendor].format(series=_series(first), p=prefix))
        IndexStatistics.objects.create(
            user_id=owner.user_pk, app_id="default", project_id="default", documents=EACH, tokens=EACH * 4
        )


def _series(first: int) -> str:
    last = first + EACH - 1
    if connection.vendor == "postgresql":
        return f"SELECT n FROM generate_series({first}, {last}) AS series(n)"
    counted = f"SELECT {first} UNION ALL SELECT n + 1 FROM series WHERE n < {last}"
    return f"WITH RECURSIVE series(n) AS ({counted}) SELECT n FROM series"


_MEMORIES = """
    INSERT INTO store_memory (id, user_id, app_id, project_id, session_id, memory_id, agent_id, memory_type, category,
        sender_id, speaker, text, batch_id, seq, payload, created_at_ms, origin, is_indexed, token_count)
    SELECT n, %s, %s, %s, %s, 'm' || n, '', 'episode', '', 'other', 'other', 'a payment of zebra 付款', '', n, '{{}}',
        n, 'embedded', true, 4
    FROM ({series}) numbers
"""
_KEYWORDS = {
    "sqlite": "INSERT INTO store_keywords (rowid, tokens) "
    "SELECT n, '{p}payment {p}zebra {p}付款 {p}w' || (n % 500) FROM ({series}) numbers",
    "postgresql": "INSERT INTO store_keywords (memory_id, tokens) "
    "SELECT n, ('{p}payment:1 {p}zebra:1 {p}付款:1 {p}w' || (n % 500) || ':1')::tsvector FROM ({series}) numbers",
}


def test_among_100_000_memories_of_others_one_finds_the_same_as_alone(
    engine: EmbeddedEngine, alice: Person, django_assert_num_queries: Any
) -> None:
    questions = ("payments", "付款", "zebras in May", "款")
    remember(engine, alice.owner, "a late payment", "甲方合同付款", "the zebra came in May")
    alone = [ask(engine, alice.owner, question) for question in questions]
    assert all(alone)
    crowd()
    with django_assert_num_queries(2 * len(questions)):
        assert [ask(engine, alice.owner, question) for question in questions] == alone
    assert Memory.objects.count() == OTHERS * EACH + 3
