"""`manage.py export_memory` and `manage.py import_memory`: everything of a person in one file, and back."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import AuditEvent, MemoryUser
from memories.models import Override, OverrideRevision, Tombstone
from operations import row_removal
from resources.models import Resource
from store.models import Memory, Session
from tests.conftest import Person, make_person
from tests.memories.calls import call, id_of, say
from tests.operations.furnished import found, furnish
from tests.server import PROJECT, _migrated_file, server_environment

pytestmark = pytest.mark.django_db(transaction=True)


def run(command: str, *arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command(command, *arguments, "--json", stdout=out, stderr=StringIO())
    return dict(json.loads(out.getvalue()))


def export(path: Path, *arguments: str) -> bytes:
    run("export_memory", str(path), *(arguments or ("--all",)))
    return path.read_bytes()


def forget(user_id: str) -> None:
    user = MemoryUser.objects.get(user_id=user_id)
    row_removal.remove_rows(user)
    row_removal.remove_user(user)


def forget_everybody(storage: Path) -> None:
    for user in MemoryUser.objects.all():
        forget(user.user_id)
    AuditEvent.objects.all().delete()
    shutil.rmtree(storage, ignore_errors=True)


def new_key(person: Person) -> Person:
    """The same person after an import without keys."""
    return make_person(person.user_id)


def test_what_comes_back_is_the_same_to_the_byte(alice: Person, bob: Person, storage: Path, tmp_path: Path) -> None:
    furnish(alice)
    furnish(bob, "胡桃 chestnut")
    first = export(tmp_path / "first.tar", "--all", "--with-keys")
    forget_everybody(storage)
    run("import_memory", str(tmp_path / "first.tar"))
    assert export(tmp_path / "second.tar", "--all", "--with-keys") == first


def test_everything_works_as_before(alice: Person, storage: Path, tmp_path: Path) -> None:
    has = furnish(alice)
    questions = ("walnut", "Hamburg", "Kiel", "rumour", "cake", "Friday", "contract", "notes")
    before = {question: found(alice, question) for question in questions}
    assert before["Hamburg"] == before["cake"] == before["rumour"] == []
    assert before["Kiel"]
    history = call(alice, "get", f"/memories/{Override.objects.get().memory_id}")
    export(tmp_path / "all.tar", "--all", "--with-keys")
    forget_everybody(storage)
    run("import_memory", str(tmp_path / "all.tar"))
    assert {question: found(alice, question) for question in questions} == before
    assert call(alice, "get", f"/memories/{Override.objects.get().memory_id}") == history
    download = alice.client.get(f"/resources/{has.resource_id}/content")
    assert b"".join(download.streaming_content).startswith(b"The walnut contract")  # type: ignore[attr-defined]
    trash = call(alice, "get", "/memories/trash")["trash"]
    call(alice, "post", f"/memories/{trash[-1]['memory_id']}/restore")
    assert found(alice, "rumour")


def test_files_of_messages_come_along(alice: Person, storage: Path, tmp_path: Path) -> None:
    has = furnish(alice)
    export(tmp_path / "all.tar")
    forget_everybody(storage)
    assert run("import_memory", str(tmp_path / "all.tar"))["files"] == 2
    sha256 = hashlib.sha256(has.inline).hexdigest()
    assert (storage / str(alice.user_pk) / "memory_attachments" / sha256 / "content.txt").read_bytes() == has.inline


def test_another_storage_folder_is_no_difference(alice: Person, storage: Path, tmp_path: Path, settings: Any) -> None:
    furnish(alice)
    first = export(tmp_path / "first.tar")
    forget_everybody(storage)
    settings.MEMORY_GATEWAY_STORAGE_DIR = tmp_path / "else where"
    run("import_memory", str(tmp_path / "first.tar"))
    assert export(tmp_path / "second.tar") == first
    results = call(new_key(alice), "post", "/memories/search", query="walnut notes", scope=["all_user_memory"])[
        "results"
    ]
    uris = {file["internal_uri"] for result in results for file in result["attachments"]}
    assert uris
    assert all(uri.startswith((tmp_path / "else where").as_uri()) for uri in uris)


def test_it_takes_one_user_alone_and_no_keys(alice: Person, bob: Person, storage: Path, tmp_path: Path) -> None:
    furnish(alice)
    furnish(bob, "secret")
    data = export(tmp_path / "alice.tar", "--user", "alice")
    assert b"secret" not in data
    forget_everybody(storage)
    run("import_memory", str(tmp_path / "alice.tar"))
    assert set(MemoryUser.objects.values_list("user_id", flat=True)) == {"alice"}
    assert alice.client.get("/memories").status_code == 401
    assert found(new_key(alice), "walnut")


def test_no_key_in_the_clear_with_keys_either(alice: Person, tmp_path: Path) -> None:
    data = export(tmp_path / "keys.tar", "--all", "--with-keys")
    assert alice.user_key.encode() not in data
    assert b"uk_" in data  # the first characters, to tell keys apart


def test_between_databases_nothing_changes(alice: Person, bob: Person, storage: Path, tmp_path: Path) -> None:
    """This run's database, a SQLite file, and back."""
    furnish(alice)
    furnish(bob, "chestnut")
    first = export(tmp_path / "first.tar")
    other = tmp_path / "other"
    other.mkdir()
    shutil.copyfile(_migrated_file(), other / "memory_gateway.sqlite3")
    env = server_environment(other, "")
    for arguments in (["import_memory", str(tmp_path / "first.tar")], ["export_memory", str(other / "2.tar"), "--all"]):
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=PROJECT, env=env, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert (other / "2.tar").read_bytes() == first
    forget_everybody(storage)
    run("import_memory", str(other / "2.tar"))
    assert export(tmp_path / "third.tar") == first


