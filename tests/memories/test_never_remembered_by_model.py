"""With a language model, texts of a topic are refused that no lexicon knows; without an answer the lexicons decide."""

from __future__ import annotations

import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection

from accounts.models import MemoryUser
from benchmarks.topics.run import statements
from core.network.model_endpoint import ModelAddress
from store import topic_model
from store.admission import Offer, admit
from store.text.topics import TOPICS, topics_of
from tests.agents.mcp.test_tools import Agent
from tests.conftest import Person
from tests.memories.calls import call
from tests.memories.test_never_remembered import messages, never, texts
from tests.memories.test_paused import pause
from tests.store.test_topics import ABOUT_OTHER_THINGS
from tests.stub_llm import StubLlm, running_llm

pytestmark = pytest.mark.django_db(transaction=True)

MEANT = "The white coats put me on the pills again."
HARMLESS = "I like green tea."


@pytest.fixture
def llm(settings: Any) -> Iterator[StubLlm]:
    with running_llm() as running:
        settings.MEMORY_GATEWAY_MODELS = {"llm": ModelAddress(running.url, f"stub-{running.port}")}
        running.topics = lambda lines: {
            "texts": [{"number": one["number"], "topics": ["health"]} for one in lines if MEANT in one["text"]]
        }
        yield running


def asked(llm: StubLlm) -> str:
    return str(llm.tasks("topics"))


@pytest.mark.parametrize(("name", "by_lexicons"), [("statements", 1.0), ("others", 0.95)])
def test_statements_of_topics_are_refused_and_others_are_not(
    alice: Person, llm: StubLlm, name: str, by_lexicons: float
) -> None:
    """The stand-in misses one of twenty statements, and takes no other text for one."""
    labels = {text: topic for topic, _language, text in statements(name)}
    known = [text for place, text in enumerate(labels) if place % 20]
    llm.topics = lambda lines: {
        "texts": [{"number": one["number"], "topics": [labels[one["text"]]]} for one in lines if one["text"] in known]
    }
    never(alice, topics=TOPICS)
    offers = [Offer("chats", text, "user") for text in [*labels, *ABOUT_OTHER_THINGS]]
    refused = admit(alice.user_pk, offers, ask_seconds=60).refused
    assert sum(place < len(labels) for place in refused) >= 0.95 * len(labels)
    assert sum(place >= len(labels) for place in refused) <= 0.01 * len(ABOUT_OTHER_THINGS)
    assert sum(bool(topics_of(text)) for text in labels) < by_lexicons * len(labels)


def test_every_interface_asks_before_it_writes(alice: Person, llm: StubLlm, tmp_path: Path) -> None:
    never(alice, topics=["health"])
    by_rules = llm.topics

    def while_another_writes(lines: list[dict[str, Any]]) -> Any:
        MemoryUser.objects.filter(pk=alice.user_pk).update(name="Alice")  # waits for no transaction
        connection.close()
        return by_rules(lines)

    llm.topics = while_another_writes
    said = call(alice, "post", "/memories/add", session_id="chat:1", messages=messages(MEANT, HARMLESS))
    assert (said["stored"], said["refused"]) == (1, {"never": 1})
    texts_of = (f"{number}. {MEANT}" for number in range(9))
    for headers in ({}, {"Idempotency-Key": "k1"}):
        body = {"text": next(texts_of)}
        answer = alice.client.post("/memories", body, "application/json", headers=headers)
        assert (answer.status_code, answer.json()["refused"]) == (200, {"never": 1}), answer.content
    many = [{"text": next(texts_of)}, {"text": "Likes coffee"}, {"text": next(texts_of)}]
    before = len(llm.bodies)
    assert call(alice, "post", "/memories/bulk", memories=many)["stored"] == 1
    assert len(llm.bodies) == before + 1
    assert "Remembering" not in str(Agent(alice).call("memory_store", text=next(texts_of)))
    change = call(alice, "get", "/memories")["memories"][0]["id"]
    assert Agent(alice).call("memory_update", memory_id=change, text=next(texts_of))
    source = tmp_path / "mem0.json"
    source.write_text(f'{{"results": [{{"id": "1", "memory": "{next(texts_of)}"}}, {{"id": "2", "memory": "Tea."}}]}}')
    call_command("import_from", "mem0", str(source), "--user", alice.user_id, "--apply", stdout=StringIO())
    pages = [f"Chapter {number}. {'The garden is green. ' * 60}" for number in range(4)]
    pages[2] += MEANT
    file = SimpleUploadedFile("notes.txt", "\n\n".join(pages).encode(), "text/plain")
    notes = alice.client.post("/resources", {"file": file}).json()["reading"]["notes"]
    assert [one["count"] for one in notes if one["code"] == "passages_refused"] == [1]
    assert len(texts()) > 4
    assert not [text for text in texts() if MEANT in text]


