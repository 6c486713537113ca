"""Resources in the trash stay there, whatever is attached, and a restore shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.registry import get_engine
from operations.reingest.plan import Target, plan
from resources import services
from resources.models import Resource
from resources.services.ingestion import message_of
from tests.operations.reingest.conftest import SwitchedGateway
from tests.resources.forms import stored_resource
from tests.resources.test_delete import delete, restore
from tests.store.index_state import assert_consistent

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_resource_in_the_trash_is_found_after_detaching(gateway: SwitchedGateway, storage: Path) -> None:
    resource = stored_resource(gateway.person, "The quarterly report speaks of tea. ")
    assert services.ingest(resource.resource_id).status == "extracted"
    delete(gateway.person, resource.resource_id)
    gateway.detach()
    assert gateway.search_texts("report") == []
    restore(gateway.person, resource.resource_id)
    [text] = gateway.search_texts("report")
    assert "The quarterly report speaks of tea." in text
    assert_consistent(gateway.owner)


def test_a_resource_in_the_trash_is_not_sent_to_everos(gateway: SwitchedGateway, storage: Path) -> None:
    gateway.detach()
    resource = stored_resource(gateway.person, "The quarterly report speaks of tea. ")
    assert services.ingest(resource.resource_id).status == "extracted"
    delete(gateway.person, resource.resource_id)
    gateway.attach()
    assert gateway.ingest("remote").is_ok
    assert gateway.stub.calls("add") == []
    assert gateway.search_texts("report") == []
    restore(gateway.person, resource.resource_id)
    assert len(gateway.search_texts("report")) == 1


def test_a_resource_in_the_trash_is_not_read_again(gateway: SwitchedGateway, storage: Path) -> None:
    gateway.detach()
    resource = stored_resource(gateway.person, "The quarterly report speaks of tea. ")
    assert services.ingest(resource.resource_id).status == "extracted"
    delete(gateway.person, resource.resource_id)
    assert plan(Target(resource_id=resource.resource_id)).sessions == 0


def test_an_unfinished_resource_in_the_trash_is_ingested_after_detaching(
    gateway: SwitchedGateway, storage: Path
) -> None:
    resource = stored_resource(gateway.person, "The quarterly report speaks of tea. ")
    get_engine().add(gateway.owner, resource.session_id, [message_of(resource)])
    delete(gateway.person, resource.resource_id)
    gateway.detach()
    assert services.ingest(resource.resource_id).state == "trashed"
    restore(gateway.person, resource.resource_id)
    assert services.ingest(resource.resource_id).status == "extracted"
    assert len(gateway.search_texts("report")) == 1
    assert Resource.objects.get().status == "extracted"


def test_an_archive_is_restored_with_and_without_a_remote(
    gateway: SwitchedGateway, storage: Path, tmp_path: Path
) -> None:
    gateway.detach()
    resource = stored_resource(gateway.person, "The quarterly report speaks of tea. ")
    assert services.ingest(resource.resource_id).status == "extracted"
    delete(gateway.person, resource.resource_id)
    gateway.export_and_import(tmp_path / "all.tar")
    assert gateway.search_texts("report") == []
    restore(gateway.person, resource.resource_id)
    assert len(gateway.search_texts("report")) == 1
