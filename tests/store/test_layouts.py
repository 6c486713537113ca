"""Binary pages are stored with the number of their layout, and a page of another layout is never misread."""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Callable
from io import StringIO
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection, transaction

from engines.embedded.engine import EmbeddedEngine
from store import rollups
from store.index import fact_pages, keyword, schema
from store.models import FactPage, IndexStatistics, Memory, VectorPage, owned_by, owner_values
from store.search.candidates import find_similar_notes
from store.search.retrieval import INCOMPLETE
from store.text.tokens import TOKENIZER_VERSION
from store.types import Owner
from store.vectors import layout, vector_pages
from tests.conftest import Person
from tests.memories.test_manual import add_memory
from tests.store.conftest import NOON_MS, remember, search, texts
from tests.store.index_state import assert_consistent
from tests.store.test_vectors import rows_in_pages, search_result, stub
from tests.stub_embeddings import StubEmbeddings

__all__ = ["stub"]

pytestmark = pytest.mark.django_db

SECRET = "The secret garden code is 4711"
# As a version with one more origin and one more field would write it.
OTHER_ORIGINS = {"embedded": 0, "upstream": 1, "other": 2, "panel": 3, "tool": 4, "extracted": 5}
OTHER_FACTS = np.dtype([("pk", "<i8"), ("added", "<i8"), *fact_pages.FACTS.descr[1:]])


LATER = {"cover", "category", "importance", "role"}
"""The fields that were added since pages have numbers."""


NAMED_FIRST = ("speaker", "sender", "agent")


def write_otherwise(owner: Owner) -> None:
    """Write the owner's pages in the layout of another version."""
    origins = dict(Memory.objects.filter(owned_by(owner)).values_list("pk", "origin"))
    for page in FactPage.objects.filter(owned_by(owner)):
        facts = np.frombuffer(page.facts, fact_pages.FACTS)
        other = np.zeros(len(facts), OTHER_FACTS)
        for field in fact_pages.FACTS.names or ():
            other[field] = facts[field]
        other["origin"] = [OTHER_ORIGINS[origins[pk]] for pk in facts["pk"].tolist()]
        page.facts, page.layout = other.tobytes(), fact_pages.LAYOUT + 1
        page.save()


def search_first(_engine: EmbeddedEngine, _owner: Owner) -> None:
    pass


def add_first(engine: EmbeddedEngine, owner: Owner) -> None:
    remember(engine, owner, "A walk by the lake", session="chat:later")


def remove_first(engine: EmbeddedEngine, owner: Owner) -> None:
    engine.delete(owner, "chat:c1")


def rebuild_first(_engine: EmbeddedEngine, _owner: Owner) -> None:
    error = StringIO()
    call_command("rebuild", stdout=StringIO(), stderr=error)
    assert "facts: 4 of 5 memories" in error.getvalue()
    assert not FactPage.objects.exclude(layout=fact_pages.LAYOUT).exists()


@pytest.mark.parametrize("first", [search_first, add_first, remove_first, rebuild_first])
def test_pages_of_another_layout_keep_the_notes_of_an_agent_private(
    engine: EmbeddedEngine, alice: Person, bob: Person, first: Callable[[EmbeddedEngine, Owner], None]
) -> None:
    remember(engine, alice.owner, "We talked about the garden", "The garden needs water")
    remember(engine, bob.owner, "My garden")
    add_memory(alice, SECRET, agent_id="coder")
    add_memory(alice, "A tool wrote of the garden", agent_id="coder", origin="tool")
    write_otherwise(alice.owner)

    first(engine, alice.owner)

    found = texts(search(engine, alice.owner, "secret garden code", reader="main", min_relevance=0))
    assert SECRET not in found
    assert "A tool wrote of the garden" not in found
    assert SECRET in texts(search(engine, alice.owner, "secret garden code", reader="coder"))
    assert texts(search(engine, bob.owner, "garden")) == ["My garden"]
    assert_consistent(alice.owner)


def test_a_note_with_the_same_text_is_found_in_pages_of_another_layout(engine: EmbeddedEngine, alice: Person) -> None:
    note = add_memory(alice, SECRET, agent_id="coder")
    write_otherwise(alice.owner)
    assert find_similar_notes(alice.owner, SECRET, "coder").equal == [note.row]
    assert find_similar_notes(alice.owner, SECRET, "main").equal == []


