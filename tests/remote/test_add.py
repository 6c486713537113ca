"""`AttachedEngine.add` sends each message once, under the caller's name only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from core.errors import EngineRefused, EngineUnavailable, OutcomeUnknown
from core.persistence.file_keys import FileKey, file_key
from engines.attached import AttachedEngine
from remote import outbox
from remote.client.failures import CircuitOpen
from remote.models import OutboxEntry
from store.models import Memory, Session
from store.types import ContentItem, Message, SearchRequest
from tests.conftest import Person
from tests.object_store import BUCKET, PREFIX, Bucket
from tests.remote.conftest import NOON, make_engine, message_of
from tests.stub_upstream import Fault, StubUpstream


def sent_messages(stub: StubUpstream) -> list[dict[str, Any]]:
    return [message for body in stub.calls("add") for message in body["messages"]]


def sent_texts(stub: StubUpstream) -> list[str]:
    return [message["content"][0]["text"] for message in sent_messages(stub)]


def buffered_count(stub: StubUpstream) -> int:
    return sum(len(buffer) for buffer in stub.store.buffers.values())


def test_an_open_circuit_costs_no_statements(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, django_assert_num_queries: Any
) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "green tea")])
    stub.fault("add", Fault(status=502, body={}), times=5)
    stub.fault("search", Fault(status=502, body={}), times=5)
    for _ in range(5):
        with pytest.raises(OutcomeUnknown):
            engine.add(alice.owner, "chat:1", [message_of(alice.owner, "black tea", NOON + 1)])
    with django_assert_num_queries(0), pytest.raises(CircuitOpen):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "black tea", NOON + 1)])
    with django_assert_num_queries(1), pytest.raises(CircuitOpen):
        engine.flush(alice.owner, "chat:1")
    [result] = engine.search(alice.owner, [SearchRequest("tea", "keyword", 10)])
    assert result.degraded
    assert Session.objects.get().flushed_at is None


def test_adding_a_message_takes_few_statements(
    engine: AttachedEngine, alice: Person, django_assert_num_queries: Any
) -> None:
    """PostgreSQL needs a lock; on SQLite the transaction is exclusive."""
    extra = 3 if connection.vendor == "postgresql" else 2  # setting and releasing a savepoint, and the lock
    with django_assert_num_queries(18 + extra):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "green tea")])
    with django_assert_num_queries(14 + extra):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "black tea", NOON + 1)])


def test_a_message_is_sent_unchanged(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    result = engine.add(alice.owner, "chat:1", [message_of(alice.owner, "我喜欢绿茶")])
    assert (result.status, result.message_count) == ("accumulated", 1)
    assert result.request_id
    assert stub.calls("add") == [
        {
            "session_id": "chat:1",
            "app_id": "default",
            "project_id": "default",
            "defer_extraction": True,
            "messages": [
                {
                    "sender_id": "alice",
                    "role": "user",
                    "timestamp": NOON,
                    "content": [{"type": "text", "text": "我喜欢绿茶"}],
                }
            ],
        }
    ]


@pytest.mark.parametrize("moment", [0, 631_152_000_000, 999_999_999_999])
def test_a_message_older_than_everos_supports_is_rejected_before_it_is_sent(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, moment: int
) -> None:
    """EverOS would date it thousands of years ahead, or fail at every attempt."""
    with pytest.raises(EngineRefused) as refused:
        engine.add(
            alice.owner,
            "chat:1",
            [message_of(alice.owner, "tea", 10**12), message_of(alice.owner, "I am born", moment)],
        )
    assert (refused.value.status, refused.value.detail[:10]) == (422, "timestamp:")
    assert (stub.calls("add"), Memory.objects.count(), Session.objects.count()) == ([], 0, 0)


def test_a_forged_sender_is_replaced_by_the_caller(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "bob likes tea", sender_id="bob")])
    assert sent_messages(stub)[0]["sender_id"] == "alice"


def test_a_tool_message_without_a_call_id_gets_one(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    messages = [
        message_of(alice.owner, "one train at nine", NOON, "tool", "main"),
        message_of(alice.owner, "take it", NOON + 1),
    ]
    engine.add(alice.owner, "chat:1", messages)
    assert [message.get("tool_call_id") for message in sent_messages(stub)] == [f"call_{NOON}", None]


def test_a_message_is_sent_as_its_sender_made_it(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    call = {"id": "call_7", "type": "function", "function": {"name": "trains", "arguments": '{"to": "Rome"}'}}
    messages = [
        replace(message_of(alice.owner, "hi"), sender_name="Alice A."),
        replace(message_of(alice.owner, "I look.", NOON + 1, "assistant", "main"), tool_calls=(call,)),
        replace(message_of(alice.owner, "at nine", NOON + 2, "tool", "main"), tool_call_id="call_7", sender_name="T"),
    ]
    engine.add(alice.owner, "chat:1", messages)
    user, assistant, tool = sent_messages(stub)
    assert (user["sender_id"], user["sender_name"]) == ("alice", "Alice A.")
    assert (assistant["sender_name"], assistant["tool_calls"]) == ("main", [call])
    assert (tool["sender_name"], tool["tool_call_id"]) == ("T", "call_7")
    recorded = [outbox.message_of(entry) for entry in OutboxEntry.objects.order_by("pk")]
    assert [(one.sender_name, list(one.tool_calls), one.tool_call_id) for one in recorded] == [
        (one.sender_name, list(one.tool_calls), one.tool_call_id) for one in messages
    ]


def test_unpaired_braces_in_arguments_are_replaced(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "grep", "arguments": '{"for": "{"}'}}
    engine.add(
        alice.owner, "chat:1", [replace(message_of(alice.owner, "ok", NOON, "assistant", "main"), tool_calls=(call,))]
    )
    [sent] = sent_messages(stub)
    assert sent["tool_calls"][0]["function"] == {"name": "grep", "arguments": '｛"for": "｛"｝'}


def test_a_participant_is_sent_under_the_caller_with_a_name(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    said = message_of(alice.owner, "I like tea", sender_id=bob.user_id)
    messages = [
        replace(said, is_participant=True),
        replace(said, timestamp_ms=NOON + 1, is_participant=True, sender_name="Bob"),
    ]
    engine.add(alice.owner, "chat:1", messages)
    assert [(one["sender_id"], one["sender_name"]) for one in sent_messages(stub)] == [
        ("alice", "bob"),
        ("alice", "Bob"),
    ]
    assert engine.flush(alice.owner, "chat:1").memory_count
    assert not Memory.objects.filter(user_id=bob.user_pk).exists()


def test_system_messages_are_kept_and_not_sent(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    system = message_of(alice.owner, "You book trains.", NOON, "system", "main")
    assert engine.add(alice.owner, "chat:1", [system]).status == "accumulated"
    assert stub.calls("add") == []
    assert engine.flush(alice.owner, "chat:1").status == "no_extraction"
    engine.add(alice.owner, "chat:1", [system, message_of(alice.owner, "green tea", NOON + 1)])
    assert sent_texts(stub) == ["green tea"]
    assert engine.flush(alice.owner, "chat:1").status == "extracted"
    kept = OutboxEntry.objects.get(category="full_context_system")
    assert outbox.message_of(kept) == system
    assert set(OutboxEntry.objects.values_list("state", flat=True)) == {"flushed"}
    assert Memory.objects.get(category="full_context_system").is_covered


def test_agents_of_two_users_with_one_name_get_different_ids(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        engine.add(person.owner, "chat:1", [message_of(person.owner, "hi", role="assistant", sender_id="main")])
    first, second = sent_messages(stub)
    assert first["sender_id"] != second["sender_id"]
    assert first["sender_name"] == second["sender_name"] == "main"


def test_a_session_id_in_use_by_another_user_is_made_unique(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob, alice):
        engine.add(
            person.owner, "chat:1", [message_of(person.owner, f"of {person.user_id}", NOON + len(stub.requests))]
        )
    first, second, third = (body["session_id"] for body in stub.calls("add"))
    assert first == third == "chat:1"
    assert second not in {"chat:1", ""}
    assert Session.objects.get(user_id=bob.user_pk).session_id == "chat:1"


def test_the_longest_session_id_stays_within_the_limit_when_made_unique(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        engine.add(person.owner, "s" * 128, [message_of(person.owner, "hi")])
    assert len(stub.calls("add")[1]["session_id"]) <= 128


def test_a_session_created_by_another_engine_gets_a_unique_id(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        Session.objects.create(user_id=person.user_pk, session_id="chat:1", engine_session_id="chat:1", kind="chat")
    engine.add(bob.owner, "chat:1", [message_of(bob.owner, "hi")])
    assert stub.calls("add")[0]["session_id"] != "chat:1"


def test_repeated_messages_are_sent_once(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    for _ in range(2):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hello"), message_of(alice.owner, "hello")])
    assert sent_texts(stub) == ["hello"]


def test_messages_with_equal_times_are_moved_apart(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    for text in ("one", "two", "three"):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, text)])
    assert [message["timestamp"] for message in sent_messages(stub)] == [NOON, NOON + 1, NOON + 2]
    assert stub.store.dropped == 0
    assert buffered_count(stub) == 3


def test_a_message_repeated_after_the_flush_is_not_sent_again(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    for _ in range(2):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hello")])
        engine.flush(alice.owner, "chat:1")
    assert len(stub.store.episodes) == 1


def test_a_rejected_add_leaves_no_row(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    stub.fault("add", Fault(status=422, body={}))
    with pytest.raises(EngineRefused):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    assert not Memory.objects.exists()


def test_an_add_that_did_not_arrive_leaves_no_row(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    stub.fault("add", Fault(status=429, body={}))
    with pytest.raises(EngineUnavailable):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    assert not Memory.objects.exists()


@pytest.mark.parametrize("acts", [True, False])
def test_an_add_of_unknown_outcome_is_repeated_as_the_same_message(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, acts: bool
) -> None:
    messages = [message_of(alice.owner, "one"), message_of(alice.owner, "two")]
    stub.fault("add", Fault(reset=True, acts=acts))
    with pytest.raises(OutcomeUnknown):
        engine.add(alice.owner, "chat:1", messages)
    engine.add(alice.owner, "chat:1", [*messages[1:], message_of(alice.owner, "three")])
    assert buffered_count(stub) == 3
    engine.flush(alice.owner, "chat:1")
    assert stub.store.episodes[0]["episode"].count(" said: ") == 3


def test_a_flush_first_sends_unconfirmed_messages(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    stub.fault("add", Fault(reset=True))
    with pytest.raises(OutcomeUnknown):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    assert engine.flush(alice.owner, "chat:1").status == "extracted"
    assert "hello" in stub.store.episodes[0]["episode"]


def test_the_outcome_stays_unknown_after_a_second_attempt_fails(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, attempts=2)
    stub.fault("add", Fault(reset=True))
    stub.fault("add", Fault(status=429, body={}))
    with pytest.raises(OutcomeUnknown):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    assert Memory.objects.count() == 1


def test_unpaired_braces_are_replaced(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, text) for text in ("if (x) {", "} else {", "{}")])
    assert sent_texts(stub) == ["if (x) ｛", "｝ else ｛", "{}"]


def test_a_deleted_session_rejects_messages(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    engine.delete(alice.owner, "chat:1")
    engine.delete(alice.owner, "chat:2")
    for session_id in ("chat:1", "chat:2"):
        with pytest.raises(EngineRefused):
            engine.add(alice.owner, session_id, [message_of(alice.owner, "more")])
    assert len(stub.calls("add")) == 1
    assert not Memory.objects.exists()


def document(file: FileKey | Path, mime_type: str, name: str | None = None, content_type: Any = "doc") -> ContentItem:
    return ContentItem(
        content_type, file=file, name=name or Path(file).name, mime_type=mime_type, extras={"resource_id": "r_1"}
    )


def test_a_text_file_is_sent_in_named_pieces_a_millisecond_apart(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "0.bin"
    path.write_text("\n\n".join(f"Paragraph {number}: " + "word " * 100 for number in range(40)))
    item = document(path, "text/plain", "notes.txt", "text")
    for _ in range(2):
        engine.add(alice.owner, "resource:alice:r_1", [Message("alice", "user", NOON, (item,))])
    messages = sent_messages(stub)
    assert len(messages) > 5
    assert [message["timestamp"] for message in messages] == list(range(NOON, NOON + len(messages)))
    assert all(message["content"][0]["text"].startswith("[TEXT: notes.txt]") for message in messages)
    assert "Paragraph 39" in messages[-1]["content"][0]["text"]


def test_a_long_text_file_is_split_over_several_calls(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "long.txt"
    path.write_text("\n\n".join(f"Paragraph {number}: " + "word " * 390 for number in range(620)))
    engine.add(alice.owner, "r", [Message("alice", "user", NOON, (document(path, "text/plain", None, "text"),))])
    assert [len(body["messages"]) for body in stub.calls("add")] == [500, len(sent_messages(stub)) - 500]
    assert stub.store.dropped == 0


def test_a_message_does_not_get_the_time_of_a_document_piece(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("\n\n".join("word " * 390 for _ in range(5)))
    item = document(path, "text/plain", None, "text")
    engine.add(alice.owner, "r", [Message("alice", "user", NOON, (item,))])
    engine.add(alice.owner, "r", [message_of(alice.owner, "a message", NOON + 2)])
    assert len({message["timestamp"] for message in sent_messages(stub)}) == len(sent_messages(stub)) == 6


def test_an_empty_text_file_is_not_sent(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "empty.txt"
    path.touch()
    engine.add(alice.owner, "r", [Message("alice", "user", NOON, (document(path, "text/plain", None, "text"),))])
    assert not stub.calls("add")
    assert engine.flush(alice.owner, "r").status == "no_extraction"


@pytest.mark.parametrize(
    ("mime_type", "name", "extension"),
    [
        ("application/pdf", "Vertrag.PDF", "pdf"),
        ("application/pdf", "合同", "pdf"),
        ("image/jpeg", "photo", "jpg"),
        ("audio/mpeg", "x.unknown", "mp3"),
    ],
)
def test_other_files_are_sent_whole_with_their_extension(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, tmp_path: Path, mime_type: str, name: str, extension: str
) -> None:
    path = tmp_path / "stored"
    path.write_bytes(b"bytes")
    engine.add(alice.owner, "r", [Message("alice", "user", NOON, (document(path, mime_type, name),))])
    assert sent_messages(stub)[0]["content"] == [
        {"type": "doc", "base64": "Ynl0ZXM=", "ext": extension, "name": name, "extras": {"resource_id": "r_1"}}
    ]


def test_a_file_in_a_bucket_is_sent_and_sent_again(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bucket: Bucket, storage: Path
) -> None:
    """The outbox holds its key, and no copy of it stays on the disk."""
    key = f"{alice.user_pk}/memory_attachments/{'a' * 64}/content.jpg"
    bucket.client.put_object(Bucket=BUCKET, Key=f"{PREFIX}/{key}", Body=b"bytes")
    message = Message("alice", "user", NOON, (document(file_key(key), "image/jpeg", "photo"),))
    stub.fault("add", Fault(status=504))
    with pytest.raises(OutcomeUnknown):
        engine.add(alice.owner, "r", [message])
    entry = OutboxEntry.objects.get(user_id=alice.user_pk)
    assert [item["file"] for item in entry.message["content"]] == [key]
    engine.remote.retry_unconfirmed(alice.owner, Session.objects.get(session_id="r"))
    assert [sent["content"][0]["base64"] for sent in sent_messages(stub)] == ["Ynl0ZXM="] * 2
    assert [path for path in storage.rglob("*") if path.is_file()] == []


def test_a_document_that_everos_cannot_read_is_sent_as_text(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_text("<html><body><p>The rent is 700 euros.</p></body></html>")
    stub.fault("add", Fault(status=503, body={"error": {"code": "CAPABILITY_UNAVAILABLE"}}))
    engine.add(alice.owner, "r", [Message("alice", "user", NOON, (document(path, "text/html", None, "html"),))])
    assert "base64" in sent_messages(stub)[0]["content"][0]
    assert "The rent is 700 euros." in sent_messages(stub)[1]["content"][0]["text"]


def test_an_image_that_everos_cannot_read_is_rejected(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "a.gif"
    path.write_bytes(b"GIF89a")
    stub.fault("add", Fault(status=415, body={}))
    with pytest.raises(EngineRefused):
        engine.add(alice.owner, "r", [Message("alice", "user", NOON, (document(path, "image/gif", None, "image"),))])


def test_a_missing_file_is_reported(engine: AttachedEngine, alice: Person, tmp_path: Path) -> None:
    item = document(tmp_path / "gone.pdf", "application/pdf")
    with pytest.raises(EngineRefused, match="missing"):
        engine.add(alice.owner, "r", [Message("alice", "user", NOON, (item,))])
