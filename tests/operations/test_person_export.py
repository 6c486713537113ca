"""`GET /users/me/export` and `GET /users/me/audit`: all that is stored about a user, and who saw or changed it."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import AuditEvent, AuditSubject
from accounts.services import issue_key
from memories.services.manual import NewFact, Source, store_fact
from operations import person_export
from store.models import Memory
from tests.conftest import Person, make_person

pytestmark = pytest.mark.django_db(transaction=True)  # files are read in another thread

ACTOR = Actor.command("tests")


def keep(person: Person, text: str, **labels: Any) -> str:
    """Store a fact; return its id."""
    return store_fact(person.owner, NewFact(text, **labels), Source("tool", ACTOR)).memory.memory_id


def upload(person: Person, name: str, content: bytes) -> str:
    answer = person.client.post("/resources", {"file": SimpleUploadedFile(name, content, "text/plain")})
    assert answer.status_code in {200, 201, 202}, answer.content
    return str(answer.json()["resource_id"])


def exported(person: Person, **headers: str) -> zipfile.ZipFile:
    answer = person.client.get("/users/me/export", headers=headers)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    archive = zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content)))  # type: ignore[attr-defined]
    assert archive.testzip() is None
    return archive


def lines(archive: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in archive.read(name).splitlines()]


def test_an_archive_holds_what_is_stored_about_the_user_alone(alice: Person, bob: Person) -> None:
    labels = {"tags": ["tea"], "metadata": {"cups": 2}, "external_id": "crm-1"}
    first = keep(alice, "Alice drinks <tea>", **labels)
    keep(bob, "Bob drinks coffee")
    upload(bob, "bob.txt", b"Bob's file")
    alice.client.put("/api/v1/memories/user", {"content": {"people": [{"name": "Zoe"}]}}, "application/json")
    upload(alice, "会议纪要 & notes.txt", b"The meeting is at nine.")
    archive = exported(alice)
    assert archive.read("files/会议纪要 & notes.txt") == b"The meeting is at nine."
    memories = {one["id"]: one for one in lines(archive, "memories.jsonl")}
    assert memories[first] == memories[first] | {**labels, "text": "Alice drinks <tea>", "state": "live"}
    assert {one["kind"] for one in lines(archive, "profiles.jsonl")} == {"user"}
    assert [one["filename"] for one in lines(archive, "files.jsonl")] == ["会议纪要 & notes.txt"]
    page = archive.read("index.html").decode()
    assert "Alice drinks &lt;tea&gt;" in page
    assert "<h1>Memories of alice</h1>" in page
    everything = b"".join(map(archive.read, archive.namelist()))
    assert b"Bob" not in everything
    event = AuditEvent.objects.get(action="user.export")
    assert (event.actor_kind, event.user_id, event.kind) == ("key", "alice", "change")


def test_deleted_and_expired_memories_say_so_and_purged_ones_are_gone(alice: Person) -> None:
    deleted, purged = keep(alice, "Alice drank water"), keep(alice, "Alice drank milk")
    ended = keep(alice, "Alice is away", expires_at=timezone.now() + timedelta(days=1))
    Memory.objects.filter(memory_id=ended).update(expires_at=timezone.now() - timedelta(seconds=1))
    for memory_id in (deleted, purged):
        alice.client.delete(f"/memories/{memory_id}")
    Memory.objects.filter(memory_id=purged).update(state="purged", text="")
    states = {one["id"]: one["state"] for one in lines(exported(alice), "memories.jsonl")}
    assert states == states | {deleted: "trashed"}
    assert purged not in states


def test_more_memories_than_a_batch_are_all_written_in_order(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_export, "_BATCH_ROWS", 3)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(10):
        keep(alice, f"Fact {number}", created_at=at + timedelta(seconds=number // 4))
    texts = [one["text"] for one in lines(exported(alice), "memories.jsonl")]
    assert texts == [f"Fact {number}" for number in range(10)]


def test_file_names_are_unique_and_no_paths(alice: Person) -> None:
    used: set[str] = set()
    names = [person_export._name_in_archive(name, used) for name in
             ("a.txt", "A.txt", "../../etc/passwd", "a\\b:c?.pdf", "..", "x" * 300 + ".txt", "a.txt")]  # fmt: skip
    assert names[:5] == ["files/a.txt", "files/A (2).txt", "files/_.._etc_passwd", "files/a_b_c_.pdf", "files/file"]
    assert names[5] == f"files/{'x' * 200}.txt"
    assert names[6] == "files/a (3).txt"


def test_a_file_that_is_lost_is_named(alice: Person, storage: Any) -> None:
    resource_id = upload(alice, "notes.txt", b"The meeting is at nine.")
    for path in storage.rglob("*"):
        if path.is_file() and b"meeting" in path.read_bytes():
            path.unlink()
    archive = exported(alice)
    assert lines(archive, "missing.jsonl") == [{"resource_id": resource_id, "path": "files/notes.txt"}]
    assert "files/notes.txt" not in archive.namelist()


def test_the_page_is_in_the_language_of_the_request(alice: Person) -> None:
    page = exported(alice, **{"Accept-Language": "zh-CN"}).read("index.html").decode()
    assert '<html lang="zh-hans">' in page
    assert "的记忆" in page


@pytest.mark.parametrize("path", ["/users/me/export", "/users/me/audit"])
def test_a_key_with_limits_is_refused(alice: Person, path: str) -> None:
    for limits in ({"granted": ["search", "files", "decide", "add", "controls"]}, {"agent_id": "coder"}):
        key = issue_key(alice.user_pk, actor=ACTOR, **limits).plaintext  # type: ignore[arg-type]
        refused = Client().get(path, headers={"Authorization": f"Bearer {key}"})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


def events_of(person: Person, **query: Any) -> list[dict[str, Any]]:
    answer = person.client.get("/users/me/audit", query)
    assert answer.status_code == 200, answer.content
    return list(answer.json()["events"])


def test_an_operator_is_named_by_role_and_number(alice: Person) -> None:
    memory_id = keep(alice, "Alice drinks tea")
    operator = User.objects.create_superuser("carol.secret")
    operator.groups.set([Group.objects.get_or_create(name="Viewer")[0]])
    client = Client()
    client.force_login(operator)
    row = Memory.objects.get(memory_id=memory_id).pk
    assert client.get(reverse("console:memory", args=[row])).status_code == 200
    seen = next(one for one in events_of(alice) if one["action"] == "memory.view")
    by = {"kind": "operator", "key_id": None, "role": "Viewer", "number": operator.pk, "name": None}
    assert (seen["by"], seen["kind"], seen["detail"], seen["address"]) == (by, "read", {}, None)
    assert b"carol" not in alice.client.get("/users/me/audit").content
    operator.first_name, operator.last_name = "Carol", "Jones"
    operator.save()
    assert next(one for one in events_of(alice) if one["action"] == "memory.view")["by"]["name"] == "Carol Jones"
    operator.delete()
    assert next(one for one in events_of(alice) if one["action"] == "memory.view")["by"] == by | {
        "role": None,
        "number": None,
    }


def test_an_event_about_several_users_tells_nothing_of_the_others(alice: Person, bob: Person) -> None:
    detail = {"filter": {"q": "secret"}, "count": 2}
    record(Actor.operator("root"), "job.delete", "j1", users=["alice", "bob"], detail=detail)
    record(Actor.operator("root"), "memory.view", "m1", user_id="bob")
    [event] = [one for one in events_of(alice) if one["action"] in {"job.delete", "memory.view"}]
    assert (event["subject_id"], event["detail"]) == (None, {})


def test_events_come_in_pages_newest_first(alice: Person) -> None:
    for number in range(5):
        record(ACTOR, "memory.add", f"m{number}", user_id="alice")
    whole = [one["event_id"] for one in events_of(alice, limit=100)]
    assert whole == sorted(whole, reverse=True)
    paged: list[int] = []
    query: dict[str, Any] = {"limit": 2}
    while query.get("cursor", "") is not None:
        answer = alice.client.get("/users/me/audit", query).json()
        paged += [one["event_id"] for one in answer["events"]]
        query["cursor"] = answer["next_cursor"]
    assert paged == whole
    assert alice.client.get("/users/me/audit", {"cursor": "x"}).json()["errors"][0]["field"] == "cursor"


def test_users_whose_long_ids_begin_alike_share_no_events() -> None:
    people = [make_person(f"{'a' * 64}{end}") for end in ("1", "2", "")]
    record(ACTOR, "memory.add", "m1", user_id=people[0].user_id)
    counts = [sum(one["subject_id"] == "m1" for one in events_of(person)) for person in people]
    assert counts == [1, 0, 0]
    assert AuditSubject.objects.filter(user_id=people[0].user_id).exists()
