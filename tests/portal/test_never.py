"""The person's words and topics that are never remembered: added, offered for deletion, and taken away."""

from __future__ import annotations

import re
from typing import Any

import pytest

from accounts import controls
from accounts.audit import Actor
from store.models import Memory
from store.text.synonyms import similar_to
from tests.conftest import Person
from tests.memories.calls import call, say
from tests.portal.test_remembering import personal_visit
from tests.portal.visits import visit

pytestmark = pytest.mark.django_db

PAGE = "/portal/remembering"
ACTOR = Actor.command("tests")


def live() -> set[str]:
    return set(Memory.objects.filter(state="live").values_list("text", flat=True))


def test_a_topic_is_added_its_memories_are_offered_and_deleted_and_it_is_taken_away(
    alice: Person, bob: Person, settings: Any
) -> None:
    say(alice, "chat:c1", "I am allergic to nuts.")
    say(alice, "chat:c2", "I like green tea.")
    call(alice, "post", "/memories", status=201, text="Takes insulin every morning", app_id="other")
    say(bob, "chat:c1", "I have diabetes.")
    at = personal_visit(alice, settings)
    added = at.post(f"{PAGE}/never", topic="health").headers["Location"]
    shown = at.get(added)
    assert "catch words, not meanings" in shown
    assert live() >= {"I am allergic to nuts.", "I have diabetes."}
    [offered] = set(re.findall(r'href="(/portal/memories/forget\?never=health)"', shown))
    page = at.get(offered)
    rows = re.findall(r'name="row" value="(\d+)"', page)
    assert len(rows) == 2
    assert "green tea" not in page
    done = at.post("/portal/memories/forget", never="health", row=rows).content.decode()
    assert "2 memories are deleted" in done
    assert live() == {"I like green tea.", "I have diabetes."}
    deletion = re.findall(r'name="deletion" value="([^"]+)"', done)[0]
    assert "2 memories are restored" in at.post("/portal/memories/undo", deletion=deletion).content.decode()
    assert at.post(f"{PAGE}/allow", topic="health").status_code == 302
    assert not controls.never_of(alice.user_pk)
    shown = at.get(PAGE)
    assert "Added what is never remembered" in shown
    assert "1 topic" in shown


def test_words_are_added_with_similar_ones_that_are_ticked(alice: Person, settings: Any) -> None:
    say(alice, "chat:c1", "My doctors disagree.")
    at = personal_visit(alice, settings)
    at.post(f"{PAGE}/never", word="Doctor")
    page = at.get(PAGE)
    assert 'value="physician"' in page
    at.post(f"{PAGE}/never", word=["physician", "GP"])
    assert controls.never_of(alice.user_pk).words == ("Doctor", "physician", "GP")
    assert "My doctors disagree." in at.get("/portal/memories/forget?never=words")
    at.post(f"{PAGE}/allow", word="physician")
    assert controls.never_of(alice.user_pk).words == ("Doctor", "GP")


def test_a_word_without_letters_is_refused_with_a_reason(alice: Person) -> None:
    refused = visit(alice).post(f"{PAGE}/never", word="!!")
    assert refused.status_code == 422
    assert "must contain a letter" in refused.content.decode()


def test_the_session_of_a_key_adds_and_takes_nothing_away(alice: Person) -> None:
    at = visit(alice)
    assert at.post(f"{PAGE}/never", topic="work").status_code == 302
    assert f"{PAGE}/allow" not in at.get(PAGE)
    assert at.post(f"{PAGE}/allow", topic="work").status_code == 403
    assert controls.never_of(alice.user_pk).topics == ("work",)


def test_only_what_is_set_is_offered(alice: Person) -> None:
    say(alice, "chat:c1", "I am allergic to nuts.")
    at = visit(alice)
    for name in ("health", "words", "x"):
        assert 'name="row"' not in at.get(f"/portal/memories/forget?never={name}")
    controls.set_never(alice.user_pk, topics=["work"], actor=ACTOR)
    assert 'name="row"' not in at.get("/portal/memories/forget?never=health")
    assert "Nothing of it is stored" in at.get("/portal/memories/forget?never=work")


def test_similar_words_are_those_of_the_same_group_in_any_form() -> None:
    assert "physician" in similar_to("doctors")
    assert "大夫" in similar_to("医生")
    assert similar_to("giraffe") == []
    assert "doctor" not in [one.casefold() for one in similar_to("Doctor")]
