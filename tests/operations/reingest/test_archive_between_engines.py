"""Archives of a gateway without a remote, imported with one, and back, lose no memory and no decision."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

from memories.models import Override, Tombstone
from memories.services import decisions
from memories.services.lookup import MemoryRef
from tests.conftest import make_person
from tests.everos import EverOS
from tests.operations.reingest.conftest import ACTOR, SwitchedGateway
from tests.resources.people import eventually
from tests.store.index_state import assert_consistent

pytestmark = pytest.mark.django_db(transaction=True)

QUERY = "bicycle house car cat yellow"
KEPT = frozenset({"our cat is old", "the bicycle is yellow", "the house is green"})
DELETED = frozenset({"the car is blue", "no car at all"})
CORRECTED = frozenset({"the bicycle is red"})


def found_texts(gateway: SwitchedGateway) -> set[str]:
    """Return the messages that the hits contain, ignoring text that EverOS adds."""
    hits = "\n".join(gateway.search_texts(QUERY))
    return {text for text in KEPT | DELETED | CORRECTED if text in hits}


def assert_kept_found(gateway: SwitchedGateway) -> None:
    """Wait until searches find exactly the kept texts, which EverOS must index first."""
    assert eventually(lambda: found_texts(gateway) == KEPT), found_texts(gateway)


def import_attached_and_detached(gateway: SwitchedGateway, folder: Path) -> None:
    gateway.detach()
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue", "the house is green")
    gateway.add_and_flush("chat:2", "our cat is old")
    gateway.add_and_flush("chat:3", "no car at all")
    gateway.override("bicycle", "the bicycle is yellow")
    gateway.delete("car is blue")
    decisions.delete_session(gateway.owner, "chat:3", actor=ACTOR)
    assert found_texts(gateway) == KEPT

    gateway.attach()
    gateway.export_and_import(folder / "first.tar")
    assert found_texts(gateway) == KEPT
    assert gateway.ingest("remote").is_ok
    assert_kept_found(gateway)

    gateway.detach()
    gateway.export_and_import(folder / "second.tar")
    assert found_texts(gateway) == KEPT
    assert_consistent(gateway.owner)

    assert Override.objects.get(undone_at=None).original_text == "the bicycle is red"
    deleted = Tombstone.objects.exclude(memory_id="").get(undone_at=None)
    decisions.restore(gateway.person.user_pk, MemoryRef(deleted.memory_id), actor=ACTOR)
    decisions.restore_session(gateway.owner, "chat:3", actor=ACTOR)
    assert found_texts(gateway) == KEPT | DELETED


def test_archives_with_and_without_a_remote(gateway: SwitchedGateway, tmp_path: Path) -> None:
    import_attached_and_detached(gateway, tmp_path)


@pytest.mark.upstream
def test_archives_with_a_real_everos(settings: Any, everos: EverOS, storage: Path, tmp_path: Path) -> None:
    """The user id is unique, because EverOS keeps data of earlier runs."""
    gateway = SwitchedGateway(settings, everos, make_person(f"alice.{secrets.token_hex(4)}"))
    import_attached_and_detached(gateway, tmp_path)
