"""`POST /memories/add` and `POST /memories/flush`."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.contract.caller import NOON_MS, Caller, Gateway, field_errors, require_shape

pytestmark = pytest.mark.usefixtures("writes")

ANSWER = {"session_id": str, "backend": {"request_id": str, "data": {"status": str}}}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_what_is_added_is_accumulated_and_answers_as_documented(alice: Caller, chat: str) -> None:
    answer = alice.add(chat, "记住:我偏好 concise 的中文说明", app_id="default", project_id="default")
    require_shape(answer, ANSWER)
    assert (answer["session_id"], answer["backend"]["data"]["status"]) == (chat, "accumulated")


def test_a_flush_extracts_and_answers_as_documented(alice: Caller, chat: str) -> None:
    alice.add(chat, "The invoice is payable within thirty days.")
    answer = alice.flush(chat)
    require_shape(answer, ANSWER)
    assert (answer["session_id"], answer["backend"]["data"]["status"]) == (chat, "extracted")


def test_a_flush_of_nothing_extracts_nothing(alice: Caller, chat: str) -> None:
    assert alice.flush(chat)["backend"]["data"]["status"] == "no_extraction"
    alice.remember(chat, "I own a cat.")
    assert alice.flush(chat)["backend"]["data"]["status"] == "no_extraction"


def test_what_was_added_is_found_before_the_flush_and_after(alice: Caller, conversation: str, chat: str) -> None:
    alice.add(chat, "My parrot is called Polly.")
    [before] = alice.found("parrot", conversation_id=conversation)
    assert (before["memory_type"], before["session_id"]) == ("unprocessed_message", chat)
    assert "Polly" in before["text"]
    alice.flush(chat)
    [after] = alice.found("parrot", conversation_id=conversation)
    assert (after["memory_type"], after["session_id"]) == ("episode", chat)
    assert "Polly" in after["text"]


def test_the_same_messages_again_are_the_same(alice: Caller, conversation: str, chat: str) -> None:
    alice.add(chat, "My parrot is called Polly.")
    alice.add(chat, "My parrot is called Polly.")
    alice.flush(chat)
    alice.add(chat, "My parrot is called Polly.")
    alice.flush(chat)
    assert len(alice.found("parrot", conversation_id=conversation)) == 1


def test_messages_of_one_moment_are_all_kept(alice: Caller, chat: str) -> None:
    for animal in ("cat", "dog", "parrot"):
        alice.add(chat, f"I own a {animal}.")
    alice.flush(chat)
    texts = " ".join(item["text"] for item in alice.get("/memories", session_id=chat)["memories"])
    assert all(animal in texts for animal in ("cat", "dog", "parrot"))


def test_every_role_may_speak(alice: Caller, conversation: str, chat: str) -> None:
    messages = [
        alice.message("Which train goes to Rome?"),
        {"sender_id": "main", "role": "assistant", "timestamp": NOON_MS + 1, "content": "I look for trains."},
        {"sender_id": "main", "role": "tool", "timestamp": NOON_MS + 2, "content": "One train at nine."},
        alice.message("Then the one at nine.", NOON_MS + 3),
    ]
    assert alice.add(chat, messages=messages)["backend"]["data"]["status"] == "accumulated"
    assert alice.flush(chat)["backend"]["data"]["status"] == "extracted"
    assert any("Rome" in item["text"] for item in alice.found("Rome train", conversation_id=conversation))


def test_a_file_at_an_address_is_attached(alice: Caller, gateway: Gateway, conversation: str, chat: str) -> None:
    picture = gateway.files / "simple-multimodal-image.png"
    picture.write_bytes(PIXEL)
    content = [
        {"type": "text", "text": "记住:我偏好 concise 的中文说明, see simple-multimodal-image.png"},
        {"type": "image", "uri": picture.as_uri(), "ext": "png", "name": picture.name},
    ]
    alice.add(chat, messages=[alice.message(content)])
    alice.flush(chat)
    attached = [item["attachments"] for item in alice.found("concise", conversation_id=conversation)]
    assert [{"type": "image", "name": picture.name, "internal_uri": picture.as_uri()}] in attached


def test_a_file_in_base64_is_kept_and_attached_and_never_answered(alice: Caller, conversation: str, chat: str) -> None:
    data = base64.b64encode(PIXEL).decode()
    content = [
        {"type": "text", "text": "Our new logo is in logo.png"},
        {"type": "image", "base64": data, "ext": "png", "name": "logo.png"},
    ]
    alice.add(chat, messages=[alice.message(content)])
    assert data not in str(alice.search("logo", conversation_id=conversation))
    alice.flush(chat)
    attachments = [
        attachment for item in alice.found("logo", conversation_id=conversation) for attachment in item["attachments"]
    ]
    assert {(item["type"], item["name"]) for item in attachments} == {("image", "logo.png")}
    address = attachments[0]["internal_uri"]
    assert alice.gateway.server.stored_file(address) == PIXEL
    assert "memory_attachments" in address.split("/")


def test_a_message_of_another_user_is_refused(alice: Caller, bob: Caller, chat: str) -> None:
    problem = alice.add(chat, messages=[bob.message("I owe alice money.")], status=422)
    assert field_errors(problem) == ["messages.0.sender_id"]


def test_two_users_may_have_a_chat_of_one_id_and_see_their_own(
    alice: Caller, bob: Caller, conversation: str, chat: str
) -> None:
    alice.remember(chat, "alice has a secret garden")
    bob.remember(chat, "bob has a plain garden")
    for caller, own, other in ((alice, "secret", "plain"), (bob, "plain", "secret")):
        answer = caller.search("garden", conversation_id=conversation, scope=["current_chat", "all_user_memory"])
        assert own in str(answer)
        assert other not in str(answer)


@pytest.mark.parametrize("kind", ["resource:{}:r_1", "memory_edit:{}"])
@pytest.mark.parametrize("path", ["/memories/add", "/memories/flush"])
def test_sessions_that_name_another_user_are_not_there(alice: Caller, bob: Caller, kind: str, path: str) -> None:
    body = {"messages": [alice.message("hello")]} if path.endswith("add") else {}
    alice.post(path, status=404, session_id=kind.format(bob.user_id), **body)


def test_the_callers_own_edit_session_takes_messages(alice: Caller) -> None:
    session_id = f"memory_edit:{alice.user_id}"
    alice.remember(session_id, "I moved to Hamburg.")
    [found] = alice.found("Hamburg", scope=["all_user_memory"])
    assert found["session_id"] == session_id


def message(**changes: Any) -> dict[str, Any]:
    return {"sender_id": "main", "role": "assistant", "timestamp": NOON_MS, "content": "hello", **changes}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"session_id": None}, "session_id"),
        ({"session_id": ""}, "session_id"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [message(role="robot")]}, "messages.0.role"),
        ({"messages": [message(sender_id="")]}, "messages.0.sender_id"),
        ({"messages": [message(timestamp=0)]}, "messages.0.timestamp"),
        ({"messages": [message(timestamp="2026-06-10")]}, "messages.0.timestamp"),
        ({"app_id": "no spaces"}, "app_id"),
    ],
)
def test_a_wrong_field_is_422_by_name(alice: Caller, chat: str, body: dict[str, Any], field: str) -> None:
    whole = {"session_id": chat, "messages": [message()], **body}
    assert field_errors(alice.post("/memories/add", status=422, **whole)) == [field]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "image", "name": "a.png"},
        {"type": "audio", "base64": "not base64!", "ext": "wav", "name": "tone.wav"},
        {"type": "image", "uri": "http://169.254.169.254/latest", "ext": "png", "name": "a.png"},
        {"type": "image", "uri": "ftp://example.org/a.png", "ext": "png", "name": "a.png"},
    ],
)
def test_a_content_item_that_cannot_be_is_422_by_name(alice: Caller, chat: str, item: dict[str, Any]) -> None:
    fields = field_errors(alice.add(chat, messages=[message(content=[item])], status=422))
    assert fields
    assert all(field.startswith("messages.0.content") for field in fields)
    assert alice.get("/sessions")["sessions"] == []
