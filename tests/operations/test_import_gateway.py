"""`manage.py import_gateway`: users, keys, files and decisions of the original gateway come once, and can be undone."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.audit import Actor
from accounts.models import AuditEvent, MemoryUser, UserKey
from core.persistence.files import root
from memories.models import Tombstone
from memories.services import search as searches
from operations import jobs, tables
from operations.importers import import_gateway
from operations.models import Job
from resources.models import Attachment, Resource
from store.models import IS_LIVE, Memory, Session
from tests import forked
from tests.conftest import Person
from tests.memories.calls import call, id_of, say
from tests.operations.original_gateway import AT, WAS_AT, OriginalGateway
from tests.remote.conftest import make_engine
from tests.server import RunningServer, own_database, server_environment, wait_until
from tests.stub_upstream import StubUpstream

ACTOR = Actor.command("test")
pytestmark = pytest.mark.django_db(transaction=True)
NOTES = b"The walk begins at the old mill."
PICTURE = b"\x89PNG picture"
UPLOADED, EXTERNAL, DELETED = (f"r_{letter * 32}" for letter in "abc")
COUNTS = {"users": 2, "keys": 2, "resources": 3, "attachments": 2, "tombstones": 2, "overrides": 1}


def run(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("import_gateway", *arguments, "--json", stdout=out, stderr=StringIO())
    return dict(json.loads(out.getvalue()))


@pytest.fixture
def original(tmp_path: Path) -> OriginalGateway:
    """Ann with everything, and Ben with a key only."""
    gateway = OriginalGateway(tmp_path / "original")
    gateway.user("ann")
    gateway.user("ben")
    gateway.upload("ann", UPLOADED, NOTES, app_id="walks")
    gateway.resource("ann", EXTERNAL, uri="minio://bucket/chart.png", mime_type="image/png", status="failed")
    gateway.resource("ann", DELETED, uri=f"file://{WAS_AT}/ann/{DELETED}/notes.txt", status="deleted", deleted_at=AT)
    digest = hashlib.sha256(PICTURE).hexdigest()
    picture = gateway.file(f"ann/memory_attachments/{digest}/pic.png", PICTURE)
    scope = ("default", "default")
    gateway.insert(
        "memory_attachments",
        ("a1", "ann", "walks", "default", f"resource:ann:{UPLOADED}", "text", "notes.txt",
         f"file://{WAS_AT}/ann/{UPLOADED}/notes.txt", "upload", AT),
        ("a2", "ann", *scope, "chat:c_1", "image", "pic.png", picture, "memory_add", AT),
        ("a3", "ann", *scope, "chat:c_1", "image", "cat.png", "https://example.org/cat.png", "memory_add", AT),
    )  # fmt: skip
    gateway.insert(
        "memory_tombstones",
        ("t_1", "ann", "mem_1", f"resource:ann:{UPLOADED}", "outdated", AT),
        ("t_2", "ann", None, "chat:old", None, AT),
    )
    gateway.insert(
        "memory_overrides",
        ("o_1", "ann", "mem_2", f"resource:ann:{UPLOADED}", "The walk begins at noon.", "active", AT, AT),
        ("o_2", "ann", "mem_3", "memory_edit:ann", "Gone", "undone", AT, AT),
    )
    return gateway


@pytest.fixture
def everos(settings: Any) -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        yield running


def stored_files() -> list[Path]:
    return [path for path in root().rglob("content*") if path.is_file()]


def dump() -> dict[str, list[str]]:
    """All rows of all users, but for the audit trail and jobs, and the stored files."""
    rows = {table.name: sorted(map(str, table.model._default_manager.values_list())) for table in tables.ALL}
    return {**rows, "audit": [], "files": sorted(map(str, stored_files()))}


def client_of(user_id: str) -> Client:
    return Client(headers={"Authorization": f"Bearer uk_{user_id[0] * 43}"})


def test_a_plan_counts_and_keeps_nothing(original: OriginalGateway) -> None:
    before = dump()
    planned = run(str(original.path))
    assert planned == {
        "new": COUNTS,
        "duplicates": {"memory_attachments": 1},
        "left": {"memory_overrides: not active": 1},
        "at": {"memory_overrides: not active": [2]},
    }
    assert dump() == before
    assert not Job.objects.exists()
    assert not AuditEvent.objects.exists()


def test_everything_arrives_with_its_fields_once(original: OriginalGateway, everos: StubUpstream) -> None:
    done = run(str(original.path), "--apply")
    assert done["new"] == COUNTS
    ann = client_of("ann")
    listed = {one["resource_id"]: one for one in ann.get("/resources?user_id=ann").json()["resources"]}
    assert set(listed) == {UPLOADED, EXTERNAL}
    notes = listed[UPLOADED]
    given = (notes["filename"], notes["title"], notes["description"], notes["status"], notes["session_id"])
    assert given == ("notes.txt", "Notes", "Of a walk", "extracted", f"resource:ann:{UPLOADED}")
    assert (notes["created_at"], notes["updated_at"]) == (AT, "2026-06-10T10:00:05+00:00")
    assert notes["uri"] == f"resource://ann/{UPLOADED}"
    content = ann.get(f"/resources/{UPLOADED}/content")
    assert b"".join(content.streaming_content) == NOTES  # type: ignore[attr-defined]
    assert listed[EXTERNAL]["status"] == "failed"
    assert Resource.objects.get(pk=EXTERNAL).source_uri == "minio://bucket/chart.png"
    assert Resource.objects.get(pk=UPLOADED).app_id == "walks"
    gone = Resource.objects.get(pk=DELETED)
    assert (gone.state, gone.state_since is not None, gone.storage_path) == ("purged", True, "")
    pictures = Attachment.objects.filter(session_id="chat:c_1").order_by("name")
    assert [one.name for one in pictures] == ["cat.png", "pic.png"]
    assert pictures[0].internal_uri == "https://example.org/cat.png"
    assert (root() / pictures[1].internal_uri).read_bytes() == PICTURE
    deleted, whole = Tombstone.objects.order_by("tombstone_id")
    assert (deleted.memory_id, deleted.app_id, deleted.reason) == ("mem_1", "walks", "outdated")
    assert (whole.memory_id, whole.session_id, whole.created_at.isoformat()) == ("", "chat:old", AT)
    again = run(str(original.path), "--apply")
    assert again["new"] == {}
    assert again["duplicates"] == {
        "users": 2, "user_resources": 3, "memory_attachments": 3, "memory_tombstones": 2, "memory_overrides": 1
    }  # fmt: skip
    assert {"original": Resource.objects.count(), "files": len(stored_files())} == {"original": 3, "files": 2}


def test_the_keys_stay_valid_and_are_returned_again(original: OriginalGateway) -> None:
    run(str(original.path), "--apply")
    for user_id in ("ann", "ben"):
        assert client_of(user_id).get("/memories").status_code == 200
        answer = Client().post("/users", {"user_id": user_id}, content_type="application/json")
        assert answer.json()["user_key"] == f"uk_{user_id[0] * 43}"
    assert client_of("carl").get("/memories").status_code == 401


def test_an_export_has_every_field_again(original: OriginalGateway, everos: StubUpstream, tmp_path: Path) -> None:
    run(str(original.path), "--apply")
    call_command("export_memory", str(tmp_path / "out.tar"), "--user", "ann", "--with-keys", stdout=StringIO())
    tables_of: dict[str, list[dict[str, Any]]] = {}
    with tarfile.open(tmp_path / "out.tar") as archive:
        for member in archive:
            if member.name.endswith(".jsonl"):
                lines = archive.extractfile(member).read().splitlines()  # type: ignore[union-attr]
                tables_of[Path(member.name).stem] = [json.loads(line) for line in lines]
    with closing(sqlite3.connect(original.path)) as database:
        database.row_factory = sqlite3.Row
        given = [dict(row) for row in database.execute("SELECT * FROM user_resources ORDER BY resource_id")]
    shared = ("filename", "mime_type", "title", "description", "session_id", "app_id", "project_id", "created_at")
    exported = sorted(tables_of["resources"], key=lambda row: str(row["resource_id"]))
    assert [[row[name] for name in shared] for row in exported] == [[row[name] for name in shared] for row in given]
    assert [row["sha256"] for row in exported] == [row["sha256"] or "" for row in given]
    assert {row["name"] for row in tables_of["attachments"]} == {"notes.txt", "pic.png", "cat.png"}
    decided = [
        (row["memory_id"], row["session_id"], row["reason"], row["created_at"])
        for row in tables_of["tombstones"]
        if not row["resource_id"]
    ]
    assert sorted(decided) == [("", "chat:old", "", AT), ("mem_1", f"resource:ann:{UPLOADED}", "outdated", AT)]
    assert [(row["memory_id"], row["text"], row["created_at"]) for row in tables_of["overrides"]] == [
        ("mem_2", "The walk begins at noon.", AT)
    ]
    assert len(tables_of["keys"]) == 1


def test_decisions_apply_to_what_everos_finds(original: OriginalGateway, everos: StubUpstream) -> None:
    run(str(original.path), "--apply")
    for memory_id, text in (("mem_1", "The walk is short."), ("mem_2", "The walk begins at the mill.")):
        everos.store.episodes.append(
            {
                "id": memory_id, "user_id": "ann", "app_id": "walks", "project_id": "default",
                "session_id": f"resource:ann:{UPLOADED}", "timestamp": AT, "sender_ids": ["ann"],
                "episode": text, "type": "Conversation",
            }
        )  # fmt: skip
    user = MemoryUser.objects.get(user_id="ann")
    owner = Person("ann", user.pk, "", Client()).owner.__class__(user.pk, "ann", "walks", "default")
    command = searches.SearchCommand(query="walk", scopes=frozenset({"resources"}))
    found = searches.search(owner, command, engine=make_engine(everos)).results
    assert [(one.hit.memory_id, one.hit.text) for one in found] == [("mem_2", "The walk begins at noon.")]


def test_the_embedded_engine_ingests_the_files_again(original: OriginalGateway) -> None:
    run(str(original.path), "--apply")
    assert Resource.objects.get(pk=UPLOADED).status == "pending"
    assert not Session.objects.exists()


def test_an_undo_leaves_the_database_as_it_was(alice: Person, original: OriginalGateway, everos: StubUpstream) -> None:
    before = dump()
    job = run(str(original.path), "--apply")["job"]
    assert dump() != before
    undone = run("--undo", job)
    assert undone["left"] == 0
    assert undone["undone"] >= sum(COUNTS.values())
    assert dump() == before
    with pytest.raises(CommandError, match="already undone"):
        run("--undo", job)
    assert run(str(original.path), "--apply")["new"] == COUNTS


def test_decisions_of_a_user_who_is_here_are_undone_too(alice: Person, tmp_path: Path) -> None:
    say(alice, "chat:c_1", "I have a cat.", "I have a dog.")
    say(alice, "chat:c_2", "I have a bird.")
    cat, dog = id_of("I have a cat."), id_of("I have a dog.")
    gateway = OriginalGateway(tmp_path / "original")
    gateway.user("alice")
    gateway.insert(
        "memory_tombstones", ("t_1", "alice", cat, "chat:c_1", "", AT), ("t_2", "alice", "", "chat:c_2", "", AT)
    )
    gateway.insert("memory_overrides", ("o_1", "alice", dog, "chat:c_1", "I have two dogs.", "active", AT, AT))
    before = dump()
    done = run(str(gateway.path), "--apply")
    assert done["new"] == {"keys": 1, "tombstones": 2, "overrides": 1}
    shown = Memory.objects.filter(IS_LIVE)
    assert [memory.text for memory in shown] == ["I have two dogs."]
    assert run("--undo", done["job"])["left"] == 0
    after = dump()
    assert {**after, "index_pages": []} == {**before, "index_pages": []}  # a page keeps the places of old entries


def test_an_undo_keeps_what_is_in_use(original: OriginalGateway) -> None:
    job = run(str(original.path), "--apply")["job"]
    ben = MemoryUser.objects.get(user_id="ben")
    person = Person("ben", ben.pk, "", client_of("ben"))
    say(person, "chat:c_1", "I like maps.")
    assert run("--undo", job)["left"] == 2
    assert [user.user_id for user in MemoryUser.objects.all()] == ["ben"]
    assert call(person, "get", "/memories")["memories"][0]["text"] == "I like maps."


def test_what_cannot_come_is_named(alice: Person, tmp_path: Path) -> None:
    gateway = OriginalGateway(tmp_path / "original")
    gateway.insert("users", ("a\u200buser", "uk_" + "x" * 43, AT), ("short", "uk_1", AT), ("n\x00l", "uk_2", AT))
    gateway.insert("users", ("thief", alice.user_key, AT))
    gateway.user("ann")
    gateway.upload("ann", "r_short", NOTES, session_id="resource:ann:r_short")
    gateway.upload("ann", UPLOADED, b"Changed", sha256="0" * 64)
    gateway.resource("ann", EXTERNAL, uri=f"file://{WAS_AT}/ann/{EXTERNAL}/notes.txt")
    gateway.upload("nobody", DELETED, b"Unowned")
    gateway.upload("ann", f"r_{'d' * 32}", b"Of another", session_id="resource:alice:r_1")
    gateway.insert("memory_tombstones", ("t_1", "ann", None, None, None, AT))
    gateway.user("eve")
    gateway.upload("eve", f"r_{'e' * 32}", b"Of a refused user")
    gateway.insert("memory_overrides", ("o_1", "eve", "m" * 300, "chat:c", "Text", "active", AT, AT))
    planned = run(str(gateway.path))
    assert planned["left"] == {
        "users: a user ID that is too long or has invisible characters": 1,
        "users: an API key of another user": 1,
        "users: an invalid user_id": 1,
        "users: refused, because deleted text would come back: memory_overrides, row 1: an invalid memory_id": 1,
        "user_resources: its file differs from its SHA-256 digest": 1,
        "user_resources: its file is missing from the storage folder": 1,
        "user_resources: of a user that is not imported": 2,
        "user_resources: an invalid session_id": 1,
        "memory_tombstones: without a memory or session": 1,
        "memory_overrides: of a user that is not imported": 1,
    }
    assert planned["new"] == {"users": 2, "keys": 1, "resources": 1}
    done = run(str(gateway.path), "--apply")
    assert (done["new"], done["left"]) == (planned["new"], planned["left"])
    # Without a key that works here, `POST /users` gives the user a new one.
    answer = Client().post("/users", {"user_id": "short"}, content_type="application/json")
    assert len(answer.json()["user_key"]) == 46
    [renamed] = Resource.objects.all()
    assert (renamed.pk != "r_short", renamed.session_id) == (True, "resource:ann:r_short")


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("memory_tombstones", ("t_1", "ann", "m" * 300, None, None, AT)),
        ("memory_tombstones", ("t_1", "ann", "m\x00", None, None, AT)),
        ("memory_tombstones", ("t_1", "ann", "m_1", None, "a\x00", AT)),
        ("memory_tombstones", ("t_1", "ann", None, "chat:\n", None, AT)),
        ("memory_overrides", ("o_1", "ann", "m_1", "chat:c", "A \x00", "active", AT, AT)),
    ],
)
def test_a_decision_that_cannot_be_stored_refuses_its_user_alone(
    tmp_path: Path, table: str, values: tuple[object, ...]
) -> None:
    gateway = OriginalGateway(tmp_path / "original")
    for user_id in ("ann", "ben"):
        gateway.user(user_id)
    gateway.insert(table, values)
    gateway.insert("memory_tombstones", ("t_2", "ann", "m_2", None, None, AT), ("t_3", "ben", "m_3", None, None, AT))
    done = run(str(gateway.path), "--apply")
    [reason] = [reason for reason in done["left"] if reason.startswith("users: refused")]
    assert f"{table}, row 1: " in reason
    assert list(MemoryUser.objects.values_list("user_id", flat=True)) == ["ben"]
    assert list(Tombstone.objects.values_list("memory_id", flat=True)) == ["m_3"]


def test_files_outside_the_storage_folder_stay_there(original: OriginalGateway, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (original.storage / "ann" / "linked").symlink_to(tmp_path)
    (original.storage / "ann" / "link.txt").symlink_to(secret)
    for number, uri in enumerate(
        (
            f"file://{secret}",
            "file:///ann/linked/secret.txt",
            "file:///ann/link.txt",
            "file:///ann/../../secret.txt",
            "file:///ann/%2e%2e/%2e%2e/secret.txt",
        )
    ):
        original.insert(
            "memory_attachments",
            (f"b{number}", "ben", "default", "default", "chat:c", "text", f"{number}.txt", uri, "memory_add", AT),
        )
    run(str(original.path), "--apply")
    mine = Attachment.objects.filter(user__user_id="ben")
    assert mine.count() == 5
    assert set(mine.values_list("sha256", flat=True)) == {""}
    assert not any("secret" in path.read_text(errors="replace") for path in stored_files())


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"x" * 200])
def test_a_hostile_file_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "original.sqlite3"
    file.write_bytes(content)
    with pytest.raises(CommandError) as refused:
        run(str(file))
    assert refused.value.returncode == 2


def test_a_hostile_database_is_refused(original: OriginalGateway, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite3"
    link.symlink_to(original.path)
    with pytest.raises(CommandError, match="not a regular file"):
        run(str(link))
    with closing(sqlite3.connect(original.path)) as database, database:
        database.execute("INSERT INTO users VALUES (?, zeroblob(20000000), ?)", ("carl", AT))
    with pytest.raises(CommandError, match="cannot be read"):
        run(str(original.path))
    view = tmp_path / "view.sqlite3"
    with closing(sqlite3.connect(view)) as database, database:
        database.execute("CREATE VIEW users AS SELECT 1 AS user_id")
    with pytest.raises(CommandError, match="no table users"):
        run(str(view))


@pytest.mark.slow
def test_an_interrupted_import_continues(tmp_path: Path) -> None:
    gateway = OriginalGateway(tmp_path / "original")
    gateway.insert("users", *((f"u{number}", f"uk_{number:043d}", AT) for number in range(120)))
    job = import_gateway.start(gateway.path, gateway.storage, total=120, actor=ACTOR)
    ends = iter([False, True])
    assert not jobs.run_now(job, should_end=lambda: next(ends)).is_over
    assert MemoryUser.objects.count() == 50
    Job.objects.update(leased_until=None, lease_holder="", status=Job.Status.QUEUED)
    done = run(str(gateway.path), "--apply")
    assert (done["job"], done["new"]) == (str(job.pk), {"users": 120, "keys": 120})
    assert (MemoryUser.objects.count(), UserKey.objects.count()) == (120, 120)
    assert run("--undo", done["job"]) == {"undone": 240, "left": 0}
    assert not MemoryUser.objects.exists()


@pytest.mark.slow
def test_a_killed_import_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    data = tmp_path / "gateway"
    data.mkdir()
    server = RunningServer(data, server_environment(data, own_database(data)))
    assert server.manage("create_user", "alice").returncode == 0
    original = OriginalGateway(tmp_path / "original")
    original.user("ann")
    for number in range(160):
        original.upload("ann", f"r_{number:032x}", f"Note {number}".encode())
    rows = {
        "memory_tombstones": [(f"t_{number}", "ann", f"m{number}", "chat:c", "", AT) for number in range(160)],
        "memory_overrides": [
            (f"o_{number}", "ann", f"n{number}", "chat:c", f"Text {number}", "active", AT, AT) for number in range(160)
        ],
    }
    for table, values in rows.items():
        original.insert(table, *values)
    every = [
        "accounts_memoryuser", "accounts_userkey", "resources_resource", "resources_attachment", "memories_tombstone",
        "memories_override", "memories_overriderevision",
    ]  # fmt: skip

    def counts() -> list[int]:
        return [server.rows(f"SELECT COUNT(*) FROM {name}")[0][0] for name in every]

    before, out = counts(), tmp_path / "out"
    arguments = ["import_gateway", str(original.path), "--apply", "--json"]
    for least in (20, 90, 200):
        process = forked.start(["manage.py", *arguments], server.env, out, out)
        wait_until(lambda least=least: counts()[2] + counts()[4] >= least, seconds=180)  # type: ignore[misc]
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        server.write("UPDATE operations_job SET leased_until = NULL")  # instead of waiting until the lease expires
    done = server.manage(*arguments)
    assert done.returncode == 0, done.stderr
    new = {"users": 1, "keys": 1, "resources": 160, "tombstones": 160, "overrides": 160}
    assert json.loads(done.stdout)["new"] == new
    assert counts() == [2, 2, 160, 160, 160, 160, 320]
    stored = [path for path in (data / "storage").rglob("content*") if path.is_file()]
    assert sorted(path.read_text() for path in stored) == sorted(f"Note {number}" for number in range(160))
    undone = server.manage("import_gateway", "--undo", json.loads(done.stdout)["job"], "--json")
    assert json.loads(undone.stdout)["left"] == 0
    assert counts() == before
    assert not [path for path in (data / "storage").rglob("content*") if path.is_file()]


BAD = {
    "a name that is not UTF-8": {"users": ("\udcff", "uk_" + "x" * 43, AT)},
    "a name with NUL": {"users": ("a\0b", "uk_" + "x" * 43, AT)},
    "a tombstone of a memory that is not UTF-8": {"memory_tombstones": ("t_x", "ann", "\udcff", "chat:1", "", AT)},
    "a reason with NUL": {"memory_tombstones": ("t_x", "ann", "m", "chat:1", "a\0b", AT)},
    "a session that is not UTF-8": {"memory_tombstones": ("t_x", "ann", "m", "\udcff", "", AT)},
    "a text that is not UTF-8": {"memory_overrides": ("o_x", "ann", "m", "chat:1", "\udcff", "active", AT, AT)},
    "an id of 100,000 characters": {"memory_overrides": ("o_x", "ann", "m" * 100_000, "chat:1", "x", "active", AT, AT)},
    "an attachment that is not UTF-8": {
        "memory_attachments": ("a_x", "ann", "default", "default", "chat:1", "doc", "\udcff", "http://a/b", "x", AT)
    },
    "an attachment of a session that is not UTF-8": {
        "memory_attachments": ("a_x", "ann", "default", "default", "\udcff", "doc", "n", "http://a/b", "x", AT)
    },
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_skipped_and_listed(name: str, tmp_path: Path) -> None:
    gateway = OriginalGateway(tmp_path / "original")
    gateway.user("ann")
    [(table, row)] = BAD[name].items()
    with closing(sqlite3.connect(gateway.path)) as database, database:
        values = [
            value.encode(errors="surrogateescape") if isinstance(value, str) and not value.isascii() else value
            for value in row
        ]
        slots = ", ".join("CAST(? AS TEXT)" for _ in values)
        database.execute(f"INSERT INTO {table} VALUES ({slots})", values)
    gateway.user("ben")
    done = run(str(gateway.path), "--apply")
    is_decision = table in {"memory_tombstones", "memory_overrides"}  # which refuses its user
    assert sum(done["left"].values()) == 1 + is_decision
    assert [places for at, places in done["at"].items() if at.startswith(table)] == [[2 if table == "users" else 1]]
    assert MemoryUser.objects.filter(user_id__in=["ann", "ben"]).count() == 2 - is_decision


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "-1", "1e300"])
def test_a_time_outside_the_calendar_is_that_of_the_import(at: str, tmp_path: Path) -> None:
    gateway = OriginalGateway(tmp_path / "original")
    gateway.insert("users", ("ann", "uk_" + "a" * 43, at))
    assert run(str(gateway.path), "--apply")["new"]["users"] == 1
    assert 2026 <= MemoryUser.objects.get(user_id="ann").created_at.year < 9999