def test_a_removed_memory_leaves_pages_of_another_layout(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "garden one", session="chat:c1")
    remember(engine, alice.owner, "garden two", session="chat:c2")
    write_otherwise(alice.owner)
    engine.delete(alice.owner, "chat:c1")
    assert texts(search(engine, alice.owner, "garden")) == ["garden two"]
    assert_consistent(alice.owner)


def test_pages_without_a_number_are_of_the_first_layout(engine: EmbeddedEngine, alice: Person) -> None:
    """Versions before the numbers wrote them, without what covers a memory."""
    remember(engine, alice.owner, "garden")
    page = FactPage.objects.get()
    first = np.dtype([field for field in fact_pages.FACTS.descr if field[0] not in LATER])
    page.facts = np.frombuffer(page.facts, fact_pages.FACTS)[list(first.names or ())].astype(first).tobytes()
    FactPage.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO store_factpage (user_id, app_id, project_id, number, facts, names) "
            "VALUES (%s, %s, %s, 0, %s, %s)",
            [*owner_values(alice.owner), page.facts, page.names],
        )
    assert FactPage.objects.get().layout == fact_pages.layout_of(first, NAMED_FIRST, fact_pages.ORIGINS)
    assert texts(search(engine, alice.owner, "garden")) == ["garden"]
    assert FactPage.objects.get().layout == fact_pages.LAYOUT
    assert_consistent(alice.owner)


def test_vector_pages_of_another_layout_are_not_read_and_written_again(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "The shoemaker is old", "A quiet lake")
    expected = rows_in_pages(alice.owner)
    assert texts(list(search_result(engine, alice.owner, "cobbler", method="vector").hits))[0] == "The shoemaker is old"
    VectorPage.objects.update(layout=layout.LAYOUT + 1, rows=b"\1" * 7, codes=b"\1" * 5)
    assert search_result(engine, alice.owner, "cobbler", method="vector").hits == ()

    assert vector_pages.update() == 1

    assert rows_in_pages(alice.owner) == expected
    assert texts(list(search_result(engine, alice.owner, "cobbler", method="vector").hits))[0] == "The shoemaker is old"


