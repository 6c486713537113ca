"""Of a message and the memory that a remote derived from it, one is shown: in searches, lists and pages alike."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from engines.embedded.engine import EmbeddedEngine
from memories import queries
from store import browse, cover, writes
from store.browse import Selection
from store.models import Memory, Session
from store.neighbors import context_windows
from store.search.retrieval import rank
from store.table import MemoryTable
from store.types import ListRequest, Owner, SearchRequest, Wording
from tests.conftest import Person
from tests.store.conftest import NOON_MS, remember, search, texts
from tests.store.index_state import assert_consistent

pytestmark = pytest.mark.django_db

COVERED, PLAIN = "The bicycle is crimson", "The bicycle has a bell"
NARRATIVE, OLD, REWORDED = "Her bicycle is red", "A bicycle of long ago", "Her other bicycle is green"
ORIGINAL = "Her other bicycle is blue"
SHOWN = {
    "attached": {PLAIN, NARRATIVE, OLD, REWORDED},
    "answering": {PLAIN, REWORDED},  # the remote ranks the others
    "detached": {COVERED, PLAIN, OLD, REWORDED},
}


def copy(owner: Owner, session: Session, text: str, sources: list[str]) -> Memory:
    """Store a memory as a copy of the remote's."""
    memory = Memory(
        memory_id=f"remote {text}", memory_type="episode", session=session, sender_id=owner.user_id, text=text,
        original_text=text, sources=sources, created_at_ms=NOON_MS, origin="upstream", seq=10,
    )  # fmt: skip
    with transaction.atomic():
        writes.insert(owner, [memory])
    return memory


@pytest.fixture
def stored(engine: EmbeddedEngine, alice: Person) -> dict[str, Memory]:
    """Two messages, one of them covered, and three memories of a remote: one is edited, one has no sources."""
    owner = alice.owner
    remember(engine, owner, COVERED, PLAIN)
    session, message = Session.objects.get(), Memory.objects.get(text=COVERED)
    for text, sources in ((NARRATIVE, [message.memory_id]), (OLD, []), (ORIGINAL, [message.memory_id])):
        copy(owner, session, text, sources)
    engine.replace(owner, {f"remote {ORIGINAL}": Wording(REWORDED, "", None)})
    with transaction.atomic():
        writes.set_cover(owner, {message.memory_id: writes.Cover(is_covered=True)})
    return {memory.text: memory for memory in Memory.objects.all()}


@pytest.fixture(params=["attached", "detached"])
def situation(request: pytest.FixtureRequest, settings: Any) -> str:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:9" if request.param == "attached" else ""
    return str(request.param)


def test_searches_and_lists_show_one_of_both(
    engine: EmbeddedEngine, alice: Person, stored: dict[str, Memory], situation: str
) -> None:
    shown = SHOWN[situation]
    assert_consistent(alice.owner)
    assert set(texts(search(engine, alice.owner, "bicycle"))) == shown
    assert {one.text for one in MemoryTable().list(alice.owner, ListRequest()).memories} == shown
    assert {one.text for one in browse.page(Selection(is_shown=True)).memories} == shown
    assert browse.count(Selection(is_shown=True)) == len(shown)
    assert queries.counts(Session.objects.all())[stored[PLAIN].session_id]["memories"] == len(shown)
    window = context_windows(alice.owner, [stored[PLAIN].memory_id], 10)[stored[PLAIN].memory_id]
    assert {PLAIN, *(one.text for one in (*window.before, *window.after))} == shown


def test_operators_see_all_of_them(alice: Person, stored: dict[str, Memory], situation: str) -> None:
    assert {one.text for one in browse.page(Selection(user_pk=alice.owner.user_pk)).memories} == set(stored)
    assert browse.count(Selection(user_pk=alice.owner.user_pk)) == len(stored)


def test_a_remote_that_answers_ranks_its_own_memories(alice: Person, stored: dict[str, Memory], settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:9"
    [found], _degraded = rank(alice.owner, [SearchRequest("bicycle")], left_out=cover.left_out(remote_ranks=True))
    by_pk = {memory.pk: text for text, memory in stored.items()}
    assert {by_pk[pk] for pk, _score in found} == SHOWN["answering"]


def test_a_message_is_shown_again_when_nothing_covers_it(
    engine: EmbeddedEngine, alice: Person, stored: dict[str, Memory], settings: Any
) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:9"
    with transaction.atomic():
        writes.set_cover(alice.owner, {stored[COVERED].memory_id: writes.Cover()})
    assert set(texts(search(engine, alice.owner, "crimson"))) == {COVERED}
    assert_consistent(alice.owner)


def test_a_message_covered_since_its_ranking_is_not_shown(
    engine: EmbeddedEngine, alice: Person, stored: dict[str, Memory], settings: Any
) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:9"
    Memory.objects.filter(text=PLAIN).update(is_covered=True)  # the pages, read before, do not say so
    assert texts(search(engine, alice.owner, "bell")) == []
