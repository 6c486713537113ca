"""Expiry: `expires_at` of memories and sessions, set, shown, changed and restored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts import services
from accounts.audit import Actor
from accounts.models import AuditEvent, MemoryUser
from core.zones import zone_of
from memories.models import Tombstone
from memories.services.manual import add_by_hand
from operations import ledger
from store import expiry
from store.models import Memory, Session, State
from tests.conftest import Person
from tests.memories.calls import call, id_of, say, search, texts, upload

SECRET = "the safe opens with a yellow key"
ALL = {"scope": ["all_user_memory"]}
pytestmark = pytest.mark.django_db


def later(**delta: float) -> str:
    return (timezone.now() + timedelta(**delta)).replace(microsecond=0).isoformat()


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that moves the clock forward."""
    moved = timedelta()
    present = timezone.now

    def forward(**delta: float) -> None:
        nonlocal moved
        moved += timedelta(**delta)

    def now() -> datetime:
        return present() + moved

    monkeypatch.setattr(timezone, "now", now)
    return forward


def message(person: Person, text: str, **fields: Any) -> dict[str, Any]:
    return {"sender_id": person.user_id, "role": "user", "timestamp": 1_781_172_177_000, "content": text, **fields}


def add(person: Person, *messages: dict[str, Any], session_id: str = "chat:c1", **fields: Any) -> dict[str, Any]:
    return call(person, "post", "/memories/add", session_id=session_id, messages=list(messages), **fields)


def state_of(text: str) -> str:
    assert list(ledger.differences()) == []
    return Memory.objects.get(text=text).state


def test_a_message_expires_and_others_of_its_session_stay(alice: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET, expires_at=later(hours=1)), message(alice, "the safe is gray", timestamp=2))
    assert sorted(texts(search(alice, "safe", **ALL))) == ["the safe is gray", SECRET]
    step(minutes=59)
    assert len(texts(search(alice, "safe", **ALL))) == 2
    step(minutes=1)
    assert texts(search(alice, "safe", **ALL)) == ["the safe is gray"]
    assert state_of(SECRET) == State.EXPIRED
    event = AuditEvent.objects.get(action="memory.expire")
    assert (event.actor_kind, event.actor, event.user_id) == ("system", "expiry", "alice")


def test_a_session_expires_with_its_memories_and_takes_no_messages(alice: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET), expires_at=later(hours=1))
    step(hours=1)
    assert texts(search(alice, "safe", **ALL)) == []
    assert (Session.objects.get().state, state_of(SECRET)) == (State.EXPIRED, State.LIVE)
    found = call(alice, "get", "/sessions/chat:c1")
    assert (found["state"], found["expires_at"]) == ("expired", Session.objects.get().expires_at.isoformat())
    refused = call(alice, "post", "/memories/add", status=409, session_id="chat:c1", messages=[message(alice, "more")])
    assert "expired" in refused["detail"]
    assert call(alice, "get", "/sessions")["sessions"] == []


def test_a_session_keeps_its_time_until_another_is_given(alice: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET), expires_at=later(hours=1))
    step(minutes=30)
    add(alice, message(alice, "more", timestamp=2))
    assert Session.objects.get().expires_at is not None
    add(alice, message(alice, "still more", timestamp=3), expires_at=later(hours=2))
    step(hours=1)
    assert texts(search(alice, "safe", **ALL)) == [SECRET]
    add(alice, message(alice, SECRET), expires_at=None)  # sent again: no message is stored
    assert Session.objects.get().expires_at is None
    step(days=9)
    assert texts(search(alice, "safe", **ALL)) == [SECRET]


@pytest.mark.parametrize("place", ["message", "session", "restore", "override"])
def test_a_time_that_has_passed_is_refused(alice: Person, place: str) -> None:
    add(alice, message(alice, SECRET))
    past, path = later(seconds=-1), f"/memories/{id_of(SECRET)}"
    sent: dict[str, tuple[str, str, dict[str, Any]]] = {
        "message": (
            "post",
            "/memories/add",
            {"session_id": "chat:c1", "messages": [message(alice, "x", expires_at=past)]},
        ),
        "session": (
            "post",
            "/memories/add",
            {"session_id": "chat:c1", "messages": [message(alice, "x")], "expires_at": past},
        ),
        "restore": ("post", f"{path}/restore", {"expires_at": past}),
        "override": ("patch", path, {"expires_at": past}),
    }
    method, address, body = sent[place]
    refused = call(alice, method, address, status=422, **body)
    assert refused["errors"][0]["field"].endswith("expires_at")
    assert Memory.objects.get().expires_at is None