def test_who_is_here_already_is_a_reason_to_take_in_nobody(
    alice: Person, bob: Person, storage: Path, tmp_path: Path
) -> None:
    furnish(alice)
    export(tmp_path / "all.tar")
    forget("bob")
    with pytest.raises(CommandError, match="1 of its users are here already, nobody was imported: alice"):
        run("import_memory", str(tmp_path / "all.tar"))
    assert not MemoryUser.objects.filter(user_id="bob").exists()


def test_skip_leaves_them_as_they_are_and_goes_on(alice: Person, bob: Person, storage: Path, tmp_path: Path) -> None:
    furnish(alice)
    export(tmp_path / "all.tar")
    furnish(alice, "almond")
    forget("bob")
    answer = run("import_memory", str(tmp_path / "all.tar"), "--on-conflict", "skip")
    assert (answer["users"], answer["skipped"]) == (1, 1)
    assert found(alice, "almond")


def test_replace_puts_the_archive_in_their_place_and_keeps_their_keys(
    alice: Person, storage: Path, tmp_path: Path
) -> None:
    furnish(alice)
    first = export(tmp_path / "all.tar")
    forget("alice")
    again = make_person("alice")
    furnish(again, "almond")
    run("import_memory", str(tmp_path / "all.tar"), "--on-conflict", "replace")
    assert export(tmp_path / "second.tar") == first
    assert found(again, "walnut")
    assert not found(again, "almond")
    assert not (storage / str(again.user_pk)).exists()


def test_replace_brings_back_nothing_that_was_deleted_since(alice: Person, storage: Path, tmp_path: Path) -> None:
    """A memory, a session and a file, in the trash or purged: what the archive still has of them is not found again."""
    furnished = furnish(alice)
    say(alice, "chat:gone", "The walnut secret.")
    say(alice, "chat:more", "The walnut whisper.", "The walnut stays.")
    export(tmp_path / "all.tar")
    tea, secret = id_of("I like walnut tea."), id_of("The walnut secret.")
    call(alice, "delete", f"/memories/{id_of('The walnut whisper.')}")
    call(alice, "delete", "/sessions/chat:gone")
    run("purge_trash", "--older-than", "0")
    call(alice, "delete", f"/memories/{tea}", reason="not any more")
    call(alice, "delete", "/sessions/chat:c3")
    call(alice, "delete", f"/resources/{furnished.resource_id}")
    before = found(alice, "walnut")
    run("import_memory", str(tmp_path / "all.tar"), "--on-conflict", "replace")
    assert found(alice, "walnut") == before
    assert not Memory.objects.filter(text__in=["The walnut whisper.", "The walnut secret."]).exists()
    call(alice, "get", f"/memories/{secret}", status=404)
    assert not (storage / str(alice.user_pk) / furnished.resource_id).exists()
    assert Resource.objects.get(pk=furnished.resource_id).status == "deleted"
    call(alice, "post", f"/memories/{tea}/restore")
    call(alice, "post", "/sessions/chat:c3/restore")
    assert "I like walnut tea." in found(alice, "walnut")


