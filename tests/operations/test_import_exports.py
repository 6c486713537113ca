"""`manage.py import_from` with the exports of ChatGPT and Claude, and the lines of the MCP memory server."""

from __future__ import annotations

import json
import zipfile
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import call, search, texts

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("storage")]

SAID_AT = 1_715_000_000.25
CHATGPT = [
    {
        "title": "Trip",
        "create_time": SAID_AT - 60,
        "conversation_id": "c-1",
        "current_node": "n4",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["n1"]},
            "n1": {"id": "n1", "parent": "root", "message": {
                "id": "m1", "author": {"role": "system"}, "create_time": None,
                "content": {"content_type": "text", "parts": ["You are helpful."]}}},
            "n2": {"id": "n2", "parent": "n1", "message": {
                "id": "m2", "author": {"role": "user"}, "create_time": SAID_AT,
                "content": {"content_type": "multimodal_text", "parts": [
                    {"asset_pointer": "x"}, "I am moving to Porto."]}}},
            "n3": {"id": "n3", "parent": "n2", "message": {
                "id": "m3", "author": {"role": "assistant"}, "create_time": SAID_AT + 1,
                "content": {"content_type": "text", "parts": ["An answer that was regenerated."]}}},
            "n4": {"id": "n4", "parent": "n2", "message": {
                "id": "m4", "author": {"role": "assistant"}, "create_time": "never",
                "content": {"content_type": "text", "parts": ["Porto is lovely."]}}},
        },
    },
    {"title": "Damaged"},
]  # fmt: skip
CLAUDE = [
    {
        "uuid": "k-1",
        "name": "Garden",
        "created_at": "2025-03-01T10:00:00Z",
        "chat_messages": [
            {"uuid": "a", "sender": "human", "text": "", "created_at": "2025-03-01T10:00:00.5Z",
             "content": [{"type": "text", "text": "My roses have mildew."}]},
            {"uuid": "b", "sender": "assistant", "text": "Cut the leaves.", "created_at": 1_740_823_260_000},
            {"uuid": "c", "sender": "human", "text": "x" * 9000, "created_at": "2025-03-01T10:02:00+00:00"},
            {"uuid": "d", "sender": "human", "text": " ", "created_at": "2025-03-01T10:02:00+00:00"},
        ],
    }
]  # fmt: skip
MCP = [
    {
        "type": "entity",
        "name": "Ann",
        "entityType": "person",
        "observations": ["likes tea", "lives in Oslo", "Likes  tea"],
    },
    {"type": "relation", "from": "Ann", "to": "Acme", "relationType": "works_at"},
    {"type": "entity", "name": "Empty", "entityType": "person", "observations": []},
]


def run(*arguments: Any) -> dict[str, Any]:
    out = StringIO()
    call_command("import_from", *map(str, arguments), "--json", stdout=out, stderr=StringIO())
    return dict(json.loads(out.getvalue()))


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def zipped(path: Path, name: str, value: Any) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"export/{name}", json.dumps(value))
        archive.writestr("export/user.json", "{}")
    return path


def imported() -> list[tuple[str, str, str | None, int]]:
    rows = Memory.objects.order_by("pk").select_related("session")
    return [(one.text, one.sender_id, one.session and one.session.session_id, one.created_at_ms) for one in rows]


@pytest.mark.parametrize("is_zip", [False, True])
def test_conversations_of_chatgpt(alice: Person, tmp_path: Path, is_zip: bool) -> None:
    name = "conversations.json"
    path = zipped(tmp_path / "export.zip", name, CHATGPT) if is_zip else written(tmp_path / name, CHATGPT)
    planned = run("chatgpt", path, "--user", "alice")
    assert (planned["new"], planned["duplicates"]) == (2, 0)
    assert planned["left"] == {"a message of the system or a tool": 1, "not a conversation": 1}
    assert planned["undated"] == {"count": 1, "at": ["m4: never"]}
    assert not Memory.objects.exists()
    done = run("chatgpt", path, "--user", "alice", "--apply")
    assert [one[:3] for one in imported()] == [
        ("I am moving to Porto.", "alice", "chat:c-1"),
        ("Porto is lovely.", "chatgpt", "chat:c-1"),
    ]
    assert imported()[0][3] == round(SAID_AT * 1000)
    assert "I am moving to Porto." in texts(search(alice, "Porto", scope=["all_user_memory"]))
    assert run("chatgpt", path, "--user", "alice", "--apply")["made"] == 0
    run("--undo", done["job"])
    assert not Memory.objects.exists()


