"""`POST /memories/add` with messages as OpenAI's and Anthropic's APIs write them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from resources.models import Attachment
from store.models import Memory
from tests.bombs import pages_pdf
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call

pytestmark = pytest.mark.usefixtures("storage")

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
PDF = base64.b64encode(pages_pdf(["The rent is due."])).decode()
NOTES = base64.b64encode(b"The rent is due on Friday.").decode()


def send(person: Person, *messages: Any, status: int = 200, **fields: Any) -> dict[str, Any]:
    body = {"session_id": "chat:c1", "messages": list(messages), **fields}
    return call(person, "post", "/memories/add", status=status, **body)


def rows() -> list[tuple[str, str, str]]:
    """Role, sender and text of what is stored, in its order."""
    found = Memory.objects.order_by("created_at_ms", "seq", "pk")
    return [(one.payload.get("role", ""), one.sender_id, one.text) for one in found]


def files() -> list[tuple[str, str]]:
    return list(Attachment.objects.order_by("pk").values_list("type", "name"))


def test_a_conversation_of_openai_is_stored_as_it_is(alice: Person) -> None:
    call_of_tool = {"id": "call_1", "type": "function", "function": {"name": "trains", "arguments": '{"to": "Rome"}'}}
    answer = send(
        alice,
        {"role": "developer", "content": "Answer in one sentence."},
        {"role": "user", "content": "When does the train to Rome leave?", "name": "Ann"},
        {"role": "assistant", "content": None, "tool_calls": [call_of_tool], "refusal": None, "annotations": []},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "at nine"}]},
        {"role": "assistant", "content": "It leaves at nine."},
    )
    assert rows() == [
        ("system", "assistant", "Answer in one sentence."),
        ("user", "alice", "When does the train to Rome leave?"),
        ("assistant", "assistant", 'trains({"to": "Rome"})'),
        ("tool", "assistant", "at nine"),
        ("assistant", "assistant", "It leaves at nine."),
    ]
    assert (answer["stored"], answer["skipped"], "warnings" in answer) == (5, [], False)
    times = list(Memory.objects.order_by("created_at_ms").values_list("created_at_ms", flat=True))
    assert [time - times[0] for time in times] == [0, 1, 2, 3, 4]
    names = [memory["sender_name"] for memory in call(alice, "get", "/memories")["memories"]]
    assert [name for name in names if name] == ["Ann"]


def test_a_conversation_of_anthropic_is_split_by_who_speaks(alice: Person) -> None:
    answer = send(
        alice,
        {
            "role": "user",
            "content": [{"type": "text", "text": "Is it raining?", "cache_control": {"type": "ephemeral"}}],
        },
        {
            "id": "msg_1",
            "type": "message",
            "model": "claude",
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I should look.", "signature": "x"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}},
            ],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 2},
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "rain"}]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "", "is_error": True},
                {"type": "text", "text": "And tomorrow?"},
            ],
        },
        agent_id="claude",
    )
    assert rows() == [
        ("user", "alice", "Is it raining?"),
        ("assistant", "claude", "I look."),
        ("tool", "claude", "rain"),
        ("user", "alice", "And tomorrow?"),
    ]
    assert answer["thoughts"] == 2
    assert (answer["stored"], answer["skipped"]) == (3, [])
    listed = {one["text"]: one for one in call(alice, "get", "/memories")["memories"]}
    [called] = listed["I look."]["tool_calls"]
    assert (called["id"], called["function"]["name"], called["function"]["arguments"]) == (
        "toolu_1", "weather", '{"city": "Oslo"}',
    )  # fmt: skip
    assert listed["rain"]["tool_call_id"] == "toolu_1"


def test_items_of_the_responses_api_are_messages(alice: Person) -> None:
    answer = send(
        alice,
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Two and two?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "add",
            "arguments": "{}",
            "id": "fc_1",
            "status": "completed",
        },
        {"type": "function_call_output", "call_id": "c1", "output": "4"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Four.", "logprobs": []}]},
    )
    assert [(role, text) for role, _sender, text in rows()] == [
        ("user", "Two and two?"), ("assistant", "add({})"), ("tool", "4"), ("assistant", "Four."),
    ]  # fmt: skip
    assert (answer["stored"], answer["skipped"], answer["thoughts"]) == (4, [{"index": 1, "id": None}], 1)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None, "refusal": "I cannot help with this."}, "I cannot help with this."),
        ({"content": [{"type": "refusal", "refusal": "I cannot."}]}, "I cannot."),
        ({"content": None, "audio": {"id": "a", "data": "x", "transcript": "Good morning."}}, "Good morning."),
        ({"content": "Four.", "reasoning_content": "Two and two is four."}, "Four."),
        ({"content": ["Two", {"type": "text", "text": "parts"}]}, "Two\nparts"),
        ({"content": None, "function_call": {"name": "add", "arguments": "{}"}}, "add({})"),
        ({"content": "", "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]}, 'add({"a": 1})'),
        (
            {
                "content": None,
                "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}],
            },
            "sql(SELECT 1)",
        ),
    ],
)
def test_what_is_next_to_the_content_is_stored(alice: Person, message: dict[str, Any], text: str) -> None:
    send(alice, {"role": "assistant", **message})
    assert rows() == [("assistant", "assistant", text)]


@pytest.mark.parametrize(
    ("part", "kind", "name"),
    [
        (
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
            "image",
            "content.png",
        ),
        (
            {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
            "image",
            "content.png",
        ),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
            "pdf",
            "a.pdf",
        ),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}, "pdf", "a.pdf"),
        (
            {"type": "input_file", "filename": "notes.txt", "file_data": f"data:text/plain;base64,{NOTES}"},
            "text",
            "notes.txt",
        ),
        ({"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}}, "audio", "content.wav"),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            "image",
            "content.png",
        ),
        (
            {
                "type": "document",
                "title": "Lease",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            },
            "pdf",
            "Lease",
        ),
    ],
)
def test_files_in_parts_are_attached(alice: Person, part: dict[str, Any], kind: str, name: str) -> None:
    answer = send(alice, {"role": "user", "content": [{"type": "text", "text": "see this"}, part]})
    assert "warnings" not in answer
    assert files() == [(kind, name)]


def test_texts_in_documents_are_text(alice: Person) -> None:
    plain = {
        "type": "document",
        "title": "Lease",
        "source": {"type": "text", "media_type": "text/plain", "data": "No pets."},
    }
    blocks = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "One dog."}]}}
    percent = {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain,Two%20cats."}}
    send(alice, {"role": "user", "content": [plain, blocks, percent]})
    assert [text for _role, _sender, text in rows()] == ["Lease\n\nNo pets.\nOne dog.", "Two cats."]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"type": "video_url", "video_url": {"url": "http://169.254.169.254/"}}, "[VIDEO_URL]"),
        ({"type": "container_upload", "file_id": "f1", "filename": "a\n.csv"}, "[CONTAINER_UPLOAD: a .csv]"),
        ({"type": "markdown", "text": "# Title"}, "# Title"),
        ({"type": "file", "file": {"file_id": "file-1", "filename": "a.pdf"}}, "[FILE: a.pdf] file-1"),
        ({"type": "image", "source": {"type": "file", "file_id": "file_2"}}, "[IMAGE] file_2"),
        (
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": {"error_code": "x"}},
            "[WEB_SEARCH_TOOL_RESULT]",
        ),
    ],
)
def test_an_unknown_part_is_its_name_with_a_warning(alice: Person, part: dict[str, Any], text: str) -> None:
    answer = send(alice, {"role": "user", "content": [{"type": "text", "text": "see this"}, part]})
    assert [warning["field"] for warning in answer["warnings"]] == ["messages.0.content.1"]
    assert rows() == [("user", "alice", f"see this\n{text}")]


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"type": "image_url", "image_url": {"url": "http://169.254.169.254/a.png"}}, "image_url.url"),
        ({"type": "input_image", "image_url": "http://10.0.0.1/a.png"}, "image_url"),
        ({"type": "input_file", "file_url": "gopher://example.org/a"}, "file_url"),
        ({"type": "file", "file": {"file_url": "http://localhost/a"}}, "file.file_url"),
        ({"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/a.png"}}, "source.url"),
        ({"type": "image", "uri": "data:image/png;base64,AAAA"}, "uri"),
    ],
)
def test_addresses_that_no_client_may_name_are_refused(alice: Person, part: dict[str, Any], field: str) -> None:
    content = [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "hi"}, part]
    refused = send(alice, {"role": "user", "content": content}, status=422)
    assert [error["field"] for error in refused["errors"]] == [f"messages.0.content.2.{field}"]
    answers = [{"type": "text", "text": "a"}, {"type": "tool_result", "tool_use_id": "t", "content": [part]}]
    assert send(alice, {"role": "user", "content": answers}, status=422)["errors"][0]["field"].startswith(
        "messages.0.content.1."
    )
    assert rows() == []


def test_an_address_without_rights_is_registered(alice: Person) -> None:
    part = {"type": "image_url", "image_url": {"url": "file:///srv/a.png"}}
    answer = send(alice, {"role": "user", "content": [{"type": "text", "text": "hi"}, part]})
    assert [warning["field"] for warning in answer["warnings"]] == ["messages.0.content.1.image_url.url"]
    assert rows() == [("user", "alice", "hi\n[IMAGE: a.png] file:///srv/a.png")]
    assert files() == []


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"role": "narrator", "content": "x"}, "messages.0.role"),
        ({"role": "user", "content": "x", "mood": "good"}, "messages.0.mood"),
        ({"role": "user", "content": "x", "name": "a\nb"}, "messages.0.sender_name"),
        ({"role": "user", "content": "x", "timestamp": "yesterday"}, "messages.0.timestamp"),
        ({"role": "user", "content": "x", "timestamp": "2026-06-10T10:00:00"}, "messages.0.timestamp"),
        ({"role": "user", "content": [{"text": "x"}]}, "messages.0.content.0.type"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "messages.0.content.0"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}, "messages.0.content.0"),
        ({"role": "user", "content": [{"type": "tool_use", "name": "x"}]}, "messages.0.content.0.id"),
        ({"role": "assistant", "content": None}, "messages.0.content"),
    ],
)
def test_what_is_wrong_is_named(alice: Person, message: dict[str, Any], field: str) -> None:
    assert send(alice, message, status=422)["errors"][0]["field"] == field


@pytest.mark.parametrize(
    "timestamp",
    [NOON_MS, NOON_MS // 1000, NOON_MS / 1000 + 0.0004, float(NOON_MS), str(NOON_MS), "2026-06-11T10:02:57+00:00",
     "2026-06-11T12:02:57.000+02:00", "2026-06-11T10:02:57Z"],
)  # fmt: skip
def test_times_are_read_in_any_form(alice: Person, timestamp: Any) -> None:
    send(alice, {"role": "user", "content": "x", "timestamp": timestamp})
    assert Memory.objects.get().created_at_ms == NOON_MS


def test_a_name_is_no_identity(alice: Person, bob: Person) -> None:
    send(alice, {"role": "user", "content": "The code is 4711.", "name": "bob"})
    assert Memory.objects.get().sender_id == "alice"
    assert call(bob, "get", "/memories")["memories"] == []


def test_a_transcript_without_times_is_stored_once(alice: Person, storage: Path) -> None:
    said = [
        {"role": "user", "content": "I moved to Lisbon last month."},
        {"role": "assistant", "content": [{"type": "text", "text": "How do you like it?"}]},
        {"role": "user", "content": "Very much."},
    ]
    send(alice, *said)
    again = send(alice, *said, {"role": "assistant", "content": "Good."})
    assert (again["stored"], [one["index"] for one in again["skipped"]]) == (1, [0, 1, 2])
    assert Memory.objects.count() == 4
