"""`manage.py rebuild`: searches return the same after a rebuild, even if it was interrupted. Faults are found."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.db.models import F

from accounts.audit import Actor
from engines.embedded.engine import EmbeddedEngine
from operations import erase
from operations.archives.export import export
from operations.archives.import_ import import_archive
from store import derived, writes
from store.index import fact_pages, keyword, rewriting, schema
from store.models import (
    DayCount,
    Embedding,
    FactPage,
    IndexStatistics,
    Memory,
    SessionCount,
    VectorPage,
)
from store.search.retrieval import INCOMPLETE
from store.table import MemoryTable
from store.text.tokens import TOKENIZER_VERSION, Tokens, read
from store.types import ListRequest, Owner, SearchRequest, Wording
from store.vectors import fill
from tests.conftest import Person, make_person
from tests.store.conftest import remember, search, text_message
from tests.store.index_state import assert_consistent, entries_of
from tests.store.test_vectors import stub as embeddings_stub
from tests.stub_embeddings import StubEmbeddings

stub = embeddings_stub

WORDS = ("payment", "合同付款", "zebra on 1 May 2026", "nothing")


def run(*names: str, **options: bool) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("rebuild", *names, stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def search_all(engine: EmbeddedEngine, person: Person) -> list[object]:
    return [search(engine, person.owner, word) for word in WORDS]


@pytest.fixture
def filled(engine: EmbeddedEngine, alice: Person, bob: Person) -> EmbeddedEngine:
    remember(
        engine, alice.owner, "a late payment", "甲方合同付款", "the zebra came", "on 1 May 2026", "payment payment"
    )
    remember(engine, bob.owner, "bob's payment")
    return engine


def test_a_rebuild_gives_the_same_results(filled: EmbeddedEngine, alice: Person, bob: Person) -> None:
    before = search_all(filled, alice), search_all(filled, bob)
    out, err = run("keywords")
    assert out == "keywords: 6\n"
    assert "keywords: 6 of 6 memories" in err
    assert (search_all(filled, alice), search_all(filled, bob)) == before
    assert_consistent(alice.owner)
    assert_consistent(bob.owner)


def test_an_interrupted_rebuild_resumes(filled: EmbeddedEngine, alice: Person) -> None:
    before = search_all(filled, alice)
    derived.empty_keywords()
    next(derived.fill(batch_rows=2))
    assert_consistent(alice.owner)
    assert filled.health(1).data["index"]["status"] == "rebuilding"
    remember(filled, alice.owner, "said meanwhile", session="chat:c2")
    filled.delete(alice.owner, "chat:c2")
    assert run()[0] == "keywords: 4\n"
    assert search_all(filled, alice) == before
    assert_consistent(alice.owner)


def test_memories_deleted_during_a_rebuild_are_not_indexed(filled: EmbeddedEngine, alice: Person) -> None:
    derived.empty_keywords()
    filled.delete(alice.owner, "chat:c1")
    assert_consistent(alice.owner)
    assert run()[0] == "keywords: 1\n"


def _reversed(text: str, language: str | None = None) -> Tokens:
    """Return tokens as another version writes them."""
    found = read(text, language)
    words, readings, stop_words = ([token[::-1] for token in part] for part in found[:3])
    return Tokens(words, readings, stop_words, found.language)


@contextmanager
def other_version(version: str = "9") -> Iterator[None]:
    """Tokenize as another version would: backwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyword, "TOKENIZER_VERSION", version)
        patch.setattr(keyword, "read", _reversed)
        yield


@pytest.fixture
def outdated(engine: EmbeddedEngine, alice: Person, bob: Person) -> EmbeddedEngine:
    """Of what alice and bob have in the index, another version wrote alice's part."""
    with other_version():
        remember(engine, alice.owner, "a late payment", "甲方合同付款", "the zebra came")
    remember(engine, bob.owner, "bob's payment")
    return engine


