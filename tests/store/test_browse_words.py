"""Words in lists: what is shown and counted is what a plain scan finds, for one user and for all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import MemoryUser
from store import browse, derived, writes
from store.browse import Selection, word_condition
from store.index import keyword
from store.models import IS_LIVE, Memory, Session
from store.table import MemoryTable, visible
from store.text.tokens import query_tokens, required_tokens, tokenize
from store.types import Owner, Wording
from tests.conftest import Person
from tests.store.conftest import NOON_MS
from tests.store.test_browse import ids, matches, read_pages

pytestmark = pytest.mark.django_db

ENGLISH = (
    "green", "tea", "delivery", "deliveries", "contract.pdf", "o'brien", "1,234.50", "PostgreSQL", "café", "RUNNING",
    "runs", "v2.1", "the", "of", "and", "invoice", "#42", "e-mail", "naïve", "2026", "C++", "$", "🎉", "don't",
)  # fmt: skip
CHINESE = ("二号楼的租约", "绿茶", "客户的回复", "要等", "付款合同", "会议", "我喜欢喝茶", "东京タワー")
ROWS = 400


def owner_of(memory: Memory) -> Owner:
    return Owner(memory.user_id, "", memory.app_id, memory.project_id)


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choice((*ENGLISH, *CHINESE)) for _ in range(chance.randint(1, 9)))


def question(chance: random.Random, rows: list[Memory]) -> str:
    """Words, some of them together in a memory, or a piece of Chinese."""
    text = chance.choice(rows).text
    if chance.random() < 0.5:
        return " ".join(chance.sample(text.split(), min(len(text.split()), chance.randint(1, 3))))
    if chance.random() < 0.5:
        begin = chance.randrange(len(chinese := chance.choice(CHINESE)))
        return chinese[begin : begin + chance.randint(1, 4)]
    return chance.choice((*ENGLISH, "zebra", "GREEN Tea", "running deliveries", "2026-05-01"))


@pytest.fixture
def rows() -> list[Memory]:
    """Memories of three users: of our engine and of another, edited, deleted, of a deleted session, settled."""
    chance = random.Random(11)
    users = [MemoryUser.objects.create(user_id=f"user{number}") for number in range(3)]
    sessions = [
        Session.objects.create(user=user, session_id=f"chat:{name}", engine_session_id=f"{name}{user.pk}", kind="chat")
        for user in users
        for name in ("1", "2", "hidden")
    ]
    Memory.objects.bulk_create(_row(chance, chance.choice(sessions), number) for number in range(ROWS))
    sum(derived.fill(batch_rows=90))
    for user in users:
        owner = Owner(user.pk, user.user_id)
        edited = chance.sample([one.memory_id for one in Memory.objects.filter(user=user, state="live")], 20)
        wording = {name: Wording(sentence(chance), "user_memory_fact", 0.5) for name in edited}
        MemoryTable().replace(owner, wording)
    Session.objects.filter(session_id="chat:hidden").update(state="trashed", state_since=timezone.now())
    ninth = [memory.pk for memory in Memory.objects.all()[::9]]
    Memory.objects.filter(pk__in=ninth).update(state="trashed", state_since=timezone.now())
    for memory in Memory.objects.all()[::31]:
        writes.remove(owner_of(memory), [memory])
    for memory in Memory.objects.all()[::37]:
        former = {memory.pk: keyword.entry_of(memory)}
        memory.state, memory.text, memory.is_indexed = "purged", "", False
        writes.replace(owner_of(memory), former, [memory], ["state", "text"])
    live = visible(Memory.objects.filter(IS_LIVE))
    return list(live.order_by("-created_at_ms", "-pk"))


def _row(chance: random.Random, session: Session, number: int) -> Memory:
    origin = chance.choice(["embedded", "embedded", "panel", "upstream"])
    return Memory(
        user_id=session.user_id,
        session=session,
        memory_id=f"m{number}",
        memory_type="episode",
        category=chance.choice(["user_memory_fact", "full_context_user", "full_context_tool", ""]),
        agent_id=chance.choice(["", "main"]),
        text=sentence(chance),
        importance=chance.choice([None, 0.1, 0.9]),
        origin=origin,
        batch_id=chance.choice(["", f"turn-{number // 40}"]),
        seq=number,
        created_at_ms=NOON_MS + chance.randrange(10**9),
    )


def selections(rows: list[Memory]) -> Iterator[Selection]:
    user, since_ms = rows[0].user_id, NOON_MS + 300_000_000
    for given in (
        {}, {"tab": "user"}, {"tab": "full"}, {"categories": ("",)}, {"origin": "panel"}, {"agent_id": "main"},
        {"importance_min": 0.5}, {"since_ms": since_ms}, {"session_id": "chat:1"}, {"tab": "full", "agent_id": "main"},
    ):  # fmt: skip
        yield Selection(**given)  # type: ignore[arg-type]
        yield Selection(user_pk=user, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("questions", [12, pytest.param(200, marks=pytest.mark.torture)])
@pytest.mark.parametrize("is_frequent", [False, True])
def test_shown_and_counted_is_what_a_scan_finds(
    rows: list[Memory], is_frequent: bool, questions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite frequent words take another way, older memories a third one."""
    if is_frequent:
        monkeypatch.setattr(word_condition, "LISTED", 0)
        monkeypatch.setattr(word_condition, "COUNTED", 0)
        monkeypatch.setattr(word_condition, "TOGETHER", ROWS // 2)
    chance = random.Random(3)
    held = {memory.pk: {*tokenize(memory.text)} for memory in rows}
    some = list(selections(rows))
    found = 0
    for number in range(questions):
        asked = question(chance, rows)
        tokens = [token for token in query_tokens(asked) if not token.startswith("said-")]
        holding = [memory for memory in rows if held[memory.pk].issuperset(tokens)]
        for given in some:
            selection = replace(given, words=required_tokens(asked))
            wanted = ids(memory for memory in holding if matches(memory, selection))
            assert ids(browse.page(selection, limit=ROWS).memories) == wanted, (asked, given)
            assert browse.count(selection) == len(wanted), (asked, given)
            found += len(wanted)
            if number % 50 == 0:
                assert read_pages(selection, oldest_first=False) == wanted
                assert read_pages(selection, oldest_first=True) == wanted[::-1]
                turns = browse.turn_page(selection, limit=ROWS).turns
                assert sorted(one.row for turn in turns for one in turn.memories) == sorted(wanted)
                assert [position.row for position in browse.keys(
                    selection, after=None, limit=ROWS, up_to_row=10**9
                )] == wanted[::-1]  # fmt: skip
    assert found > questions


def entries() -> dict[int, set[str]]:
    """The words of all users in the keyword index, by row id."""
    found: dict[int, set[str]] = {}
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT doc, substr(term, 2) FROM store_keyword_postings WHERE term LIKE '=%'")
        else:
            cursor.execute(
                "SELECT memory_id, substr(lexeme, 2) FROM store_keywords, unnest(tsvector_to_array(tokens)) AS lexeme "
                "WHERE starts_with(lexeme, '=')"
            )
        for row, word in cursor.fetchall():
            found.setdefault(row, set()).add(word)
    return found


def test_the_index_holds_what_lists_can_show_and_nothing_else(rows: list[Memory]) -> None:
    shown = visible(Memory.objects.all())
    assert entries() == {memory.pk: {*keyword.entry_of(memory).tokens} for memory in shown}


def test_a_copy_of_before_is_listed_once_the_worker_indexed_it(alice: Person) -> None:
    session = Session.objects.create(user_id=alice.user_pk, session_id="chat:1", engine_session_id="1", kind="chat")
    memory = _row(random.Random(1), session, 0)
    memory.origin, memory.memory_type, memory.text = "upstream", "agent_case", "green tea"
    memory.save()
    asked = Selection(words=required_tokens("green"))
    assert (browse.count(asked), derived.pending_count()) == (0, 1)
    assert sum(derived.fill()) == 1
    assert (browse.count(asked), derived.pending_count()) == (1, 0)
    writes.remove(alice.owner, [Memory.objects.get()])
    assert entries() == {}


def test_a_rebuild_fills_it_again(rows: list[Memory]) -> None:
    before = entries()
    derived.empty_keywords()
    assert entries() == {}
    call_command("rebuild", verbosity=0)
    assert entries() == before


def test_erased_memories_leave_no_words(rows: list[Memory]) -> None:
    for memory in Memory.objects.filter(user_id=rows[0].user_id):
        writes.remove(owner_of(memory), [memory])
    assert entries().keys() == set(visible(Memory.objects.all()).values_list("pk", flat=True))


def test_nothing_that_is_asked_for_is_syntax(rows: list[Memory]) -> None:
    texts = [
        '"', "' OR 1", "a AND b NOT c", "NEAR(x y)", "*", "col: x", "{}", "%", "\\", "word " * 400,
        " ".join(f"w{number}" for number in range(700)),
    ]  # fmt: skip
    for row, text in zip(rows, texts, strict=False):
        Memory.objects.filter(pk=row.pk).update(text=text)
    call_command("rebuild", "keywords", verbosity=0)
    for row, text in zip(rows, texts, strict=False):
        assert row.pk in ids(browse.page(Selection(words=required_tokens(text)), limit=ROWS).memories), text


def test_users_requests_never_read_it(alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        body: dict[str, Any] = {
            "session_id": "chat:c1",
            "messages": [
                {
                    "role": "user",
                    "sender_id": person.user_id,
                    "content": f"green tea of {person.user_id}",
                    "timestamp": NOON_MS,
                }
            ],
        }
        assert person.client.post("/memories/add", body, content_type="application/json").status_code < 300
    with CaptureQueriesContext(connection) as seen:
        search = {"query": "green tea", "scope": ["all_user_memory"]}
        found = alice.client.post("/memories/search", search, content_type="application/json")
        alice.client.get("/memories")
    assert "green tea of alice" in found.content.decode()
    assert "green tea of bob" not in found.content.decode()
    assert [query["sql"] for query in seen if "=green" in query["sql"] and "INSERT" not in query["sql"]] == []


def test_conditions_of_words_survive_a_frozen_selection() -> None:
    selection = Selection(words=required_tokens("green 绿茶"), tab="user")
    assert Selection.from_json(selection.as_json()) == selection
    assert selection.as_record() == {"tab": "user", "words": 2}
