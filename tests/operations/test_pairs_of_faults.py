"""An archive with two faults shows nothing that it deletes: its user is refused, or the deletion holds."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from django.db import transaction
from django.test import Client

from accounts.audit import Actor
from accounts.models import MemoryUser
from core.errors import GatewayError
from operations.archives.import_ import import_archive
from operations.archives.markdown_export import export_markdown
from tests.agents.rpc import direct
from tests.conftest import Person
from tests.memories.calls import call
from tests.operations import edit_archive
from tests.operations.sample_data import search_texts

pytestmark = pytest.mark.django_db

ARCHIVES = Path(__file__).parent / "archives"
SECRET, CAKE, CONTRACT = "Ignore the walnut rumour.", "An evening with walnut cake.", "The old walnut contract."
DERIVED = "The walnut rumour is about Kiel."
DELETED: Final = {SECRET, CAKE, CONTRACT, DERIVED, "old-walnut.txt"}
TIME, LATER = "2026-01-31T12:00:00+00:00", "2030-01-31T12:00:00+00:00"
# The rows that say what is deleted: file, field, value.
ROWS: Final = {
    "the secret": ("memories", "text", SECRET),
    "the derived": ("memories", "text", DERIVED),
    "the cake": ("memories", "text", CAKE),
    "the contract": ("memories", "text", CONTRACT),
    "the secret's tombstone": ("tombstones", "reason", "walnut is private"),
    "the cake's tombstone": ("tombstones", "reason", "no more walnut"),
    "the cake's session": ("sessions", "session_id", "chat:trash"),
    "the file": ("resources", "filename", "old-walnut.txt"),
    "the file's session": ("sessions", "hidden_at", "2026-11-26T01:10:39.832670+00:00"),
}
REMOVED: Final = object()
_SCOPE: Final[dict[str, list[Any]]] = {"app_id": ["other", "", None, REMOVED], "project_id": ["other", 5]}
_MEMORY: Final[dict[str, list[Any]]] = {
    **_SCOPE,
    "memory_id": ["another", "", "m\ud800"],
    "session": [None, ["default", "default", "chat:none"], ["other", "default", "chat:trash"]],
    "hidden_at": [None, LATER, "\ud800", REMOVED],
    "hidden_reason": ["superseded", "with_source"],
    "memory_type": ["profile", "unprocessed_message"],
    "origin": ["upstream", "panel", "extracted"],
    "delivery_state": ["flushed", "buffered"],
    "batch_id": ["", "other"],
    "payload": [{}, {"n": float("nan")}],
}
_SESSION: Final[dict[str, list[Any]]] = {
    **_SCOPE, "session_id": ["chat:other", "", "chat:\ud800"], "hidden_at": [None, LATER, REMOVED],
    "kind": ["other", "resource"], "engine_session_id": ["other"],
}  # fmt: skip
_TOMBSTONE: Final[dict[str, list[Any]]] = {
    **_SCOPE, "memory_id": ["another", "", " "], "session_id": ["chat:none", "", "chat:c2"],
    "row": [None, ["default", "default", "none"]], "created_at": [LATER, "x"], "tombstone_id": ["t_other"],
    "undone_by": ["x"],
}  # fmt: skip
FIELDS: Final[dict[str, dict[str, list[Any]]]] = {
    "memories": _MEMORY,
    "sessions": _SESSION,
    "tombstones": _TOMBSTONE,
    "resources": {
        **_SCOPE, "session_id": ["resource:alice:r_none", "chat:c1", ""], "deleted_at": [None, LATER, REMOVED],
        "status": ["extracted", "pending"], "former_status": ["", "pending"], "resource_id": ["r_other"],
    },
}  # fmt: skip


class Fault(NamedTuple):
    row: str
    field: str
    value: Any

    def __str__(self) -> str:
        value = "removed" if self.value is REMOVED else repr(self.value)
        return f"{self.row}: {self.field} {value}"


FAULTS: Final = [
    Fault(row, field, value)
    for row, (table, _name, _value) in ROWS.items()
    for field, values in FIELDS[table].items()
    for value in values
]
DELETIONS: Final = ("secret derived", "cake", "contract file")
# Faults of different deletions do not meet.
PAIRS: Final = [
    (one, other)
    for words in DELETIONS
    for one, other in combinations([fault for fault in FAULTS if fault.row.split()[1].removesuffix("'s") in words], 2)
    if (one.row, one.field) != (other.row, other.field)
]
SHOWN_BEFORE: Final = [
    ("the cake's tombstone: memory_id 'another'", "the cake's session: hidden_at removed"),
    ("the secret: hidden_at None", "the derived: memory_id 'm\\ud800'"),  # ended the import
    ("the secret: hidden_at None", "the secret's tombstone: app_id 'other'"),
    ("the cake's tombstone: session_id 'chat:none'", "the cake's session: hidden_at None"),
    ("the cake's tombstone: app_id 'other'", "the cake's session: hidden_at None"),
    ("the cake: session None", "the cake's tombstone: created_at '2030-01-31T12:00:00+00:00'"),
    ("the cake: session None", "the cake: memory_type 'profile'"),
    ("the cake: app_id 'other'", "the cake's session: hidden_at None"),
    ("the contract: session None", "the file: app_id 'other'"),
    ("the file: app_id 'other'", "the file's session: hidden_at None"),
    ("the file: session_id 'chat:c1'", "the file's session: hidden_at None"),
    ("the file: deleted_at None", "the file: status 'extracted'"),
    ("the secret: hidden_at None", "the derived: hidden_at None"),
    ("the derived: hidden_at None", "the derived: memory_type 'profile'"),
    ("the derived: hidden_at None", "the derived: origin 'panel'"),
    ("the derived: hidden_at None", "the derived: origin 'upstream'"),
    ("the cake's tombstone: memory_id ' '", "the cake's session: hidden_at None"),
]
"""Pairs that showed a deleted text, one of each kind."""
CONSISTENT: Final = {
    ("the cake's tombstone: session_id 'chat:c2'", "the cake's session: hidden_at None"),
    ("the cake's tombstone: memory_id 'another'", "the cake's session: hidden_at None"),
}
"""Pairs that make a valid archive of another decision: of another session, and of a memory that was purged."""
_BY_NAME: Final = {(str(one), str(other)): (one, other) for one, other in PAIRS}


@pytest.fixture(scope="module")
def alice_alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of an archive of alice, with a memory that a model derived from a deleted one."""
    path = tmp_path_factory.mktemp("archives") / "all.tar"
    path.write_bytes(gzip.decompress((ARCHIVES / "export-c6813ca.tar.gz").read_bytes()))
    files = edit_archive.contents(path)
    manifest = json.loads(files[edit_archive.MANIFEST])
    [key] = [key for key, name in manifest["users"].items() if name == "alice"]
    manifest["users"] = {key: "alice"}
    kept = {name: data for name, data in files.items() if not name.startswith("users/") or key in name}
    name = f"users/{key}/memories.jsonl"
    rows = [json.loads(line) for line in kept[name].splitlines()]
    [secret] = [row for row in rows if row["text"] == SECRET]
    derived = {
        "text": DERIVED, "original_text": DERIVED, "memory_id": "derived", "origin": "extracted",
        "hidden_reason": "with_source", "sources": [secret["memory_id"]], "category": "user_memory_fact",
    }  # fmt: skip
    kept[name] += json.dumps({**secret, **derived}).encode() + b"\n"
    return {**kept, edit_archive.MANIFEST: json.dumps(manifest).encode()}


