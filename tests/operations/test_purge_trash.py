"""`manage.py purge_trash` removes the text of old deleted memories, sessions and files permanently."""

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
from core.background.tasks import Round
from memories.models import Override, Tombstone
from operations.cleanup import orphans, purge
from operations.tasks import purge_trash
from resources.models import Attachment, Resource
from resources.services import finish_deletion
from store.models import Memory, Session
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, say, upload
from tests.operations.sample_data import create_sample_data, search_texts
from tests.remote.conftest import make_engine, message_of
from tests.resources.forms import files_below
from tests.store.test_failures import Crash, failing_at_statement
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
    """Make all deletions so many days old. The session of a resource is hidden since the deletion of the resource."""
    at = timezone.now() - timedelta(days=days)
    Tombstone.objects.update(created_at=at)
    for resource in Resource.objects.filter(state="trashed"):
        Session.objects.filter(state_since=resource.state_since).update(state_since=at)
        Resource.objects.filter(pk=resource.pk).update(state_since=at)


def test_only_old_deletions_are_purged(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    assert len(trash(alice)) == 2
    make_older(29)
    assert run()["memories"] == 0
    make_older(31)
    assert (run()["memories"], run()["sessions"]) == (1, 0)
    assert trash(alice) == []


@pytest.mark.parametrize("days", ["-30", "99999999999", "two"])
def test_an_invalid_age_purges_nothing(alice: Person, days: str) -> None:
    """A typing error must not empty the trash: a negative age would select everything."""
    say(alice, "chat:c1", "The walnut rumour.")
    call(alice, "delete", f"/memories/{id_of('The walnut rumour.')}")
    with pytest.raises(CommandError, match=r"older-than: must be a whole number from 0 to 36,500"):
        run(f"--older-than={days}")
    assert Tombstone.objects.get().row is not None


def test_no_text_of_a_purged_memory_is_left(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    deleted = id_of("Ignore the walnut rumour.")
    overridden = Override.objects.get().memory_id
    call(alice, "delete", f"/memories/{overridden}", reason="walnut too")
    run("--older-than", "0")
    texts = list(Memory.objects.values_list("text", flat=True))
    assert not [text for text in texts if any(word in text for word in ("rumour", "cake", "Kiel", "Hamburg"))]
    assert not Override.objects.exists()
    assert set(Tombstone.objects.values_list("reason", flat=True)) == {""}
    for memory_id in (deleted, overridden):
        for method, path in (("get", ""), ("post", "/restore"), ("patch", "")):
            body = {"override_text": "again"} if method == "patch" else {}
            call(alice, method, f"/memories/{memory_id}{path}", status=404, **body)
    call(alice, "post", "/sessions/chat:trash/restore", status=404)


def test_repeating_the_message_does_not_restore_it(alice: Person) -> None:
    say(alice, "chat:c1", "The walnut rumour.", "I like tea.")
    call(alice, "delete", f"/memories/{id_of('The walnut rumour.')}")
    run("--older-than", "0")
    say(alice, "chat:c1", "The walnut rumour.", "I like tea.")
    assert [memory["text"] for memory in call(alice, "get", "/memories")["memories"]] == ["I like tea."]
    assert search_texts(alice, "walnut rumour") == []


def test_the_copy_of_an_upstream_does_not_restore_it(alice: Person, settings: Any) -> None:
    with StubUpstream() as stub:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        engine = make_engine(stub)
        for number, text in enumerate(("The walnut rumour.", "I like tea.")):
            engine.add(alice.owner, "chat:c1", [message_of(alice.owner, text, 1_781_172_177_000 + number)])
            engine.flush(alice.owner, "chat:c1")
            if not number:
                memory_id = Memory.objects.get(memory_type="episode", is_covered=False).memory_id
                call(alice, "delete", f"/memories/{memory_id}")
                assert purge.purge_trash(older_than=timedelta(0), actor=ACTOR, engine=engine).memories == 1
    listed = call(alice, "get", "/memories")["memories"]
    assert ["tea" in memory["text"] for memory in listed] == [True]
    purged = Tombstone.objects.get(memory_id=memory_id)
    assert purged.undone_at is None  # it still hides the hits of the upstream
    assert Tombstone.objects.exclude(pk=purged.pk).get().reason == "derived again"  # of the same second


def test_a_purged_session_loses_its_file_and_stays_deleted(alice: Person, storage: Path) -> None:
    created = upload(alice)
    call(alice, "delete", f"/sessions/{created['session_id']}")
    assert run("--older-than", "0")["resources"] == 1
    assert alice.client.get(f"/resources/{created['resource_id']}/content").status_code == 404
    assert files_below(storage) == []
    assert Session.objects.get().state == "purged"
    assert Resource.objects.get().storage_path == ""


def test_a_session_restored_during_the_purge_is_not_purged(alice: Person) -> None:
    for name in ("chat:c1", "chat:c2"):
        say(alice, name, f"The walnut rumour of {name}.")
        call(alice, "delete", f"/sessions/{name}")

    def report(_: str, done: int, total: int) -> None:
        if (done, total) == (2, 2):
            call(alice, "post", "/sessions/chat:c2/restore")

    counts = purge.purge_trash(older_than=timedelta(0), actor=ACTOR, report=report)
    assert counts.sessions == 1
    assert [memory["text"] for memory in call(alice, "get", "/memories")["memories"]] == [
        "The walnut rumour of chat:c2."
    ]


@pytest.mark.slow
@pytest.mark.parametrize("has_file", [True, False])
def test_a_purge_that_crashes_at_any_statement_is_finished_by_the_next(
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
            with failing_at_statement(statements, Crash):
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


def test_message_files_of_a_purged_session_are_removed(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    files = [path for path in storage.rglob("memory_attachments/*/*") if path.is_file()]
    assert len(files) == 1
    call(alice, "delete", "/sessions/chat:c3")
    run("--older-than", "0")
    assert not files[0].exists()


def test_old_deleted_resources_are_purged_with_their_names(alice: Person, storage: Path) -> None:
    created = upload(alice, title="My walnut")
    call(alice, "delete", f"/resources/{created['resource_id']}")
    make_older(29)
    answer = run()
    assert (answer["resources"], answer["forgotten"], len(files_below(storage))) == (0, 0, 1)
    make_older(31)
    answer = run()
    assert (answer["resources"], answer["forgotten"]) == (1, 1)
    assert files_below(storage) == []
    assert not Memory.objects.exists()
    resource = Resource.objects.get()
    assert (resource.filename, resource.title, resource.sha256) == ("", None, "")
    call(alice, "post", f"/resources/{created['resource_id']}/restore", status=404)


def test_a_purged_resource_keeps_its_name_until_its_file_is_removed(alice: Person, storage: Path) -> None:
    path = storage / Resource.objects.get(pk=upload(alice)["resource_id"]).storage_path
    path.unlink()
    path.mkdir()  # a folder cannot be removed as a file
    call(alice, "delete", f"/resources/{Resource.objects.get().pk}")
    make_older(31)
    answer = run()
    assert (answer["resources"], answer["forgotten"], Resource.objects.get().filename != "") == (1, 0, True)
    path.rmdir()
    finish_deletion(Resource.objects.get().pk)
    assert (run()["forgotten"], Resource.objects.get().filename) == (1, "")


def test_a_resource_deleted_again_during_the_purge_stays(alice: Person, storage: Path) -> None:
    path = f"/resources/{upload(alice)['resource_id']}"
    call(alice, "delete", path)
    make_older(31)

    def delete_again(*_: object) -> None:
        call(alice, "post", f"{path}/restore")
        call(alice, "delete", path)

    counts = purge.purge_trash(actor=ACTOR, report=delete_again)
    assert (counts.resources, len(files_below(storage))) == (0, 1)
    call(alice, "post", f"{path}/restore")


def test_a_purged_session_takes_a_resource_in_the_trash_along(alice: Person, storage: Path) -> None:
    created = upload(alice)
    call(alice, "delete", f"/resources/{created['resource_id']}")
    call(alice, "delete", f"/sessions/{created['session_id']}")
    Tombstone.objects.update(created_at=timezone.now() - timedelta(days=31))
    answer = run()
    assert (answer["sessions"], answer["resources"]) == (1, 1)
    assert files_below(storage) == []


def test_the_user_option_selects_one_user(alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        say(person, "chat:c1", f"Rumour of {person.user_id}.")
        call(person, "delete", f"/memories/{id_of(f'Rumour of {person.user_id}.')}")
    run("--older-than", "0", "--user", "bob")
    assert (len(trash(alice)), len(trash(bob))) == (1, 0)


def test_selected_memories_are_purged_at_any_age(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    (chosen, _) = Tombstone.objects.order_by("memory_id").reverse().values_list("pk", flat=True)
    assert purge.purge_memory([chosen], actor=ACTOR).memories == 1
    assert len(trash(alice)) == 1


def test_zero_days_keep_the_trash_forever(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_TRASH_DAYS = 0
    with pytest.raises(CommandError, match="trash is kept forever"):
        run()


def test_the_worker_purges_in_batches(alice: Person, storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_sample_data(alice)
    make_older(31)
    monkeypatch.setattr("operations.tasks.PURGES_PER_RUN", 1)
    left = len(trash(alice))
    rounds = [purge_trash(Round()) for _ in range(left + 1)]
    assert rounds == [True] * left + [False]
    assert trash(alice) == []
    assert not Resource.objects.filter(state="trashed").exists()
