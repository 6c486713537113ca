"""The engine with a real EverOS: adding and searching, and known weaknesses of EverOS that the gateway closes."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import EngineRefused
from engines.attached import AttachedEngine
from memories.services import files
from remote.client.client import Client
from remote.client.resilience import Retry
from remote.everos import EverOS as Remote
from remote.models import OutboxEntry
from store.models import Memory, Session
from store.types import ContentItem, Hit, Message, SearchRequest, Wording
from tests.conftest import SHARED, Person, make_person
from tests.everos import EverOS
from tests.remote.conftest import NOON, message_of
from tests.resources.people import eventually

pytestmark = pytest.mark.upstream

INDEXED_SECONDS = 120.0
"""A new EverOS finds its first memories by keyword only after its indexer ran, once a minute."""


@pytest.fixture
def client(everos: EverOS) -> Client:
    return Client(everos.url, timeout_seconds=60.0, retry=Retry(attempts=2))


@pytest.fixture
def engine(client: Client, storage: Path) -> AttachedEngine:
    return AttachedEngine(Remote(client))


@pytest.fixture
def alice(db: Any) -> Person:
    return make_person(f"alice.{secrets.token_hex(4)}")


@pytest.fixture
def bob(db: Any) -> Person:
    return make_person(f"bob.{secrets.token_hex(4)}")


@pytest.fixture
def chat() -> str:
    """A session id that earlier runs did not use."""
    return f"chat:{secrets.token_hex(6)}"


def remember(engine: AttachedEngine, person: Person, session_id: str, *texts: str, **values: Any) -> str:
    messages = [message_of(person.owner, text, NOON + number, **values) for number, text in enumerate(texts)]
    engine.add(person.owner, session_id, messages)
    return engine.flush(person.owner, session_id).status


def search_hits(engine: AttachedEngine, person: Person, query: str, **values: Any) -> list[Hit]:
    request = SearchRequest(**{"query": query, "method": "keyword", **values})
    return list(engine.search(person.owner, [request])[0].hits)


def episodes(person: Person) -> list[str]:
    return list(
        Memory.objects.filter(user_id=person.user_pk, memory_type="episode", origin="upstream").values_list(
            "text", flat=True
        )
    )


@pytest.mark.parametrize("method", ["keyword", "vector", "hybrid", "agentic"])
def test_a_message_is_found_by_every_method(engine: AttachedEngine, alice: Person, chat: str, method: Any) -> None:
    assert remember(engine, alice, chat, "The invoice is payable within thirty days.") == "extracted"
    hits = search_hits(engine, alice, "invoice payable", method=method, session_ids=(chat,))
    assert [hit.session_id for hit in hits] == [chat]
    assert "thirty days" in hits[0].text
    assert hits[0].score is not None
    assert 0 <= hits[0].score <= 1


def test_chinese_messages_are_stored_and_found(engine: AttachedEngine, alice: Person) -> None:
    session_id = f"chat:会话-{secrets.token_hex(4)}"
    assert remember(engine, alice, session_id, "付款期限为收到发票后三十天内。") == "extracted"
    [hit] = search_hits(engine, alice, "付款期限", session_ids=(session_id,))
    assert "三十天内" in hit.text
    assert "三十天内" in episodes(alice)[0]


@pytest.mark.parametrize("method", ["keyword", "hybrid"])
def test_an_overridden_memory_is_found_by_its_new_text_only(
    engine: AttachedEngine, alice: Person, chat: str, method: str
) -> None:
    assert remember(engine, alice, chat, "I like green tea from Japan") == "extracted"
    remember(engine, alice, f"{chat}-2", "My bicycle stands in the cellar")
    memory = Memory.objects.get(
        user_id=alice.user_pk, memory_type="episode", is_covered=False, session__session_id=chat
    )
    assert memory.memory_id in {hit.memory_id for hit in search_hits(engine, alice, "green tea Japan", method=method)}
    engine.replace(alice.owner, {memory.memory_id: Wording("Coffee beats cocoa", "", None)})
    assert memory.memory_id not in {
        hit.memory_id for hit in search_hits(engine, alice, "green tea Japan", method=method)
    }
    first = search_hits(engine, alice, "coffee cocoa", method=method, top_k=1)
    assert [(hit.memory_id, hit.text) for hit in first] == [(memory.memory_id, "Coffee beats cocoa")]
    engine.replace(alice.owner, {memory.memory_id: Wording(memory.text, "", None)})
    assert memory.memory_id in {hit.memory_id for hit in search_hits(engine, alice, "green tea Japan", method=method)}


def test_health_and_capabilities_are_reported(engine: AttachedEngine, everos: EverOS) -> None:
    health = engine.health(2.0)
    assert (health.status, health.base_url, health.data["status"]) == ("ok", everos.url, "ok")
    assert engine.capabilities()["hybrid"]


def document(person: Person, path: Path, mime_type: str, content_type: Any) -> Message:
    stored = files.inline_file(person.user_pk, path.read_bytes(), path.suffix[1:])
    files.keep(stored)
    extras = {"resource_id": "r_1"}
    item = ContentItem(content_type, file=stored.key, name=path.name, mime_type=mime_type, extras=extras)
    return Message(person.user_id, "user", NOON, (item,))


def test_a_long_text_file_is_found_in_its_middle(engine: AttachedEngine, alice: Person, tmp_path: Path) -> None:
    path = tmp_path / "条款.txt"
    paragraphs = [f"Paragraph {number} speaks of nothing in particular." for number in range(300)]
    path.write_text("\n\n".join([*paragraphs[:150], "The zebra clause { is unbalanced.", *paragraphs[150:]]))
    session_id = f"resource:{alice.user_id}:r_{secrets.token_hex(4)}"
    engine.add(alice.owner, session_id, [document(alice, path, "text/plain", "text")])
    assert engine.flush(alice.owner, session_id).status == "extracted"
    assert any(
        "zebra clause" in hit.text for hit in search_hits(engine, alice, "zebra clause", session_ids=(session_id,))
    )
    assert any("条款.txt" in text for text in episodes(alice))


@pytest.mark.parametrize(
    ("name", "mime_type", "content_type"),
    [
        ("page.html", "text/html", "html"),
        ("rows.json", "application/json", "doc"),
        ("data.csv", "text/csv", "text"),
    ],
)
def test_every_type_of_file_is_ingested(
    engine: AttachedEngine, alice: Person, tmp_path: Path, name: str, mime_type: str, content_type: str
) -> None:
    path = tmp_path / name
    path.write_text('{"rent": "700 euros", "due": "monthly"}' if name.endswith("json") else "<p>rent, 700 euros</p>")
    session_id = f"resource:{alice.user_id}:r_{secrets.token_hex(4)}"
    engine.add(alice.owner, session_id, [document(alice, path, mime_type, content_type)])
    assert engine.flush(alice.owner, session_id).status == "extracted"
    assert any("700 euros" in text for text in episodes(alice))


def test_word_documents_are_ingested_without_office_support_in_everos(engine: AttachedEngine, alice: Person) -> None:
    path = next(iter(sorted((SHARED / "corpus").rglob("*.docx"))), None)
    if path is None:
        pytest.skip("needs ../shared/corpus")
    session_id = f"resource:{alice.user_id}:r_{secrets.token_hex(4)}"
    mime_type = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    engine.add(alice.owner, session_id, [document(alice, path, mime_type, "doc")])
    assert engine.flush(alice.owner, session_id).status == "extracted"


def test_an_unsupported_image_is_rejected_permanently(
    engine: AttachedEngine, alice: Person, chat: str, tmp_path: Path
) -> None:
    path = tmp_path / "moving.gif"
    path.write_bytes(b"GIF89a\x01\x00\x01\x00")
    engine.add(alice.owner, chat, [document(alice, path, "image/gif", "image")])
    with pytest.raises(EngineRefused):
        engine.remote.send(alice.owner, Session.objects.get())
    assert OutboxEntry.objects.get().state == "refused"
    assert Memory.objects.get().text == "moving.gif"


def test_hole_the_buffer_of_another_user_cannot_be_read(
    engine: AttachedEngine, alice: Person, bob: Person, chat: str
) -> None:
    engine.add(alice.owner, chat, [message_of(alice.owner, "my pin is 1234")])
    assert [hit.memory_type for hit in search_hits(engine, alice, "pin", session_ids=(chat,))] == [
        "unprocessed_message"
    ]
    assert search_hits(engine, bob, "pin", session_ids=(chat,)) == []
    assert search_hits(engine, bob, "pin", filters={"session_id": chat}) == []
    engine.add(bob.owner, chat, [message_of(bob.owner, "hello")])  # the same conversation id, and still another session
    assert "1234" not in str(search_hits(engine, bob, "pin", session_ids=(chat,)))


def test_hole_the_sender_id_of_another_user_writes_nothing(
    engine: AttachedEngine, alice: Person, bob: Person, chat: str, client: Client
) -> None:
    remember(engine, alice, chat, "bob owes me money", sender_id=bob.user_id)
    listed = client.list({"user_id": bob.user_id, "memory_type": "episode"}, client.deadline())
    assert listed.total_count == 0
    assert len(episodes(alice)) == 1


def test_a_group_chat_is_filed_under_the_caller_only(
    engine: AttachedEngine, alice: Person, bob: Person, chat: str, client: Client
) -> None:
    call = {"id": "call_7", "type": "function", "function": {"name": "trains", "arguments": '{"to": "Rome"}'}}
    said = message_of(alice.owner, "I bring the tent")
    messages = [
        replace(said, role="system", sender_id="main"),
        said,
        replace(said, sender_id=bob.user_id, sender_name="Bob", is_participant=True, timestamp_ms=NOON + 1),
        replace(said, sender_id="carol", is_participant=True, timestamp_ms=NOON + 2),
        replace(said, sender_id="main", role="assistant", tool_calls=(call,), timestamp_ms=NOON + 3),
        replace(said, sender_id="main", role="tool", timestamp_ms=NOON + 4),
        replace(said, sender_id="main", role="tool", tool_call_id="call_7", timestamp_ms=NOON + 5),
    ]
    engine.add(alice.owner, chat, messages)
    assert engine.flush(alice.owner, chat).status == "extracted"
    for participant in (bob.user_id, "carol"):
        listed = client.list({"user_id": participant, "memory_type": "episode"}, client.deadline())
        assert listed.total_count == 0
    [text] = episodes(alice)
    assert "Bob" in text
    assert "carol" in text


def test_hole_users_of_one_session_id_share_no_memories(
    engine: AttachedEngine, alice: Person, bob: Person, chat: str
) -> None:
    engine.add(alice.owner, chat, [message_of(alice.owner, "alice has a secret garden")])
    engine.add(bob.owner, chat, [message_of(bob.owner, "bob has a plain garden")])
    for person in (alice, bob):
        engine.flush(person.owner, chat)
    assert [hit.text.count("garden") for hit in search_hits(engine, bob, "garden")] == [1]
    assert "secret" not in str(search_hits(engine, bob, "secret garden"))


def test_hole_messages_with_equal_times_are_all_stored(engine: AttachedEngine, alice: Person, chat: str) -> None:
    for text in ("I own a cat.", "I own a dog.", "I own a parrot."):
        engine.add(alice.owner, chat, [message_of(alice.owner, text)])
    engine.flush(alice.owner, chat)
    assert all(animal in " ".join(episodes(alice)) for animal in ("cat", "dog", "parrot"))


def test_hole_repeating_messages_after_the_flush_creates_no_second_memory(
    engine: AttachedEngine, alice: Person, chat: str
) -> None:
    for _ in range(3):
        remember(engine, alice, chat, "I own a cat.")
    assert eventually(lambda: bool(search_hits(engine, alice, "cat", session_ids=(chat,))), INDEXED_SECONDS)
    assert len(search_hits(engine, alice, "cat", session_ids=(chat,))) == len(episodes(alice)) == 1


def test_hole_a_flush_that_extracts_nothing_after_a_failure_fails(
    engine: AttachedEngine, alice: Person, chat: str, client: Client
) -> None:
    engine.add(alice.owner, chat, [message_of(alice.owner, "I own a cat.")])
    session = Session.objects.get(user_id=alice.user_pk)
    broken = {"sender_id": alice.user_id, "role": "user", "timestamp": NOON + 9, "content": "if (x) { return"}
    payload = {"session_id": session.engine_session_id, "messages": [broken], "defer_extraction": True}
    client.add(payload, client.deadline())
    impatient_engine = AttachedEngine(Remote(Client(client.base_url, timeout_seconds=15.0, retry=Retry(attempts=2))))
    assert impatient_engine.flush(alice.owner, chat).degraded
    assert "I own a cat." in [hit.text for hit in search_hits(engine, alice, "cat")]


def test_a_failing_llm_loses_nothing(engine: AttachedEngine, everos: EverOS, alice: Person, chat: str) -> None:
    engine.add(
        alice.owner, chat, [message_of(alice.owner, "I own a cat."), message_of(alice.owner, "And a dog.", NOON + 5)]
    )
    impatient_engine = AttachedEngine(Remote(Client(everos.url, timeout_seconds=20.0, retry=Retry(attempts=1))))
    with everos.failing_llm("500"):
        assert impatient_engine.flush(alice.owner, chat).degraded
    assert engine.flush(alice.owner, chat).status == "extracted"
    assert "dog" in " ".join(episodes(alice))


def test_hole_filters_narrow_and_never_widen(engine: AttachedEngine, alice: Person, bob: Person, chat: str) -> None:
    other = f"{chat}-2"
    remember(engine, alice, chat, "I own a cat.")
    remember(engine, alice, other, "My other cat is black.")
    remember(engine, bob, chat, "bob has a cat too")
    for tree in (
        {"session_id": other},
        {"OR": [{"session_id": other}, {"sender_id": bob.user_id}]},
        {"session_id": {"ne": chat}},
        {"OR": [{"timestamp": {"gt": 0}}, {"session_id": {"in": [chat, other]}}]},
    ):
        hits = search_hits(engine, alice, "cat", session_ids=(chat,), filters=tree)
        assert {hit.session_id for hit in hits} <= {chat}
        assert "bob" not in str([hit.text for hit in hits])
    of_other = {"type": "Conversation", "session_id": other}
    assert eventually(lambda: len(search_hits(engine, alice, "cat", filters=of_other)) == 1, INDEXED_SECONDS)


def test_hole_agents_of_two_users_with_one_name_share_no_memories(
    engine: AttachedEngine, alice: Person, bob: Person, chat: str, client: Client
) -> None:
    for person in (alice, bob):
        engine.add(
            person.owner,
            chat,
            [
                message_of(person.owner, f"{person.user_id} asks for a train to Rome", NOON),
                message_of(person.owner, "I compare trains.", NOON + 1, "assistant", "main"),
                message_of(person.owner, "Take the early one", NOON + 2),
            ],
        )
        engine.flush(person.owner, chat)
    for person, outsider in ((alice, bob), (bob, alice)):
        hits = search_hits(
            engine, person, "train Rome", agent_id="main", filters={"session_id": chat}, session_ids=(chat,)
        )
        assert outsider.user_id not in str(hits)
    assert client.search({"agent_id": "main", "query": "train Rome"}, client.deadline()).agent_cases == []


def test_a_search_over_many_sessions_is_complete(
    engine: AttachedEngine, alice: Person, chat: str, client: Client
) -> None:
    session_ids = tuple(f"{chat}-{number}" for number in range(4))
    for session_id in session_ids:
        remember(engine, alice, session_id, "I own a cat.")
    small = AttachedEngine(Remote(client, batch_size=3))

    def found() -> set[str | None]:
        return {hit.session_id for hit in search_hits(small, alice, "cat", session_ids=session_ids)}

    assert eventually(lambda: found() == set(session_ids), INDEXED_SECONDS)