def test_a_date_alone_ends_with_the_day_where_the_person_is(alice: Person, settings: Any, storage: Path) -> None:
    settings.MEMORY_GATEWAY_TIME_ZONE = "Asia/Shanghai"
    end = datetime.fromisoformat("2199-12-31T16:00:00+00:00")
    in_new_york = datetime.fromisoformat("2200-01-01T05:00:00+00:00")
    add(alice, message(alice, SECRET, expires_at="2199-12-31"), expires_at="2199-12-31")
    add(alice, message(alice, "far", expires_at="2199-12-31"), session_id="chat:c2", timezone="America/New_York")
    call(alice, "post", "/memories", status=201, text="a fact", expires_at="2199-12-31")
    call(alice, "post", "/memories/bulk", memories=[{"text": "in bulk", "expires_at": "2199-12-31"}])
    call(alice, "post", "/memories", status=422, text="at the end of time", expires_at="9999-12-31")
    add(alice, message(alice, "changed"), session_id="chat:c3")
    path = f"/memories/{id_of('changed')}"
    call(alice, "patch", path, expires_at="2199-12-31")
    wanted = {SECRET: end, "far": in_new_york, "a fact": end, "in bulk": end, "changed": end}
    assert {text: Memory.objects.get(text=text).expires_at for text in wanted} == wanted
    assert Session.objects.get(session_id="chat:c1").expires_at == end
    call(alice, "delete", path)
    call(alice, "post", f"{path}/restore", expires_at="2199-12-30")
    assert Memory.objects.get(text="changed").expires_at == end - timedelta(days=1)
    today = timezone.now().astimezone(zone_of("Asia/Shanghai")).date()
    call(alice, "patch", path, expires_at=today.isoformat())
    yesterday = (today - timedelta(days=1)).isoformat()
    for day in (yesterday, "2199-02-30", "2199-1-1"):
        refused = call(alice, "patch", path, expires_at=day, status=422)
        assert refused["errors"][0]["field"] == "expires_at"
    of_message = {"session_id": "chat:c1", "messages": [message(alice, "x", expires_at=yesterday)]}
    refused = call(alice, "post", "/memories/add", status=422, **of_message)
    assert refused["errors"][0]["field"] == "messages.0.expires_at"


@pytest.mark.django_db(transaction=True)
def test_a_file_is_restored_until_the_end_of_a_day(alice: Person, settings: Any, storage: Path) -> None:
    settings.MEMORY_GATEWAY_TIME_ZONE = "Asia/Shanghai"
    file = f"/resources/{upload(alice)['resource_id']}"
    call(alice, "delete", file)
    call(alice, "post", f"{file}/restore", expires_at="2199-12-31")
    assert call(alice, "get", file)["resources"][0]["expires_at"].startswith("2199-12-31T16:00")


def test_an_override_sets_and_clears_the_time(alice: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET))
    path = f"/memories/{id_of(SECRET)}"
    answer = call(alice, "patch", path, expires_at=later(hours=1))
    assert (answer["status"], answer["override_id"]) == ("active", None)
    assert call(alice, "get", path)["memory"]["expires_at"] == Memory.objects.get().expires_at.isoformat()
    call(alice, "patch", path, expires_at=None)
    step(hours=2)
    assert call(alice, "get", path)["memory"]["state"] == "live"
    answer = call(alice, "patch", path, override_text="the safe has two keys", expires_at=later(hours=1))
    assert answer["override_id"].startswith("o_")
    step(hours=1)
    assert texts(search(alice, "safe", **ALL)) == []


def test_it_is_visible_as_expired_and_restored_with_a_new_time_only(alice: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET, expires_at=later(hours=1)))
    expires_at, path = Memory.objects.get().expires_at, f"/memories/{id_of(SECRET)}"
    assert expires_at is not None
    step(hours=2)
    [item] = call(alice, "get", "/memories/trash")["trash"]
    assert (item["state"], item["expires_at"], item["text"]) == ("expired", expires_at.isoformat(), SECRET)
    detail = call(alice, "get", path)
    assert (detail["memory"]["state"], detail["memory"]["expires_at"]) == ("expired", expires_at.isoformat())
    assert [(event["action"], event["by"]) for event in detail["history"]] == [("expire", "system")]
    call(alice, "patch", path, status=409, override_text="another")
    refused = call(alice, "post", f"{path}/restore", status=422)
    assert refused["errors"][0]["field"] == "expires_at"
    call(alice, "post", f"{path}/restore", expires_at=later(hours=1))
    assert texts(search(alice, "safe", **ALL)) == [SECRET]
    step(hours=1)
    assert texts(search(alice, "safe", **ALL)) == []
    call(alice, "post", f"{path}/restore", expires_at=None)
    step(days=9)
    assert state_of(SECRET) == State.LIVE
    assert texts(search(alice, "safe", **ALL)) == [SECRET]


