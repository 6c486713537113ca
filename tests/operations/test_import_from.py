"""`manage.py import_from` and `export_memory --markdown`: memories of other stores come in, once, and can be undone."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.audit import Actor
from accounts.models import MemoryUser
from operations import jobs, tables
from operations.cleanup.purge import purge_trash
from operations.importers import import_from
from operations.importers.import_from import Request
from operations.importers.sources import Found, Left, read
from operations.models import Job
from store.models import DayCount, IndexStatistics, Memory, Session, SessionCount
from store.rollups import settle
from tests import forked
from tests.conftest import Person
from tests.memories.calls import call, id_of, say
from tests.operations import hostile
from tests.operations.sample_data import search_texts
from tests.server import RunningServer, own_database, server_environment, wait_until

ACTOR = Actor.command("test")
pytestmark = pytest.mark.django_db(transaction=True)

MEM0 = {
    "count": 3,
    "results": [
        {"id": "m1", "memory": "Prefers tea.", "user_id": "ann", "created_at": "2025-03-01T10:00:00-08:00",
         "metadata": {"type": "drink"}, "categories": ["food"], "updated_at": "2025-03-02T10:00:00-08:00"},
        {"id": "m2", "memory": "Lives in Oslo.", "user_id": "ann", "agent_id": "coder", "created_at": "2025-03-03"},
        {"id": "m2", "memory": "Lives in Oslo.", "user_id": "ann", "created_at": "2025-03-03"},
        {"id": "m3", "memory": "  ", "user_id": "ann"},
        {"id": "m4", "memory": "x" * 8001, "user_id": "ann"},
        {"id": "m5", "user_id": "ann"},
        "no memory",
    ],
}  # fmt: skip
EPISODES = """---
id: episode_log_ann_2026-05-28
---
<!-- entry:ep_20260528_00000001 -->
## ep_20260528_00000001

**owner_id**: ann
**session_id**: demo-001
**timestamp**: 2026-05-28T08:32:13+00:00

### Subject
Ann's day

### Content
Ann loves climbing.

She bikes to work.
<!-- /entry:ep_20260528_00000001 -->
<!-- entry:ep_20260528_00000002 -->
**deprecated_by**: ep_20260528_00000003

### Content
Ann loves running.
<!-- /entry:ep_20260528_00000002 -->
<!-- entry:ep_20260528_00000003 -->
## ep_20260528_00000003
Ann plays the piano.
<!-- /entry:ep_20260528_00000003 -->
"""
NOTES = """---
date: 2025-01-02
---
# Tea

## Green

Brew at 80 °C.