def test_who_was_erased_since_stays_erased(alice: Person, bob: Person, storage: Path, tmp_path: Path) -> None:
    """Also where somebody else has the name by now: the archive of all must not bring one back unnoticed."""
    furnish(alice)
    furnish(bob, "almond")
    archive = tmp_path / "all.tar"
    export(archive)
    run("erase_user", "alice", "--yes")
    make_person("alice")
    forget("bob")
    for how in ("fail", "replace"):
        with pytest.raises(CommandError, match="1 of its users were erased here, nobody was imported: alice"):
            run("import_memory", str(archive), "--on-conflict", how)
    assert not MemoryUser.objects.filter(user_id="bob").exists()
    answer = run("import_memory", str(archive), "--on-conflict", "skip")
    assert (answer["users"], answer["skipped"]) == (1, 1)
    assert not Memory.objects.filter(user__user_id="alice").exists()
    run("erase_user", "alice", "--yes")
    answer = run("import_memory", str(archive), "--on-conflict", "replace", "--even-erased")
    assert answer["users"] == 2
    assert found(new_key(alice), "walnut")


def test_an_older_holder_of_a_session_id_stays_the_holder(
    alice: Person, bob: Person, tmp_path: Path, storage: Path
) -> None:
    """Upstream one id is one session: the younger one leaves with an id of its own."""
    for person in (bob, alice):
        user = MemoryUser.objects.get(user_id=person.user_id)
        Session.objects.create(user=user, session_id="chat:x", engine_session_id="chat:x", kind="chat")
    first = export(tmp_path / "first.tar")
    forget_everybody(storage)
    run("import_memory", str(tmp_path / "first.tar"))
    ids = dict(Session.objects.values_list("user__user_id", "engine_session_id"))
    assert ids == {"bob": "chat:x", "alice": f"chat:x+{alice.user_pk.hex}"}
    assert export(tmp_path / "second.tar") == first


def test_an_existing_file_is_never_written_over(alice: Person, tmp_path: Path) -> None:
    (tmp_path / "all.tar").write_text("mine")
    with pytest.raises(CommandError, match="exists"):
        export(tmp_path / "all.tar")
    assert (tmp_path / "all.tar").read_text() == "mine"
    assert os.listdir(tmp_path) == ["all.tar"]  # noqa: PTH208


def test_a_missing_file_is_said(alice: Person, storage: Path, tmp_path: Path) -> None:
    has = furnish(alice)
    path = Resource.objects.get(pk=has.resource_id).storage_path
    (storage / path).unlink()
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("export_memory", str(tmp_path / "all.tar"), "--all", "--json", stdout=out, stderr=StringIO())
    assert ended.value.code == 1
    assert json.loads(out.getvalue())["missing"] == [path]


def test_what_was_purged_comes_along_as_it_was_left(alice: Person, storage: Path, tmp_path: Path) -> None:
    furnish(alice)
    call(alice, "delete", f"/resources/{Resource.objects.get(deleted_at=None).resource_id}")
    run("purge_trash", "--older-than", "0")
    assert set(Resource.objects.values_list("filename", flat=True)) == {""}
    first = export(tmp_path / "first.tar")
    forget_everybody(storage)
    run("import_memory", str(tmp_path / "first.tar"))
    assert export(tmp_path / "second.tar") == first


def test_all_kinds_of_rows_are_counted(alice: Person, storage: Path, tmp_path: Path) -> None:
    furnish(alice)
    rows = run("export_memory", str(tmp_path / "all.tar"), "--all")["rows"]
    assert rows["memories"] == Memory.objects.count()
    assert (rows["tombstones"], rows["overrides"], rows["override_revisions"]) == (
        Tombstone.objects.count(),
        Override.objects.count(),
        OverrideRevision.objects.count(),
    )
    assert min(rows.values()) > 0
