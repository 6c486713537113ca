"""`POST /memories/forget`: the memories with all words and their copies, after a preview, with one undo."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import AuditEvent
from memories.models import Tombstone
from tests.agents.tools.conftest import Agent
from tests.conftest import Person
from tests.memories.calls import say
from tests.operations.test_filtered_deletion import keep, live, with_key
from tests.portal.visits import visit

pytestmark = pytest.mark.django_db


def request(person: Person, words: str, **fields: Any) -> Any:
    return person.client.post("/memories/forget", {"words": words, **fields}, "application/json")


def preview(person: Person, words: str, **fields: Any) -> Any:
    answer = request(person, words, dry_run=True, **fields)
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.fixture
def teas(alice: Person, bob: Person) -> list[str]:
    """Store memories of Alice and Bob; return the ids of those of Alice that have both words."""
    found = [keep(alice, "Alice drinks green tea"), keep(alice, "She drank the teas, green and black")]
    keep(alice, "Alice drinks black tea")
    keep(bob, "Bob drinks green tea")
    return found


def test_the_preview_shows_what_would_go_and_deletes_nothing(alice: Person, teas: list[str]) -> None:
    found = preview(alice, "green tea")
    assert (found["status"], found["count"], found["deletion_id"]) == ("dry_run", 2, None)
    assert [one["id"] for one in found["memories"]] == teas[::-1]
    assert {one["text"] for one in found["memories"]} == {
        "Alice drinks green tea", "She drank the teas, green and black",
    }  # fmt: skip
    assert len(live(alice)) == 3


def test_all_with_the_words_are_deleted_and_one_undo_restores_them(alice: Person, bob: Person, teas: list[str]) -> None:
    count = preview(alice, "green tea")["count"]
    done = request(alice, "green tea", expected_count=count, reason="private").json()
    assert (done["status"], done["deleted"]) == ("deleted", 2)
    assert live(alice).isdisjoint(teas)
    assert (len(live(alice)), len(live(bob))) == (1, 1)
    assert set(Tombstone.objects.values_list("reason", flat=True)) == {"private"}
    undone = alice.client.post(f"/memories/delete/{done['deletion_id']}/undo", {}, "application/json").json()
    assert undone["status"] == "undone"
    assert live(alice) >= set(teas)


def test_copies_are_shown_as_one_and_deleted_together(alice: Person) -> None:
    for number, text in enumerate(["The tax number is 4711.", "the tax  number is 4711", "THE TAX NUMBER IS 4711!"]):
        say(alice, f"chat:c{number}", text)
    found = preview(alice, "tax 4711")
    [memory] = found["memories"]
    assert (found["count"], len(memory["copies"])) == (3, 2)
    assert request(alice, "tax 4711", expected_count=3).json()["deleted"] == 3
    assert live(alice) == set()


def test_words_match_in_any_form_and_in_chinese(alice: Person) -> None:
    kept = [keep(alice, "我对花生过敏"), keep(alice, "Ich trinke gern Kräutertees")]
    keep(alice, "我喜欢绿茶")
    assert [one["id"] for one in preview(alice, "花生")["memories"]] == kept[:1]
    assert [one["id"] for one in preview(alice, "kräutertee")["memories"]] == kept[1:]
    assert preview(alice, "giraffe") == {
        "deletion_id": None, "status": "dry_run", "count": 0, "deleted": 0, "by_category": {}, "memories": [],
    }  # fmt: skip


def test_the_words_must_be_previewed_and_are_in_no_event(alice: Person, teas: list[str]) -> None:
    assert request(alice, "green tea", expected_count=2).status_code == 409
    preview(alice, "green")
    assert request(alice, "green tea", expected_count=2).status_code == 409
    preview(alice, "green tea")
    keep(alice, "Green tea again")
    refused = request(alice, "green tea", expected_count=2)
    assert (refused.status_code, refused.json()["code"], refused.json()["count"]) == (409, "count_changed", 3)
    preview(alice, "green tea")
    assert request(alice, "green tea", expected_count=3).status_code == 200
    for event in AuditEvent.objects.all():
        assert "green" not in f"{event.subject_id} {event.detail}"


@pytest.mark.parametrize("words", ["", " ", "\u200b"])
def test_a_word_is_required(alice: Person, teas: list[str], words: str) -> None:
    refused = request(alice, words, dry_run=True)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "words")


def test_other_scopes_and_agents_stay(alice: Person, teas: list[str]) -> None:
    keep(alice, "Green tea of the writer", agent_id="writer")
    assert preview(alice, "green tea", app_id="other")["count"] == 0
    assert preview(with_key(alice, agent_id="coder"), "green tea")["count"] == 2
    assert preview(alice, "green tea")["count"] == 3
    assert request(with_key(alice, granted=["decide"]), "green tea", dry_run=True).status_code == 403


def test_the_tool_the_endpoint_and_the_page_find_the_same(alice: Person, teas: list[str]) -> None:
    agent = Agent(alice)
    for words in ("green tea", "drinks tea", "tea", "black", "Alice drinks green tea", "giraffe"):
        found = {one["id"] for one in preview(alice, words)["memories"]}
        page = visit(alice).get(f"/portal/memories/forget?q={words.replace(' ', '+')}")
        assert page.count('name="row"') == len(found)
        if len(found) != 1:
            details = agent.use("memory_forget", query=words)
            assert found <= {one["id"] for one in details.get("candidates", ())}, words
    assert len(live(alice)) == 3


def test_the_tool_deletes_by_a_query_only_what_alone_has_its_words(alice: Person) -> None:
    agent = Agent(alice)
    memory_id = keep(alice, "Alice drinks green tea")
    keep(alice, "Every morning in Lyon, before she goes to work, Alice drinks two cups of green tea with honey")
    assert agent.use("memory_forget", query="Alice drinks green tea")["action"] == "candidates"
    assert agent.use("memory_forget", memoryId=memory_id)["action"] == "deleted"