def found(engine: EmbeddedEngine, owner: Owner, query: str) -> tuple[set[str], bool]:
    """Return the texts that a search finds, and if it says that some may be missing."""
    [result] = engine.search(owner, [SearchRequest(query, method="keyword")])
    assert result.degraded in {None, INCOMPLETE}
    return {hit.text for hit in result.hits}, result.degraded is not None


def held_terms() -> set[str]:
    """Return all tokens in the index with their prefixes, of all users."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT DISTINCT term FROM store_keyword_postings")
        else:
            cursor.execute("SELECT DISTINCT u.lexeme FROM store_keywords k, unnest(k.tokens) u")
        return {term for (term,) in cursor.fetchall()}


def test_entries_of_another_tokenizer_are_not_read_and_searches_say_so(
    outdated: EmbeddedEngine, alice: Person, bob: Person
) -> None:
    assert found(outdated, alice.owner, "payment") == (set(), True)
    assert found(outdated, alice.owner, "tnemyap") == (set(), True)
    assert found(outdated, bob.owner, "payment") == ({"bob's payment"}, False)
    assert outdated.health(1).data["index"] == {
        "status": "rebuild_needed",
        "tokenizer": TOKENIZER_VERSION,
        "built_by": "9",
    }


def test_no_write_is_refused_beside_entries_of_another_tokenizer(outdated: EmbeddedEngine, alice: Person) -> None:
    remember(outdated, alice.owner, "a new payment", session="chat:c9")
    assert found(outdated, alice.owner, "payment") == ({"a new payment"}, True)
    [zebra] = Memory.objects.filter(text="the zebra came")
    MemoryTable().replace(alice.owner, {zebra.memory_id: Wording("the lion came", "", None)})
    assert found(outdated, alice.owner, "lion") == ({"the lion came"}, True)
    assert not {term for term in held_terms() if "arbez" in term}
    outdated.delete(alice.owner, "chat:c9")
    assert found(outdated, alice.owner, "new payment") == (set(), True)
    run()
    assert found(outdated, alice.owner, "payment") == ({"a late payment"}, False)
    assert_consistent(alice.owner)
    assert wrong_stores(derived.sample()) == set()
    assert not {term for term in held_terms() if "tnemyap" in term}


def test_what_two_versions_wrote_is_complete_for_neither(outdated: EmbeddedEngine, alice: Person) -> None:
    remember(outdated, alice.owner, "a new payment", session="chat:c9")
    with other_version():
        assert found(outdated, alice.owner, "tnemyap") == ({"a late payment"}, True)
        remember(outdated, alice.owner, "an old payment", session="chat:c8")
    assert found(outdated, alice.owner, "payment") == ({"a new payment"}, True)
    run()
    assert found(outdated, alice.owner, "payment") == (
        {"a late payment", "a new payment", "an old payment"},
        False,
    )


def test_an_erased_user_leaves_no_token_of_another_version(
    outdated: EmbeddedEngine, alice: Person, bob: Person
) -> None:
    erase.erase(alice.owner.user_pk, actor=Actor.system("test"))
    prefix = keyword.owner_prefix(bob.owner)
    assert {term for term in held_terms() if not term.startswith((prefix, schema.WORD))} == set()
    assert not {term for term in held_terms() if "tnemyap" in term or "zebra" in term or "arbez" in term}


def test_a_stopped_rebuild_of_another_version_goes_on(
    outdated: EmbeddedEngine, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "_COMPARED_ROWS", 1)
    next(derived.BY_NAME["keywords"].rebuild([alice.owner]))
    assert len(found(outdated, alice.owner, "payment 甲方 zebra")[0]) == 1
    remember(outdated, alice.owner, "a new payment", session="chat:c9")
    assert found(outdated, alice.owner, "payment")[1]
    assert run()[0] == "keywords: 4\n"
    assert found(outdated, alice.owner, "payment") == ({"a late payment", "a new payment"}, False)
    assert_consistent(alice.owner)


def test_a_rebuild_beside_a_write_of_another_version_ends(outdated: EmbeddedEngine, alice: Person) -> None:
    steps = derived.BY_NAME["keywords"].rebuild([alice.owner])
    next(steps)
    with other_version():
        remember(outdated, alice.owner, "an old payment", session="chat:c8")
    assert len(list(islice(steps, 9))) < 9
    assert found(outdated, alice.owner, "payment") == ({"a late payment", "an old payment"}, False)
    assert_consistent(alice.owner)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_a_rebuild_and_a_write_do_not_wait_for_each_other(
    outdated: EmbeddedEngine, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare, errors = rewriting._parts, list[Exception]()
    compared, may_write = threading.Event(), threading.Event()

    def compare_slowly(owner: Owner) -> Iterator[rewriting._Part]:
        for part in compare(owner):
            compared.set()
            assert may_write.wait(10)
            yield part

    def rebuild() -> None:
        try:
            list(derived.BY_NAME["keywords"].rebuild([alice.owner]))
        except Exception as error:  # noqa: BLE001  shown by the test
            errors.append(error)
        finally:
            connections.close_all()

    first, *_, last = Memory.objects.filter(user=alice.owner.user_pk).order_by("pk")
    monkeypatch.setattr(rewriting, "_parts", compare_slowly)
    rebuilding = threading.Thread(target=rebuild)
    rebuilding.start()
    assert compared.wait(10)
    try:
        with transaction.atomic():  # as an edit changes a memory, and then what was derived from it
            MemoryTable().replace(alice.owner, {last.memory_id: Wording("the lion came", "", None)})
            may_write.set()
            time.sleep(0.5)
            MemoryTable().replace(alice.owner, {first.memory_id: Wording("an early payment", "", None)})
    finally:
        may_write.set()
        rebuilding.join(30)
    assert errors == []
    assert found(outdated, alice.owner, "early lion") == ({"an early payment", "the lion came"}, False)
    assert_consistent(alice.owner)


def test_a_write_of_memories_read_before_a_rebuild_changes_no_other_facts(
    outdated: EmbeddedEngine, alice: Person
) -> None:
    Memory.objects.filter(user=alice.owner.user_pk).update(token_count=99)  # as another version weighs them
    read = list(Memory.objects.filter(user=alice.owner.user_pk))
    run()
    with transaction.atomic():
        writes.save(alice.owner, read, ["sources"])
    assert_consistent(alice.owner)


def test_a_rebuild_removes_entries_of_rows_deleted_without_the_engine(filled: EmbeddedEngine, alice: Person) -> None:
    Memory.objects.filter(text="the zebra came").delete()
    run("keywords", "facts")
    assert len(entries_of(alice.owner)) == 4
    assert_consistent(alice.owner)


def test_a_rebuild_of_counts_dates_no_session_to_1970(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "one")
    SessionCount.objects.update(memories=F("memories") + 1)
    writes.remove(alice.owner, list(Memory.objects.all()))
    run("counts")
    remember(engine, alice.owner, "two")
    assert set(SessionCount.objects.values_list("first_ms")) == set(Memory.objects.values_list("created_at_ms"))


@pytest.mark.skipif(connection.vendor != "postgresql", reason="an entry without tokens is none on SQLite")
def test_a_rebuild_replaces_an_entry_without_tokens(filled: EmbeddedEngine, alice: Person) -> None:
    sql_statement("UPDATE store_keywords SET tokens = ''")
    assert "keywords" in wrong_stores(derived.sample())
    run("keywords")
    assert_consistent(alice.owner)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL checks its index itself")
def test_a_damaged_index_is_made_again(filled: EmbeddedEngine, alice: Person) -> None:
    before = search_all(filled, alice)
    sql_statement("DELETE FROM store_keywords_data WHERE id > 10")
    run("keywords")
    assert search_all(filled, alice) == before
    assert wrong_stores(derived.sample()) == set()


def test_copies_of_a_remotes_memories_are_indexed_too(filled: EmbeddedEngine, alice: Person) -> None:
    Memory.objects.update(origin="upstream")
    run("keywords")
    assert len(entries_of(alice.owner)) == 5
    assert_consistent(alice.owner)


def test_purged_memories_stay_unindexed(filled: EmbeddedEngine, alice: Person) -> None:
    Memory.objects.update(state="purged", is_indexed=False, token_count=0)
    run("keywords")
    assert entries_of(alice.owner) == {}
    assert not IndexStatistics.objects.exists()


def test_an_index_of_the_current_version_is_not_rebuilt(filled: EmbeddedEngine) -> None:
    assert run() == ("Everything is up to date.\n", "")
    assert run(quiet=True) == ("", "")


@pytest.mark.django_db(transaction=True)
def test_djangos_flush_empties_the_index(filled: EmbeddedEngine, alice: Person) -> None:
    assert entries_of(alice.owner)
    call_command("flush", interactive=False, verbosity=0)
    assert entries_of(alice.owner) == {}


def test_an_unknown_name_is_refused(db: None) -> None:
    with pytest.raises(CommandError, match=r"There is no store letters\. There are keywords, facts"):
        run("letters", "facts")


# --- faults -----------------------------------------------------------------------------------------------------------


def change_tokens() -> None:
    memory = Memory.objects.get(text="the zebra came")
    with connection.cursor() as cursor:
        keyword.remove(cursor, owner_of(memory), {memory.pk: keyword.entry_of(memory)})
        memory.text = "the lion came"
        keyword.add(cursor, owner_of(memory), {memory: keyword.entry_of(memory)})


def owner_of(memory: Memory) -> Owner:
    return Owner(memory.user_id, memory.user.user_id, memory.app_id, memory.project_id)


def lose(memory_id: str) -> None:
    memory = Memory.objects.get(text="the zebra came")
    with connection.cursor() as cursor:
        entries = {memory.pk: keyword.entry_of(memory)}
        if memory_id == "keywords":
            keyword.remove(cursor, owner_of(memory), entries)
        else:
            fact_pages.remove(cursor, owner_of(memory), entries)


def change_vector_page() -> None:
    page = VectorPage.objects.latest("pk")
    page.codes = bytes([bytes(page.codes)[0] ^ 1]) + bytes(page.codes)[1:]
    page.save()


def sql_statement(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def change_facts() -> None:
    page = FactPage.objects.filter(user__user_id="alice").latest("pk")
    facts = np.frombuffer(page.facts, fact_pages.FACTS).copy()
    facts["seq"][0] += 1
    page.facts = facts.tobytes()
    page.save()


FAULTS: dict[str, tuple[str, Callable[[], object]]] = {
    "a memory without keywords": ("keywords", lambda: lose("keywords")),
    "keywords of another text": ("keywords", change_tokens),
    "keywords of no row": ("keywords", lambda: Memory.objects.filter(text="the zebra came").delete()),
    "statistics": ("keywords", lambda: IndexStatistics.objects.update(tokens=F("tokens") + 1)),
    "a memory without facts": ("facts", lambda: lose("facts")),
    "other facts": ("facts", change_facts),
    "a lost page of facts": ("facts", lambda: FactPage.objects.latest("pk").delete()),
    "a vector of another text": ("vectors", lambda: Embedding.objects.update(digest=b"0" * 16)),
    "a lost page of vectors": ("vectors", lambda: VectorPage.objects.latest("pk").delete()),
    "other codes of a vector": ("vectors", change_vector_page),
    "a lost vector": ("vectors", lambda: Embedding.objects.latest("pk").delete()),
    "a lost count": ("counts", lambda: DayCount.objects.exclude(owner="").latest("pk").delete()),
    "a wrong count": ("counts", lambda: DayCount.objects.filter(owner="").update(memories=F("memories") + 1)),
    "no count of all users": ("counts", lambda: DayCount.objects.filter(owner="").delete()),
    "counts of all users on another day": (
        "counts",
        lambda: DayCount.objects.filter(owner="").update(day=F("day") + 1),
    ),
    "a wrong count of important memories": ("counts", lambda: DayCount.objects.update(high=F("high") + 1)),
    "a wrong weight": ("counts", lambda: DayCount.objects.update(weight=F("weight") + 1)),
    "a wrong count of a session": ("counts", lambda: SessionCount.objects.update(memories=F("memories") + 1)),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("name", "plant"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_in_a_store_is_found_and_a_rebuild_mends_it(
    filled: EmbeddedEngine, alice: Person, stub: StubEmbeddings, name: str, plant: Callable[[], object]
) -> None:
    fill.mark_missing_pending()
    fill.fill(10)
    owners = derived.sample()
    assert {one.user_id for one in owners} == {"alice", "bob"}
    assert wrong_stores(owners) == set()
    plant()
    assert name in wrong_stores(owners)
    if name == "vectors":
        Embedding.objects.exclude(digest__in=[fill.digest_of(one.text) for one in Memory.objects.all()]).delete()
    run(*derived.BY_NAME)
    fill.fill(10)
    assert wrong_stores(owners) == set()
    assert_consistent(alice.owner)


def test_an_owner_with_too_many_memories_is_not_compared_one_by_one(
    filled: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derived, "_SAMPLED_MEMORIES", 3)
    assert [one.user_id for one in derived.sample()] == ["bob"]


def wrong_stores(owners: list[Owner]) -> set[str]:
    return {store.name for store in derived.STORES if list(store.differences(owners))}


@pytest.mark.parametrize("changes", [60, pytest.param(10_000, marks=pytest.mark.torture)])
def test_no_fault_is_found_after_random_changes(
    engine: EmbeddedEngine, alice: Person, bob: Person, changes: int, storage: Path, tmp_path: Path
) -> None:
    """Among them an import, an erasure, and an upgrade of the tokenizer with its rebuild."""
    chance = random.Random(5)
    for number in range(changes):
        if number == changes // 4:
            export([alice.user_pk], tmp_path / "alice.tar", actor=Actor.system("test"))
            import_archive(tmp_path / "alice.tar", on_conflict="replace", actor=Actor.system("test"))
        elif number == changes // 2:
            erase.erase(bob.user_pk, actor=Actor.system("test"))
            bob = make_person("bob-again")
        elif number == changes * 3 // 4:
            with other_version():
                remember(engine, alice.owner, "a late payment", session="chat:old")
            run()
        person = chance.choice((alice, bob))
        name = f"chat:{number // 3}"
        choice = chance.random()
        memories = MemoryTable().list(person.owner, ListRequest(limit=100)).memories
        if choice < 0.5 or not memories:
            remember(engine, person.owner, f"word{number} and word{chance.randrange(9)}", session=name)
        elif choice < 0.75:
            chosen = chance.choice(memories).memory_id
            MemoryTable().replace(person.owner, {chosen: Wording(f"edited word{number}", "user_memory_fact", 0.5)})
        elif choice < 0.9:
            row = Memory.objects.get(pk=chance.choice(memories).row)
            writes.remove(person.owner, [row])
        else:
            engine.delete(person.owner, f"chat:{chance.randrange(max(1, number // 3))}")
    assert wrong_stores(derived.sample()) == set()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL merges its index itself")
def test_merging_the_keyword_index_ends_and_changes_no_entry(filled: EmbeddedEngine, alice: Person) -> None:
    for number in range(12):
        filled.add(alice.owner, f"chat:m{number}", [text_message(f"merged word{number}")])
        assert search(filled, alice.owner, f"word{number}")  # which writes a segment
    steps = list(islice(iter(keyword.merge, False), 50))
    assert 0 < len(steps) < 50
    assert_consistent(alice.owner)
    assert wrong_stores(derived.sample()) == set()
