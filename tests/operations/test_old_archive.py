"""An archive written before the tables were rebuilt (commit 2cf1f0d) imports completely."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.models import MemoryUser
from core.errors import InvalidInput
from memories.models import Override, OverrideRevision, Tombstone
from operations.archives import old_archives
from profiles.models import ProfileMemory, ProfileRevision
from remote import outbox
from remote.models import OutboxEntry
from resources.models import Attachment, Resource
from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import call
from tests.operations.sample_data import search_texts
from tests.store.decisions import newer_of

pytestmark = pytest.mark.django_db(transaction=True)

ARCHIVES = Path(__file__).parent / "archives"
AT = "2026-11-22T11:27:10+00:00"
EXPECTED: dict[str, Any] = json.loads((ARCHIVES / "export-2cf1f0d.json").read_text())


@pytest.fixture
def imported(storage: Path) -> dict[str, Person]:
    """Import the archive; return its users with their keys: alice of the embedded engine, bob of EverOS."""
    call_command("import_memory", str(ARCHIVES / "export-2cf1f0d.tar"), stdout=StringIO(), stderr=StringIO())
    users = {}
    for user in MemoryUser.objects.all():
        key = EXPECTED["keys"][user.user_id]
        users[user.user_id] = Person(user.user_id, user.pk, key, Client(headers={"Authorization": f"Bearer {key}"}))
    return users


def test_every_row_and_file_of_the_old_archive_arrives(imported: dict[str, Person], storage: Path) -> None:
    tables = {
        "memories": Memory, "resources": Resource, "attachments": Attachment, "tombstones": Tombstone,
        "overrides": Override, "override_revisions": OverrideRevision, "profiles": ProfileMemory,
        "profile_revisions": ProfileRevision,
    }  # fmt: skip
    counts = {name: model.objects.count() for name, model in tables.items()}
    counts["memories"] += OutboxEntry.objects.filter(memory_ids=[]).count()  # files, whose text EverOS has
    assert counts == {name: EXPECTED["rows"][name] for name in tables}
    assert len([path for path in storage.rglob("content*") if path.is_file()]) == EXPECTED["files"]


def test_searches_return_the_recorded_results(imported: dict[str, Person]) -> None:
    alice = imported["alice"]
    assert {query: search_texts(alice, query) for query in EXPECTED["found"]["alice"]} == EXPECTED["found"]["alice"]
    assert search_texts(imported["bob"], "dog") == EXPECTED["found"]["bob"]["dog"]


def test_resources_are_served_to_the_old_keys(imported: dict[str, Person]) -> None:
    [resource] = call(imported["alice"], "get", "/resources")["resources"]
    response = imported["alice"].client.get(f"/resources/{resource['resource_id']}/content")
    assert b"".join(response.streaming_content) == b"The walnut contract runs for ten years."
    assert imported["bob"].client.get(f"/resources/{resource['resource_id']}/content").status_code == 404


def test_derived_memories_keep_sources_and_hidden_reasons(imported: dict[str, Person]) -> None:
    rows = {row.text: row for row in Memory.objects.filter(origin="extracted")}
    bergen, tea, bicycle = (
        rows["Alice lives in Bergen."], rows["Alice prefers tea."], rows["Alice owns a red bicycle."],
    )  # fmt: skip
    [source] = bergen.sources
    assert (bergen.supersedes, bergen.original_text, bergen.payload) == ([tea.memory_id], bergen.text, {})
    assert Memory.objects.get(memory_id=source).text == "I moved to Bergen"
    assert (tea.state, newer_of(tea)) == ("superseded", bergen.memory_id)
    assert bicycle.state == "trashed"
    [tombstone] = Tombstone.ledger.filter(row=bicycle)
    assert (tombstone.kind, tombstone.other_id) == ("source_deleted", bicycle.sources[0])
    alice = imported["alice"]
    call(alice, "post", f"/memories/{bicycle.sources[0]}/restore")
    assert "Alice owns a red bicycle." in search_texts(alice, "bicycle")


def test_journal_rows_become_messages_and_entries_of_the_outbox(imported: dict[str, Person]) -> None:
    unconfirmed_messages = outbox.waiting_messages(imported["bob"].user_pk)
    assert [message.content[0].text for message in unconfirmed_messages] == ["Nobody confirmed this."]
    texts = dict(Memory.objects.filter(origin="embedded").values_list("memory_id", "text"))
    rows = {texts.get("".join(entry.memory_ids[:1]), entry.pk): entry for entry in OutboxEntry.objects.all()}
    unconfirmed = rows.pop("Nobody confirmed this.")
    sent_at = datetime(2026, 11, 22, 11, 27, 10, 247_000, tzinfo=UTC)
    call = "b39e7672e02c43738aec1d8c4d3b9265"
    assert (unconfirmed.state, unconfirmed.sent_at, unconfirmed.call_id) == ("unconfirmed", sent_at, call)
    waiting = rows.pop("The meeting is on Friday.")
    assert (waiting.state, waiting.flush_id) == ("buffered", "")
    assert {(row.state, row.sent_at) for row in rows.values()} == {("flushed", None)}
    assert {row.memory_type for row in Memory.objects.filter(state="live")} == {
        "episode", "agent_case", "agent_skill", "unprocessed_message",
    }  # fmt: skip


def test_memories_of_everos_keep_their_original_text(imported: dict[str, Person]) -> None:
    rows = Memory.objects.filter(origin="upstream", memory_type="episode", is_covered=False)
    assert [row.original_text for row in rows] == [row.payload["episode"] for row in rows]
    overridden = set(Override.objects.filter(row__in=rows).values_list("row_id", flat=True))
    assert {row.pk for row in rows if row.is_edited} == overridden != set()


def journal_row(batch_id: Any) -> dict[str, Any]:
    return {"origin": "upstream", "memory_type": "unprocessed_message", "batch_id": batch_id, "payload": {}}


def test_purged_journal_rows_stay_purged() -> None:
    row = old_archives.memory(journal_row("purged"))
    assert (row["delivery_state"], row["batch_id"], row["sent_at"]) == ("purged", "", None)


@pytest.mark.parametrize("batch_id", ["sending:", "sending:1-", "sending:x-ab", "sending:99999999999999-ab"])
def test_an_invalid_batch_id_is_rejected(batch_id: str) -> None:
    with pytest.raises(InvalidInput, match="is not a call ID"):
        old_archives.memory(journal_row(batch_id))


LATER = "2026-11-22T11:30:00+00:00"
FORMER_RESOURCE: dict[str, Any] = {
    "status": "extracted", "former_status": "", "deleted_at": None, "cleanup_pending": False, "updated_at": LATER,
    "retry_at": None,
}  # fmt: skip
TRASHED = {"state": "trashed", "status": "extracted", "state_since": AT, "retry_at": None}
PURGED = {"state": "purged", "status": "failed", "state_since": AT, "retry_at": None}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {"state": "live", "status": "extracted", "state_since": None, "retry_at": None}),
        ({"status": "deleted", "former_status": "extracted", "deleted_at": AT}, TRASHED),
        ({"status": "deleted", "former_status": "ingesting", "deleted_at": AT}, {**TRASHED, "status": "pending"}),
        ({"status": "deleted", "deleted_at": AT}, PURGED),
        ({"status": "deleted", "deleted_at": AT, "cleanup_pending": True}, {**PURGED, "retry_at": AT}),
        ({"status": "deleted", "deleted_at": AT, "cleanup_owed": True}, {**PURGED, "retry_at": AT}),
        # Contradictions: one column says that it is deleted.
        ({"former_status": "extracted"}, {**TRASHED, "state_since": LATER}),
        ({"former_status": "empty", "deleted_at": AT}, {**TRASHED, "status": "empty"}),
        ({"deleted_at": AT}, PURGED),
        ({"status": "deleted"}, {**PURGED, "state_since": LATER}),
        ({"cleanup_pending": True}, {**PURGED, "state_since": LATER, "retry_at": LATER}),
        ({"former_status": "extracted", "deleted_at": AT, "cleanup_pending": True}, {**PURGED, "retry_at": AT}),
    ],
)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_deletion_of_a_resource_becomes_its_state(
    change: dict[str, Any], expected: dict[str, Any], version: int
) -> None:
    converter = old_archives.Converter(uuid4(), version)
    assert converter.rows("resources", {**FORMER_RESOURCE, **change}) == [{**expected, "updated_at": LATER}]


def test_a_resource_without_the_time_of_its_deletion_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="lacks deleted_at"):
        old_archives.resource({name: value for name, value in FORMER_RESOURCE.items() if name != "deleted_at"})


@pytest.mark.parametrize("table", ["outbox", "tombstones"])
def test_other_rows_of_version_3_stay(table: str) -> None:
    converter = old_archives.Converter(uuid4(), 3)
    row = journal_row("purged")
    assert (converter.source_of(table), converter.rows(table, row)) == (table, [row])


@pytest.mark.parametrize(
    ("columns", "state", "reason"),
    [
        ({"hidden_at": None}, ("live", None), None),
        ({"hidden_at": "T", "hidden_reason": ""}, ("trashed", "T"), None),
        ({"hidden_at": "T", "hidden_reason": "with_source"}, ("trashed", "T"), ("source_deleted", "")),
        ({"hidden_at": "T", "hidden_reason": "reworded"}, ("trashed", "T"), ("source_corrected", "")),
        (
            {"hidden_at": "T", "hidden_reason": "superseded", "superseded_by": "n"},
            ("superseded", "T"),
            ("superseded", "n"),
        ),
        ({"hidden_at": "T", "hidden_reason": "", "superseded_by": "n"}, ("trashed", "T"), ("superseded", "n")),
        ({"hidden_at": "T", "delivery_state": "purged"}, ("purged", "T"), None),
    ],
)
def test_columns_of_a_memory_become_its_state_and_a_reason(
    columns: dict[str, Any], state: tuple[str, str | None], reason: tuple[str, str] | None
) -> None:
    converter = old_archives.Converter(uuid4(), 3)
    key = {"app_id": "a", "project_id": "p", "memory_id": "m"}
    assert converter.rows("memories", key | columns) == [key | {"state": state[0], "state_since": state[1]}]
    assert converter.reasons == ({("a", "p", "m"): reason} if reason else {})


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({"hidden_at": None, "deleted_at": None}, ("live", None)),
        ({"hidden_at": "T", "deleted_at": None}, ("trashed", "T")),
        ({"hidden_at": "S", "deleted_at": "T"}, ("purged", "T")),
    ],
)
def test_columns_of_a_session_become_its_state(columns: dict[str, Any], state: tuple[str, str | None]) -> None:
    converter = old_archives.Converter(uuid4(), 3)
    assert converter.rows("sessions", columns) == [{"state": state[0], "state_since": state[1]}]


@pytest.mark.parametrize("row", [None, [], {"payload": []}, {"payload": {}}, {"payload": {}, "batch_id": 1}])
def test_invalid_rows_are_passed_through(row: Any) -> None:
    changed = old_archives.memory(row)
    assert changed == row or changed.items() >= row.items()
