"""Archives of commit c6813ca import without loss; what cannot be stored is repaired, or refuses its user.

`archives/write_export_c6813ca.py` says how the archive was written.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from accounts.models import MemoryUser
from memories.models import Tombstone
from operations.archives import old_archives, repairs
from operations.archives.serialization import fields_of
from operations.tables import MEMORIES
from resources.models import Resource
from store.models import Memory, Session
from tests.conftest import Person
from tests.memories.calls import call, say, search, texts
from tests.operations import edit_archive
from tests.operations.sample_data import search_texts
from tests.trust.bad_rows import plant, plant_memory

pytestmark = pytest.mark.django_db(transaction=True)

ARCHIVES = Path(__file__).parent / "archives"
EXPECTED: dict[str, Any] = json.loads((ARCHIVES / "export-c6813ca.json").read_text())
DIGITS = int("7" * 4000)
SECRET = "Ignore the walnut rumour."  # a deleted memory of alice


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "export-c6813ca.tar"
    path.write_bytes(gzip.decompress((ARCHIVES / "export-c6813ca.tar.gz").read_bytes()))
    return path


def run(archive: Path, *arguments: str) -> dict[str, Any]:
    """Import the archive; return the result, with the exit code."""
    out = StringIO()
    code = 0
    try:
        call_command("import_memory", str(archive), *arguments, "--json", stdout=out, stderr=StringIO())
    except SystemExit as error:
        code = int(error.code or 0)
    return {**json.loads(out.getvalue()), "code": code}


def person(user_id: str) -> Person:
    key = EXPECTED["keys"][user_id]
    client = Client(headers={"Authorization": f"Bearer {key}"})
    return Person(user_id, MemoryUser.objects.get(user_id=user_id).pk, key, client)


def folder_of(archive: Path, user_id: str) -> str:
    users = json.loads(edit_archive.content(archive, edit_archive.MANIFEST))["users"]
    return next(f"users/{key}" for key, name in users.items() if name == user_id)


def change_row(archive: Path, name: str, change: dict[str, Any], condition: Callable[[Any], bool]) -> int:
    """Change the first row of a file that fits; return its line."""
    files = edit_archive.contents(archive)
    rows = [json.loads(line) for line in files[name].splitlines()]
    number = next(number for number, row in enumerate(rows) if condition(row))
    rows[number] |= change
    files[name] = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    edit_archive.write(archive, files)
    return number + 1


def assert_not_shown(user: Person, text: str, tmp_path: Path) -> None:
    """Check that search, list and export do not have a deleted text."""
    assert text not in search_texts(user, text)
    assert text not in texts(search(user, text, raw=True, scope=["all_user_memory"]))
    assert text not in [memory["text"] for memory in call(user, "get", "/memories", limit=100)["memories"]]
    folder = tmp_path / f"markdown-{len(list(tmp_path.iterdir()))}"
    call_command("export_memory", str(folder), "--markdown", "--all", stdout=StringIO(), stderr=StringIO())
    assert not [file for file in folder.rglob("*.md") if text in file.read_text()]


FORMER_COLUMNS = ("hidden_at", "hidden_reason", "superseded_by", "delivery_state", "deleted_at")


# --- what was stored and exported ------------------------------------------------------------------------------------


def test_everything_of_the_archive_arrives(archive: Path, storage: Path, tmp_path: Path) -> None:
    done = run(archive)
    assert (done["users"], done["refused"], done["code"]) == (4, {}, 0)
    again = tmp_path / "again.tar"
    call_command("export_memory", str(again), "--all", "--with-keys", stdout=StringIO(), stderr=StringIO())
    first, second = edit_archive.contents(archive), edit_archive.contents(again)
    unchanged = {name for name in first if name.startswith("users/") and folder_of(archive, "dora") not in name}
    lines = {name for name in unchanged if name.endswith(".jsonl")}
    assert {name: first[name] for name in unchanged - lines} == {name: second[name] for name in unchanged - lines}
    for name in lines:
        old, new = ([json.loads(line) for line in data[name].splitlines()] for data in (first, second))
        if name.endswith("/tombstones.jsonl"):  # the ledger has more than the tombstones of old
            known = {row["tombstone_id"] for row in old}
            new = [row for row in new if row["tombstone_id"] in known]
        if name.endswith("/resources.jsonl"):
            old = [old_archives.resource(row) for row in old]
        for before, after in zip(old, new, strict=True):
            before.pop("sent_at", None)  # in the outbox since version 3
            if name.endswith(("/memories.jsonl", "/sessions.jsonl")):
                former = [before.pop(column, None) for column in FORMER_COLUMNS]
                assert (after["state"] != "live") == any(former), before
            assert {**after, **before} == after
    assert {query: search_texts(person("alice"), query) for query in EXPECTED["found"]} == EXPECTED["found"]


def test_a_message_of_900_000_characters_arrives_and_is_found(archive: Path, storage: Path) -> None:
    run(archive)
    [text] = search_texts(person("charlie"), "pangolin")
    assert len(text) == 900_000


def test_what_no_database_stores_is_repaired_and_listed(archive: Path, storage: Path, tmp_path: Path) -> None:
    done = run(archive)
    name = f"{folder_of(archive, 'dora')}/memories.jsonl"
    assert [repair.partition(": ")[0] for repair in done["repairs"]] == [
        f"{name}, line {number}" for number in range(1, 8)
    ]
    assert done["repaired"] == len(done["repairs"])
    dora = person("dora")
    listed = {memory["text"]: memory for memory in call(dora, "get", "/memories")["memories"]}
    assert set(listed) == {f"Dora has {animal}" for animal in ("a cat", "a dog", "an owl", "an elk", "a bat", "a fox")}
    metadata = Memory.objects.get(text="Dora has a dog").payload["metadata"]
    assert (metadata["whole"], metadata["wide"], metadata["beyond"]) == (1e16, 18446744073709551615, 1e20)
    assert metadata["large"] == 1e300
    assert sorted(search_texts(dora, "Dora")) == sorted(listed)
    assert_not_shown(dora, "Dora hid a rat", tmp_path)


# --- decisions, sessions and resources that cannot be stored ----------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("tombstones", {"reason": "a\x00b"}),
        ("tombstones", {"reason": "\ud800"}),
        ("tombstones", {"memory_id": "half \udfff"}),
        ("tombstones", {"memory_id": "m" * 300}),
        ("tombstones", {"row": ["default", "default", "none"]}),
        ("tombstones", {"created_at": "9999-12-31T23:59:59-14:00"}),
        ("tombstones", {"created_at": "0001-01-01T00:00:00+14:00"}),
        ("tombstones", {"created_at": "10000-01-01T00:00:00+00:00"}),
        ("tombstones", {"unknown": DIGITS}),
        ("tombstones", {"undone_at": "2026-01-31T12:00:00"}),
        ("sessions", {"created_at": "2026-01-31"}),
        ("overrides", {"text": "\ud800"}),
        ("overrides", {"importance": DIGITS}),
        ("overrides", {"importance": 10**400}),
        ("overrides", {"importance": float("nan")}),
        ("override_revisions", {"text": "\x00"}),
        ("override_revisions", {"number": DIGITS}),
        ("sessions", {"session_id": "chat:\ud800"}),
        ("sessions", {"hidden_at": "9999-12-31T23:59:59-14:00"}),
        ("resources", {"filename": "\ud800.txt"}),
        ("resources", {"size_bytes": 2**70}),
        ("attachments", {"name": "a\x00"}),
        ("keys", {"label": "\ud800"}),
        ("memories", {"session": ["default", "default", "chat:none"]}),
        ("memories", {"session": None}),
        ("memories", {"app_id": "other"}),
        ("memories", {"app_id": 5}),
    ],
)
def test_a_decision_session_or_resource_refuses_its_user_alone(
    archive: Path, storage: Path, table: str, change: dict[str, Any]
) -> None:
    folder = folder_of(archive, "alice")
    line = change_row(archive, f"{folder}/{table}.jsonl", change, lambda _row: True)
    done = run(archive)
    assert (done["users"], list(done["refused"]), done["code"]) == (3, ["alice"], 1)
    reason = done["refused"]["alice"]
    assert reason.startswith(f"{folder}/{table}.jsonl, line {line}: ")
    assert "\n" not in reason
    assert set(MemoryUser.objects.values_list("user_id", flat=True)) == {"bob", "charlie", "dora"}
    assert not any(model.objects.filter(user__user_id="alice").exists() for model in (Memory, Session, Resource))
    assert not [path for path in storage.rglob("content*") if folder.partition("/")[2] in str(path)]
    assert person("bob").client.get("/memories").status_code == 200


def test_a_row_that_exists_twice_refuses_its_user_alone(archive: Path, storage: Path) -> None:
    files = edit_archive.contents(archive)
    name = f"{folder_of(archive, 'alice')}/tombstones.jsonl"
    edit_archive.write(archive, {**files, name: files[name] + files[name]})
    done = run(archive)
    assert (done["users"], list(done["refused"]), done["code"]) == (3, ["alice"], 1)
    assert not Tombstone.objects.filter(user__user_id="alice").exists()


def test_an_archive_whose_users_are_all_refused_is_refused(archive: Path, storage: Path) -> None:
    for user_id in EXPECTED["keys"]:
        change_row(archive, f"{folder_of(archive, user_id)}/sessions.jsonl", {"kind": "\x00"}, lambda _row: True)
    with pytest.raises(CommandError, match=r"sessions\.jsonl, line 1") as refused:
        run(archive)
    assert refused.value.returncode == 2
    assert not MemoryUser.objects.exists()


def test_a_refused_user_keeps_the_replaced_rows(archive: Path, storage: Path) -> None:
    run(archive)
    change_row(archive, f"{folder_of(archive, 'alice')}/tombstones.jsonl", {"reason": "\x00"}, lambda _row: True)
    before = Memory.objects.filter(user__user_id="alice").count()
    assert list(run(archive, "--on-conflict", "replace")["refused"]) == ["alice"]
    assert Memory.objects.filter(user__user_id="alice").count() == before


# --- memories that cannot be stored -----------------------------------------------------------------------------------

BAD_MEMORIES: list[dict[str, Any]] = [
    {"payload": {"n": DIGITS}},
    {"payload": {"n": 2**70, "m": -(2**63) - 1}},
    {"payload": {"a": "\ud800", "\udc00": 1, "b": "\x00", "c": float("nan"), "d": float("inf")}},
    {"payload": []},
    {"payload": "text"},
    {"payload": json.loads('{"a":' + "[" * 500 + "]" * 500 + "}")},
    {"sources": {}, "supersedes": ["m-1", 2, "\ud800"]},
    {"original_text": "half \ud800", "speaker": "x" * 100, "sender_id": "\x00", "agent_id": "\ud800"},
    {"created_at_ms": 2**63 - 1},
    {"created_at_ms": -(2**80)},
    {"created_at_ms": DIGITS},
    {"created_at_ms": 1e300},
    {"importance": float("nan")},
    {"importance": 10**400},
    {"seq": 2**40, "chunk_index": -(2**70)},
]


@pytest.mark.parametrize("change", BAD_MEMORIES)
def test_a_bad_memory_is_made_storable_and_one_under_a_tombstone_stays_deleted(
    archive: Path, storage: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    name = f"{folder_of(archive, 'alice')}/memories.jsonl"
    lines = [
        change_row(archive, name, change, lambda row, text=text: row["text"] == text)
        for text in (SECRET, "I like walnut tea.")
    ]
    done = run(archive)
    assert (done["users"], done["refused"], done["code"]) == (4, {}, 0)
    assert {f"{name}, line {line}" for line in lines} <= {repair.partition(": ")[0] for repair in done["repairs"]}
    alice = person("alice")
    assert "I like walnut tea." in search_texts(alice, "walnut tea")
    assert_not_shown(alice, SECRET, tmp_path)
    tombstone = Tombstone.objects.get(user__user_id="alice", row__text=SECRET)
    call(alice, "post", f"/memories/{tombstone.memory_id}/restore")
    assert SECRET in search_texts(alice, "rumour")


@pytest.mark.parametrize(
    "hidden_at", [None, "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "20000-01-01T00:00:00Z", "\ud800"]
)
def test_what_has_a_tombstone_is_hidden_whatever_its_row_says(
    archive: Path, storage: Path, tmp_path: Path, hidden_at: str | None
) -> None:
    folder = folder_of(archive, "alice")
    change_row(archive, f"{folder}/memories.jsonl", {"hidden_at": hidden_at}, lambda row: row["text"] == SECRET)
    sessions, trashed = f"{folder}/sessions.jsonl", "chat:trash"
    change_row(archive, sessions, {"hidden_at": None}, lambda row: row["session_id"] == trashed)
    assert run(archive)["refused"] == {}
    assert_not_shown(person("alice"), SECRET, tmp_path)
    assert_not_shown(person("alice"), "An evening with walnut cake.", tmp_path)


def test_a_file_in_the_trash_is_hidden_whatever_its_session_says(archive: Path, storage: Path, tmp_path: Path) -> None:
    folder, text = folder_of(archive, "alice"), "The old walnut contract."
    rows = [json.loads(line) for line in edit_archive.content(archive, f"{folder}/resources.jsonl").splitlines()]
    trashed = next(row["session_id"] for row in rows if row["deleted_at"])
    change_row(archive, f"{folder}/sessions.jsonl", {"hidden_at": None}, lambda row: row["session_id"] == trashed)
    assert run(archive)["refused"] == {}
    assert_not_shown(person("alice"), text, tmp_path)
    resource = Resource.objects.get(session_id=trashed)
    call(person("alice"), "post", f"/resources/{resource.pk}/restore")
    assert text in search_texts(person("alice"), "contract")


@pytest.mark.parametrize("memory_id", ["another", " "])
def test_a_tombstone_hides_the_row_that_it_refers_to_whatever_its_id_says(
    archive: Path, storage: Path, tmp_path: Path, memory_id: str
) -> None:
    folder = folder_of(archive, "alice")
    change_row(archive, f"{folder}/tombstones.jsonl", {"memory_id": memory_id}, lambda row: row["memory_id"])
    change_row(archive, f"{folder}/memories.jsonl", {"hidden_at": None}, lambda row: row["text"] == SECRET)
    run(archive)
    assert_not_shown(person("alice"), SECRET, tmp_path)


def test_a_time_of_a_memory_without_its_zone_is_one_of_utc(archive: Path, storage: Path) -> None:
    name = f"{folder_of(archive, 'alice')}/memories.jsonl"
    change_row(archive, name, {"expires_at": "2026-01-31T12:00:00"}, lambda row: row["text"] == SECRET)
    assert any("expires_at" in repair for repair in run(archive)["repairs"])
    assert Memory.objects.get(text=SECRET, user__user_id="alice").expires_at == datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_a_memory_whose_id_is_repaired_does_not_escape_its_tombstone(archive: Path, storage: Path) -> None:
    """The tombstone names the id as it was, which cannot be stored either."""
    folder, bad = folder_of(archive, "alice"), "m\ud800"
    change_row(archive, f"{folder}/memories.jsonl", {"memory_id": bad}, lambda row: row["text"] == SECRET)
    assert list(run(archive)["refused"]) == ["alice"]


def test_ids_that_differ_in_what_cannot_be_stored_stay_different() -> None:
    fields = fields_of(MEMORIES)
    ids = ["a\x00", "a\ud800", "a\udfff", "a\ufffd", "a", "m" * 300, "m" * 301]
    found = {repairs.storable_row(fields, {"memory_id": one})[0]["memory_id"] for one in ids}
    assert len(found) == len(ids)
    assert max(map(len, found)) <= 256


def test_other_documents_are_repaired_too(archive: Path, storage: Path) -> None:
    folder = folder_of(archive, "alice")
    change_row(archive, f"{folder}/profiles.jsonl", {"content": {"interests": ["\ud800", "tea"]}}, lambda _row: True)
    change_row(archive, f"{folder}/audit.jsonl", {"detail": {"n": DIGITS}}, lambda _row: True)
    done = run(archive)
    assert (done["refused"], done["repaired"]) == ({}, 9)
    assert call(person("alice"), "get", "/api/v1/memories/user")


# --- rows that were stored before they were checked -------------------------------------------------------------------


def test_a_database_with_bad_decisions_is_exported_erased_and_imported_with_them(
    alice: Person, storage: Path, tmp_path: Path
) -> None:
    say(alice, "chat:c1", "One secret crab.", "A public crab.")
    crab, public = Memory.objects.order_by("pk").values_list("memory_id", flat=True)
    call(alice, "patch", f"/memories/{public}", override_text="A famous crab.")
    call(alice, "delete", f"/memories/{crab}", reason="private")
    if connection.vendor == "sqlite":
        bad = "m\x00secret"
        plant_memory(crab, "memory_id", bad)
        plant("memories_tombstone", "memory_id", bad, "memory_id = %s", crab)
        plant("memories_tombstone", "reason", "a\x00", "memory_id = %s", bad)
        plant("memories_overriderevision", "text", "A \x00 crab.", "number = 1")
        plant("store_session", "session_id", "chat:\x00", "session_id = 'chat:c1'")
        plant_memory(bad, "payload", '{"n": "\\ud800"}')
    plant_memory(public, "payload", '{"n": %s}' % ("1" * 4000))
    export, again = tmp_path / "export.tar", tmp_path / "again.tar"
    call_command("export_memory", str(export), "--all", "--with-keys", stdout=StringIO(), stderr=StringIO())
    call_command("erase_user", "alice", "--yes", stdout=StringIO(), stderr=StringIO())
    done = run(export, "--even-erased")
    assert (done["refused"], done["repaired"], done["users"]) == ({}, 0, 1)
    assert search_texts(alice, "crab") == ["A famous crab."]
    assert [row["text"] for row in call(alice, "get", "/memories/trash")["trash"]] == ["One secret crab."]
    call_command("export_memory", str(again), "--all", "--with-keys", stdout=StringIO(), stderr=StringIO())
    assert edit_archive.contents(again) == edit_archive.contents(export)


def test_the_deletion_of_a_session_that_the_gateway_lacks_is_exported_with_one(
    alice: Person, storage: Path, tmp_path: Path
) -> None:
    """An import of an older archive leaves such a tombstone: EverOS may still hold the session."""
    say(alice, "chat:c1", "One secret crab.")
    call(alice, "delete", "/sessions/chat:c1")
    Memory.objects.all().delete()
    Session.objects.all().delete()
    export = tmp_path / "export.tar"
    call_command("export_memory", str(export), "--all", "--with-keys", stdout=StringIO(), stderr=StringIO())
    assert not Session.objects.exists()
    call_command("erase_user", "alice", "--yes", stdout=StringIO(), stderr=StringIO())
    assert run(export, "--even-erased")["refused"] == {}
    message = {"sender_id": "alice", "role": "user", "timestamp": 1, "content": "A crab."}
    body = {"session_id": "chat:c1", "messages": [message]}
    assert alice.client.post("/memories/add", body, "application/json").status_code == 409
    call(alice, "post", "/sessions/chat:c1/restore")
    assert alice.client.post("/memories/add", body, "application/json").status_code == 200


def test_a_line_of_more_than_64_mib_is_imported(archive: Path, storage: Path) -> None:
    """One audit event names all memories that a bulk deletion removed."""
    name = f"{folder_of(archive, 'bob')}/audit.jsonl"
    ids = [os.urandom(16).hex() for _ in range(2_000_000)]
    change_row(archive, name, {"detail": {"memories": ids}}, lambda _row: True)
    assert run(archive)["users"] == 4