def test_conversations_of_claude(alice: Person, tmp_path: Path) -> None:
    path = written(tmp_path / "conversations.json", CLAUDE)
    assert run("claude", path, "--user", "alice", "--apply")["made"] == 4
    first, second, *pieces = imported()
    assert first == ("My roses have mildew.", "alice", "chat:k-1", 1_740_823_200_500)
    assert second == ("Cut the leaves.", "claude", "chat:k-1", 1_740_823_260_000)
    assert "".join(text for text, *_ in pieces) == "x" * 9000


def test_the_graph_of_the_mcp_memory_server(alice: Person, tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join([*map(json.dumps, MCP), "", "{broken", '"text"']))
    planned = run("mcp-memory", path, "--user", "alice")
    assert (planned["new"], planned["duplicates"]) == (3, 0)
    assert planned["left"] == {
        "the text of another memory": 1,
        "without an observation or a relation": 1,
        "not valid JSON": 2,
    }
    run("mcp-memory", path, "--user", "alice", "--apply")
    assert {text for text, *_ in imported()} == {"Ann: likes tea", "Ann: lives in Oslo", "Ann works at Acme"}


@pytest.mark.parametrize(
    ("created_at", "ms"),
    [
        (1_741_000_000, 1_741_000_000_000),
        (1_741_000_000_123, 1_741_000_000_123),
        (1_741_000_000.5, 1_741_000_000_500),
        ("1741000000", 1_741_000_000_000),
        ("2025-03-03T11:06:40Z", 1_741_000_000_000),
    ],
)
def test_dates_in_seconds_and_milliseconds(alice: Person, tmp_path: Path, created_at: Any, ms: int) -> None:
    path = written(tmp_path / "m.json", [{"id": "m1", "memory": "Prefers tea.", "created_at": created_at}])
    planned = run("mem0", path, "--user", "alice", "--apply")
    assert "undated" not in planned
    assert Memory.objects.get().created_at_ms == ms


@pytest.mark.parametrize("created_at", ["soon", -5, 1e40, True, ["2025"]])
def test_dates_that_cannot_be_read_are_named(alice: Person, tmp_path: Path, created_at: Any) -> None:
    path = written(tmp_path / "m.json", [{"id": "m1", "memory": "Prefers tea.", "created_at": created_at}])
    planned = run("mem0", path, "--user", "alice", "--apply")
    assert planned["undated"] == {"count": 1, "at": [f"m1: {created_at}"]}
    [listed] = call(alice, "get", "/memories")["memories"]
    assert listed["text"] == "Prefers tea."


def test_equal_facts_are_one(alice: Person, tmp_path: Path) -> None:
    items = [{"id": f"m{number}", "memory": text} for number, text in enumerate(["Tea.", " tea. ", "Coffee."])]
    path = written(tmp_path / "m.json", items)
    planned = run("mem0", path, "--user", "alice")
    assert (planned["new"], planned["left"]) == (2, {"the text of another memory": 1})
    assert planned["at"] == {"the text of another memory": ["m1"]}
    assert run("mem0", path, "--user", "alice", "--apply")["made"] == 2


@pytest.mark.parametrize("source", ["chatgpt", "claude"])
def test_an_archive_without_conversations_is_refused(alice: Person, tmp_path: Path, source: str) -> None:
    path = zipped(tmp_path / "export.zip", "chat.json", [])
    with pytest.raises(CommandError, match=r"no file conversations\.json"):
        run(source, path, "--user", "alice")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(CommandError):
        run(source, path, "--user", "alice")