@pytest.mark.django_db(transaction=True)
def test_notes_of_an_agent_stay_private_while_pages_are_written_again(engine: EmbeddedEngine, alice: Person) -> None:
    for number in range(4):
        remember(
            engine,
            alice.owner,
            *(f"The garden has {number} of {n} trees" for n in range(100)),
            session=f"chat:{number}",
        )
    add_memory(alice, SECRET, agent_id="coder")
    is_done, seen = threading.Event(), []

    def search_as_another_agent() -> None:
        try:
            while not is_done.is_set():
                seen.append(texts(search(engine, alice.owner, "secret garden code", reader="main", min_relevance=0)))
        finally:
            connection.close()

    threads = [threading.Thread(target=search_as_another_agent) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            with transaction.atomic():
                list(IndexStatistics.objects.select_for_update())  # the lock of all writers of pages
                write_otherwise(alice.owner)
            call_command("rebuild", "facts", stdout=StringIO(), stderr=StringIO())
    finally:
        is_done.set()
        for thread in threads:
            thread.join()
    assert len(seen) >= 4
    assert all(found and SECRET not in found for found in seen)
    assert SECRET in texts(search(engine, alice.owner, "secret garden code", reader="coder"))


def test_vectors_of_another_layout_are_not_read_and_searches_say_so(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "The shoemaker is old")
    assert search_result(engine, alice.owner, "cobbler", method="hybrid").degraded is None
    VectorPage.objects.update(layout=layout.LAYOUT + 1, rows=b"\1" * 7, codes=b"\1" * 5)
    for method in ("hybrid", "vector"):
        found = search_result(engine, alice.owner, "cobbler", method=method)
        assert (found.hits, found.degraded) == ((), INCOMPLETE)
    assert search_result(engine, alice.owner, "shoemaker", method="keyword").degraded is None
    call_command("rebuild", stdout=StringIO(), stderr=StringIO())
    found = search_result(engine, alice.owner, "cobbler", method="hybrid")
    assert (texts(list(found.hits)), found.degraded) == (["The shoemaker is old"], None)


@pytest.mark.parametrize("deletes", [False, True])
def test_a_write_writes_vector_pages_of_another_layout_again(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, deletes: bool
) -> None:
    remember(engine, alice.owner, "The shoemaker is old", session="chat:c1")
    remember(engine, alice.owner, "A quiet lake", session="chat:c2")
    VectorPage.objects.update(layout=layout.LAYOUT + 1, rows=b"\1" * 7, codes=b"\1" * 5)
    if deletes:
        engine.delete(alice.owner, "chat:c2")
    else:
        remember(engine, alice.owner, "A loud street", session="chat:c3")
    indexed = Memory.objects.filter(owned_by(alice.owner), is_indexed=True).values_list("pk", flat=True)
    assert rows_in_pages(alice.owner) == dict.fromkeys(indexed, 1)


def test_the_layouts_are_those_of_stored_pages() -> None:
    """Pin what is laid out by position. A failure means that stored data changes: see each comment."""
    # A new origin gets a new number here; a number is never used again.
    assert fact_pages.ORIGINS == {"embedded": 0, "upstream": 1, "panel": 2, "tool": 3, "extracted": 4}
    assert set(fact_pages.ORIGINS) == set(Memory.Origin.values)
    # `_pack` writes the fields one by one in this order.
    assert fact_pages.FACTS.itemsize == 56
    assert fact_pages.FACTS.descr == [
        ("pk", "<i8"), ("session", "<i8"), ("at", "<i8"), ("seq", "<i4"), ("length", "<i4"),
        ("speaker", "<u4"), ("sender", "<u4"), ("agent", "<u4"), ("origin", "|u1"), ("category", "<u4"),
        ("importance", "<f4"), ("role", "|u1"), ("is_turn", "|b1"), ("cover", "|u1"),
    ]  # fmt: skip
    # A new role gets a new number here, as a new origin does.
    assert fact_pages.ROLES == {"user": 1, "assistant": 2, "tool": 3, "system": 4}
    # Another number makes all pages be written again. The defaults of the columns stay 1,187,811,388 and 2,419,599,141.
    assert (fact_pages.LAYOUT, layout.LAYOUT) == (516_102_862, 2_419_599_141)
    # Vectors are not computed again from anything here: another format needs a migration that converts them.
    assert layout.HALF.str == "<f2"


def test_each_change_of_a_layout_changes_its_number() -> None:
    numbers = fact_pages.layout_of(fact_pages.FACTS, fact_pages.NAMED, fact_pages.ORIGINS)
    assert numbers == fact_pages.LAYOUT
    assert fact_pages.layout_of(OTHER_FACTS, fact_pages.NAMED, fact_pages.ORIGINS) != numbers
    assert fact_pages.layout_of(fact_pages.FACTS, fact_pages.NAMED, OTHER_ORIGINS) != numbers
    assert fact_pages.layout_of(fact_pages.FACTS, ("sender", "speaker", "agent"), fact_pages.ORIGINS) != numbers


def test_a_change_of_the_stored_tokens_needs_another_tokenizer_version() -> None:
    """The index is emptied and filled again if the version differs, so it must change with what is stored."""
    message = Memory(text="Paid 1,234.50 on 1 May 2026 付款", created_at_ms=NOON_MS)
    payload = {"filename": "plan.md", "title": "Plan", "heading": "Goals", "mime_type": "text/markdown"}
    passage = Memory(text="Ship it", created_at_ms=NOON_MS, chunk_index=0, payload=payload)
    of_message = (
        "y:2026 mo:05 m:2026-05 md:05-01 d:2026-05-01 pay 1234.5 1 may y:2026 付 款 付款 w:on s:, c:, s:. c:. "
        "md:05-28 d:2026-05-28 said-mo:05 said-m:2026-05 slot:payment:me"
    )
    of_passage = "ship w:it plan.md plan md goal s:. c:. plan.md plan md plan s:. c:."
    assert TOKENIZER_VERSION == "7"
    assert keyword.entry_of(message) == (of_message, 17)
    assert keyword.entry_of(passage) == (of_passage, 9)
    assert keyword.prefix_of(Owner(UUID(int=7), "anna", "app", "project")) == "bslbhvnq4gc4~7~"


@pytest.mark.parametrize(("vendor", "number"), [("sqlite", 740_384_072), ("postgresql", 2_171_761_131)])
def test_a_change_of_triggers_and_views_needs_a_migration(vendor: str, number: int) -> None:
    """Databases keep what migrations installed: a changed text here needs one that removes, installs and counts."""
    editor = SimpleNamespace(connection=SimpleNamespace(vendor=vendor), statements=[])
    editor.execute = lambda statement, **_: editor.statements.append(statement)
    schema.install(editor)
    statements = [*editor.statements, *schema.word_triggers(vendor), *rollups.statements(vendor)]
    assert zlib.crc32("\n".join(re.sub(r"\s+", " ", statement) for statement in statements).encode()) == number
