"""GET /resources/{id}/content."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from django.test import Client

from resources.models import Resource
from tests.conftest import Person
from tests.resources.forms import stored_resource

pytestmark = pytest.mark.django_db


def test_the_owner_downloads_the_file_as_an_attachment(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice, filename="合同 2026.txt")
    response = alice.client.get(f"/resources/{resource.resource_id}/content", headers={"Accept": "image/*"})
    assert response.status_code == 200
    assert response.getvalue() == (storage / resource.storage_path).read_bytes()
    plain = f'filename="{resource.resource_id}.txt"'
    assert response.headers["Content-Disposition"] == (
        f"attachment; {plain}; filename*=utf-8''%E5%90%88%E5%90%8C%202026.txt"
    )
    assert response.headers["Content-Type"] == "text/plain"
    assert response.headers["Content-Length"] == str(resource.size_bytes)


def test_a_downloaded_page_is_sandboxed(alice: Person) -> None:
    resource = stored_resource(alice, "<script>alert(1)</script>")
    response = alice.client.get(f"/resources/{resource.resource_id}/content")
    response.getvalue()
    assert response.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


SIZE = 53


@pytest.fixture
def path(alice: Person) -> str:
    return f"/resources/{stored_resource(alice).resource_id}/content"


@pytest.fixture
def data(storage: Path, path: str) -> bytes:
    data = (storage / Resource.objects.get().storage_path).read_bytes()
    assert len(data) == SIZE
    return data


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("0-2", 0, 2), ("4-", 4, 52), ("-7", 46, 52), ("-99", 0, 52), ("52-999", 52, 52)],
)
def test_a_range_of_bytes_is_206(alice: Person, path: str, data: bytes, asked: str, first: int, last: int) -> None:
    response = alice.client.get(path, headers={"Range": f"bytes={asked}"})
    assert (response.status_code, response.getvalue()) == (206, data[first : last + 1])
    assert response.headers["Content-Range"] == f"bytes {first}-{last}/{SIZE}"
    assert response.headers["Content-Length"] == str(last + 1 - first)
    assert response.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"


@pytest.mark.parametrize("asked", ["bytes=5-4", "bytes=0-1,3-4", "pages=1-2", "bytes=x-", "bytes=-", ""])
def test_other_ranges_are_ignored(alice: Person, path: str, data: bytes, asked: str) -> None:
    response = alice.client.get(path, headers={"Range": asked})
    assert (response.status_code, response.getvalue()) == (200, data)
    assert response.headers["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize("asked", ["bytes=53-", "bytes=99-100", "bytes=-0"])
def test_a_range_outside_of_the_file_is_416(alice: Person, path: str, asked: str) -> None:
    response = alice.client.get(path, headers={"Range": asked})
    assert (response.status_code, response.json()["code"]) == (416, "range_not_satisfiable")
    assert response.headers["Content-Range"] == f"bytes */{SIZE}"


def test_the_etag_of_the_bytes_decides_whether_they_are_sent(alice: Person, path: str, data: bytes) -> None:
    response = alice.client.get(path)
    assert response.getvalue() == data
    etag = response.headers["ETag"]
    assert etag == f'"{hashlib.sha256(data).hexdigest()}"'
    answer = alice.client.get(path, headers={"If-None-Match": etag})
    assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", etag)
    assert alice.client.get(path, headers={"If-None-Match": '"other"'}).getvalue() == data
    assert alice.client.get(path, headers={"If-Match": '"other"'}).json()["code"] == "precondition_failed"
    for tag, status in ((etag, 206), ('"other"', 200), (f"W/{etag}", 200)):
        answer = alice.client.get(path, headers={"Range": "bytes=0-2", "If-Range": tag})
        assert (answer.status_code, answer.getvalue()) == (status, data[:3] if status == 206 else data)


def test_an_outsider_gets_404(alice: Person, charlie: Person) -> None:
    assert charlie.client.get(f"/resources/{stored_resource(alice).resource_id}/content").status_code == 404


def test_unknown_deleted_and_missing_files_are_404(alice: Person, storage: Path) -> None:
    assert alice.client.get("/resources/r_unknown/content").status_code == 404
    lost, deleted = stored_resource(alice), stored_resource(alice, state="trashed")
    (storage / lost.storage_path).unlink()
    assert alice.client.get(f"/resources/{lost.resource_id}/content").status_code == 404
    assert alice.client.get(f"/resources/{deleted.resource_id}/content").status_code == 404


def test_a_symbolic_link_in_the_storage_is_not_followed(alice: Person, storage: Path, tmp_path: Path) -> None:
    resource = stored_resource(alice)
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    path = storage / resource.storage_path
    path.unlink()
    path.symlink_to(secret)
    assert alice.client.get(f"/resources/{resource.resource_id}/content").status_code == 404


def test_it_needs_a_key(alice: Person) -> None:
    assert Client().get(f"/resources/{stored_resource(alice).resource_id}/content").status_code == 401
