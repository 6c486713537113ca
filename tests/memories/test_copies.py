"""Decisions about a memory and its copies: memories of the same text, sender and role."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.audit import Actor
from accounts.models import AuditEvent
from engines.registry import get_engine
from memories.models import Tombstone
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from operations import bulk, ledger
from store import browse
from store.models import IndexStatistics, Memory, State
from store.search.copies import find_copies
from store.types import ContentItem, Message
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, say, search, texts

pytestmark = pytest.mark.django_db
ALL = {"scope": ["all_user_memory"]}
OLGA = Actor.operator("olga")
FIRST = "The gate code is 4412."


def write(person: Person, number: int, text: str, *, role: Any = "user", sender: str = "alice") -> str:
    """Store a message in a separate session; return its id."""
    known = set(Memory.objects.values_list("pk", flat=True))
    message = Message(sender, role, NOON_MS + number, (ContentItem("text", text=text),))
    get_engine().add(person.owner, f"chat:c{number}", [message])
    get_engine().flush(person.owner, f"chat:c{number}")
    return str(Memory.objects.exclude(pk__in=known).values_list("memory_id", flat=True).get())


@pytest.fixture
def copies(alice: Person) -> list[str]:
    """Store three copies and other memories; return the ids of the copies."""
    same = [FIRST, "the gate  code is 4412", "Ｔｈｅ gate code is 4412!"]
    found = [write(alice, number, text) for number, text in enumerate(same)]
    write(alice, 10, "The gate code is 4413.")
    write(alice, 11, FIRST, role="assistant")
    write(alice, 12, FIRST, sender="bob")
    return found


def live() -> set[str]:
    return set(Memory.objects.filter(state=State.LIVE).values_list("memory_id", flat=True))


def test_a_deletion_includes_copies_and_one_restore_restores_them(alice: Person, copies: list[str]) -> None:
    first, *others = copies
    before = live()
    answer = call(alice, "delete", f"/memories/{first}?copies=true", reason="outdated")
    tombstone = Tombstone.objects.get(memory_id=first)
    assert answer == {
        "memory_id": first, "tombstone_id": tombstone.pk, "status": "deleted", "copies": others, "copies_count": 2
    }  # fmt: skip
    assert live() == before - set(copies)
    assert {one.reason for one in Tombstone.objects.all()} == {"outdated"}
    event = AuditEvent.objects.get(action="memory.delete")
    assert event.detail["memory_ids"] == copies
    assert call(alice, "delete", f"/memories/{first}?copies=true")["copies"] == others
    restored = call(alice, "post", f"/memories/{others[0]}/restore")
    assert (restored["memory_id"], set(restored["copies"])) == (others[0], set(copies) - {others[0]})
    assert live() == before
    assert list(ledger.differences()) == []


def test_without_the_parameter_only_the_memory_is_deleted(alice: Person, copies: list[str]) -> None:
    first, *others = copies
    answer = call(alice, "delete", f"/memories/{first}")
    assert set(answer) == {"memory_id", "tombstone_id", "status"}
    assert set(others) <= live()
    assert "copies" not in call(alice, "post", f"/memories/{first}/restore")
    call(alice, "delete", f"/memories/{first}")
    assert call(alice, "delete", f"/memories/{first}?copies=true")["copies"] == others
    assert not set(copies) & live()
    assert call(alice, "post", f"/memories/{first}/restore")["copies"] == others


def test_no_copy_of_a_deleted_memory_is_found(alice: Person) -> None:
    for number in range(30):
        write(alice, number, "The harbour opens at nine" + "." * (number % 2))
    (found,) = search(alice, "harbour opens at nine", **ALL, top_k=5)["results"]
    assert len(found["copies"]) == 20
    answer = call(alice, "delete", f"/memories/{found['id']}?copies=true")
    assert answer["copies_count"] == len(answer["copies"]) == 29
    assert texts(search(alice, "harbour opens at nine", **ALL)) == []


def test_copies_in_other_projects_sessions_in_the_trash_and_of_others_stay(alice: Person, bob: Person) -> None:
    first = write(alice, 1, FIRST)
    write(alice, 2, FIRST)
    decisions.delete_session(alice.owner, "chat:c2", actor=OLGA)
    of_bob = write(bob, 3, FIRST)
    other = Memory.objects.get(memory_id=first)
    other.pk, other.project_id, other.memory_id, other.session = None, "other", "m-other", None
    other.save()
    assert call(alice, "delete", f"/memories/{first}?copies=true")["copies"] == []
    assert {"m-other", of_bob} <= live()


@pytest.mark.parametrize(
    "text", ["👍🎉", "->", "我对花生过敏。", "callMeMaybe ISO-9001 am 5. März", "U.S. visa: 12,5 %"]
)
def test_any_text_has_copies(alice: Person, text: str) -> None:
    first, second = write(alice, 1, text), write(alice, 2, text)
    assert [one.memory_id for one in find_copies(browse.get(Memory.objects.get(memory_id=first).pk))] == [second]


def test_capital_letters_hide_no_copy(alice: Person) -> None:
    variants = ["Call getUserName of the US API.", "call getusername of the us api", "CALL GETUSERNAME OF THE US API!"]
    first, *others = (write(alice, number, text) for number, text in enumerate(variants))
    assert call(alice, "delete", f"/memories/{first}?copies=true")["copies"] == others


def test_messages_before_and_after_their_flush_are_no_copies(alice: Person) -> None:
    say(alice, "chat:c1", FIRST)
    first = id_of(FIRST)
    say(alice, "chat:c2", "the gate code is 4412", flush=False)
    assert call(alice, "delete", f"/memories/{first}?copies=true")["copies"] == []


def test_copies_are_found_while_the_index_is_written_again(alice: Person, copies: list[str]) -> None:
    IndexStatistics.objects.update(tokenizer="0")
    assert call(alice, "delete", f"/memories/{copies[0]}?copies=true")["copies"] == copies[1:]


def test_notes_of_another_agent_are_no_copies_for_an_agent(alice: Person) -> None:
    first, second = write(alice, 1, FIRST), write(alice, 2, FIRST)
    Memory.objects.filter(memory_id=second).update(origin="tool", agent_id="coder")
    memory = browse.get(Memory.objects.get(memory_id=first).pk)
    assert find_copies(memory, reader="main") == []
    assert [one.memory_id for one in find_copies(memory, reader="coder")] == [second]
    assert [one.memory_id for one in find_copies(memory)] == [second]


def test_an_edit_includes_copies_and_is_undone_with_them(alice: Person, copies: list[str]) -> None:
    first, *others = copies
    before = dict(Memory.objects.values_list("memory_id", "text"))
    values = {"override_text": "The gate code is 5512.", "category": "user_memory_fact"}
    answer = call(alice, "patch", f"/memories/{first}", **values, copies=True)
    assert (answer["copies"], answer["copies_count"]) == (others, 2)
    edited = dict(Memory.objects.values_list("memory_id", "text"))
    assert {name for name, text in edited.items() if text != before[name]} == set(copies)
    assert set(Memory.objects.filter(category="user_memory_fact").values_list("memory_id", flat=True)) == set(copies)
    assert AuditEvent.objects.get(action="memory.override").detail["memory_ids"] == copies
    undone = call(alice, "delete", f"/memories/{others[0]}/override?copies=true")
    assert set(undone["copies"]) == set(copies) - {others[0]}
    assert dict(Memory.objects.values_list("memory_id", "text")) == before


def test_an_edit_without_copies_is_of_one_memory(alice: Person, copies: list[str]) -> None:
    answer = call(alice, "patch", f"/memories/{copies[0]}", override_text="The gate is open.")
    assert set(answer) == {"memory_id", "override_id", "status"}
    assert Memory.objects.filter(text="The gate is open.").count() == 1


def test_an_edit_of_the_category_leaves_the_texts_of_copies(alice: Person, copies: list[str]) -> None:
    ref, values = MemoryRef(copies[0]), OverrideValues(category="user_memory_fact")
    changes = decisions.override_copies(alice.user_pk, ref, values, actor=OLGA).changes
    assert len(changes) == 3
    assert Memory.objects.filter(text=FIRST, category="user_memory_fact").count() == 1
    assert bulk.undo("categorize", changes, decided_by=OLGA, actor=OLGA) == 3
    assert not Memory.objects.filter(category="user_memory_fact").exists()


def test_a_stale_etag_deletes_no_copy(alice: Person, copies: list[str]) -> None:
    path, etag = f"/memories/{copies[0]}", alice.client.get(f"/memories/{copies[0]}")["ETag"]
    call(alice, "patch", path, category="user_memory_fact")
    stale = alice.client.delete(f"{path}?copies=true", headers={"If-Match": etag})
    assert stale.status_code == 412
    assert set(copies) <= live()


def test_an_operator_restores_the_memory_alone_in_bulk(alice: Person, copies: list[str]) -> None:
    decisions.delete_copies(alice.user_pk, MemoryRef(copies[0]), actor=OLGA)
    row = Memory.objects.get(memory_id=copies[0]).pk
    assert len(decisions.restore_many([row], actor=OLGA)) == 1
    assert set(copies) & live() == {copies[0]}
    assert list(ledger.differences()) == []
    decisions.restore(alice.user_pk, MemoryRef(copies[1]), actor=OLGA)
    assert set(copies) <= live()


def test_hundreds_of_copies_take_the_same_statements_as_two(alice: Person) -> None:
    counts = []
    for text, number in (("one thing", 3), ("another thing", 120)):
        ids = [write(alice, place + number * 1000, text) for place in range(number)]
        with CaptureQueriesContext(connection) as seen:
            answer = decisions.delete_copies(alice.user_pk, MemoryRef(ids[0]), actor=OLGA)
        assert answer.copy_ids == ids[1:]
        counts.append(len(seen))
    assert counts[1] <= counts[0] + 8
