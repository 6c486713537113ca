"""`POST /memories/add`."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.audit import Actor
from core.errors import EngineRefused, EngineUnavailable, NoSpace, OutcomeUnknown
from memories.api.schemas.messages import MAX_TIMESTAMP_MS
from memories.services import files
from memories.services.add import AddCommand, NewContentItem, NewMessage, add
from resources.models import Attachment
from resources.services import purge
from store.models import Memory
from tests.conftest import Person
from tests.documents import small_files
from tests.fake_engine import RecordingEngine
from tests.memories.calls import NOON_MS, call, id_of, search, texts, upload

ALL_MEMORIES = {"scope": ["all_user_memory"]}
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(40)


def as_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


TEXT = {"type": "text", "text": "x"}
IMAGE = {"type": "image", "base64": as_base64(PIXEL), "ext": "png"}


def message(content: Any, **fields: Any) -> dict[str, Any]:
    return {"sender_id": "alice", "role": "user", "timestamp": NOON_MS, "content": content, **fields}


def send(person: Person, *messages: dict[str, Any], status: int = 200, **fields: Any) -> dict[str, Any]:
    body = {"session_id": "chat:c_456", "messages": list(messages), **fields}
    return call(person, "post", "/memories/add", status=status, **body)


def stored(storage: Path) -> list[Path]:
    return [path for path in storage.rglob("*") if path.is_file()]


@pytest.fixture(autouse=True)
def check_incoming_files(storage: Path) -> Iterator[None]:
    """Check that no test leaves a temporary file."""
    yield
    assert not list((storage / ".incoming").glob("*"))


# --- messages --------------------------------------------------------------------------------------------------------


def test_the_documented_example_is_accepted(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_FILE_URI_ROOTS = ["/home/tom/memory-gateway/tests"]
    answer = send(
        alice,
        message(
            [
                {"type": "text", "text": "记住:我偏好 concise 的中文说明"},
                {
                    "type": "image",
                    "uri": "file:///home/tom/memory-gateway/tests/simple-multimodal-image.png",
                    "ext": "png",
                    "name": "simple-multimodal-image.png",
                },
            ]
        ),
        app_id="default",
        project_id="default",
    )
    assert answer["session_id"] == "chat:c_456"
    assert answer["backend"]["request_id"]
    assert answer["backend"]["data"] == {"status": "accumulated", "message_count": 1}
    results = search(alice, "simple-multimodal-image.png", conversation_id="c_456")["results"]
    assert results[0]["attachments"] == [
        {
            "type": "image",
            "name": "simple-multimodal-image.png",
            "internal_uri": "file:///home/tom/memory-gateway/tests/simple-multimodal-image.png",
        }
    ]
    assert "偏好" in texts(search(alice, "偏好", conversation_id="c_456"))[0]


def test_a_message_is_found_before_the_flush(alice: Person) -> None:
    send(alice, message("the car is red"))
    (result,) = search(alice, "car", conversation_id="c_456")["results"]
    assert (result["text"], result["memory_type"]) == ("the car is red", "unprocessed_message")


def test_a_repeated_message_is_stored_once(alice: Person) -> None:
    for _ in range(2):
        send(alice, message("the car is red"), message([{"type": "image", "base64": as_base64(PIXEL), "ext": "png"}]))
    assert Memory.objects.count() == 2
    assert Attachment.objects.count() == 1


def test_messages_with_equal_times_and_different_texts_are_different(alice: Person) -> None:
    send(alice, message("the car is red"))
    send(alice, message("the car is blue"))
    assert len(texts(search(alice, "car", **ALL_MEMORIES))) == 2


def test_messages_with_equal_times_and_different_files_are_different(alice: Person) -> None:
    for data in (PIXEL, PIXEL + b"\0"):
        send(alice, message([{"type": "image", "base64": as_base64(data), "ext": "png", "name": "a.png"}]))
    assert Memory.objects.count() == 2


def test_messages_of_agents_and_tools_keep_their_sender(alice: Person) -> None:
    send(alice, message("found it", sender_id="helper", role="assistant"))
    send(alice, message("42 rows", sender_id="sql", role="tool"))
    listed = call(alice, "get", "/memories")["memories"]
    assert {(memory["agent_id"], memory["category"]) for memory in listed} == {
        ("helper", "full_context_assistant"),
        ("sql", "full_context_tool"),
    }


def test_timestamps_may_be_seconds_or_milliseconds(alice: Person) -> None:
    send(alice, message("the car is red", timestamp=NOON_MS // 1000))
    assert Memory.objects.get().created_at_ms == NOON_MS
    send(alice, message("it was red in 1999", timestamp=926_000_000_000), session_id="chat:old")
    assert Memory.objects.get(text="it was red in 1999").created_at_ms == 926_000_000_000


def test_two_messages_at_the_latest_accepted_time_are_stored(alice: Person) -> None:
    send(alice, message("one", timestamp=MAX_TIMESTAMP_MS), message("two", timestamp=MAX_TIMESTAMP_MS))
    assert len(call(alice, "get", "/memories")["memories"]) == 2
    assert send(alice, message("three", timestamp=MAX_TIMESTAMP_MS + 1), status=422)["errors"]


@pytest.mark.parametrize(("kind", "sentence"), [("text", "text 为必填"), ("image", "uri 或 base64 为必填")])
def test_missing_content_is_refused_in_the_language_of_the_request(alice: Person, kind: str, sentence: str) -> None:
    body = {"session_id": "chat:c", "messages": [message([{"type": kind}])]}
    headers = {"Accept-Language": "zh-CN"}
    answer = alice.client.post("/memories/add", body, content_type="application/json", headers=headers)
    assert [error["message"] for error in answer.json()["errors"]] == [sentence]


@pytest.mark.parametrize("session_id", [".", ".."])
def test_a_session_that_clients_cannot_address_is_refused(alice: Person, session_id: str) -> None:
    refused = send(alice, message("x"), session_id=session_id, status=422)
    assert refused["errors"] == [
        {"field": "session_id", "message": "must not be '.' or '..', which clients remove from addresses"}
    ]


@pytest.mark.parametrize("content", [7, TEXT])
def test_content_that_is_neither_text_nor_items_is_refused(alice: Person, content: Any) -> None:
    [error] = send(alice, message(content), status=422)["errors"]
    assert error["field"] == "messages.0.content"
    assert error["message"].startswith("must be text, or a list of items")


@pytest.mark.parametrize("session_id", ["resource:alice:r_1", "memory_edit:alice", "manual_insert", "会话/1"])
def test_any_session_id_that_names_no_other_user_is_accepted(alice: Person, session_id: str) -> None:
    assert send(alice, message("the car is red"), session_id=session_id)["session_id"] == session_id


def test_sessions_of_two_users_may_have_the_same_id(alice: Person, bob: Person) -> None:
    send(alice, message("the car of alice"))
    send(bob, message("the car of bob", sender_id="bob"))
    assert texts(search(alice, "car", **ALL_MEMORIES)) == ["the car of alice"]
    assert texts(search(bob, "car", conversation_id="c_456")) == ["the car of bob"]


# --- refused requests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("session_id", ["resource:bob:r_1", "memory_edit:bob", "resource:alice.b:r_1"])
def test_a_session_that_names_another_user_does_not_exist(alice: Person, session_id: str) -> None:
    send(alice, message("x"), session_id=session_id, status=404)


@pytest.mark.parametrize("sender_id", ["bob", "Alice", "alice2"])
def test_a_user_message_of_another_user_is_refused(alice: Person, sender_id: str) -> None:
    problem = send(alice, message("x"), message("y", sender_id=sender_id), status=422)
    assert [error["field"] for error in problem["errors"]] == ["messages.1.sender_id"]
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"session_id": ""}, "session_id"),
        ({"session_id": "a\nb"}, "session_id"),
        ({"session_id": "x" * 129}, "session_id"),
        ({"messages": []}, "messages"),
        ({"messages": [message("x")] * 501}, "messages"),
        ({"messages": "x"}, "messages"),
        ({"messages": [{"role": "user", "timestamp": 1, "content": "x", "sender_id": ""}]}, "messages.0.sender_id"),
        ({"messages": [message("")]}, "messages.0.content"),
        ({"messages": [message(None, tool_calls=[])]}, "messages.0.content"),
        ({"messages": [message([{"type": "text", "text": ""}])]}, "messages.0.content.0.text"),
        ({"messages": [message([])]}, "messages.0.content"),
        ({"messages": [message(7)]}, "messages.0.content"),
        ({"messages": [message([TEXT] * 101)]}, "messages.0.content"),
        ({"messages": [message("x", role="narrator")]}, "messages.0.role"),
        ({"messages": [message("x", sender_id="a:b", role="tool")]}, "messages.0.sender_id"),
        ({"messages": [message("x", timestamp=0)]}, "messages.0.timestamp"),
        ({"messages": [message("x", timestamp="now")]}, "messages.0.timestamp"),
        ({"messages": [message("x", timestamp=10**15)]}, "messages.0.timestamp"),
        ({"messages": [message("x", mood="good")]}, "messages.0.mood"),
        ({"messages": [message([{"type": "text"}])]}, "messages.0.content.0"),
        ({"messages": [message([{"type": "image", "text": "x"}])]}, "messages.0.content.0"),
        ({"messages": [message([{"type": "image"}])]}, "messages.0.content.0"),
        ({"messages": [message([{"type": 7, "uri": "https://example.org/"}])]}, "messages.0.content.0.type"),
        ({"messages": [message([{**TEXT, "mime": "text/plain"}])]}, "messages.0.content.0.mime"),
        ({"messages": [message([{**IMAGE, "base64": "!!!"}])]}, "messages.0.content.0.base64"),
        ({"messages": [message([{**IMAGE, "base64": "QUJ"}])]}, "messages.0.content.0.base64"),
        ({"messages": [message([{**IMAGE, "base64": ""}])]}, "messages.0.content.0.base64"),
        ({"messages": [message([{**IMAGE, "base64": "data:image/png;base64,QUJD"}])]}, "messages.0.content.0.base64"),
        ({"messages": [message([{**IMAGE, "ext": "../png"}])]}, "messages.0.content.0.ext"),
        ({"messages": [message([{**IMAGE, "name": "x" * 256}])]}, "messages.0.content.0.name"),
        ({"messages": [message([{"type": "pdf", "uri": "gopher://example.org/"}])]}, "messages.0.content.0.uri"),
        ({"messages": [message([{"type": "pdf", "uri": "http://10.0.0.1/a.pdf"}])]}, "messages.0.content.0.uri"),
        ({"app_id": "a/b"}, "app_id"),
        ({"color": "red"}, "color"),
    ],
)
def test_an_invalid_field_is_named(alice: Person, fields: dict[str, Any], field: str, storage: Path) -> None:
    problem = send(alice, message([TEXT, IMAGE]), **fields, status=422)
    assert [error["field"] for error in problem["errors"]] == [field]
    assert not Memory.objects.exists()
    assert not stored(storage)


def test_it_needs_a_key(client: Client, alice: Person) -> None:
    body = {"session_id": "chat:c1", "messages": [message("x")]}
    assert client.post("/memories/add", body, "application/json").status_code == 401


def test_a_session_in_the_trash_accepts_no_messages(alice: Person) -> None:
    send(alice, message("the car is red"))
    call(alice, "delete", "/sessions/chat:c_456")
    send(alice, message("the car is blue"), status=409)
    call(alice, "post", "/sessions/chat:c_456/restore")
    send(alice, message("the car is blue"))


# --- files -----------------------------------------------------------------------------------------------------------


def test_base64_content_is_stored_as_a_file(alice: Person, storage: Path) -> None:
    item = {"type": "audio", "base64": as_base64(b"RIFF and more"), "ext": "wav", "name": "tone.wav"}
    send(alice, message([item]))
    (path,) = stored(storage)
    sha256 = path.parent.name
    assert path == storage / str(alice.user_pk) / "memory_attachments" / sha256 / "content.wav"
    assert path.read_bytes() == b"RIFF and more"
    assert path.stat().st_mode & 0o777 == 0o600
    row = Attachment.objects.get()
    assert (row.name, row.type, row.source, row.sha256) == ("tone.wav", "audio", "memory_add", sha256)
    assert (row.internal_uri, row.session_id) == (path.relative_to(storage).as_posix(), "chat:c_456")
    (result,) = search(alice, "tone.wav", conversation_id="c_456")["results"]
    assert result["attachments"] == [{"type": "audio", "name": "tone.wav", "internal_uri": path.as_uri()}]


def test_base64_content_is_not_stored_in_the_database(alice: Person) -> None:
    encoded = as_base64(b"a very particular picture")
    send(alice, message([{"type": "image", "base64": encoded, "ext": "png", "name": "a.png"}]))
    assert encoded not in str(list(Memory.objects.values()))
    assert encoded not in str(search(alice, "a.png", conversation_id="c_456"))


def test_the_same_bytes_of_a_user_are_one_file(alice: Person, bob: Person, storage: Path) -> None:
    for name in ("a.png", "b.png"):
        send(alice, message([{**IMAGE, "name": name}]))
    send(bob, message([{**IMAGE, "name": "a.png"}], sender_id="bob"))
    assert len(stored(storage)) == 2  # one per user
    assert Attachment.objects.count() == 3


def test_a_document_in_a_message_is_searchable(alice: Person) -> None:
    send(alice, message([{"type": "text", "base64": as_base64("付款期限为三十天。".encode()), "name": "合同.txt"}]))
    (result,) = search(alice, "付款期限", conversation_id="c_456")["results"]
    assert [file["name"] for file in result["attachments"]] == ["合同.txt"]


def test_the_type_of_a_document_without_a_name_is_detected(alice: Person) -> None:
    send(alice, message([{"type": "doc", "base64": as_base64(b"<html><body>The payment is due</body></html>")}]))
    assert len(search(alice, "payment", conversation_id="c_456")["results"]) == 1


def test_the_uri_overrides_base64(alice: Person, storage: Path) -> None:
    send(alice, message([{**IMAGE, "uri": "https://example.org/pictures/a%20b.png?size=1"}]))
    assert not stored(storage)
    row = Attachment.objects.get()
    assert (row.name, row.internal_uri) == ("a b.png", "https://example.org/pictures/a%20b.png?size=1")


def test_a_file_above_the_limit_is_413(alice: Person, settings: Any, storage: Path) -> None:
    settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES = len(PIXEL) - 1
    send(alice, message([IMAGE]), status=413)
    assert not stored(storage)


def test_a_file_at_the_limit_fits_into_the_body(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES = 3 * 2**20
    send(alice, message([{**IMAGE, "base64": as_base64(bytes(3 * 2**20))}]))


def test_an_unreadable_document_leaves_no_row_and_no_file(alice: Person, storage: Path) -> None:
    problem = send(
        alice, message([TEXT, {"type": "pdf", "base64": as_base64(b"%PDF-1.4 no"), "ext": "pdf"}]), status=422
    )
    assert problem["code"] == "unreadable_document"
    assert not stored(storage)
    assert not Attachment.objects.exists()
    assert not Memory.objects.exists()


# --- failures of the engine ------------------------------------------------------------------------------------------


def add_image(person: Person, engine: RecordingEngine, data: bytes = PIXEL) -> None:
    part = NewContentItem("image", data=data, ext="png", name="a.png")
    command = AddCommand("chat:c1", (NewMessage(person.user_id, "user", NOON_MS, (part,)),))
    add(person.owner, command, engine=engine)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [EngineRefused("no"), EngineUnavailable("later")])
def test_a_refused_add_leaves_no_row_and_no_file(alice: Person, storage: Path, error: Exception) -> None:
    with pytest.raises(type(error)):
        add_image(alice, RecordingEngine(failures={"add": [error]}))  # type: ignore[list-item]
    assert not stored(storage)
    assert not Attachment.objects.exists()


def test_a_refused_add_keeps_the_file_of_an_earlier_call(alice: Person, storage: Path) -> None:
    add_image(alice, RecordingEngine())
    with pytest.raises(EngineRefused):
        add_image(alice, RecordingEngine(failures={"add": [EngineRefused("no")]}))
    assert len(stored(storage)) == 1


def test_a_refused_add_keeps_the_file_of_a_concurrent_call(alice: Person, storage: Path) -> None:
    def accept_concurrently() -> None:
        add_image(alice, RecordingEngine())
        raise EngineRefused("no")

    with pytest.raises(EngineRefused):
        add_image(alice, RecordingEngine(during_add=accept_concurrently))
    assert len(stored(storage)) == 1


def test_a_file_removed_by_a_concurrent_refused_call_is_written_again(alice: Person, storage: Path) -> None:
    def remove_files() -> None:
        for path in stored(storage):
            path.unlink()

    add_image(alice, RecordingEngine(during_add=remove_files))
    assert [path.read_bytes() for path in stored(storage)] == [PIXEL]


def test_the_file_of_an_unconfirmed_add_is_kept(alice: Person, storage: Path) -> None:
    with pytest.raises(OutcomeUnknown):
        add_image(alice, RecordingEngine(failures={"add": [OutcomeUnknown("?")]}))
    assert len(stored(storage)) == 1
    assert not Attachment.objects.exists()


def test_a_full_disk_refuses_the_add(alice: Person, settings: Any, storage: Path) -> None:
    settings.MEMORY_GATEWAY_MIN_FREE_DISK_BYTES = 2**62
    engine = RecordingEngine()
    with pytest.raises(NoSpace):
        add_image(alice, engine)
    assert (stored(storage), engine.added) == ([], [])


def test_the_engine_receives_the_key_of_the_file(alice: Person, storage: Path) -> None:
    engine = RecordingEngine()
    add_image(alice, engine)
    ((owner, session_id, (added_message,)),) = engine.added
    (item,) = added_message.content
    assert (owner.user_id, session_id, item.file, item.mime_type) == (
        "alice",
        "chat:c1",
        str(stored(storage)[0].relative_to(storage)),
        "image/png",
    )


@pytest.mark.parametrize("name", ["../../etc/passwd", "a./../../b", "..", "a.b/c", "x.", "a." + "x" * 200, "文.件"])
def test_file_names_never_become_paths(alice: Person, storage: Path, name: str) -> None:
    send(alice, message([{"type": "image", "base64": as_base64(PIXEL), "name": name}]))
    (path,) = stored(storage)
    assert path.parent.parent == storage / str(alice.user_pk) / "memory_attachments"
    assert path.name == "content"
    assert Attachment.objects.get().name == name


@pytest.mark.django_db(transaction=True)
def test_the_session_of_a_deleted_resource_accepts_no_messages(alice: Person) -> None:
    resource = upload(alice)
    call(alice, "delete", f"/resources/{resource['resource_id']}")
    send(alice, message("x"), session_id=resource["session_id"], status=409)
    purge(resource["resource_id"], actor=Actor.command("tests"))
    send(alice, message("x"), session_id=resource["session_id"], status=404)


def test_a_removed_folder_is_created_again(alice: Person, storage: Path) -> None:
    file = files.inline_file(alice.user_pk, PIXEL, "png")
    assert files.keep(file)
    files.drop(file)
    assert not (storage / file.key).parent.exists()
    assert files.keep(file)
    assert not files.keep(file)


def test_an_unflushed_message_can_be_deleted(alice: Person) -> None:
    send(alice, message("the car is red"))
    call(alice, "delete", f"/memories/{id_of('the car is red')}")
    assert texts(search(alice, "car", **ALL_MEMORIES)) == []


def test_the_answer_says_what_of_a_file_was_not_read(alice: Person) -> None:
    """A page without text and a doubtful encoding are named at their file; a whole file has no warning."""
    files = {
        "paper.pdf": (small_files.FOLDER / "pdf-blankmix.pdf").read_bytes(),
        "whole.txt": b"The valve is in the cellar.",
        "old.txt": "Grüße".encode("cp1252"),
    }
    parts = [{"type": "doc", "base64": as_base64(data), "ext": name[-3:], "name": name} for name, data in files.items()]
    answer = send(alice, message([{"type": "text", "text": "see these"}, *parts]))
    found = {one["field"]: one["message"] for one in answer["warnings"]}
    assert list(found) == ["messages.0.content.1", "messages.0.content.3"]
    assert found["messages.0.content.1"] == "Pages whose pictures were not read: 1 (2)."
    assert found["messages.0.content.3"].startswith("The encoding of the text is a guess (")