def test_a_transcript_that_is_sent_again_is_not_asked_about_again(alice: Person, llm: StubLlm) -> None:
    never(alice, topics=["health"])
    for _ in range(2):
        sent = call(alice, "post", "/memories/add", session_id="chat:1", messages=messages(MEANT, HARMLESS))
        assert sent["refused"] == {"never": 1}
    assert len(llm.tasks("topics")) == 1
    call(alice, "post", "/memories/add", session_id="chat:1", messages=messages(MEANT, HARMLESS, "And milk."))
    assert HARMLESS not in str(llm.tasks("topics")[-1])


@pytest.mark.parametrize("failure", [500, 429, "null", "chat", "shape", "cut"])
def test_without_an_answer_the_lexicons_decide(alice: Person, llm: StubLlm, failure: int | str) -> None:
    llm.failure = failure
    never(alice, topics=["health"])
    sent = messages(MEANT, "I am allergic to nuts.", HARMLESS)
    answer = call(alice, "post", "/memories/add", session_id="chat:1", messages=sent)
    assert (answer["stored"], answer["refused"]) == (2, {"never": 1})
    assert llm.tasks("topics")


def test_a_slow_model_holds_no_write_up(alice: Person, llm: StubLlm) -> None:
    llm.delay_seconds = 3.0
    never(alice, topics=["health"])
    began = time.monotonic()
    refused = admit(alice.user_pk, [Offer("chats", MEANT, "user")], ask_seconds=0.3).refused
    assert (dict(refused), time.monotonic() - began < 2.5) == ({}, True)


def test_nothing_of_a_pause_or_an_incognito_session_is_asked_about(alice: Person, llm: StubLlm) -> None:
    never(alice, topics=["health"])
    secret = {"session_id": "chat:secret", "messages": messages(f"Secret. {MEANT}")}
    assert call(alice, "post", "/memories/add", incognito=True, **secret)["stored"] == 1
    call(alice, "post", "/memories/add", **secret)
    pause(alice, "chats", "agents")
    call(alice, "post", "/memories/add", session_id="chat:1", messages=messages(f"Paused. {MEANT}"))
    call(alice, "post", "/memories", text=f"Paused. {MEANT}")
    assert llm.bodies == []


def test_a_user_without_topics_and_a_key_of_words_ask_nothing(alice: Person, bob: Person, llm: StubLlm) -> None:
    never(alice, "zanzibar")
    for person in (alice, bob):
        call(person, "post", "/memories/add", session_id=f"chat:{person.user_id}", messages=messages(MEANT))
    assert llm.bodies == []


def test_long_texts_are_asked_about_in_parts(alice: Person, llm: StubLlm) -> None:
    never(alice, topics=["health"])
    long = f"{HARMLESS} {'word ' * 3000}{MEANT}"
    assert admit(alice.user_pk, [Offer("chats", long, "user")]).refused == {0: "never"}
    assert len(llm.bodies) == 3
    assert topic_model.is_about(long, ["health"])
