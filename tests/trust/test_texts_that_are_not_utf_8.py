"""A text of SQLite that is not UTF-8 costs itself only: its row is found, listed, exported, deleted and erased."""

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
from operations.doctor import Doctor
from store.models import Memory, Session
from tests.agents.mcp.test_tools import Agent
from tests.agents.rpc import direct
from tests.conftest import Person
from tests.memories.calls import call, id_of, say, upload
from tests.trust.bad_rows import unchecked

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL checks texts"),
]

TEXTS = ["The walrus slept bad.", "The walrus is fine.", "A walrus stays."]
BAD = b"The walrus slept b\xff\xfed."
JSON = {"payload": b'{"filename": "\xff"}', "detail": b'{"name": "\xff"}', "sources": b'["\xff"]'}
COLUMNS = ("text", "original_text", "category", "sender_id", "speaker", "agent_id", "batch_id", "payload", "sources")


def damage(table: str, column: str, where: str, *values: object) -> None:
    with unchecked() as cursor:
        cursor.execute(
            f"UPDATE {table} SET {column} = CAST(%s AS TEXT) WHERE {where}", [JSON.get(column, BAD), *values]
        )
        assert cursor.rowcount == 1


@pytest.fixture(params=COLUMNS)
def column(request: pytest.FixtureRequest, alice: Person, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(readable, "_logged", OrderedDict())
    say(alice, "chat:c1", *TEXTS)
    damage("store_memory", request.param, "memory_id = %s", id_of(TEXTS[0]))
    return str(request.param)


def expected(column: str) -> list[str]:
    """Return the texts as they are readable."""
    return sorted([BAD.decode(errors="replace"), *TEXTS[1:]] if column == "text" else TEXTS)


def test_every_answer_has_the_row_and_the_log_names_it_once(
    column: str, alice: Person, admin_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    for raw in (True, False):
        body = {"query": "walrus", "scope": ["all_user_memory"], "raw": raw, "context": 1}
        assert sorted(hit["text"] for hit in call(alice, "post", "/memories/search", **body)["results"]) == expected(
            column
        )
    listed = call(alice, "get", "/memories")["memories"]
    assert sorted(memory["text"] for memory in listed) == expected(column)
    agent = Agent(alice)
    agent.use("memory_search", query="walrus")
    assert expected(column)[-1] in agent.text
    if column not in {"agent_id", "batch_id"}:  # by which this list looks its rows up
        found = direct.texts(direct.of_user(alice), agentId="(shared)", tab="full")
        assert sorted(found) == (expected(column) if column != "category" else TEXTS[1:][::-1])
    user, row = MemoryUser.objects.get().pk, Memory.objects.earliest("pk").pk
    for path in ("", "list/?tab=all&user=alice", f"m/{row}/", f"users/{user}/", f"users/{user}/?view=sessions"):
        assert admin_client.get(f"/admin/memory/{path}", follow=True).status_code == 200, path
    logged = [one for one in caplog.records if one.name == readable.logger.name and "UTF-8" in one.getMessage()]
    assert len(logged) == 1
    assert column in logged[0].getMessage()


def test_the_row_is_deleted_restored_exported_and_erased(column: str, alice: Person, tmp_path: Path) -> None:
    bad = Memory.objects.earliest("pk").memory_id
    call(alice, "patch", f"/memories/{bad}", override_text="The walrus moved.")
    call(alice, "delete", f"/memories/{bad}")
    assert [item["memory_id"] for item in call(alice, "get", "/memories/trash")["trash"]] == [bad]
    call(alice, "post", f"/memories/{bad}/restore")
    call_command("rebuild", stdout=StringIO())
    export = tmp_path / "all.tar"
    call_command("export_memory", str(export), "--all", stdout=StringIO(), stderr=StringIO())
    call_command("export_memory", str(tmp_path / "md"), "--markdown", "--all", stdout=StringIO(), stderr=StringIO())
    out = StringIO()
    call_command("erase_user", "alice", "--yes", "--json", stdout=out, stderr=StringIO())
    assert json.loads(out.getvalue())["removed"]["memories"] == 3
    assert not Memory.objects.exists()
    call_command("import_memory", str(export), "--even-erased", stdout=StringIO(), stderr=StringIO())
    assert Memory.objects.count() == 3


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("store_session", "engine_session_id"),
        ("resources_resource", "filename"),
        ("resources_resource", "title"),
        ("resources_resource", "description"),
        ("accounts_userkey", "label"),
        ("accounts_auditevent", "subject_id"),
        ("accounts_auditevent", "detail"),
    ],
)
def test_rows_of_other_tables_are_read_too(
    alice: Person, storage: Path, tmp_path: Path, table: str, column: str
) -> None:
    upload(alice, "walrus.txt", "A walrus stays.")
    pk = "resource_id" if table == "resources_resource" else "id"
    damage(table, column, f"{pk} = (SELECT min({pk}) FROM {table})")
    for path in ("/memories", "/resources", "/sessions", "/users/me/keys"):
        assert alice.client.get(path).status_code == 200, path
    assert Doctor().examine()
    call_command("export_memory", str(tmp_path / "all.tar"), "--all", stdout=StringIO(), stderr=StringIO())
    call_command("erase_user", "alice", "--yes", stdout=StringIO(), stderr=StringIO())
    assert not Session.objects.exists()
