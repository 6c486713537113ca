"""`AttachedEngine.add` stores each message, which is then sent once, under the caller's name only."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts import controls
from accounts.audit import Actor
from core.errors import EngineRefused, EngineUnavailable, OutcomeUnknown
from core.persistence.file_keys import FileKey, file_key
from core.persistence.files import root
from engines.attached import AttachedEngine
from memories.services import decisions
from memories.services.lookup import MemoryRef
from remote import outbox
from remote.client.failures import CircuitOpen
from remote.models import OutboxEntry
from store.models import Memory, Session
from store.types import KEPT, ContentItem, Message, SearchRequest
from tests.conftest import Person
from tests.object_store import BUCKET, PREFIX, Bucket
from tests.remote.conftest import NOON, add_and_send, deliver, make_engine, message_of
from tests.stub_everos import Refused, Store
from tests.stub_upstream import Fault, StubUpstream


def sent_messages(stub: StubUpstream) -> list[dict[str, Any]]:
    return [message for body in stub.calls("add") for message in body["messages"]]


def sent_texts(stub: StubUpstream) -> list[str]:
    return [message["content"][0]["text"] for message in sent_messages(stub)]


def buffered_texts(stub: StubUpstream) -> list[str]:
    buffered = [message for buffer in stub.store.buffers.values() for message in buffer.values()]
    return [message["content"][0]["text"] for message in buffered]


def states() -> dict[str, str]:
    """Return the states of the outbox entries, by the text of their first memory."""
    texts = dict(Memory.objects.values_list("memory_id", "text"))
    return {texts[entry.memory_ids[0]]: entry.state for entry in OutboxEntry.objects.all()}


def shown(person: Person) -> list[Memory]:
    return list(Memory.objects.filter(user_id=person.user_pk, is_covered=False))


class RefusingStore(Store):
    """EverOS as far as it refuses each call with a text in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def add(self, body: dict[str, Any]) -> dict[str, Any]:
        if self._text in str(body):
            raise Refused(422, "INVALID_INPUT", "this text")
        return super().add(body)


def test_an_open_circuit_costs_no_statements(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, django_assert_num_queries: Any
) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "green tea")])
    stub.fault("add", Fault(status=502, body={}), times=5)
    stub.fault("search", Fault(status=502, body={}), times=5)
    for _ in range(5):
        with pytest.raises(OutcomeUnknown):
            deliver(engine, alice.owner)
    session, calls = Session.objects.get(), len(stub.requests)
    with django_assert_num_queries(0), pytest.raises(CircuitOpen):
        engine.remote.send(alice.owner, session)
    with django_assert_num_queries(2), pytest.raises(CircuitOpen):  # the session, and whether its person pauses
        engine.remote.flush(alice.owner, "chat:1")
    [result] = engine.search(alice.owner, [SearchRequest("tea", "keyword", 10)])
    assert result.degraded
    assert Session.objects.get().flushed_at is None
    assert engine.add(alice.owner, "chat:1", [message_of(alice.owner, "black tea", NOON + 1)]).status == "accumulated"
    assert len(stub.requests) == calls


def test_adding_a_message_takes_few_statements(
    engine: AttachedEngine, alice: Person, django_assert_num_queries: Any
) -> None:
    """PostgreSQL needs a lock; on SQLite the transaction is exclusive."""
    extra = 3 if connection.vendor == "postgresql" else 2  # setting and releasing a savepoint, and the lock
    with django_assert_num_queries(15 + extra):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "green tea")])
    with django_assert_num_queries(14 + extra):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "black tea", NOON + 1)])


