"""A user's facts while EverOS is attached, fails, is detached and attached again, and another EverOS takes its place.

After each step every fact is shown once, as its message or in what EverOS derived from it, and no word of a deleted or
corrected one is found. The stand-in for EverOS repeats no word: its narratives name a fact by another one, and merge
all facts of a flush.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agents.rpc.memory_admin import SHARED_AGENT
from core.background import tasks
from tests import everos
from tests.agents.rpc import direct
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call
from tests.server import free_port
from tests.stub_everos import Store
from tests.stub_upstream import Fault, StubUpstream

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

LETTERS = str.maketrans("0123456789", "abcdefghij")
FACTS_OF_A_SESSION = 10
PAGE = 100


def said(number: int) -> str:
    """Return the word that a message uses for a fact."""
    return f"said{str(number).translate(LETTERS)}x"


def told(number: int) -> str:
    """Return the word that a narrative uses for a fact."""
    return f"told{str(number).translate(LETTERS)}x"


class RewordingStore(Store):
    """EverOS as far as it merges all messages of a flush into one text, and repeats no word of them."""

    def _episode(self, body: dict[str, Any], user_id: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
        words = re.findall(r"said([a-j]+)x", str(messages))
        text = " ".join(f"told{word}x" for word in dict.fromkeys(words))
        return {**super()._episode(body, user_id, messages), "episode": text, "summary": text, "subject": text[:90]}


@dataclass
class RealEverOS:
    """A real EverOS with separate data, which is stopped instead of answering with a fault."""

    home: Path
    port: int = field(default_factory=free_port)
    llm_port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.home.mkdir()
        (self.home / "venv").symlink_to(everos.installed())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def heal(self, _calls: str) -> None:
        everos.start(**self._env)

    def fault(self, _calls: str, _fault: Fault, *, times: int) -> None:
        everos.stop(**self._env)

    @property
    def _env(self) -> dict[str, str]:
        return {"UPSTREAM_HOME": str(self.home), "UPSTREAM_PORT": str(self.port), "STUB_PORT": str(self.llm_port)}


@dataclass
class Life:
    """One user, the stand-ins for EverOS, and the facts that are shown (True) or not, by number."""

    person: Person
    first: StubUpstream | RealEverOS
    second: StubUpstream | RealEverOS
    settings: Any
    facts: dict[int, bool] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    rng: random.Random = field(default_factory=lambda: random.Random(1))

    # --- what happens -----------------------------------------------------------------------------------------------

    def attach(self, remote: StubUpstream | RealEverOS) -> None:
        self.settings.MEMORY_GATEWAY_BACKEND_BASE_URL = remote.url

    def detach(self) -> None:
        self.settings.MEMORY_GATEWAY_BACKEND_BASE_URL = ""

    @contextmanager
    def away(self) -> Iterator[None]:
        with ExitStack() as stack:
            for remote in (self.first, self.second):
                remote.fault("*", Fault(status=503), times=100_000)
                stack.callback(remote.heal, "*")
            yield

    def say(self, count: int, *others: str) -> dict[int, str]:
        """Add messages with new facts, ten to a session, and flush their sessions; return their senders.

        The user and the others take turns.
        """
        senders = itertools.cycle([self.person.user_id, *others])
        new = {next(self.numbers): next(senders) for _ in range(count)}
        for start in range(0, count, FACTS_OF_A_SESSION):
            batch = list(new)[start : start + FACTS_OF_A_SESSION]
            session_id = f"chat:c{batch[0]}"
            messages = [
                {
                    "sender_id": new[number],
                    "role": "user",
                    "timestamp": NOON_MS + 1000 * number,
                    "content": f"I like {said(number)}.",
                }
                for number in batch
            ]
            people = [{"id": other} for other in others]
            call(self.person, "post", "/memories/add", session_id=session_id, messages=messages, participants=people)
            call(self.person, "post", "/memories/flush", session_id=session_id)
        self.facts |= dict.fromkeys(new, True)
        return new

    def decide(self, count: int) -> None:
        """Delete `count` memories and correct as many, chosen among all that are shown."""
        for change in (self._delete, self._correct):
            rows = self.listed()
            for row in self.rng.sample(rows, min(count, len(rows))):
                for number in self.facts_in(row["text"]):
                    self.facts[number] = False
                change(row["id"])

    def _delete(self, memory_id: str) -> None:
        call(self.person, "delete", f"/memories/{memory_id}")

    def _correct(self, memory_id: str) -> None:
        number = next(self.numbers)
        self.facts[number] = True
        call(self.person, "patch", f"/memories/{memory_id}", override_text=f"It is {said(number)}.")

    # --- what is seen -----------------------------------------------------------------------------------------------

    def listed(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            page = call(self.person, "get", "/memories", limit=PAGE, **cursor)
            rows += page["memories"]
            if page["next_cursor"] is None:
                return rows
            cursor = {"cursor": page["next_cursor"]}

    def facts_in(self, text: str) -> set[int]:
        return {number for number in self.facts if said(number) in text or told(number) in text}

    def found(self, word: str) -> list[str]:
        """Return the texts with the word that searches of REST, tools and RPC find."""
        body = {"query": word, "scope": ["all_user_memory"], "method": "keyword", "include_profile": False}
        answer = self.person.client.post("/memories/search", body, content_type="application/json")
        assert answer.status_code == 200, answer.content
        answers = [hit["text"] for hit in answer.json()["results"]]
        tool = call(self.person, "post", "/tools/invoke", tool="memory_recall", args={"query": word})
        answers += [memory["text"] for memory in tool["result"]["details"].get("memories", ())]
        return [text for text in answers if word in text]

    def check(self) -> None:
        """Every live fact is listed once and found; of the others no word is."""
        assert tasks.wait_until_idle(60)
        live = {number for number, is_live in self.facts.items() if is_live}
        texts = [row["text"] for row in self.listed()]
        assert Counter(number for text in texts for number in self.facts_in(text)) == Counter(live)
        assert {number for text in self.listed_by_rpc() for number in self.facts_in(text)} <= live
        for number in self.facts.keys() - live:
            assert self.found(said(number)) == self.found(told(number)) == [], number
        for number in self.rng.sample(sorted(live), min(20, len(live))):
            assert len({*self.found(said(number)), *self.found(told(number))}) == 1, number

    def listed_by_rpc(self) -> list[str]:
        texts: list[str] = []
        for number in itertools.count(1):
            page = direct.listed(direct.of_user(self.person), agentId=SHARED_AGENT, limit=PAGE, page=number)
            texts += [item["text"] for item in page]
            if len(page) < PAGE:
                break
        return texts


@pytest.fixture
def life(alice: Person, settings: Any, storage: Path) -> Iterator[Life]:
    settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01
    settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 3.0
    with StubUpstream() as first, StubUpstream() as second:
        first.store, second.store = RewordingStore(), RewordingStore()
        yield Life(alice, first, second, settings)
        assert tasks.wait_until_idle(60)


def live_through(life: Life, count: int, decisions: int) -> Iterator[str]:
    """Add `count` messages in each part of a life, decide about some, and yield each part's name."""
    life.say(count)
    life.decide(decisions)
    yield "detached"
    life.attach(life.first)
    yield "attached"
    life.say(count)
    yield "derived"
    life.decide(decisions)
    yield "decided while attached"
    with life.away():
        yield "away"
        life.decide(decisions)
        yield "decided while away"
    yield "back"
    life.detach()
    yield "detached again"
    life.decide(decisions)
    yield "decided while detached"
    life.attach(life.first)
    yield "attached again"
    life.say(count)
    yield "derived again"
    life.attach(life.second)
    yield "attached to another"
    life.say(count)
    yield "derived by another"


