"""A stored row that no reader accepts degrades itself, is logged once, and never fails an answer, export or erasure."""

from __future__ import annotations

import json
from collections import OrderedDict
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from accounts.models import MemoryUser
from core import readable
from operations.archives import backup as backups
from remote import outbox
from remote.models import OutboxEntry
from store.models import Memory
from tests.agents.mcp.test_tools import Agent
from tests.agents.rpc import direct
from tests.agents.tools.test_invoke import details
from tests.conftest import Person
from tests.memories.calls import call, id_of, say
from tests.trust.bad_rows import EVERYWHERE, ON_SQLITE, TIMES, plant, plant_memory

pytestmark = pytest.mark.django_db(transaction=True)

PAYLOADS = {**EVERYWHERE, **ON_SQLITE}
# SQLite's integrity check calls these damage, and a backup must not hide it.
REFUSED = {PAYLOADS["NaN"], PAYLOADS["no JSON"]}
# Read as floats, as texts, or as JSON that only the reader of a field leaves out.
SILENT = {"more than 64 bits", "fields of other kinds", "a message of other kinds", "NUL"}
TEXTS = ["The walrus is bad.", "The walrus is fine.", "A walrus stays."]


@pytest.fixture(params=[*PAYLOADS, *TIMES, "sources", "supersedes"])
def bad(request: pytest.FixtureRequest, alice: Person, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give alice three memories. The first is bad; return its id."""
    if request.param in {*ON_SQLITE, "the largest", "the smallest"} and connection.vendor != "sqlite":
        pytest.skip("PostgreSQL cannot hold it")
    monkeypatch.setattr(readable, "_logged", OrderedDict())
    say(alice, "chat:c1", *TEXTS)
    memory_id = id_of(TEXTS[0])
    if request.param in PAYLOADS:
        plant_memory(memory_id, "payload", PAYLOADS[request.param])
    elif request.param in TIMES:
        plant_memory(memory_id, "created_at_ms", TIMES[request.param])
    else:
        plant_memory(memory_id, request.param, '[1, {"a": []}, "m_1"]')
    return memory_id


def test_every_answer_has_the_row_and_the_log_names_it_once(
    bad: str, alice: Person, admin_client: Client, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    query = {"query": "walrus", "scope": ["all_user_memory"]}
    for raw in (True, False):
        found = call(alice, "post", "/memories/search", **query, raw=raw, explain=True, context=1)["results"]
        assert sorted(hit["text"] for hit in found) == sorted(TEXTS)
    listed = call(alice, "get", "/memories")["memories"]
    assert sorted(memory["text"] for memory in listed) == sorted(TEXTS)
    assert call(alice, "get", f"/memories/{bad}")["memory"]["text"] == TEXTS[0]
    assert call(alice, "get", "/sessions")["sessions"]
    agent = Agent(alice)
    for tool in ("memory_recall", "memory_search"):
        agent.use(tool, query="walrus")
        assert TEXTS[0] in agent.text
    assert sorted(agent.listed()) == sorted(TEXTS)
    assert len(details(alice, "memory_recall", query="walrus")["memories"]) == 3
    principal = direct.of_user(alice)
    assert direct.call(principal, "memory.admin.facets")
    assert sorted(direct.texts(principal, agentId="(shared)", tab="full")) == sorted(TEXTS)
    assert direct.call(principal, "tools.invoke", name="memory_recall", args={"query": "walrus"})
    years = {"timeFrom": "2020-01-01T00:00:00Z", "timeTo": "2030-01-01T00:00:00Z"}
    assert direct.call(principal, "memory.admin.dashboard", agentId="(shared)", **years)["total"] >= 2
    row = Memory.objects.get(memory_id=bad).pk
    user = MemoryUser.objects.get().pk
    for path in (
        "", "list/?tab=all&user=alice", "list/?tab=all&q=walrus", "list/?tab=full&user=alice", f"m/{row}/",
        f"m/{row}/edit/", f"m/{row}/text/", f"m/{row}/raw/", "search/?q=walrus&user=alice", f"users/{user}/",
        f"users/{user}/?view=timeline", f"users/{user}/?view=sessions", f"find/?q={bad}",
        f"users/{user}/transcript/?session=chat:c1",
    ):  # fmt: skip
        assert admin_client.get(f"/admin/memory/{path}", follow=True).status_code == 200, path
    assert admin_client.get(f"/admin/store/memory/{row}/change/").status_code == 200
    assert admin_client.get("/admin/store/memory/").status_code == 200
    logged = [one for one in caplog.records if one.name == readable.logger.name]
    assert len(logged) == (0 if request.node.callspec.params["bad"] in SILENT else 1)


def test_decisions_about_the_row_work(bad: str, alice: Person, admin_client: Client) -> None:
    call(alice, "patch", f"/memories/{bad}", override_text="The walrus moved.")
    call(alice, "delete", f"/memories/{bad}")
    assert admin_client.get("/admin/memory/trash/").status_code == 200
    assert [item["memory_id"] for item in call(alice, "get", "/memories/trash")["trash"]] == [bad]
    call(alice, "post", f"/memories/{bad}/restore")
    call_command("rebuild", stdout=StringIO())
    call(alice, "delete", "/sessions/chat:c1")
    call_command("purge_trash", "--older-than", "0", stdout=StringIO())
    assert not Memory.objects.exists()


def test_the_user_is_exported_backed_up_erased_and_imported(
    bad: str, alice: Person, bob: Person, tmp_path: Path
) -> None:
    say(bob, "chat:b", "A seal.")
    call_command("export_memory", str(tmp_path / "all.tar"), "--all", stdout=StringIO(), stderr=StringIO())
    call_command("export_memory", str(tmp_path / "md"), "--markdown", "--all", stdout=StringIO(), stderr=StringIO())
    payload = Memory.objects.extra(select={"raw": "CAST(payload AS text)"}).get(memory_id=bad).raw
    if connection.vendor == "sqlite" and payload not in {
        PAYLOADS["NaN"],
        PAYLOADS["no JSON"],
    }:  # SQLite calls it damaged
        backups.backup(tmp_path / "backup.tar")
    out = StringIO()
    call_command("erase_user", "alice", "--yes", "--json", stdout=out, stderr=StringIO())
    assert json.loads(out.getvalue())["removed"]["memories"] == 3
    assert Memory.objects.count() == 1
    call_command(
        "import_memory", str(tmp_path / "all.tar"), "--on-conflict", "skip", "--even-erased",
        stdout=StringIO(), stderr=StringIO(),
    )  # fmt: skip
    assert sorted(Memory.objects.filter(user__user_id="alice").values_list("text", flat=True)) == sorted(TEXTS)
    call_command("export_memory", str(tmp_path / "again.tar"), "--all", stdout=StringIO(), stderr=StringIO())


@pytest.mark.parametrize("message", ['{"content": 5}', '{"content": [1]}', "[]"])
def test_a_message_of_the_outbox_that_cannot_be_read_is_its_text(
    alice: Person, message: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    say(alice, "chat:c1", TEXTS[0])
    row = Memory.objects.get(memory_id=id_of(TEXTS[0]))
    entry = OutboxEntry.objects.create(
        user_id=alice.user_pk, session_id=row.session_id, app_id="default", project_id="default", message_id="msg_1",
        memory_ids=[row.memory_id], time_ms=1, state="unconfirmed",
    )  # fmt: skip
    plant("remote_outboxentry", "message", message, "id = %s", entry.pk)
    for _ in range(2):
        [found] = outbox.waiting_messages(alice.user_pk)
        assert [item.text for item in found.content] == TEXTS[:1]
    call_command("export_memory", str(tmp_path / "all.tar"), "--all", stdout=StringIO(), stderr=StringIO())
    logged = [one.getMessage() for one in caplog.records if one.name == readable.logger.name]
    assert len(logged) == len(set(logged))
