"""A memory that an operator or a tool wrote is compared with older ones near it, and supersedes those it replaces."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor
from core.errors import NotFound
from engines.embedded import comparison
from engines.embedded.engine import EmbeddedEngine
from memories.services import decisions
from memories.services.lookup import MemoryRef
from memories.services.manual import add_by_hand
from store.models import Memory, PendingExtraction, Session
from tests.conftest import Person, make_person
from tests.engines.embedded.test_extraction import LATER, derived, model_answer, run_extractions
from tests.store.conftest import text_message
from tests.store.decisions import newer_of
from tests.stub_llm import Line, StubLlm, lines_of

ACTOR = Actor.command("tests")


def write(person: Person, text: str, *, agent: str = "", category: str = "user_memory_fact") -> Memory:
    stored = add_by_hand(person.owner, category=category, text=text, agent_id=agent, origin="tool", actor=ACTOR)
    return Memory.objects.get(pk=stored.row)


def related(*relations: tuple[int, str]) -> Any:
    """Return a stub answer with these relations, for comparisons alone."""

    def answer(lines: list[Line]) -> Any:
        if "new" not in lines[0]:
            return {"memories": [], "summary": "x"}
        return {"relations": [{"number": number, "relation": relation} for number, relation in relations]}

    return answer


def shown(person: Person) -> set[str]:
    rows = Memory.objects.filter(user_id=person.user_pk, state="live").exclude(memory_type="profile")
    return set(rows.values_list("text", flat=True))


@pytest.mark.parametrize("relation", ["newer", "same"])
def test_a_newer_or_equal_memory_supersedes_the_older_one(alice: Person, llm: StubLlm, relation: str) -> None:
    old, new = write(alice, "Alice lives in Oslo."), write(alice, "Alice lives in Bergen.")
    other = write(alice, "The garage code is 4711.")
    assert shown(alice) == {old.text, new.text, other.text}, "storing does not wait for the model"
    llm.extract = related((1, relation))
    run_extractions()
    old.refresh_from_db()
    new.refresh_from_db()
    assert (old.state, newer_of(old), new.supersedes) == ("superseded", new.memory_id, [old.memory_id])
    assert shown(alice) == {new.text, other.text}
    assert len(llm.bodies) == 1, "memories without common words are not compared"
    assert [line.get("text") or line["new"] for line in lines_of(llm.bodies[0])] == [new.text, old.text]
    assert not PendingExtraction.objects.exists()


@pytest.mark.parametrize("relations", [[(1, "different")], [(7, "newer")], [(0, "newer")], [(-1, "same")], []])
def test_what_is_different_or_not_numbered_stays(alice: Person, llm: StubLlm, relations: Any) -> None:
    write(alice, "Alice likes black tea.")
    write(alice, "Alice likes green tea.")
    llm.extract = related(*relations)
    run_extractions()
    assert len(shown(alice)) == 2
    assert not PendingExtraction.objects.exists()


def test_a_superseded_memory_can_be_restored(alice: Person, bob: Person, llm: StubLlm) -> None:
    old, new = write(alice, "Alice lives in Oslo."), write(alice, "Alice lives in Bergen.")
    llm.extract = related((1, "newer"))
    run_extractions()
    with pytest.raises(NotFound):
        decisions.restore(bob.user_pk, MemoryRef(old.memory_id), actor=ACTOR)
    answer = alice.client.post(f"/memories/{old.memory_id}/restore", {}, content_type="application/json")
    assert answer.json() == {"memory_id": old.memory_id, "tombstone_id": None, "status": "restored"}
    old.refresh_from_db()
    new.refresh_from_db()
    assert (old.state, old.state_since, newer_of(old), new.supersedes) == ("live", None, "", [])
    run_extractions(later=LATER)
    assert shown(alice) == {old.text, new.text}


def test_an_operator_restores_it_from_the_list_of_hidden_memories(
    alice: Person, llm: StubLlm, admin_client: Client
) -> None:
    old = write(alice, "Alice lives in Oslo.")
    write(alice, "Alice lives in Bergen.")
    llm.extract = related((1, "newer"))
    run_extractions()
    address = f"/admin/memory/m/{old.pk}/restore/"
    assert address in admin_client.get("/admin/memory/trash/?kind=auto-hidden").content.decode()
    assert address in admin_client.get(f"/admin/memory/m/{old.pk}/").content.decode()
    admin_client.post(address)
    assert old.text in shown(alice)


def test_a_message_supersedes_what_a_tool_wrote(engine: EmbeddedEngine, alice: Person, llm: StubLlm) -> None:
    noted = write(alice, "Alice lives in Oslo.", agent="main")
    lesson = write(alice, "Alice's lists live in Oslo's folder.", agent="other", category="self_improving_learnings")
    llm.extract = model_answer(
        derived("Alice lives in Bergen.", replaces=[1, 2]), derived("Use folders.", 2, kind="lesson", replaces=[1, 2])
    )
    turns = [text_message("I left Oslo and live in Bergen now"), text_message("Noted.", by="main", role="assistant")]
    engine.add(alice.owner, "chat:c1", turns)
    engine.flush(alice.owner, "chat:c1")
    run_extractions()
    noted.refresh_from_db()
    lesson.refresh_from_db()
    assert noted.state == "superseded"
    assert lesson.state == "live", "it is for another agent"


def test_agents_keep_what_they_alone_can_read(alice: Person, llm: StubLlm) -> None:
    shared = write(alice, "Alice lives in Oslo.")
    other = write(alice, "Alice lives in Oslo too.", agent="other")
    new = write(alice, "Alice lives in Oslo, Norway.", agent="main")
    llm.extract = related((1, "same"), (2, "same"))
    run_extractions()
    assert shown(alice) == {shared.text, other.text, new.text}


def test_without_a_model_or_for_whole_messages_nothing_is_compared(alice: Person, llm: StubLlm, settings: Any) -> None:
    write(alice, "A whole message.", category="full_context_user")
    settings.MEMORY_GATEWAY_MODELS = {}
    write(alice, "Alice lives in Oslo.")
    write(alice, "Alice lives in Bergen.")
    assert not PendingExtraction.objects.exists()
    assert len(shown(alice)) == 3


def test_with_everos_nothing_is_compared(alice: Person, llm: StubLlm, settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:1"
    write(alice, "Alice lives in Oslo.")
    assert not PendingExtraction.objects.exists()


def test_a_change_during_the_call_is_compared_again(transactional_db: None, llm: StubLlm) -> None:
    alice = make_person("alice")
    old, new = write(alice, "Alice lives in Oslo."), write(alice, "Alice lives in Bergen.")

    def edit_first(lines: list[Line]) -> Any:
        Memory.objects.filter(pk=old.pk).update(text="Alice lives in Stavanger.")
        connection.close()  # of the stub's thread
        return related((1, "newer"))(lines)

    llm.extract = edit_first
    run_extractions()
    assert {"Alice lives in Stavanger.", new.text} >= shown(alice)
    assert "Stavanger" in str(llm.bodies[-1])


@pytest.mark.parametrize("failure", [500, "chat", "shape"])
def test_a_failing_model_supersedes_nothing_and_is_asked_again(alice: Person, llm: StubLlm, failure: Any) -> None:
    write(alice, "Alice lives in Oslo.")
    new = write(alice, "Alice lives in Bergen.")
    llm.extract, llm.failure = related((1, "newer")), failure
    run_extractions()
    assert len(shown(alice)) == 2
    llm.failure = None
    run_extractions(later=LATER)
    assert shown(alice) == {new.text}


def test_at_most_five_memories_are_superseded_at_once(alice: Person, llm: StubLlm) -> None:
    for number in range(comparison.MAX_NEAR):
        write(alice, f"Alice lives in house {number}.")
    PendingExtraction.objects.all().delete()
    write(alice, "Alice lives in no house.")
    llm.extract = related(*[(number, "newer") for number in range(1, 30)])
    run_extractions()
    assert len(shown(alice)) == comparison.MAX_NEAR + 1 - 5


def test_the_model_gets_no_fact_of_an_incognito_session(alice: Person, llm: StubLlm) -> None:
    secret = write(alice, "Alice has a secret garden in Oslo.")
    Session.objects.filter(pk=secret.session_id).update(incognito_until=timezone.now())
    fact = {"category": "user_memory_fact", "origin": "tool", "actor": ACTOR}
    add_by_hand(alice.owner, text="Alice has a garden in Oslo.", session_id="chat:open", **fact)
    add_by_hand(alice.owner, text="Alice has no garden in Oslo.", session_id="chat:open", **fact)
    engine = EmbeddedEngine()
    engine.add(alice.owner, "chat:open", [text_message("My garden in Oslo is green.")])
    engine.flush(alice.owner, "chat:open")
    run_extractions()
    assert llm.bodies
    assert "secret" not in str([list(lines_of(body)) for body in llm.bodies])