```sh
# no heading
```
## Black
Boil.
"""


def run(command: str, *arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command(command, *arguments, "--json", stdout=out, stderr=StringIO())
    return dict(json.loads(out.getvalue()))


@pytest.fixture
def mem0(tmp_path: Path) -> str:
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps(MEM0), encoding="utf-8")
    return str(file)


def write(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return str(folder)


def state(person: Person) -> dict[str, Any]:
    """All rows of a user, but for the audit trail."""
    user = MemoryUser.objects.get(pk=person.user_pk)
    return {
        name: sorted(map(str, table.rows(user).values_list()))
        for table in tables.ALL
        for name in [table.name]
        if table is not tables.AUDIT
    }


def counts() -> list[Any]:
    """The rows that hold counts of memories."""
    settle()
    return [[*model.objects.order_by("pk").values_list()] for model in (DayCount, SessionCount)]


def test_a_plan_counts_and_writes_nothing(alice: Person, mem0: str) -> None:
    before = state(alice)
    planned = run("import_from", "mem0", mem0, "--user", "alice")
    assert planned == {
        "new": 2,
        "duplicates": 1,
        "left": {"without text": 2, "too long": 1, "not a memory": 1},
        "at": {"without text": ["item 4", "item 6"], "too long": ["item 5"], "not a memory": ["item 7"]},
    }
    assert state(alice) == before
    assert not Job.objects.exists()


def test_memories_arrive_with_their_fields_once(alice: Person, mem0: str) -> None:
    done = run("import_from", "mem0", mem0, "--user", "alice", "--apply")
    assert done["made"] == 2
    tea, oslo = Memory.objects.order_by("created_at_ms")
    assert (tea.text, tea.category, tea.origin, tea.sender_id) == ("Prefers tea.", "user_memory_fact", "panel", "alice")
    assert tea.created_at_ms == 1740852000000
    assert tea.payload == {
        "imported_from": "mem0",
        "source_id": "m1",
        "metadata": {"type": "drink"},
        "categories": ["food"],
        "updated_at": "2025-03-02T10:00:00-08:00",
    }
    assert (oslo.agent_id, oslo.created_at_ms) == ("coder", 1740960000000)
    assert search_texts(alice, "tea") == ["Prefers tea."]
    again = run("import_from", "mem0", mem0, "--user", "alice", "--apply")
    assert (again["new"], again["duplicates"], again["made"]) == (0, 3, 0)
    assert Memory.objects.count() == 2


@pytest.mark.parametrize("said", [[], ["I have a cat."]])
def test_an_undo_leaves_the_database_as_it_was(alice: Person, mem0: str, said: list[str]) -> None:
    if said:
        say(alice, "chat:c_1", *said)
    before = state(alice), counts()
    job = run("import_from", "mem0", mem0, "--user", "alice", "--apply")["job"]
    assert (state(alice), counts()) != before
    assert run("import_from", "--undo", job) == {"undone": 2, "left": 0}
    assert (state(alice), counts()) == before
    assert search_texts(alice, "tea") == []
    with pytest.raises(CommandError, match="already undone"):
        run("import_from", "--undo", job)
    assert run("import_from", "mem0", mem0, "--user", "alice", "--apply")["made"] == 2


def test_an_undo_for_a_user_without_memories_leaves_no_statistics(alice: Person, mem0: str) -> None:
    job = run("import_from", "mem0", mem0, "--user", "alice", "--apply")["job"]
    assert IndexStatistics.objects.filter(user=alice.user_pk).exists()
    run("import_from", "--undo", job)
    assert not IndexStatistics.objects.filter(user=alice.user_pk).exists()


def test_an_undo_keeps_what_the_user_edited(alice: Person, mem0: str) -> None:
    job = run("import_from", "mem0", mem0, "--user", "alice", "--apply")["job"]
    tea = Memory.objects.get(text="Prefers tea.")
    call(alice, "PATCH", f"/memories/{tea.memory_id}", override_text="Prefers green tea.")
    assert run("import_from", "--undo", job) == {"undone": 1, "left": 1}
    assert [memory.text for memory in Memory.objects.all()] == ["Prefers green tea."]


def test_what_was_deleted_or_purged_does_not_return(alice: Person, mem0: str) -> None:
    run("import_from", "mem0", mem0, "--user", "alice", "--apply")
    for memory in Memory.objects.all():
        call(alice, "DELETE", f"/memories/{memory.memory_id}")
    assert run("import_from", "mem0", mem0, "--user", "alice", "--apply")["made"] == 0
    out = StringIO()
    call_command("import_from", "mem0", mem0, "--user", "alice", "--apply", stdout=out, stderr=StringIO())
    assert "Imported 0 memories, skipped 3 that exist already or were deleted. 4 of 7 skipped: " in out.getvalue()
    purge_trash(older_than=timedelta(0), actor=ACTOR)
    assert not Memory.objects.exclude(text="").exists()
    assert run("import_from", "mem0", mem0, "--user", "alice", "--apply")["made"] == 0
    assert search_texts(alice, "tea") == []


def test_an_interrupted_import_continues(alice: Person, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps([{"id": str(number), "memory": f"Note {number}."} for number in range(1201)]))
    request = Request(source="mem0", path=file, owner=alice.owner)
    job = jobs.interrupted_or_new(import_from.KIND, request.as_json(), total=1201, actor=ACTOR)
    ends = iter([False, True])
    assert not jobs.run_now(job, should_end=lambda: next(ends)).is_over
    assert Memory.objects.count() == 500
    Job.objects.update(leased_until=None, lease_holder="", status=Job.Status.QUEUED)
    done = run("import_from", "mem0", str(file), "--user", "alice", "--apply")
    assert (done["job"], done["made"]) == (str(job.pk), 1201)
    assert Memory.objects.count() == len(set(Memory.objects.values_list("text", flat=True))) == 1201
    assert run("import_from", "--undo", done["job"])["undone"] == 1201
    assert not Session.objects.filter(session_id="import_mem0").exists()


def test_markdown_becomes_sections(alice: Person, tmp_path: Path) -> None:
    long = "\n\n".join(f"{number} word " * 300 for number in range(6))
    folder = write(
        tmp_path / "notes",
        {
            "a.md": NOTES,
            "sub/b.md": long,
            "c.txt": "not Markdown",
            ".hidden/d.md": "Hidden.",
        },
    )
    (tmp_path / "notes" / "link.md").symlink_to("/etc/passwd")
    (tmp_path / "notes" / "up").symlink_to("/etc", target_is_directory=True)
    os.mkfifo(tmp_path / "notes" / "pipe.md")
    (tmp_path / "notes" / "latin.md").write_bytes(b"caf\xe9")
    done = run("import_from", "markdown", folder, "--user", "alice", "--apply", "--category", "user_memory_preference")
    assert done["left"] == {"not a Markdown file of at most 16 MiB": 5}
    texts = list(Memory.objects.order_by("pk").values_list("text", flat=True))
    assert texts[:2] == ["# Tea\n\n## Green\n\nBrew at 80 °C.\n\n```sh\n# no heading\n```", "## Black\nBoil."]
    assert " ".join(" ".join(texts[2:]).split()) == " ".join(long.split())
    assert max(map(len, texts)) <= 8000
    first = Memory.objects.order_by("pk")[0]
    assert (first.created_at_ms, first.category) == (1735776000000, "user_memory_preference")
    assert first.payload["file"] == "a.md"


def test_episodes_of_everos(alice: Person, tmp_path: Path) -> None:
    folder = write(
        tmp_path / "everos",
        {
            "default_app/default_project/users/ann/episodes/episode-2026-05-28.md": EPISODES,
            "default_app/default_project/users/ann/user.md": "Likes climbing.",
            "default_app/default_project/users/ann/.atomic_facts/atomic_fact-2026-05-28.md": "Climbs.",
            ".index/sqlite/system.db": "",
        },
    )
    done = run("import_from", "everos-markdown", folder, "--user", "alice", "--apply")
    assert done["left"] == {"not an episode": 1, "a profile": 1, "derived from episodes": 1, "superseded": 1}
    climbing, piano = Memory.objects.order_by("-created_at_ms")
    assert climbing.text == "Ann loves climbing.\n\nShe bikes to work."
    assert climbing.created_at_ms == 1779957133000
    assert climbing.payload["session_id"] == "demo-001"
    assert climbing.payload["subject"] == "Ann's day"
    assert climbing.payload["source_id"] == "default_app/default_project/ann/ep_20260528_00000001"
    assert (piano.text, piano.created_at_ms) == ("Ann plays the piano.", 1779926400000)


def test_one_user_of_several_is_chosen(alice: Person, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps([{"memory": "A", "user_id": "ann"}, {"memory": "B", "user_id": "ben"}]))
    with pytest.raises(CommandError, match="ann and ben"):
        run("import_from", "mem0", str(file), "--user", "alice", "--apply")
    assert not Memory.objects.exists()
    done = run("import_from", "mem0", str(file), "--user", "alice", "--source-user", "ben", "--apply")
    assert (done["made"], done["left"]) == (1, {"of another user": 1})
    assert Memory.objects.get().text == "B"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[", b"{}", b'{"results": {}}', b'[{"memory": "a"} {"memory": "b"}]', b"PK\x03\x04", b"\xff\xfe[", b'"x"',
        b"[" * 200_000, b'[{"memory": "' + b"a" * 6_000_000, b'{"results": ' + b'{"a":' * 100_000,
    ],
    ids=lambda content: repr(content[:12]),
)  # fmt: skip
def test_a_hostile_file_is_refused(content: bytes, alice: Person, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    file.write_bytes(content)
    with pytest.raises(CommandError) as refused:
        run("import_from", "mem0", str(file), "--user", "alice", "--apply")
    assert refused.value.returncode == 2
    assert not Memory.objects.exists()
    assert not Job.objects.exists()


def test_a_path_that_is_none_is_refused(alice: Person, tmp_path: Path, mem0: str) -> None:
    (tmp_path / "link.json").symlink_to(mem0)
    (tmp_path / "linked").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(tmp_path / "pipe")
    for source, name in (
        ("mem0", "link.json"), ("mem0", "pipe"), ("mem0", "absent"), ("mem0", "."),
        ("markdown", "linked"), ("markdown", "mem0.json"),
    ):  # fmt: skip
        with pytest.raises(CommandError) as refused:
            run("import_from", source, str(tmp_path / name), "--user", "alice", "--apply")
        assert refused.value.returncode == 2


def test_a_markdown_export_leaves_out_what_is_in_the_trash(alice: Person, tmp_path: Path) -> None:
    for session, texts in {"chat:c1": ("kept", "deleted alone"), "chat:c2": ("deleted with its session",)}.items():
        say(alice, session, *texts)
    for path in (f"/memories/{id_of('deleted alone')}", "/sessions/chat:c2"):
        assert alice.client.delete(path).status_code == 200
    run("export_memory", str(tmp_path / "out"), "--user", "alice", "--markdown")
    written = "".join(file.read_text() for file in (tmp_path / "out").rglob("*.md"))
    assert "kept" in written
    assert "deleted" not in written


def test_a_markdown_export_comes_back_with_every_field(alice: Person, bob: Person, mem0: str, tmp_path: Path) -> None:
    run("import_from", "mem0", mem0, "--user", "alice", "--apply")
    Memory.objects.filter(agent_id="coder").update(text="Lives\n<!-- /memory -->\n# in Oslo.", importance=0.9)
    say(alice, "chat:c_1", "I have a cat.")
    exported = tmp_path / "exported"
    assert run("export_memory", str(exported), "--user", "alice", "--markdown")["memories"] == 3
    with pytest.raises(CommandError, match="already exists"):
        run("export_memory", str(exported), "--user", "alice", "--markdown")
    items = [item for item in read("markdown", exported, None) if not isinstance(item, Left)]
    assert len(items) == 3
    done = run("import_from", "markdown", str(exported), "--user", "bob", "--apply")
    assert (done["made"], done["left"]) == (3, {})
    names = ("memory_id", "text", "created_at_ms", "agent_id", "category", "importance")
    fields = [
        list(Memory.objects.filter(user_id=one.user_pk).order_by("pk").values_list(*names)) for one in (alice, bob)
    ]
    assert sorted(fields[0]) == sorted(fields[1])
    cat = Memory.objects.get(user_id=bob.user_pk, text="I have a cat.")
    assert cat.payload["session_id"] == "chat:c_1"
    again = run("import_from", "markdown", str(exported), "--user", "alice", "--apply")
    assert (again["made"], again["duplicates"]) == (0, 3)
    second = tmp_path / "second"
    run("export_memory", str(second), "--user", "bob", "--markdown")
    days = sorted(file.name for file in (exported / "alice").iterdir())
    assert sorted(file.name for file in (second / "bob").iterdir()) == days


@pytest.mark.parametrize(
    ("importance", "stored"), [("NaN", 0.0), ("7", 1.0), ("null", None), ("1" + "0" * 400, ""), ('"high"', "")]
)
def test_an_importance_out_of_range_is_fitted_or_left(importance: str, stored: object, tmp_path: Path) -> None:
    head = f'{{"id": "m", "created_at": "2026-01-02", "category": "user_memory_fact", "importance": {importance}}}'
    folder = write(tmp_path / "notes", {"a.md": f"<!-- memory {head} -->\nTea.\n<!-- /memory -->\n"})
    [item] = read("markdown", Path(folder), None)
    if stored == "":
        assert item == Left("a damaged marker", "a.md")
    else:
        assert isinstance(item, Found)
        assert item.importance == stored


def large_export(path: Path, count: int, text_chars: int) -> None:
    text = "word " * (text_chars // 5)
    with path.open("w", encoding="utf-8") as file:
        file.write('{"results": [')
        for number in range(count):
            item = {"id": str(number), "memory": f"{number} {text[:500]}", "user_id": "ann", "metadata": {"text": text}}
            file.write(("," if number else "") + json.dumps(item))
        file.write("]}")


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningServer]:
    """A gateway that does not run, with the user alice."""
    data = tmp_path / "gateway"
    data.mkdir()
    server = RunningServer(data, server_environment(data, own_database(data)))
    assert server.manage("create_user", "alice").returncode == 0
    return server


@pytest.mark.slow
def test_a_killed_import_loses_nothing(gateway: RunningServer, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    large_export(file, 6000, 500)
    arguments = ["import_from", "mem0", str(file), "--user", "alice", "--apply", "--json"]
    out = tmp_path / "out"
    process = forked.start(["manage.py", *arguments], gateway.env, out, out)

    def count() -> int:
        return int(gateway.rows("SELECT COUNT(*) FROM store_memory")[0][0])

    wait_until(lambda: count() > 0)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert 0 < count() < 6000
    done = gateway.manage(*arguments)
    assert done.returncode == 0, done.stderr
    assert count() == 6000
    assert len(gateway.rows("SELECT DISTINCT memory_id FROM store_memory")) == 6000
    undone = gateway.manage("import_from", "--undo", json.loads(done.stdout)["job"], "--json")
    assert json.loads(undone.stdout) == {"undone": 6000, "left": 0}
    assert count() == 0


@pytest.mark.torture
def test_a_source_of_a_gigabyte_needs_little_memory(gateway: RunningServer, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    large_export(file, 200_000, 4800)
    assert file.stat().st_size > 10**9
    out = tmp_path / "out"
    arguments = ["manage.py", "import_from", "mem0", str(file), "--user", "alice", "--apply", "--json"]
    process = forked.start(arguments, gateway.env, out, out)
    peak = 0
    while process.is_alive():
        status = Path(f"/proc/{process.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        # Without mapped pages of the SQLite file, which the system takes back when it needs memory.
        peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))])
        time.sleep(0.1)
    assert process.exitcode == 0, out.read_text()
    assert gateway.rows("SELECT COUNT(*) FROM store_memory") == [(200_000,)]
    assert 0 < peak * 1024 < 512 * 2**20


def test_items_are_read_across_pieces(tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    large_export(file, 3000, 3000)
    items = list(read("mem0", file, None))
    assert [item.source_id for item in items if isinstance(item, Found)] == [str(number) for number in range(3000)]


def lance_row(number: int, **values: object) -> dict[str, Any]:
    """A row as the original OpenClaw plugin stores it."""
    return {
        "id": f"861dcc43-66be-4a55-8157-{number:012d}", "agentId": "main", "userId": "", "sessionId": "session:s1",
        "text": f"Fact {number}", "vector": [0.0] * 4, "importance": 0.7, "category": "user_memory_fact",
        "createdAt": 1774378304727.0 + number, "isDeleted": 0.0, "batchId": "", "seqInBatch": 0.0,
        "contentHash": "", "chunkIndex": 0.0, **values,
    }  # fmt: skip


def lance_folder(path: Path, *rows: dict[str, Any], table: str = "openclaw_memories_alibaba_local") -> str:
    import lancedb  # noqa: PLC0415  it takes a second

    lancedb.connect(path).create_table(table, list(rows))
    return str(path)


def test_the_lancedb_of_the_original_plugin(alice: Person, tmp_path: Path) -> None:
    long = "A long tool result. " * 700
    folder = lance_folder(
        tmp_path / "lancedb",
        lance_row(1),
        lance_row(2, text="Prefers tea.", category="user_memory_preference", agentId="coder", importance=0.5),
        lance_row(3, text="Hello", category="full_context_user", batchId="b1", sessionId="agent:main:main"),
        lance_row(
            4, text=long, category="full_context_tool_result", batchId="b1", seqInBatch=1, sessionId="agent:main:main"
        ),
        lance_row(5, text="Old", category="full_context_memory", sessionId=""),
        lance_row(6, text="Twice embedded"),
        lance_row(7, text="Twice embedded", chunkIndex=1, createdAt=1774378304733.0),
        lance_row(8, text="Another", chunkIndex=1),
        lance_row(9, isDeleted=1),
        lance_row(10, text=" "),
        lance_row(11, text="Of a bot", agentId="a bot"),
    )
    say(alice, "chat:c_1", "I have a cat.")
    before = state(alice)
    planned = run("migrate_openclaw", folder, "--user", "alice")
    left = {"deleted": 1, "another vector of the same memory": 1, "without text": 1}
    assert (planned["new"], planned["duplicates"], planned["left"]) == (9, 0, left)
    assert state(alice) == before
    done = run("migrate_openclaw", folder, "--user", "alice", "--apply")
    assert (done["made"], done["left"]) == (9, left)
    rows = {memory.text: memory for memory in Memory.objects.select_related("session").order_by("pk")}
    fact, tea, hello = rows["Fact 1"], rows["Prefers tea."], rows["Hello"]
    assert (fact.memory_id, fact.created_at_ms) == ("861dcc43-66be-4a55-8157-000000000001", 1774378304728)
    assert (fact.importance, fact.session and fact.session.session_id) == (0.7, "session:s1")
    assert (tea.category, tea.agent_id, tea.importance) == ("user_memory_preference", "coder", 0.5)
    assert (hello.batch_id, hello.sender_id, hello.agent_id) == ("b1", "alice", "main")
    assert hello.session is not None
    assert hello.session.session_id == "agent:main:main"
    results = [text for text, memory in rows.items() if memory.category == "full_context_tool_result"]
    assert " ".join(results).split() == long.split()
    assert rows[results[0]].payload["seqInBatch"] == 1
    assert (rows["Old"].category, rows["Old"].payload["category"]) == ("full_context_others", "full_context_memory")
    assert rows["Old"].session.session_id == "import_openclaw"  # type: ignore[union-attr]
    assert (rows["Of a bot"].agent_id, rows["Of a bot"].payload["agent_id"]) == ("", "a bot")
    assert "Another" in rows
    assert run("migrate_openclaw", folder, "--user", "alice", "--apply")["made"] == 0
    assert run("migrate_openclaw", "--undo", done["job"]) == {"undone": 9, "left": 0}
    assert state(alice) == before


def test_a_large_lancedb_is_read_in_order(tmp_path: Path) -> None:
    folder = lance_folder(tmp_path / "lancedb", *(lance_row(number) for number in range(2500)))
    items = list(read("openclaw", Path(folder), None))
    assert [item.text for item in items if isinstance(item, Found)] == [f"Fact {number}" for number in range(2500)]


def test_the_lancedb_of_openclaws_own_plugin(alice: Person, tmp_path: Path) -> None:
    row = {
        "id": "m", "text": "Prefers tea.", "vector": [0.0], "importance": 0.7, "category": "preference",
        "createdAt": 1774378304727,
    }  # fmt: skip
    folder = lance_folder(tmp_path / "lancedb", row, table="memories")
    run("migrate_openclaw", folder, "--user", "alice", "--apply")
    tea = Memory.objects.get()
    assert (tea.category, tea.importance, tea.payload["source_id"]) == ("user_memory_preference", 0.7, "m")


def test_a_damaged_lancedb_is_refused(alice: Person, tmp_path: Path) -> None:
    folder = Path(lance_folder(tmp_path / "lancedb", lance_row(1)))
    (tmp_path / "empty").mkdir()
    for file in folder.rglob("*.lance"):
        if file.is_file():
            file.write_bytes(b"junk")
    for path in (folder, tmp_path / "empty", tmp_path / "absent"):
        with pytest.raises(CommandError) as refused:
            run("migrate_openclaw", str(path), "--user", "alice", "--apply")
        assert refused.value.returncode == 2
    assert not Memory.objects.exists()


@pytest.mark.parametrize("name", hostile.MEM0)
def test_a_bad_item_is_skipped_and_listed(name: str, alice: Person, tmp_path: Path) -> None:
    good = '{"memory": "a %s", "id": "%s", "metadata": {"color": "red"}}'
    file = tmp_path / "mem0.json"
    file.write_text(f"[{good % ('cat', 'a')}, {hostile.MEM0[name]}, {good % ('dog', 'b')}]", encoding="utf-8")
    out = StringIO()
    call_command("import_from", "mem0", str(file), "--user", "alice", "--apply", stdout=out, stderr=StringIO())
    assert "Imported 2 memories" in out.getvalue()
    assert "1 of 3 skipped: 1 " in out.getvalue()
    assert "(item 2)" in out.getvalue()
    assert search_texts(alice, "cat") == ["a cat"]
    assert not Memory.objects.exclude(text__in=["a cat", "a dog"]).exists()


def test_an_item_with_bytes_that_are_not_utf_8_is_skipped(alice: Person, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    file.write_bytes(b'[{"memory": "a c\xe9at", "id": "1"}, {"memory": "a dog", "id": "2"}]')
    done = run("import_from", "mem0", str(file), "--user", "alice", "--apply")
    assert (done["made"], list(done["at"].values())) == (1, [["item 1"]])


def test_a_file_that_ends_too_early_is_refused(alice: Person, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    file.write_text('[{"memory": "a cat", "id": "1"}, {"memory": "a d', encoding="utf-8")
    with pytest.raises(CommandError, match="not a JSON list of memories"):
        run("import_from", "mem0", str(file), "--user", "alice", "--apply")
    assert not Memory.objects.exists()


@pytest.mark.parametrize("edge", hostile.EDGES)
@pytest.mark.parametrize("source", ["markdown", "everos-markdown", "exported"])
def test_markdown_of_a_time_outside_the_calendar_is_skipped_and_listed(
    source: str, edge: str, alice: Person, tmp_path: Path
) -> None:
    day = "2026-01-02T03:04:05Z"
    name, text = {
        "markdown": ("{}.md", "---\ndate: {}\n---\n# Tea {}\n\nBrew.\n"),
        "everos-markdown": (
            "users/ann/episodes/episode-2026-05-2{}.md",
            "<!-- entry:e -->\n**timestamp**: {}\n\n### Content\nTea {}\n<!-- /entry:e -->\n",
        ),
        "exported": (
            "{}.md",
            '<!-- memory {{"id": "m", "created_at": "{}", "category": ""}} -->\nTea {}\n<!-- /memory -->\n',
        ),
    }[source]
    files = {name.format(number): text.format(at, number) for number, at in enumerate([day, edge])}
    source = "markdown" if source == "exported" else source
    done = run("import_from", source, write(tmp_path / "notes", files), "--user", "alice", "--apply")
    assert done["made"] == 1
    (reason, places), *others = done["at"].items()
    assert "years 1 to 9999" in reason
    assert places[0].startswith(name.format(1))
    assert others == []


@pytest.mark.parametrize(
    "head",
    [
        '{"id": "a\\u0000b", "created_at": "2026-01-02", "category": ""}',
        '{"id": "\\ud800", "created_at": "2026-01-02", "category": ""}',
        '{"id": "m", "created_at": "2026-01-02", "category": "", "session_id": "\\ud800"}',
        f'{{"id": "m", "created_at": "2026-01-02", "category": "", "importance": {hostile.DIGITS[:4000]}}}',
        f'{{"id": {hostile.DEEP}, "created_at": "2026-01-02", "category": ""}}',
    ],
)
def test_a_damaged_marker_of_an_export_is_skipped_and_listed(head: str, alice: Person, tmp_path: Path) -> None:
    good = '<!-- memory {"id": "n", "created_at": "2026-01-02", "category": ""} -->\nA cat.\n<!-- /memory -->\n'
    folder = write(tmp_path / "notes", {"a.md": f"<!-- memory {head} -->\nA dog.\n<!-- /memory -->\n{good}"})
    done = run("import_from", "markdown", folder, "--user", "alice", "--apply")
    assert (done["made"], list(done["at"].values())) == (1, [["a.md"]])
    assert "A cat." in search_texts(alice, "cat")


def test_files_whose_names_are_not_utf_8_are_skipped_and_listed(alice: Person, tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", {"a.md": "A cat.\n"})
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md")).write_text("A dog.\n")
    done = run("import_from", "markdown", folder, "--user", "alice", "--apply")
    assert (done["made"], list(done["at"].values())) == (1, [["\ufffd.md"]])


def test_bad_rows_of_a_lancedb_are_skipped_and_listed(alice: Person, tmp_path: Path) -> None:
    folder = lance_folder(
        tmp_path / "lancedb",
        lance_row(1, text="A cat."),
        lance_row(2, text="A\0dog."),
        lance_row(3, createdAt=float("nan")),
        lance_row(4, createdAt=1e300),
        lance_row(5, createdAt=-1e16),
        lance_row(6, importance=float("nan")),
        lance_row(7, agentId="a\0b"),
        lance_row(8, agentId="y" * 100_000),
        lance_row(9, sessionId="\0"),
    )
    done = run("migrate_openclaw", folder, "--user", "alice", "--apply")
    assert done["made"] == 2
    rows = sorted(place for places in done["at"].values() for place in places)
    assert rows == [f"row {number}" for number in (2, 3, 4, 5, 7, 8, 9)]