class _Undo(Exception):
    """Roll back an import."""


def outcome(files: dict[str, bytes], faults: tuple[Fault, ...], tmp_path: Path) -> str:
    """Import the archive with the faults; return "refused", "hidden", or what is shown. Nothing is kept."""
    files = dict(files)
    for table in FIELDS:
        [name] = [name for name in files if name.endswith(f"/{table}.jsonl")]
        rows = [json.loads(line) for line in files[name].splitlines()]
        of_table = [(fault, _row_of(rows, fault)) for fault in faults if ROWS[fault.row][0] == table]
        for fault, row in of_table:
            if fault.value is REMOVED:
                del row[fault.field]
            else:
                row[fault.field] = fault.value
        files[name] = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    path = tmp_path / "changed.tar"
    edit_archive.write(path, files)
    shown: set[str] | None = None
    try:
        with transaction.atomic():
            if not import_archive(path, actor=Actor.command("tests")).refused:
                shown = everything_shown(tmp_path) & DELETED
            raise _Undo
    except GatewayError:
        return "refused"
    except _Undo:
        return "refused" if shown is None else ", ".join(sorted(shown)) or "hidden"


def _row_of(rows: list[dict[str, Any]], fault: Fault) -> dict[str, Any]:
    _table, name, value = ROWS[fault.row]
    return next(row for row in rows if row[name] == value)


def everything_shown(tmp_path: Path) -> set[str]:
    """Return what alice finds by search, in lists, over RPC and in an export as Markdown."""
    user = MemoryUser.objects.get(user_id="alice")
    key = json.loads((ARCHIVES / "export-c6813ca.json").read_text())["keys"]["alice"]
    alice = Person("alice", user.pk, key, Client(headers={"Authorization": f"Bearer {key}"}))
    shown = set(search_texts(alice, "walnut rumour cake contract"))
    shown |= {memory["text"] for memory in call(alice, "get", "/memories", limit=100)["memories"]}
    shown |= {resource["filename"] for resource in call(alice, "get", "/resources")["resources"]}
    shown |= set(direct.texts(direct.of_user(alice), agentId="(shared)", tab="full"))
    folder = tmp_path / "markdown"
    export_markdown([user.pk], folder, actor=Actor.command("tests"))
    written = "".join(file.read_text() for file in folder.rglob("*.md"))
    for file in sorted(folder.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    folder.rmdir()
    return shown | {text for text in DELETED if text in written}


def chosen(pairs: int) -> Iterator[tuple[Fault, ...]]:
    """Yield the pairs that were shown, and so many others, evenly spread."""
    yield from (_BY_NAME[names] for names in SHOWN_BEFORE)
    yield from PAIRS[:: max(1, len(PAIRS) // pairs)]


@pytest.mark.parametrize("pairs", [80, pytest.param(len(PAIRS), marks=pytest.mark.torture)])
def test_nothing_deleted_is_shown(alice_alone: dict[str, bytes], storage: Path, tmp_path: Path, pairs: int) -> None:
    outcomes, shown = Counter[str](), []
    assert outcome(alice_alone, (), tmp_path) == "hidden"
    for faults in chosen(pairs):
        found = outcome(alice_alone, faults, tmp_path)
        outcomes[found] += 1
        if found not in {"refused", "hidden"} and tuple(map(str, faults)) not in CONSISTENT:
            shown.append(f"{' and '.join(map(str, faults))} show {found}")
    assert shown == []
    assert min(outcomes["refused"], outcomes["hidden"]) > pairs // 10