def live_and_check(life: Life, count: int, decisions: int) -> None:
    for part in live_through(life, count, decisions):
        try:
            life.check()
        except AssertionError as error:
            raise AssertionError(part) from error


def test_every_fact_is_shown_once_and_no_deleted_word_is_found(life: Life) -> None:
    live_and_check(life, 10, 2)


def test_a_person_who_leaves_a_group_chat_takes_only_her_own_facts(life: Life) -> None:
    life.attach(life.first)
    senders = life.say(6, "ben", "cleo")
    assert call(life.person, "delete", "/memories", sender_id="cleo")["deleted_count"] == 2
    life.facts |= {number: sender != "cleo" for number, sender in senders.items()}
    life.check()
    with life.away():
        life.check()
    life.detach()
    life.check()
    life.attach(life.first)
    life.check()


@pytest.mark.torture
def test_every_fact_of_a_thousand_is_shown_once(life: Life) -> None:
    live_and_check(life, 250, 20)


@pytest.mark.torture
@pytest.mark.upstream
def test_every_fact_is_shown_once_with_a_real_everos(
    alice: Person, settings: Any, storage: Path, tmp_path: Path
) -> None:
    with everos.running():  # installs it
        pass
    life = Life(alice, RealEverOS(tmp_path / "first"), RealEverOS(tmp_path / "second"), settings)
    life.first.heal("*")
    life.second.heal("*")
    try:
        live_and_check(life, 50, 5)
        assert tasks.wait_until_idle(60)
    finally:
        life.first.fault("*", Fault(), times=1)
        life.second.fault("*", Fault(), times=1)
