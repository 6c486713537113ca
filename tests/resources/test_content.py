"""GET /resources/{id}/content."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from resources.models import Resource
from tests.conftest import Person
from tests.resources.forms import stored_resource

pytestmark = pytest.mark.django_db


def test_the_owner_gets_the_bytes_as_an_attachment(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice, filename="合同 2026.txt")
    response = alice.client.get(f"/resources/{resource.resource_id}/content", headers={"Accept": "image/*"})
    assert response.status_code == 200
    assert response.getvalue() == (storage / resource.storage_path).read_bytes()
    assert response.headers["Content-Disposition"] == ("attachment; filename*=utf-8''%E5%90%88%E5%90%8C%202026.txt")
    assert response.headers["Content-Type"] == "text/plain"
    assert response.headers["Content-Length"] == str(resource.size_bytes)


def test_it_cannot_act_as_a_page_of_ours(alice: Person) -> None:
    resource = stored_resource(alice, "<script>alert(1)</script>")
    response = alice.client.get(f"/resources/{resource.resource_id}/content")
    response.getvalue()
    assert response.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_stranger_gets_404(alice: Person, charlie: Person) -> None:
    assert charlie.client.get(f"/resources/{stored_resource(alice).resource_id}/content").status_code == 404


def test_unknown_deleted_and_lost_ones_are_404(alice: Person, storage: Path) -> None:
    assert alice.client.get("/resources/r_unknown/content").status_code == 404
    lost, deleted = stored_resource(alice), stored_resource(alice)
    (storage / lost.storage_path).unlink()
    assert alice.client.get(f"/resources/{lost.resource_id}/content").status_code == 404
    Resource.objects.filter(pk=deleted.pk).update(status="deleted", deleted_at=deleted.created_at)
    assert alice.client.get(f"/resources/{deleted.resource_id}/content").status_code == 404


def test_a_link_in_the_place_of_the_file_is_not_followed(alice: Person, storage: Path, tmp_path: Path) -> None:
    resource = stored_resource(alice)
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    path = storage / resource.storage_path
    path.unlink()
    path.symlink_to(secret)
    assert alice.client.get(f"/resources/{resource.resource_id}/content").status_code == 404


def test_it_needs_a_key(alice: Person) -> None:
    assert Client().get(f"/resources/{stored_resource(alice).resource_id}/content").status_code == 401