def test_an_expired_session_is_restored_with_a_new_time_only(alice: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET), expires_at=later(hours=1))
    step(hours=1)
    assert texts(search(alice, "safe", **ALL)) == []
    refused = call(alice, "post", "/sessions/chat:c1/restore", status=422)
    assert refused["errors"][0]["field"] == "expires_at"
    call(alice, "post", "/sessions/chat:c1/restore", expires_at=later(hours=1))
    assert texts(search(alice, "safe", **ALL)) == [SECRET]
    step(hours=1)
    assert texts(search(alice, "safe", **ALL)) == []


def test_a_persons_deletion_takes_an_expired_memory_over(alice: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET, expires_at=later(hours=1)))
    path = f"/memories/{id_of(SECRET)}"
    step(hours=1)
    call(alice, "delete", path, reason="mine")
    assert state_of(SECRET) == State.TRASHED
    tombstone = Tombstone.objects.get()
    assert (tombstone.actor_kind, tombstone.reason) == ("key", "mine")
    assert call(alice, "get", "/memories/trash")["trash"][0]["state"] == "trashed"
    call(alice, "post", f"{path}/restore", status=422)  # its time has passed nevertheless


def test_what_was_deleted_before_its_time_stays_deleted_by_its_person(alice: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET, expires_at=later(hours=1)))
    path = f"/memories/{id_of(SECRET)}"
    call(alice, "delete", path)
    step(hours=2)
    assert call(alice, "get", path)["memory"]["state"] == "trashed"
    call(alice, "post", f"{path}/restore", status=422)
    call(alice, "post", f"{path}/restore", expires_at=later(hours=1))
    step(hours=1)
    assert call(alice, "get", path)["memory"]["state"] == "expired"


def test_a_restore_before_the_time_keeps_it(alice: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET, expires_at=later(hours=1)))
    path = f"/memories/{id_of(SECRET)}"
    call(alice, "delete", path)
    assert texts(search(alice, "safe", **ALL)) == []
    call(alice, "post", f"{path}/restore")
    step(hours=1)
    assert texts(search(alice, "safe", **ALL)) == []
    assert state_of(SECRET) == State.EXPIRED


def test_others_times_do_not_matter(alice: Person, bob: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET, expires_at=later(hours=1)))
    add(bob, message(bob, SECRET, expires_at=later(hours=2)))
    step(hours=1)
    assert (texts(search(alice, "safe", **ALL)), texts(search(bob, "safe", **ALL))) == ([], [SECRET])
    assert Tombstone.objects.get().user_id == alice.user_pk


def test_the_bound_of_a_user_is_the_next_time_of_all(alice: Person, step: Callable[..., None]) -> None:
    times = [later(hours=hours) for hours in (3, 1, 2)]
    for number, at in enumerate(times, 1):
        add(alice, message(alice, f"number {number}", expires_at=at, timestamp=number), session_id=f"chat:{number}")
        bound = MemoryUser.objects.get(pk=alice.user_pk).next_expiry_at
        assert bound is not None
        assert bound.isoformat() == min(times[:number])
    step(hours=1)
    search(alice, "number", **ALL)
    bound = MemoryUser.objects.get(pk=alice.user_pk).next_expiry_at
    assert bound is not None
    assert bound.isoformat() == times[2]
    assert list(expiry.differences()) == []
    MemoryUser.objects.update(next_expiry_at=None)
    assert list(expiry.differences()) == ["the next expiry of alice is later than that of a memory"]


def test_what_nothing_reads_expires_in_the_background(alice: Person, step: Callable[..., None]) -> None:
    from memories.tasks import end_expired  # noqa: PLC0415

    say(alice, "chat:c1", SECRET)
    call(alice, "patch", f"/memories/{id_of(SECRET)}", expires_at=later(hours=1))
    end_expired.func()
    assert state_of(SECRET) == State.LIVE
    step(hours=1)
    end_expired.func()
    assert state_of(SECRET) == State.EXPIRED
    assert MemoryUser.objects.get().next_expiry_at is None


