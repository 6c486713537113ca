"""The trash and other features: no deleted memory returns without a restore, and no live one disappears."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.models import Resource
from tests.conftest import Person
from tests.memories.calls import CONTRACT, call, upload
from tests.resources.forms import upload as send

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_upload_is_refused_while_its_session_is_in_the_trash(alice: Person, storage: Path) -> None:
    """Otherwise the response would be a resource that is not found and is purged with the trash."""
    uploaded = upload(alice)
    call(alice, "delete", f"/sessions/{uploaded['session_id']}")
    refused = send(alice, CONTRACT.encode(), "contract.txt")
    assert refused.status_code == 409
    assert "trash" in refused.json()["detail"]
    call(alice, "post", f"/sessions/{uploaded['session_id']}/restore")
    assert upload(alice)["resource_id"] == uploaded["resource_id"]
    assert Resource.objects.count() == 1


def test_a_registration_is_refused_while_its_session_is_in_the_trash(alice: Person, storage: Path) -> None:
    registration = {"filename": "contract.txt", "source_uri": "minio://bucket/contract.txt", "sha256": "0" * 64}
    uploaded = call(alice, "post", "/resources/external", **registration)
    call(alice, "post", "/memories/add", session_id=uploaded["session_id"], messages=[message("on the contract")])
    call(alice, "delete", f"/sessions/{uploaded['session_id']}")
    assert "trash" in call(alice, "post", "/resources/external", status=409, **registration)["detail"]


def message(text: str) -> dict[str, object]:
    content = [{"type": "text", "text": text}]
    return {"sender_id": "alice", "role": "user", "timestamp": 1_781_172_177_000, "content": content}
