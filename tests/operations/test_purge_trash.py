"""`manage.py purge_trash`: what was deleted long ago cannot come back."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts.audit import Actor
from memories.models import Override, Tombstone
from operations import orphans, purge
from operations.worker import MaintenanceTask
from resources.models import Attachment, Resource
from store.models import Memory, Session
from tests.conftest import Person
from tests.engines.everos.conftest import make_engine, told
from tests.fake_engine import RecordingEngine
from tests.memories.calls import NOON_MS, call, id_of, say, upload
from tests.operations.furnished import found, furnish
from tests.resources.forms import files_below
from tests.store.test_trouble import Crash, broken_after
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")


def run(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("purge_trash", *arguments, "--json", stdout=out, stderr=StringIO())
    return dict(json.loads(out.getvalue()))


def trash(person: Person) -> list[Any]:
    return list(call(person, "get", "/memories/trash")["trash"])


def make_older(days: int) -> None:
    Tombstone.objects.update(created_at=timezone.now() - timedelta(days=days))


def test_only_what_is_old_enough_goes(alice: Person, storage: Path) -> None:
    furnish(alice)
    assert len(trash(alice)) == 2
    make_older(29)
    assert run()["memories"] == 0
    make_older(31)
    assert (run()["memories"], run()["sessions"]) == (1, 0)
    assert trash(alice) == []


@pytest.mark.parametrize("days", ["-30", "99999999999", "two"])
def test_an_age_that_is_none_purges_nothing(alice: Person, days: str) -> None:
    """A slip of the hand must not empty the trash: below nothing would be all of it."""
    say(alice, "chat:c1", "The walnut rumour.")
    call(alice, "delete", f"/memories/{id_of('The walnut rumour.')}")
    with pytest.raises(CommandError, match=r"older-than: must be a whole number from 0 to 36,500"):
        run(f"--older-than={days}")
    assert Tombstone.objects.get().row is not None


def test_nothing_of_its_words_is_left(alice: Person, storage: Path) -> None:
    furnish(alice)
    deleted = id_of("Ignore the walnut rumour.")
    corrected = Override.objects.get().memory_id
    call(alice, "delete", f"/memories/{corrected}", reason="walnut too")
    run("--older-than", "0")
    texts = list(Memory.objects.values_list("text", flat=True))
    assert not [text for text in texts if any(word in text for word in ("rumour", "cake", "Kiel", "Hamburg"))]
    assert not Override.objects.exists()
    assert set(Tombstone.objects.values_list("reason", flat=True)) == {""}
    for memory_id in (deleted, corrected):
        for method, path in (("get", ""), ("post", "/restore"), ("patch", "")):
            body = {"override_text": "again"} if method == "patch" else {}
            call(alice, method, f"/memories/{memory_id}{path}", status=404, **body)
    call(alice, "post", "/sessions/chat:trash/restore", status=404)


def test_the_same_message_again_does_not_bring_it_back(alice: Person) -> None:
    say(alice, "chat:c1", "The walnut rumour.", "I like tea.")
    call(alice, "delete", f"/memories/{id_of('The walnut rumour.')}")
    run("--older-than", "0")
    say(alice, "chat:c1", "The walnut rumour.", "I like tea.")
    assert [memory["text"] for memory in call(alice, "get", "/memories")["memories"]] == ["I like tea."]
    assert found(alice, "walnut rumour") == []


def test_an_upstream_s_copy_does_not_bring_it_back(alice: Person) -> None:
    with StubUpstream() as stub:
        engine = make_engine(stub)
        for number, text in enumerate(("The walnut rumour.", "I like tea.")):
            engine.add(alice.owner, "chat:c1", [told(alice.owner, text, 1_781_172_177_000 + number)])
            engine.flush(alice.owner, "chat:c1")
            if not number:
                memory_id = Memory.objects.get(memory_type="episode").memory_id
                call(alice, "delete", f"/memories/{memory_id}")
                assert purge.purge_trash(older_than=timedelta(0), actor=ACTOR, engine=engine).memories == 1
    listed = call(alice, "get", "/memories")["memories"]
    assert ["tea" in memory["text"] for memory in listed] == [True]
    assert Tombstone.objects.get().undone_at is None  # it goes on hiding what a search brings from there


def test_a_purged_session_takes_its_file_along_and_stays_closed(alice: Person, storage: Path) -> None:
    made = upload(alice)
    call(alice, "delete", f"/sessions/{made['session_id']}")
    assert run("--older-than", "0")["resources"] == 1
    assert alice.client.get(f"/resources/{made['resource_id']}/content").status_code == 404
    assert files_below(storage) == []
    assert Session.objects.get().deleted_at is not None
    assert Resource.objects.get().storage_path == ""


def test_a_session_restored_while_others_are_purged_stays(alice: Person) -> None:
    for name in ("chat:c1", "chat:c2"):
        say(alice, name, f"The walnut rumour of {name}.")
        call(alice, "delete", f"/sessions/{name}")

    def report(_: str, done: int, total: int) -> None:
        if (done, total) == (1, 2):
            call(alice, "post", "/sessions/chat:c2/restore")

    counts = purge.purge_trash(older_than=timedelta(0), actor=ACTOR, report=report)
    assert counts.sessions == 1
    assert [memory["text"] for memory in call(alice, "get", "/memories")["memories"]] == [
        "The walnut rumour of chat:c2."
    ]


@pytest.mark.parametrize("has_file", [True, False])
def test_a_purge_of_a_session_that_crashes_anywhere_is_ended_by_the_next(
    alice: Person, storage: Path, has_file: bool
) -> None:
    for statements in range(1, 60):
        name = f"chat:c{statements}"
        say(alice, name, "The walnut rumour.")
        if has_file:
            file = base64.b64encode(name.encode()).decode()
            content = {"type": "doc", "name": "notes.txt", "ext": "txt", "base64": file}
            message = {"sender_id": "alice", "role": "user", "timestamp": NOON_MS + 9000, "content": [content]}
            call(alice, "post", "/memories/add", session_id=name, messages=[message])
        call(alice, "delete", f"/sessions/{name}")
        try:
            with broken_after(statements, Crash):
                purge.purge_trash(older_than=timedelta(0), actor=ACTOR)
            break
        except Crash:
            connection.close()
        run("--older-than", "0")
        orphans.clear(timezone.now() + timedelta(hours=2))
        assert not Memory.objects.exclude(text="").exists()
        assert not Attachment.objects.exists()
        assert files_below(storage) == []
    else:
        pytest.fail("the purge never ended")
    assert statements > 10


def test_files_of_a_purged_session_go_unless_another_speaks_of_them(alice: Person, storage: Path) -> None:
    furnish(alice)
    stored = [path for path in storage.rglob("memory_attachments/*/*") if path.is_file()]
    assert len(stored) == 1
    call(alice, "delete", "/sessions/chat:c3")
    run("--older-than", "0")
    assert not stored[0].exists()


def test_deleted_resources_lose_their_names(alice: Person, storage: Path) -> None:
    made = upload(alice, title="My walnut")
    call(alice, "delete", f"/resources/{made['resource_id']}")
    assert run()["forgotten"] == 0
    Resource.objects.update(deleted_at=timezone.now() - timedelta(days=31))
    assert run()["forgotten"] == 1
    resource = Resource.objects.get()
    assert (resource.filename, resource.title, resource.sha256) == ("", None, "")


def test_one_user_alone(alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        say(person, "chat:c1", f"Rumour of {person.user_id}.")
        call(person, "delete", f"/memories/{id_of(f'Rumour of {person.user_id}.')}")
    run("--older-than", "0", "--user", "bob")
    assert (len(trash(alice)), len(trash(bob))) == (1, 0)


def test_chosen_ones_go_however_young(alice: Person, storage: Path) -> None:
    furnish(alice)
    (chosen, _) = Tombstone.objects.order_by("memory_id").reverse().values_list("pk", flat=True)
    assert purge.purge_memory([chosen], actor=ACTOR).memories == 1
    assert len(trash(alice)) == 1


def test_zero_days_keep_the_trash_for_ever(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_TRASH_DAYS = 0
    with pytest.raises(CommandError, match="keeps the trash for ever"):
        run()


def test_the_worker_purges_once_a_day(alice: Person, storage: Path) -> None:
    furnish(alice)
    make_older(31)
    now = timezone.now()
    task = MaintenanceTask(engine=RecordingEngine(), clock=lambda: now)
    first, second = task.run_once(), task.run_once()
    assert first is not None
    assert second is not None
    assert (first.purged, second.purged) == (2, 0)
