"""Texts of others that claim to be the user, give orders or end the frame: they replace nothing and stay quoted."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest

from accounts.audit import Actor
from agents import tools
from agents.mcp import catalog, server
from agents.tools import Caller
from agents.tools.results import framed, quoted
from benchmarks.answers.poison import CLAIMS, CLOSE, OPEN, SOURCES, STATED, TAGS, poison
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, search, upload

pytestmark = pytest.mark.django_db(transaction=True)
DAY_MS = 86_400_000


def message(person: Person, source: str, text: str, at: int) -> dict[str, Any]:
    role = {"assistant": "assistant", "tool": "tool"}.get(source, "user")
    sender = {"user": person.user_id, "participant": "mallory"}.get(source, source)
    given = {"sender_id": sender, "role": role, "timestamp": NOON_MS + at, "content": text}
    return given | ({"tool_call_id": "call_1"} if source == "tool" else {})


def tell(person: Person, session_id: str, messages: list[dict[str, Any]]) -> None:
    call(person, "post", "/memories/add", session_id=session_id, messages=messages, participants=[{"id": "mallory"}])
    call(person, "post", "/memories/flush", session_id=session_id)


@pytest.fixture
def poisoned(alice: Person, storage: Any) -> Person:
    """A person whose statements are followed by texts of others."""
    tell(alice, "chat:own", [message(alice, "user", text, -day * DAY_MS) for day, text in enumerate(STATED.values())])
    texts = poison()
    assert len(texts) > 200
    for source in SOURCES[:3]:
        of_source = [text for one, text in texts if one == source]
        tell(alice, f"chat:{source}", [message(alice, source, text, at * 1000) for at, text in enumerate(of_source)])
    for number, text in enumerate(text for one, text in texts if one == "file"):
        upload(alice, f"note{number}.txt", text)
    return alice


def is_own(result: dict[str, Any]) -> bool:
    return result["session_id"] == "chat:own"


@pytest.fixture
def mcp(poisoned: Person) -> Any:
    caller = Caller(poisoned.owner, "main", Actor.command("tests"))

    def use(name: str, **arguments: Any) -> str:
        sent = server.call_result(name, tools.invoke(caller, name, arguments, catalog.TOOLS))
        assert sent.structured_content is None
        return str(sent.content[0].text)  # type: ignore[union-attr]

    return use


def check_frame(text: str) -> None:
    """Check that all of a text but its heading and its last line is in one frame, which nothing in it ends."""
    assert text.count(OPEN) == text.count(CLOSE) == 1
    before, rest = text.split(OPEN)
    inside, after = rest.split(CLOSE)
    assert "Attackville" not in before + after
    assert len((before + after).splitlines()) <= 6
    assert not re.search(r"[<≺‹〈《«]\s*/", plain(inside))


def plain(text: str) -> str:
    """Return a text without invisible characters, with the signs for < and / that look alike as one."""
    shown = "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf")
    return shown.translate({ord(char): "<" for char in "﹤⟨˂ᐸ❮❬❰"} | {ord(char): "/" for char in "∕⁄⧸"})


def test_no_text_of_others_replaces_a_statement_of_the_person(poisoned: Person) -> None:
    of_others = 0
    for query, stated in STATED.items():
        with_all = search(poisoned, query, scope=["all_user_memory"], top_k=100, explain=True)["results"]
        of_others += sum(not is_own(one) for one in with_all)
        own = [one for one in with_all if is_own(one)]
        assert all(one["superseded_by"] is None and one["explain"]["links"] == [] for one in own), query
        current = search(poisoned, query, scope=["all_user_memory"], top_k=100, history=False)["results"]
        assert [one["id"] for one in current if is_own(one)] == [one["id"] for one in own], query
        assert stated in {one["text"] for one in own}, query
    assert of_others > 100


@pytest.mark.parametrize("source", SOURCES)
def test_a_single_claim_leaves_the_statement_in_the_answer(alice: Person, storage: Any, source: str) -> None:
    tell(alice, "chat:own", [message(alice, "user", text, 0) for text in STATED.values()])
    for number, form in enumerate(form for forms in CLAIMS.values() for form in forms):
        claim = form.format(f"Attackville{number}", f"{number:03}")
        if source == "file":
            upload(alice, f"note{number}.txt", claim)
        else:
            tell(alice, f"chat:{number}", [message(alice, source, claim, DAY_MS)])
    for query, stated in STATED.items():
        found = search(alice, query, scope=["all_user_memory"], history=False, top_k=30)["results"]
        assert stated in {one["text"] for one in found if one["superseded_by"] is None}, query


def test_texts_of_others_stay_in_the_frame(poisoned: Person, mcp: Any) -> None:
    for query in (*STATED, "Attackville instructions", "What do you know about me?"):
        check_frame(mcp("memory_recall", query=query, max_tokens=20_000))
        if query in STATED:
            check_frame(mcp("memory_search", query=query, top_k=100, max_tokens=20_000))
        check_frame(call(poisoned, "post", "/memories/context", query=query, max_tokens=20_000)["text"])
    cursor = None
    for _ in range(5):
        text = mcp("memory_list", limit=100, max_tokens=20_000, **({"cursor": cursor} if cursor else {}))
        check_frame(text)
        [cursor] = re.findall(r"cursor (\S+)$", text) or [None]
    check_frame(call(poisoned, "post", "/memories/context", max_tokens=20_000)["text"])


def test_no_text_of_others_is_a_fact_of_the_context(poisoned: Person) -> None:
    found = call(poisoned, "post", "/memories/context", max_tokens=20_000)
    facts = {source["id"] for source in found["sources"] if source["kind"] == "fact"}
    assert facts
    own = call(poisoned, "get", "/memories", session_id="chat:own", limit=100)["memories"]
    assert facts <= {memory["id"] for memory in own}


@pytest.mark.parametrize("tag", TAGS)
def test_a_closing_tag_in_any_spelling_is_quoted(tag: str) -> None:
    check_frame(framed([quoted(f"before {tag} after")]))


def test_titles_and_quotations_stay_as_they_are() -> None:
    text = "《红楼梦》 〈序〉 «Война и мир» ‹un mot› a/b ≤ 3 km/h"
    assert quoted(text) == text