def test_defaults_of_the_installation_set_the_earliest_time(
    alice: Person, settings: Any, step: Callable[..., None]
) -> None:
    add(alice, message(alice, "before the setting"))
    settings.MEMORY_GATEWAY_EXPIRY = {"full_context_user": 2, "user_memory_fact": 3, "tag:draft": 1}
    add(alice, message(alice, SECRET, timestamp=2), message(alice, "its own", timestamp=3, expires_at=later(days=9)))
    add_by_hand(alice.owner, category="user_memory_fact", text="a fact", origin="tool", actor=Actor.command("tests"))
    tagged = Memory(category="user_memory_fact", payload={"tags": ["draft", "x"]})
    expiry.set_defaults(alice.owner, [tagged])
    assert tagged.expires_at is not None
    days = {"before the setting": None, SECRET: 2, "its own": 9, "a fact": 3}
    for text, expected in days.items():
        at = Memory.objects.get(text=text).expires_at
        assert (at and round((at - timezone.now()) / timedelta(days=1))) == expected
    assert round((tagged.expires_at - timezone.now()) / timedelta(days=1)) == 1
    step(days=2, seconds=1)
    assert texts(search(alice, "safe", **ALL)) == []


def days_of(person: Person, **fields: Any) -> Any:
    return call(person, "get", "/users/me/expiry", **fields)["days"]


def remaining(text: str) -> int | None:
    at = Memory.objects.get(text=text).expires_at
    return None if at is None else round((at - timezone.now()) / timedelta(days=1))


def test_defaults_of_a_user_count_for_what_is_stored_afterwards(
    alice: Person, bob: Person, settings: Any, step: Callable[..., None]
) -> None:
    settings.MEMORY_GATEWAY_EXPIRY = {"user_memory_fact": 5, "full_context_user": 50}
    add(alice, message(alice, "before the default"))
    answer = call(
        alice, "put", "/users/me/expiry", days={"full_context_user": 2, "tag: draft ": 1, "user_memory_fact": 9}
    )
    assert answer["installation"] == settings.MEMORY_GATEWAY_EXPIRY
    assert days_of(alice) == answer["days"] == {"full_context_user": 2, "tag:draft": 1, "user_memory_fact": 9}
    assert days_of(bob) == {}
    its_time = message(alice, "its time", timestamp=3, expires_at=later(days=9))
    assert "expiry_days" not in add(alice, its_time)
    twice = [message(alice, SECRET, timestamp=2), message(alice, "a draft", timestamp=4, tags=["draft"])]
    assert add(alice, *twice)["expiry_days"] == {"full_context_user": 2, "tag:draft": 1}
    assert "expiry_days" not in add(alice, *twice)  # nothing is stored again
    assert add(bob, message(bob, "of bob"))["expiry_days"] == {"full_context_user": 50}
    fact = call(alice, "post", "/memories", status=201, text="a fact")["memory"]
    assert fact["expires_at"] is not None  # the answer says so
    call(alice, "post", "/memories", status=201, text="a preference", category="user_memory_preference")
    expected = {
        "before the default": 50, SECRET: 2, "its time": 9, "a draft": 1, "of bob": 50, "a fact": 5,
        "a preference": None,
    }  # fmt: skip
    assert {text: remaining(text) for text in expected} == expected
    step(days=2, seconds=1)
    assert texts(search(alice, "safe", **ALL)) == []
    assert state_of(SECRET) == State.EXPIRED
    call(alice, "put", "/users/me/expiry", days={})
    call(alice, "post", "/memories", status=201, text="the last preference", category="user_memory_preference")
    assert (days_of(alice), remaining("the last preference")) == ({}, None)


def test_defaults_are_checked_and_leave_a_trail_without_names(alice: Person, settings: Any) -> None:
    refused: list[Any] = [
        {"unknown": 1}, {"tag:": 1}, {"tag:" + "x" * 101: 1}, {"full_context_user": 0}, {"full_context_user": 1.5},
        {"full_context_user": 36_501}, {f"tag:{number}": 1 for number in range(101)}, [1], None,
    ]  # fmt: skip
    for days in refused:
        answer = call(alice, "put", "/users/me/expiry", status=422, days=days)
        assert answer["errors"][0]["field"].startswith("days"), days
    settings.MEMORY_GATEWAY_REDACT = frozenset({"secrets"})
    call(alice, "put", "/users/me/expiry", status=422, days={"tag:password=hunter2secret": 1})
    assert days_of(alice) == {}
    for _ in range(2):
        call(alice, "put", "/users/me/expiry", days={"tag:divorce": 7})
    [event] = AuditEvent.objects.filter(action="user.set_expiry")
    assert (event.detail, event.actor_kind) == ({"number": 1}, "key")


