"""An archive written before the tables were rebuilt (commit 2cf1f0d) imports completely."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.models import MemoryUser
from memories.models import Override, OverrideRevision, Tombstone
from profiles.models import ProfileMemory, ProfileRevision
from resources.models import Attachment, Resource
from store.external import journal
from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import call
from tests.operations.furnished import found

pytestmark = pytest.mark.django_db(transaction=True)

ARCHIVES = Path(__file__).parent / "archives"
EXPECTED: dict[str, Any] = json.loads((ARCHIVES / "export-2cf1f0d.json").read_text())


@pytest.fixture
def imported(storage: Path) -> dict[str, Person]:
    """The two users of the archive, with the keys that they had then: alice of the embedded engine, bob of EverOS."""
    call_command("import_memory", str(ARCHIVES / "export-2cf1f0d.tar"), stdout=StringIO(), stderr=StringIO())
    people = {}
    for user in MemoryUser.objects.all():
        key = EXPECTED["keys"][user.user_id]
        people[user.user_id] = Person(user.user_id, user.pk, key, Client(headers={"Authorization": f"Bearer {key}"}))
    return people


def test_every_row_and_file_of_the_old_archive_arrives(imported: dict[str, Person], storage: Path) -> None:
    tables = {
        "memories": Memory, "resources": Resource, "attachments": Attachment, "tombstones": Tombstone,
        "overrides": Override, "override_revisions": OverrideRevision, "profiles": ProfileMemory,
        "profile_revisions": ProfileRevision,
    }  # fmt: skip
    counts = {name: model._default_manager.count() for name, model in tables.items()}
    assert counts == {name: EXPECTED["rows"][name] for name in tables}
    assert len([path for path in storage.rglob("content*") if path.is_file()]) == EXPECTED["files"]


def test_searches_find_what_they_found_then(imported: dict[str, Person]) -> None:
    alice = imported["alice"]
    assert {query: found(alice, query) for query in EXPECTED["found"]["alice"]} == EXPECTED["found"]["alice"]
    assert found(imported["bob"], "dog") == EXPECTED["found"]["bob"]["dog"]


def test_resources_are_served_to_the_keys_of_then(imported: dict[str, Person]) -> None:
    [resource] = call(imported["alice"], "get", "/resources")["resources"]
    response = imported["alice"].client.get(f"/resources/{resource['resource_id']}/content")
    assert b"".join(response.streaming_content) == b"The walnut contract runs for ten years."
    assert imported["bob"].client.get(f"/resources/{resource['resource_id']}/content").status_code == 404


def test_derived_memories_keep_their_sources_and_why_they_are_hidden(imported: dict[str, Person]) -> None:
    rows = {row.text: row for row in Memory.objects.filter(origin="extracted")}
    bergen, tea, bicycle = (
        rows["Alice lives in Bergen."], rows["Alice prefers tea."], rows["Alice owns a red bicycle."],
    )  # fmt: skip
    [source] = bergen.payload["sources"]
    assert Memory.objects.get(memory_id=source).text == "I moved to Bergen"
    assert (tea.payload["hidden_as"], tea.payload["superseded_by"]) == ("superseded", bergen.memory_id)
    assert bicycle.payload["hidden_as"] == "with_source"
    alice = imported["alice"]
    call(alice, "post", f"/memories/{bicycle.payload['sources'][0]}/restore")
    assert "Alice owns a red bicycle." in found(alice, "bicycle")


def test_the_journal_knows_what_is_confirmed(imported: dict[str, Person]) -> None:
    unsettled = journal.unconfirmed_messages(imported["bob"].user_pk)
    assert [message.content[0].text for message in unsettled] == ["Nobody confirmed this."]
    waiting = Memory.objects.get(text="The meeting is on Friday.")
    assert not journal.is_flushed(waiting)
    assert journal.is_flushed(Memory.objects.get(text="My flat is in Hamburg."))
