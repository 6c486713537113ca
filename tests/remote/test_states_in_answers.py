"""`remote` of sessions and resources in the API, and that a refusal of the remote fails no file."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resources.models import Resource
from tests.conftest import Person
from tests.memories.calls import call, say, send, upload
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)


def remote_of(person: Person, session_id: str) -> dict[str, Any]:
    return dict(call(person, "get", f"/sessions/{session_id}")["remote"])


def test_a_session_tells_how_far_it_is_and_changes_its_etag(alice: Person, stub: StubUpstream) -> None:
    say(alice, "chat:c1", "tea", flush=False)
    before = alice.client.get("/sessions/chat:c1")
    assert before.json()["remote"]["state"] == "pending"
    send(alice)
    assert remote_of(alice, "chat:c1")["state"] == "sent"
    assert alice.client.get("/sessions/chat:c1", headers={"If-None-Match": before["ETag"]}).status_code == 200
    call(alice, "post", "/memories/flush", session_id="chat:c1")
    derived = call(alice, "get", "/sessions")["sessions"][0]
    assert derived["remote"] == {"state": "derived", "since": derived["searchable_at"], "detail": None}


def test_a_refused_file_stays_extracted_and_says_why(alice: Person, stub: StubUpstream, storage: Any) -> None:
    stub.fault("add", Fault(status=422))
    file = upload(alice)
    assert Resource.objects.get().status == "extracted"
    listed = call(alice, "get", "/resources")["resources"][0]
    (item,) = call(alice, "get", f"/resources/{file['resource_id']}")["resources"]
    assert listed == item
    assert (item["status"], item["error_message"], item["remote"]["state"]) == ("extracted", None, "refused")
    assert "not accepted" in item["remote"]["detail"]


@pytest.mark.parametrize(("path", "name"), [("/sessions", "sessions"), ("/resources", "resources")])
def test_lists_take_the_same_statements_for_any_number(
    alice: Person, stub: StubUpstream, storage: Any, path: str, name: str
) -> None:
    counts = []
    for number in range(3):
        say(alice, f"chat:{number}", "tea")
        upload(alice, f"{number}.txt", f"The payment {number} is due.")
        with CaptureQueriesContext(connection) as captured:
            found = call(alice, "get", path, limit=50)[name]
        assert {one["remote"]["state"] for one in found} <= {"pending", "sent", "derived"}
        counts.append(len(captured))
    assert len(set(counts[1:])) == 1