@pytest.mark.parametrize(("scopes", "status"), [(["decide"], 200), (["search"], 403), (["add"], 403)])
def test_a_key_needs_its_scope_to_set_defaults(alice: Person, scopes: list[str], status: int) -> None:
    key = services.issue_key(alice.user_pk, granted=scopes, actor=Actor.command("tests")).plaintext
    answer = alice.client.put(
        "/users/me/expiry", {"days": {}}, "application/json", headers={"Authorization": f"Bearer {key}"}
    )
    assert answer.status_code == status


def upload_draft(person: Person) -> dict[str, Any]:
    """Upload a file of several passages that expires after a day, by the default for its tag."""
    call(person, "put", "/users/me/expiry", days={"tag:draft": 1, "tag:signed": 9})
    return upload(person, "safe.txt", f"{SECRET}. " * 200, tags='["draft", "signed"]')


def file_of(person: Person, resource_id: str) -> Any:
    return call(person, "get", f"/resources/{resource_id}")["resources"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_external", [False, True])
def test_a_file_expires_as_one_with_its_passages(
    alice: Person, step: Callable[..., None], is_external: bool, tmp_path: Path, settings: Any
) -> None:
    draft = upload_draft(alice)
    if is_external:
        call(alice, "delete", f"/resources/{draft['resource_id']}")
        settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [tmp_path]
        (tmp_path / "safe.txt").write_text(f"{SECRET}. " * 200)
        source = {"filename": "safe.txt", "source_uri": (tmp_path / "safe.txt").as_uri()}
        draft = call(alice, "post", "/resources/external", **source, tags=["draft", "signed"])
    resource_id = draft["resource_id"]
    lasting = upload(alice, "lasting.txt", "the safe is gray")["resource_id"]
    ids = [one["id"] for one in search(alice, "safe", **ALL, fold=False, top_k=50)["results"]]
    assert len(ids) > 2
    assert Memory.objects.filter(expires_at__isnull=False).count() == 0
    [shown] = file_of(alice, resource_id)
    assert (datetime.fromisoformat(shown["expires_at"]) - timezone.now()) / timedelta(days=1) == pytest.approx(
        1, abs=0.1
    )
    assert "expires_at" not in file_of(alice, lasting)[0]
    call(alice, "patch", f"/resources/{resource_id}", tags=["signed"])  # what is stored keeps its time
    step(days=1)
    assert texts(search(alice, "safe", **ALL)) == ["the safe is gray"]
    assert file_of(alice, resource_id) == []
    assert alice.client.get(f"/resources/{resource_id}/content").status_code == 404
    assert [one["resource_id"] for one in call(alice, "get", "/resources")["resources"]] == [lasting]
    [deleted] = [
        one
        for one in call(alice, "get", "/resources", deleted="true")["resources"]
        if one["resource_id"] == resource_id
    ]
    assert (deleted["status"], deleted["expires_at"]) == ("deleted", shown["expires_at"])
    assert Session.objects.get(session_id=shown["session_id"]).state == State.EXPIRED
    event = AuditEvent.objects.get(action="resource.expire")
    assert (event.actor_kind, event.actor, event.subject_id) == ("system", "expiry", resource_id)
    assert list(ledger.differences()) == []


@pytest.mark.django_db(transaction=True)
def test_an_expired_file_is_restored_with_a_new_time_alone(alice: Person, step: Callable[..., None]) -> None:
    resource_id = upload_draft(alice)["resource_id"]
    path = f"/resources/{resource_id}/restore"
    step(days=1)
    assert texts(search(alice, "safe", **ALL)) == []
    assert call(alice, "post", path, status=422)["errors"][0]["field"] == "expires_at"
    call(alice, "post", path, status=422, expires_at=later(seconds=-1))
    call(alice, "post", path, expires_at=later(hours=1))
    assert texts(search(alice, "safe", **ALL))
    step(hours=1)
    assert texts(search(alice, "safe", **ALL)) == []
    call(alice, "post", path, expires_at=None)
    step(days=99)
    assert texts(search(alice, "safe", **ALL))
    assert "expires_at" not in file_of(alice, resource_id)[0]
    call(alice, "delete", f"/resources/{resource_id}")
    call(alice, "post", path)
    assert list(ledger.differences()) == []
    assert list(expiry.differences()) == []