def test_a_message_is_acknowledged_when_it_is_stored_and_sent_unchanged_later(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    result = engine.add(alice.owner, "chat:1", [message_of(alice.owner, "我喜欢绿茶")])
    assert (result.status, result.message_count) == ("accumulated", 1)
    assert result.request_id
    assert stub.requests == []
    assert Memory.objects.get().text == "我喜欢绿茶"
    assert OutboxEntry.objects.get().state == "pending"
    deliver(engine, alice.owner)
    assert OutboxEntry.objects.get().state == "buffered"
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
def test_a_message_older_than_everos_supports_is_kept_and_not_sent(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, moment: int
) -> None:
    """EverOS would date it thousands of years ahead, or fail at every attempt."""
    messages = [message_of(alice.owner, "tea", 10**12), message_of(alice.owner, "I am born", moment)]
    add_and_send(engine, alice.owner, "chat:1", messages)
    engine.flush(alice.owner, "chat:1")
    assert sent_texts(stub) == ["tea"]
    assert states() == {"tea": "flushed", "I am born": "withheld"}
    assert {memory.text for memory in shown(alice)} == {"alice said: tea", "I am born"}


def test_a_forged_sender_is_replaced_by_the_caller(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    add_and_send(engine, alice.owner, "chat:1", [message_of(alice.owner, "bob likes tea", sender_id="bob")])
    assert sent_messages(stub)[0]["sender_id"] == "alice"


def test_a_tool_message_without_a_call_id_gets_one(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    messages = [
        message_of(alice.owner, "one train at nine", NOON, "tool", "main"),
        message_of(alice.owner, "take it", NOON + 1),
    ]
    add_and_send(engine, alice.owner, "chat:1", messages)
    assert [message.get("tool_call_id") for message in sent_messages(stub)] == [f"call_{NOON}", None]


def test_a_message_is_sent_as_its_sender_made_it(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    call = {"id": "call_7", "type": "function", "function": {"name": "trains", "arguments": '{"to": "Rome"}'}}
    messages = [
        replace(message_of(alice.owner, "hi"), sender_name="Alice A."),
        replace(message_of(alice.owner, "I look.", NOON + 1, "assistant", "main"), tool_calls=(call,)),
        replace(message_of(alice.owner, "at nine", NOON + 2, "tool", "main"), tool_call_id="call_7", sender_name="T"),
    ]
    add_and_send(engine, alice.owner, "chat:1", messages)
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
    add_and_send(
        engine,
        alice.owner,
        "chat:1",
        [replace(message_of(alice.owner, "ok", NOON, "assistant", "main"), tool_calls=(call,))],
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
    add_and_send(engine, alice.owner, "chat:1", messages)
    assert [(one["sender_id"], one["sender_name"]) for one in sent_messages(stub)] == [
        ("alice", "bob"),
        ("alice", "Bob"),
    ]
    assert engine.flush(alice.owner, "chat:1").memory_count
    assert not Memory.objects.filter(user_id=bob.user_pk).exists()


def test_system_messages_are_kept_and_not_sent(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    system = message_of(alice.owner, "You book trains.", NOON, "system", "main")
    add_and_send(engine, alice.owner, "chat:1", [system])
    assert stub.calls("add") == []
    result = engine.flush(alice.owner, "chat:1")
    assert (result.status, result.memory_count) == ("extracted", 1)
    assert engine.flush(alice.owner, "chat:1").status == "no_extraction"
    add_and_send(engine, alice.owner, "chat:1", [system, message_of(alice.owner, "green tea", NOON + 1)])
    assert sent_texts(stub) == ["green tea"]
    assert engine.flush(alice.owner, "chat:1").status == "extracted"
    assert outbox.message_of(OutboxEntry.objects.get(category="full_context_system")) == system
    assert states() == {"You book trains.": "withheld", "green tea": "flushed"}
    assert {memory.text for memory in shown(alice)} == {"alice said: green tea", "You book trains."}


@pytest.mark.parametrize("way", ["message", "default", "session"])
def test_what_expires_is_kept_and_not_sent(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, settings: Any, way: str
) -> None:
    later = timezone.now() + timedelta(days=1)
    if way == "default":
        settings.MEMORY_GATEWAY_EXPIRY = {"tag:draft": 1}
    expiring = message_of(alice.owner, "The draft is yellow.")
    lasting = message_of(alice.owner, "The contract is blue.", NOON + 1)
    if way == "message":
        expiring = replace(expiring, expires_at=later)
    elif way == "default":
        expiring = replace(expiring, tags=("draft",))
    engine.add(alice.owner, "chat:c1", [expiring], expires_at=later if way == "session" else KEPT)
    engine.add(alice.owner, "chat:c1", [lasting])
    deliver(engine, alice.owner, "chat:c1")
    assert sent_texts(stub) == ([] if way == "session" else ["The contract is blue."])
    with transaction.atomic():
        outbox.send_all_again(Session.objects.get())
    deliver(engine, alice.owner, "chat:c1")
    assert not any("draft" in text for text in sent_texts(stub))
    assert {one.text for one in shown(alice)} >= {"The draft is yellow."}


@pytest.mark.parametrize("way", ["memory", "session", "file"])
def test_a_time_of_expiry_that_is_set_while_it_waits_withholds_it(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, way: str
) -> None:
    later = timezone.now() + timedelta(days=1)
    drafted = message_of(alice.owner, "The draft is yellow.")
    if way == "file":  # that is not read here, so that it has no memory
        drafted = Message("alice", "user", NOON, (ContentItem("image", uri="https://example.org/draft.png"),))
    engine.add(alice.owner, "chat:c1", [drafted])
    if way == "memory":
        ref = MemoryRef(Memory.objects.get().memory_id)
        decisions.set_expiry(alice.user_pk, ref, later, actor=Actor.command("tests"))
    lasting = message_of(alice.owner, "The contract is blue.", NOON + 1)
    engine.add(alice.owner, "chat:c1", [lasting], expires_at=KEPT if way == "memory" else later)
    deliver(engine, alice.owner, "chat:c1")
    assert sent_texts(stub) == (["The contract is blue."] if way == "memory" else [])
    assert {one.state for one in OutboxEntry.objects.filter(time_ms=NOON)} == {"withheld"}


def test_agents_of_two_users_with_one_name_get_different_ids(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        add_and_send(
            engine, person.owner, "chat:1", [message_of(person.owner, "hi", role="assistant", sender_id="main")]
        )
    first, second = sent_messages(stub)
    assert first["sender_id"] != second["sender_id"]
    assert first["sender_name"] == second["sender_name"] == "main"


def test_a_session_id_in_use_by_another_user_is_made_unique(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob, alice):
        add_and_send(
            engine,
            person.owner,
            "chat:1",
            [message_of(person.owner, f"of {person.user_id}", NOON + len(stub.requests))],
        )
    first, second, third = (body["session_id"] for body in stub.calls("add"))
    assert first == third == "chat:1"
    assert second not in {"chat:1", ""}
    assert Session.objects.get(user_id=bob.user_pk).session_id == "chat:1"


def test_the_longest_session_id_stays_within_the_limit_when_made_unique(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        add_and_send(engine, person.owner, "s" * 128, [message_of(person.owner, "hi")])
    assert len(stub.calls("add")[1]["session_id"]) <= 128


def test_a_session_created_by_another_engine_gets_a_unique_id(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        Session.objects.create(user_id=person.user_pk, session_id="chat:1", engine_session_id="chat:1", kind="chat")
    add_and_send(engine, bob.owner, "chat:1", [message_of(bob.owner, "hi")])
    assert stub.calls("add")[0]["session_id"] != "chat:1"


def test_repeated_messages_are_sent_once(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    for _ in range(2):
        add_and_send(
            engine, alice.owner, "chat:1", [message_of(alice.owner, "hello"), message_of(alice.owner, "hello")]
        )
    assert sent_texts(stub) == ["hello"]


def test_messages_with_equal_times_are_moved_apart(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    for text in ("one", "two", "three"):
        add_and_send(engine, alice.owner, "chat:1", [message_of(alice.owner, text)])
    assert [message["timestamp"] for message in sent_messages(stub)] == [NOON, NOON + 1, NOON + 2]
    assert stub.store.dropped == 0
    assert buffered_texts(stub) == ["one", "two", "three"]


def test_a_message_repeated_after_the_flush_is_not_sent_again(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    for _ in range(2):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hello")])
        engine.flush(alice.owner, "chat:1")
    assert len(stub.store.episodes) == 1


def test_a_message_that_everos_refuses_stays_here_and_sent_again_when_it_is_added_again(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    stub.fault("add", Fault(status=422, body={}))
    with pytest.raises(EngineRefused):
        add_and_send(engine, alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    refused = OutboxEntry.objects.get()
    assert refused.state == "refused"
    assert "refused" in refused.cause
    assert [memory.text for memory in shown(alice)] == ["hello"]
    deliver(engine, alice.owner)
    assert len(stub.calls("add")) == 1
    add_and_send(engine, alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    again = OutboxEntry.objects.get()
    assert (again.state, again.cause, len(stub.calls("add"))) == ("buffered", "", 2)


def test_of_200_messages_only_the_refused_one_stays_here(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    """Its call is refused as a whole, so the others are sent again."""
    stub.store = RefusingStore("fact 137.")
    messages = [message_of(alice.owner, f"fact {number}.", NOON + number) for number in range(200)]
    with pytest.raises(EngineRefused):
        add_and_send(engine, alice.owner, "chat:1", messages)
    expected = [f"fact {number}." for number in range(200) if number != 137]
    assert buffered_texts(stub) == expected
    assert stub.store.dropped == 0
    assert Counter(states().values()) == {"buffered": 199, "refused": 1}
    assert len(stub.calls("add")) < 20
    assert engine.flush(alice.owner, "chat:1").status == "extracted"
    assert stub.store.episodes[0]["episode"].count(" said: ") == 199
    assert {memory.text for memory in shown(alice)} == {stub.store.episodes[0]["episode"], "fact 137."}


@pytest.mark.parametrize("fault", [Fault(status=429, body={}), Fault(reset=True, acts=True), Fault(reset=True)])
def test_a_failure_while_the_others_of_a_refused_call_are_sent_keeps_their_order(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, fault: Fault
) -> None:
    messages = [message_of(alice.owner, f"fact {number}.", NOON + number) for number in range(4)]
    stub.fault("add", Fault(status=422, body={}))
    stub.fault("add", fault)
    with pytest.raises(EngineUnavailable):
        add_and_send(engine, alice.owner, "chat:1", messages)
    deliver(engine, alice.owner)
    assert buffered_texts(stub) == [f"fact {number}." for number in range(4)]
    assert stub.store.dropped == 0
    assert set(states().values()) == {"buffered"}


def test_messages_that_did_not_arrive_wait_and_are_sent_in_their_order(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    for number in range(3):
        engine.add(alice.owner, "chat:1", [message_of(alice.owner, f"fact {number}.", NOON - number)])
        stub.fault("add", Fault(status=429, body={}))
        with pytest.raises(EngineUnavailable):
            deliver(engine, alice.owner)
        assert set(states().values()) == {"pending"}
    deliver(engine, alice.owner)
    assert buffered_texts(stub) == [f"fact {number}." for number in range(3)]
    assert set(states().values()) == {"buffered"}


@pytest.mark.parametrize("acts", [True, False])
def test_an_add_of_unknown_outcome_is_repeated_as_the_same_message(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, acts: bool
) -> None:
    messages = [message_of(alice.owner, "one"), message_of(alice.owner, "two")]
    stub.fault("add", Fault(reset=True, acts=acts))
    with pytest.raises(OutcomeUnknown):
        add_and_send(engine, alice.owner, "chat:1", messages)
    assert states() == {"one": "unconfirmed", "two": "unconfirmed"}
    add_and_send(engine, alice.owner, "chat:1", [*messages[1:], message_of(alice.owner, "three")])
    assert buffered_texts(stub) == ["one", "two", "three"]
    assert stub.store.dropped == 0
    engine.flush(alice.owner, "chat:1")
    assert stub.store.episodes[0]["episode"].count(" said: ") == 3


def test_a_flush_first_sends_unconfirmed_messages_and_those_that_wait(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    stub.fault("add", Fault(reset=True))
    with pytest.raises(OutcomeUnknown):
        add_and_send(engine, alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "good-bye", NOON + 1)])
    assert engine.flush(alice.owner, "chat:1").status == "extracted"
    assert stub.store.episodes[0]["episode"] == "alice said: hello alice said: good-bye"


def test_the_outcome_stays_unknown_after_a_second_attempt_fails(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, attempts=2)
    stub.fault("add", Fault(reset=True))
    stub.fault("add", Fault(status=429, body={}))
    with pytest.raises(OutcomeUnknown):
        add_and_send(engine, alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    assert states() == {"hello": "unconfirmed"}


def test_a_call_that_is_killed_before_its_answer_is_verified(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    """The messages are marked as sent before the call, so that no process sends them again without looking."""
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    session = Session.objects.get()
    batch = outbox.take(session)
    assert batch is not None
    engine.remote._send(alice.owner, session, batch)
    assert states() == {"hello": "unconfirmed"}
    assert outbox.take(session) is None
    deliver(engine, alice.owner)
    assert states() == {"hello": "buffered"}
    assert sent_texts(stub) == ["hello"]
    assert len(stub.calls("search")) == 1


def test_unpaired_braces_are_replaced(engine: AttachedEngine, stub: StubUpstream, alice: Person) -> None:
    add_and_send(
        engine, alice.owner, "chat:1", [message_of(alice.owner, text) for text in ("if (x) {", "} else {", "{}")]
    )
    assert sent_texts(stub) == ["if (x) ｛", "｝ else ｛", "{}"]


def test_a_deleted_session_rejects_messages_and_sends_none(
    engine: AttachedEngine, stub: StubUpstream, alice: Person
) -> None:
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "hello")])
    engine.delete(alice.owner, "chat:1")
    engine.delete(alice.owner, "chat:2")
    for session_id in ("chat:1", "chat:2"):
        with pytest.raises(EngineRefused):
            engine.add(alice.owner, session_id, [message_of(alice.owner, "more")])
        deliver(engine, alice.owner, session_id)
    assert stub.requests == []
    assert not Memory.objects.exists()
    assert not OutboxEntry.objects.exists()


def stored(person: Person, data: bytes, extension: str) -> FileKey:
    """Store the file of a message."""
    key = file_key(f"{person.user_pk}/memory_attachments/{hashlib.sha256(data).hexdigest()}/content.{extension}")
    path = root() / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return key


def document(file: FileKey | Path, mime_type: str, name: str | None = None, content_type: Any = "doc") -> ContentItem:
    return ContentItem(
        content_type, file=file, name=name or Path(file).name, mime_type=mime_type, extras={"resource_id": "r_1"}
    )


def test_a_text_file_is_sent_in_named_pieces_a_millisecond_apart(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, storage: Path
) -> None:
    text = "\n\n".join(f"Paragraph {number}: " + "word " * 100 for number in range(40))
    item = document(stored(alice, text.encode(), "bin"), "text/plain", "notes.txt", "text")
    for _ in range(2):
        add_and_send(engine, alice.owner, "resource:alice:r_1", [Message("alice", "user", NOON, (item,))])
    messages = sent_messages(stub)
    assert len(messages) > 5
    assert [message["timestamp"] for message in messages] == list(range(NOON, NOON + len(messages)))
    assert all(message["content"][0]["text"].startswith("[TEXT: notes.txt]") for message in messages)
    assert "Paragraph 39" in messages[-1]["content"][0]["text"]


def test_a_long_text_file_is_split_over_several_calls(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, storage: Path
) -> None:
    text = "\n\n".join(f"Paragraph {number}: " + "word " * 390 for number in range(620))
    item = document(stored(alice, text.encode(), "txt"), "text/plain", None, "text")
    add_and_send(engine, alice.owner, "r", [Message("alice", "user", NOON, (item,))])
    assert [len(body["messages"]) for body in stub.calls("add")] == [500, len(sent_messages(stub)) - 500]
    assert stub.store.dropped == 0


def test_a_message_does_not_get_the_time_of_a_document_piece(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, storage: Path
) -> None:
    text = "\n\n".join("word " * 390 for _ in range(5))
    item = document(stored(alice, text.encode(), "txt"), "text/plain", None, "text")
    engine.add(alice.owner, "r", [Message("alice", "user", NOON, (item,))])
    add_and_send(engine, alice.owner, "r", [message_of(alice.owner, "a message", NOON + 2)])
    assert len({message["timestamp"] for message in sent_messages(stub)}) == len(sent_messages(stub)) == 6


def test_an_empty_text_file_is_not_sent(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, storage: Path
) -> None:
    item = document(stored(alice, b"", "txt"), "text/plain", None, "text")
    add_and_send(engine, alice.owner, "r", [Message("alice", "user", NOON, (item,))])
    assert not stub.calls("add")
    assert OutboxEntry.objects.get().state == "withheld"
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
def test_files_of_resources_that_cannot_be_read_here_are_sent_at_once_with_their_extension(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, storage: Path, mime_type: str, name: str, extension: str
) -> None:
    item = document(stored(alice, b"bytes", extension), mime_type, name)
    engine.add(alice.owner, "resource:alice:r_1", [Message("alice", "user", NOON, (item,))])
    assert sent_messages(stub)[0]["content"] == [
        {"type": "doc", "base64": "Ynl0ZXM=", "ext": extension, "name": name, "extras": {"resource_id": "r_1"}}
    ]
    assert OutboxEntry.objects.get().state == "buffered"


def test_a_file_in_a_bucket_is_sent_and_sent_again(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, bucket: Bucket, storage: Path
) -> None:
    """The outbox holds its key, and no copy of it stays on the disk."""
    key = f"{alice.user_pk}/memory_attachments/{'a' * 64}/content.jpg"
    bucket.client.put_object(Bucket=BUCKET, Key=f"{PREFIX}/{key}", Body=b"bytes")
    message = Message("alice", "user", NOON, (document(file_key(key), "image/jpeg", "photo"),))
    stub.fault("add", Fault(status=504))
    with pytest.raises(OutcomeUnknown):
        add_and_send(engine, alice.owner, "r", [message])
    entry = OutboxEntry.objects.get(user_id=alice.user_pk)
    assert [item["file"] for item in entry.message["content"]] == [key]
    deliver(engine, alice.owner, "r")
    assert [sent["content"][0]["base64"] for sent in sent_messages(stub)] == ["Ynl0ZXM="] * 2
    assert [path for path in storage.rglob("*") if path.is_file()] == []


def test_no_file_is_sent_of_a_person_who_wants_something_never_remembered(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, storage: Path
) -> None:
    controls.set_never(alice.user_pk, words=["rent"], actor=Actor.command("tests"))
    for session_id, text in (("chat:c1", b"The rent is 700 euros."), ("resource:alice:r_1", b"Our rents went up.")):
        file = document(stored(alice, text, "txt"), "text/plain", "notes.txt", "txt")
        add_and_send(engine, alice.owner, session_id, [Message("alice", "user", NOON, (file,))])
    sent = sent_messages(stub)
    assert [item for message in sent for item in message["content"] if "base64" in item or "uri" in item] == []
    assert "rent" not in str(sent)
    assert not Memory.objects.filter(text__icontains="rent").exists()


def test_a_document_that_everos_cannot_read_is_sent_as_text(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, storage: Path
) -> None:
    page = stored(alice, b"<html><body><p>The rent is 700 euros.</p></body></html>", "html")
    stub.fault("add", Fault(status=503, body={"error": {"code": "CAPABILITY_UNAVAILABLE"}}))
    message = Message("alice", "user", NOON, (document(page, "text/html", None, "html"),))
    add_and_send(engine, alice.owner, "r", [message])
    assert "base64" in sent_messages(stub)[0]["content"][0]
    assert "The rent is 700 euros." in sent_messages(stub)[1]["content"][0]["text"]


def test_an_image_that_everos_cannot_read_is_refused_and_kept(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, storage: Path
) -> None:
    item = document(stored(alice, b"GIF89a", "gif"), "image/gif", "cat.gif", "image")
    stub.fault("add", Fault(status=415, body={}))
    with pytest.raises(EngineRefused):
        add_and_send(engine, alice.owner, "r", [Message("alice", "user", NOON, (item,))])
    assert states() == {"cat.gif": "refused"}


@pytest.mark.parametrize(
    ("fault", "calls"),
    [(Fault(status=429, body={}), 2), (Fault(reset=True), 2), (Fault(reset=True, acts=True), 1)],
)
def test_a_file_at_a_one_time_address_is_sent_again_with_the_address(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, fault: Fault, calls: int
) -> None:
    """It is not stored, so only the ingestion can send it again."""
    address = "https://bucket.example.com/contract.pdf?signature=1"
    item = ContentItem("pdf", uri="s3://bucket/contract.pdf", ingest_uri=address, extras={"resource_id": "r_1"})
    stub.fault("add", fault)
    with pytest.raises(EngineUnavailable):
        engine.add(alice.owner, "resource:alice:r_1", [Message("alice", "user", NOON, (item,))])
    engine.add(alice.owner, "resource:alice:r_1", [Message("alice", "user", NOON, (item,))])
    assert [message["content"][0]["uri"] for message in sent_messages(stub)] == [address] * calls
    assert OutboxEntry.objects.get().state == "buffered"
    assert address not in str(OutboxEntry.objects.values())


def test_a_file_without_a_reader_is_refused_also_when_it_is_sent_again(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, storage: Path
) -> None:
    message = Message("alice", "user", NOON, (document(stored(alice, b"bytes", "pdf"), "application/pdf"),))
    stub.fault("add", Fault(status=429, body={}))
    stub.fault("add", Fault(status=422, body={}), times=3)
    with pytest.raises(EngineUnavailable):
        engine.add(alice.owner, "resource:alice:r_1", [message])
    with pytest.raises(EngineRefused):
        engine.flush(alice.owner, "resource:alice:r_1")
    with pytest.raises(EngineRefused):
        engine.add(alice.owner, "resource:alice:r_1", [message])
    assert OutboxEntry.objects.get().state == "refused"


def test_a_missing_file_is_reported(engine: AttachedEngine, alice: Person, tmp_path: Path) -> None:
    item = document(tmp_path / "gone.pdf", "application/pdf")
    with pytest.raises(EngineRefused, match="missing"):
        engine.add(alice.owner, "r", [Message("alice", "user", NOON, (item,))])
