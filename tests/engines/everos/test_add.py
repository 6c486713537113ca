"""Adding through the gateway: nothing lost, nothing doubled, nobody else's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from core.errors import EngineRefused, EngineUnavailable, OutcomeUnknown
from engines.everos.adapter import EverOSEngine
from engines.everos.client.failures import CircuitOpen
from store.external import journal
from store.models import Memory, Session
from store.types import ContentItem, Message, SearchRequest
from tests.conftest import Person
from tests.engines.everos.conftest import NOON, make_engine, told
from tests.stub_upstream import Fault, StubUpstream


def sent(stub: StubUpstream) -> list[dict[str, Any]]:
    return [message for body in stub.calls("add") for message in body["messages"]]


def texts(stub: StubUpstream) -> list[str]:
    return [message["content"][0]["text"] for message in sent(stub)]


def buffered(stub: StubUpstream) -> int:
    return sum(len(buffer) for buffer in stub.store.buffers.values())


def test_nothing_is_read_or_written_for_what_would_not_be_sent(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, django_assert_num_queries: Any
) -> None:
    engine.add(alice.owner, "chat:1", [told(alice.owner, "green tea")])
    stub.fault("add", Fault(status=502, body={}), times=5)
    stub.fault("search", Fault(status=502, body={}), times=5)
    for _ in range(5):
        with pytest.raises(OutcomeUnknown):
            engine.add(alice.owner, "chat:1", [told(alice.owner, "black tea", NOON + 1)])
    with django_assert_num_queries(0), pytest.raises(CircuitOpen):
        engine.add(alice.owner, "chat:1", [told(alice.owner, "black tea", NOON + 1)])
    with django_assert_num_queries(1), pytest.raises(CircuitOpen):
        engine.flush(alice.owner, "chat:1")
    with django_assert_num_queries(0), pytest.raises(CircuitOpen):
        engine.search(alice.owner, [SearchRequest("tea", "keyword", 10)])
    assert Session.objects.get().flushed_at is None


def test_writing_down_a_message_takes_few_statements(alice: Person, django_assert_num_queries: Any) -> None:
    """On SQLite nobody else writes meanwhile."""
    around = 3 if connection.vendor == "postgresql" else 2  # a savepoint and its release, and a lock
    with django_assert_num_queries(7 + around):
        journal.record_messages(alice.owner, "chat:1", [told(alice.owner, "green tea")])
    with django_assert_num_queries(6 + around):
        journal.record_messages(alice.owner, "chat:1", [told(alice.owner, "black tea", NOON + 1)])


def test_a_message_goes_out_as_it_is(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    result = engine.add(alice.owner, "chat:1", [told(alice.owner, "我喜欢绿茶")])
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
def test_a_message_from_before_the_upstreams_first_moment_is_refused_before_it_is_sent(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, moment: int
) -> None:
    """It would be filed some thousand years ahead, or fail at each try without an end."""
    with pytest.raises(EngineRefused) as refused:
        engine.add(alice.owner, "chat:1", [told(alice.owner, "tea", 10**12), told(alice.owner, "I am born", moment)])
    assert (refused.value.status, refused.value.detail[:10]) == (422, "timestamp:")
    assert (stub.calls("add"), Memory.objects.count(), Session.objects.count()) == ([], 0, 0)


def test_a_forged_sender_is_filed_under_the_caller(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    engine.add(alice.owner, "chat:1", [told(alice.owner, "bob likes tea", sender_id="bob")])
    assert sent(stub)[0]["sender_id"] == "alice"


def test_what_a_tool_said_is_taken_though_nobody_named_the_call(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    said = [told(alice.owner, "one train at nine", NOON, "tool", "main"), told(alice.owner, "take it", NOON + 1)]
    engine.add(alice.owner, "chat:1", said)
    assert [message.get("tool_call_id") for message in sent(stub)] == [f"call_{NOON}", None]


def test_two_users_agents_of_one_name_are_two(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        engine.add(person.owner, "chat:1", [told(person.owner, "hi", role="assistant", sender_id="main")])
    first, second = sent(stub)
    assert first["sender_id"] != second["sender_id"]
    assert first["sender_name"] == second["sender_name"] == "main"


def test_a_session_id_that_another_holds_is_made_unique(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob, alice):
        engine.add(person.owner, "chat:1", [told(person.owner, f"of {person.user_id}", NOON + len(stub.requests))])
    first, second, third = (body["session_id"] for body in stub.calls("add"))
    assert first == third == "chat:1"
    assert second not in {"chat:1", ""}
    assert Session.objects.get(user_id=bob.user_pk).session_id == "chat:1"


def test_the_longest_session_id_stays_within_the_limit_when_made_unique(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        engine.add(person.owner, "s" * 128, [told(person.owner, "hi")])
    assert len(stub.calls("add")[1]["session_id"]) <= 128


def test_a_row_from_another_engine_does_not_share_the_holders_id(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        Session.objects.create(user_id=person.user_pk, session_id="chat:1", engine_session_id="chat:1", kind="chat")
    engine.add(bob.owner, "chat:1", [told(bob.owner, "hi")])
    assert stub.calls("add")[0]["session_id"] != "chat:1"


def test_the_same_message_twice_is_one(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    for _ in range(2):
        engine.add(alice.owner, "chat:1", [told(alice.owner, "hello"), told(alice.owner, "hello")])
    assert texts(stub) == ["hello"]


def test_another_message_of_the_same_moment_is_not_lost(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    for text in ("one", "two", "three"):
        engine.add(alice.owner, "chat:1", [told(alice.owner, text)])
    assert [message["timestamp"] for message in sent(stub)] == [NOON, NOON + 1, NOON + 2]
    assert stub.store.dropped == 0
    assert buffered(stub) == 3


def test_a_message_repeated_after_the_flush_is_not_sent_again(
    engine: EverOSEngine, stub: StubUpstream, alice: Person
) -> None:
    for _ in range(2):
        engine.add(alice.owner, "chat:1", [told(alice.owner, "hello")])
        engine.flush(alice.owner, "chat:1")
    assert len(stub.store.episodes) == 1


def test_a_refused_add_leaves_no_row(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    stub.fault("add", Fault(status=422, body={}))
    with pytest.raises(EngineRefused):
        engine.add(alice.owner, "chat:1", [told(alice.owner, "hello")])
    assert not Memory.objects.exists()


def test_an_add_that_never_arrived_leaves_no_row(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    stub.fault("add", Fault(status=429, body={}))
    with pytest.raises(EngineUnavailable):
        engine.add(alice.owner, "chat:1", [told(alice.owner, "hello")])
    assert not Memory.objects.exists()


@pytest.mark.parametrize("acts", [True, False])
def test_an_add_of_unknown_outcome_is_repeated_as_the_same_message(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, acts: bool
) -> None:
    messages = [told(alice.owner, "one"), told(alice.owner, "two")]
    stub.fault("add", Fault(reset=True, acts=acts))
    with pytest.raises(OutcomeUnknown):
        engine.add(alice.owner, "chat:1", messages)
    engine.add(alice.owner, "chat:1", [*messages[1:], told(alice.owner, "three")])
    assert buffered(stub) == 3
    engine.flush(alice.owner, "chat:1")
    assert stub.store.episodes[0]["episode"].count(" said: ") == 3


def test_a_flush_first_sends_what_is_in_doubt(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    stub.fault("add", Fault(reset=True))
    with pytest.raises(OutcomeUnknown):
        engine.add(alice.owner, "chat:1", [told(alice.owner, "hello")])
    assert engine.flush(alice.owner, "chat:1").status == "extracted"
    assert "hello" in stub.store.episodes[0]["episode"]


def test_an_unknown_try_stays_unknown_though_the_next_is_surely_not_done(stub: StubUpstream, alice: Person) -> None:
    engine = make_engine(stub, attempts=2)
    stub.fault("add", Fault(reset=True))
    stub.fault("add", Fault(status=429, body={}))
    with pytest.raises(OutcomeUnknown):
        engine.add(alice.owner, "chat:1", [told(alice.owner, "hello")])
    assert Memory.objects.count() == 1


def test_unpaired_braces_do_not_reach_the_extractor(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    engine.add(alice.owner, "chat:1", [told(alice.owner, text) for text in ("if (x) {", "} else {", "{}")])
    assert texts(stub) == ["if (x) ｛", "｝ else ｛", "{}"]


def test_a_deleted_session_takes_nothing_more(engine: EverOSEngine, stub: StubUpstream, alice: Person) -> None:
    engine.add(alice.owner, "chat:1", [told(alice.owner, "hello")])
    engine.delete(alice.owner, "chat:1")
    engine.delete(alice.owner, "chat:2")
    for session_id in ("chat:1", "chat:2"):
        with pytest.raises(EngineRefused):
            engine.add(alice.owner, session_id, [told(alice.owner, "more")])
    assert len(stub.calls("add")) == 1
    assert not Memory.objects.exists()


def document(path: Path, mime_type: str, name: str | None = None, content_type: Any = "doc") -> ContentItem:
    return ContentItem(
        content_type, file=path, name=name or path.name, mime_type=mime_type, extras={"resource_id": "r_1"}
    )


def test_a_text_file_goes_out_in_named_pieces_a_millisecond_apart(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "0.bin"
    path.write_text("\n\n".join(f"Paragraph {number}: " + "word " * 100 for number in range(40)))
    item = document(path, "text/plain", "notes.txt", "text")
    for _ in range(2):
        engine.add(alice.owner, "resource:alice:r_1", [Message("alice", "user", NOON, (item,))])
    messages = sent(stub)
    assert len(messages) > 5
    assert [message["timestamp"] for message in messages] == list(range(NOON, NOON + len(messages)))
    assert all(message["content"][0]["text"].startswith("[TEXT: notes.txt]") for message in messages)
    assert "Paragraph 39" in messages[-1]["content"][0]["text"]


def test_a_long_text_file_is_split_over_several_calls(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "long.txt"
    path.write_text("\n\n".join(f"Paragraph {number}: " + "word " * 390 for number in range(620)))
    engine.add(alice.owner, "r", [Message("alice", "user", NOON, (document(path, "text/plain", None, "text"),))])
    assert [len(body["messages"]) for body in stub.calls("add")] == [500, len(sent(stub)) - 500]
    assert stub.store.dropped == 0


def test_a_message_beside_a_document_does_not_take_one_of_its_times(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("\n\n".join("word " * 390 for _ in range(5)))
    item = document(path, "text/plain", None, "text")
    engine.add(alice.owner, "r", [Message("alice", "user", NOON, (item,))])
    engine.add(alice.owner, "r", [told(alice.owner, "beside", NOON + 2)])
    assert len({message["timestamp"] for message in sent(stub)}) == len(sent(stub)) == 6


def test_an_empty_text_file_is_nothing_to_send(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, tmp_path: Path
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
def test_other_files_go_out_whole_with_their_ending(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, tmp_path: Path, mime_type: str, name: str, extension: str
) -> None:
    path = tmp_path / "stored"
    path.write_bytes(b"bytes")
    engine.add(alice.owner, "r", [Message("alice", "user", NOON, (document(path, mime_type, name),))])
    assert sent(stub)[0]["content"] == [
        {"type": "doc", "base64": "Ynl0ZXM=", "ext": extension, "name": name, "extras": {"resource_id": "r_1"}}
    ]


def test_a_document_that_the_upstream_cannot_read_is_read_by_us(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_text("<html><body><p>The rent is 700 euros.</p></body></html>")
    stub.fault("add", Fault(status=503, body={"error": {"code": "CAPABILITY_UNAVAILABLE"}}))
    engine.add(alice.owner, "r", [Message("alice", "user", NOON, (document(path, "text/html", None, "html"),))])
    assert "base64" in sent(stub)[0]["content"][0]
    assert "The rent is 700 euros." in sent(stub)[1]["content"][0]["text"]


def test_a_picture_that_the_upstream_cannot_read_is_refused(
    engine: EverOSEngine, stub: StubUpstream, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "a.gif"
    path.write_bytes(b"GIF89a")
    stub.fault("add", Fault(status=415, body={}))
    with pytest.raises(EngineRefused):
        engine.add(alice.owner, "r", [Message("alice", "user", NOON, (document(path, "image/gif", None, "image"),))])


def test_a_missing_file_is_said_plainly(engine: EverOSEngine, alice: Person, tmp_path: Path) -> None:
    item = document(tmp_path / "gone.pdf", "application/pdf")
    with pytest.raises(EngineRefused, match="missing"):
        engine.add(alice.owner, "r", [Message("alice", "user", NOON, (item,))])
