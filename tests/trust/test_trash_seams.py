"""What lies in the trash, where other features meet it: nothing comes back unasked, and nothing new falls in."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.models import Resource
from tests.conftest import Person
from tests.memories.calls import CONTRACT, call, upload
from tests.resources.forms import upload as send

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_file_sent_again_while_its_session_is_in_the_trash_is_refused(alice: Person, storage: Path) -> None:
    """It would be answered as there, found nowhere, and go for good with the trash."""
    made = upload(alice)
    call(alice, "delete", f"/sessions/{made['session_id']}")
    refused = send(alice, CONTRACT.encode(), "contract.txt")
    assert refused.status_code == 409
    assert "trash" in refused.json()["detail"]
    call(alice, "post", f"/sessions/{made['session_id']}/restore")
    assert upload(alice)["resource_id"] == made["resource_id"]
    assert Resource.objects.count() == 1


def test_a_registration_repeated_while_its_session_is_in_the_trash_is_refused(alice: Person, storage: Path) -> None:
    said = {"filename": "contract.txt", "source_uri": "minio://bucket/contract.txt", "sha256": "0" * 64}
    made = call(alice, "post", "/resources/external", **said)
    call(alice, "post", "/memories/add", session_id=made["session_id"], messages=[message("on the contract")])
    call(alice, "delete", f"/sessions/{made['session_id']}")
    assert "trash" in call(alice, "post", "/resources/external", status=409, **said)["detail"]


def message(text: str) -> dict[str, object]:
    content = [{"type": "text", "text": text}]
    return {"sender_id": "alice", "role": "user", "timestamp": 1_781_172_177_000, "content": content}
