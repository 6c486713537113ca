"""`manage.py export_memory` and `manage.py import_memory`: all data of users in one archive."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.audit import Actor, record
from accounts.models import AuditEvent, AuditSubject, Controls, MemoryUser, Pause, RefusedMessage
from core.errors import EngineUnavailable
from memories.models import Override, OverrideRevision, Tombstone
from operations import tables
from resources.models import Resource
from resources.queries import pending_cleanups
from store.models import Memory, Session
from tests import forked
from tests.conftest import Person, make_person
from tests.fake_engine import RecordingEngine
from tests.memories.calls import call, id_of, purge_resource, say, upload
from tests.operations import edit_archive
from tests.operations.sample_data import add_sent_message, create_sample_data, search_texts
from tests.resources.forms import stored_resource
from tests.resources.test_purge import delete_and_purge
from tests.server import migrated_file, server_environment

pytestmark = pytest.mark.django_db(transaction=True)


def run(command: str, *arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command(command, *arguments, "--json", stdout=out, stderr=StringIO())
    return dict(json.loads(out.getvalue()))


def export(path: Path, *arguments: str) -> bytes:
    run("export_memory", str(path), *(arguments or ("--all",)))
    return path.read_bytes()


def remove_user(user_id: str) -> None:
    user = MemoryUser.objects.get(user_id=user_id)
    tables.remove_rows(user)
    tables.remove_user(user)


def remove_all_users(storage: Path) -> None:
    for user in MemoryUser.objects.all():
        remove_user(user.user_id)
    AuditEvent.objects.all().delete()
    shutil.rmtree(storage, ignore_errors=True)


def new_key(person: Person) -> Person:
    """Return the user with a new key, as after an import without keys."""
    return make_person(person.user_id)


def test_an_import_and_export_reproduces_the_archive(alice: Person, bob: Person, storage: Path, tmp_path: Path) -> None:
    create_sample_data(alice)
    create_sample_data(bob, "胡桃 chestnut")
    add_sent_message(alice, "The walnut meeting is on Friday.")
    first = export(tmp_path / "first.tar", "--all", "--with-keys")
    remove_all_users(storage)
    run("import_memory", str(tmp_path / "first.tar"))
    assert export(tmp_path / "second.tar", "--all", "--with-keys") == first


def test_an_archive_carries_who_saw_the_user_without_the_others(
    alice: Person, bob: Person, storage: Path, tmp_path: Path
) -> None:
    detail = {"filter": {"user": "bob"}}
    record(Actor.operator("olga"), "memory.list", users=["alice", "bob"], detail=detail)
    first = export(tmp_path / "first.tar", "--user", "alice")
    assert "bob" not in str(first)
    remove_all_users(storage)
    run("import_memory", str(tmp_path / "first.tar"))
    event = AuditEvent.objects.get(action="memory.list")
    assert (event.actor, event.user_id, event.detail) == ("olga", "alice", {})
    assert AuditEvent.objects.filter(subjects__user_id="alice", action="user.create").exists()
    assert set(AuditSubject.objects.values_list("user_id", flat=True)) == {"alice"}
    assert export(tmp_path / "second.tar", "--user", "alice") == first


def test_what_one_audit_event_records_of_many_memories_is_imported(
    alice: Person, admin_client: Client, storage: Path, tmp_path: Path
) -> None:
    say(alice, "chat:c1", "one sloth", "two tapirs")
    call(alice, "delete", "/memories", sender_id="alice")
    for path in ("list/?tab=all&user=alice", "search/?user=alice&q=sloth", "trash/", "searches/?user=alice"):
        assert admin_client.get(f"/admin/memory/{path}").status_code == 200
    assert AuditEvent.objects.filter(user_id="alice", subject_id="").count() > 2
    first = export(tmp_path / "first.tar", "--user", "alice")
    remove_all_users(storage)
    run("import_memory", str(tmp_path / "first.tar"))
    assert export(tmp_path / "second.tar", "--user", "alice") == first


def test_searches_and_decisions_work_after_an_import(alice: Person, storage: Path, tmp_path: Path) -> None:
    sample = create_sample_data(alice)
    queries = ("walnut", "Hamburg", "Kiel", "rumour", "cake", "Friday", "contract", "notes")
    before = {query: search_texts(alice, query) for query in queries}
    assert before["Hamburg"] == before["cake"] == before["rumour"] == []
    assert before["Kiel"]
    history = call(alice, "get", f"/memories/{Override.objects.get().memory_id}")
    export(tmp_path / "all.tar", "--all", "--with-keys")
    remove_all_users(storage)
    run("import_memory", str(tmp_path / "all.tar"))
    assert {query: search_texts(alice, query) for query in queries} == before
    assert call(alice, "get", f"/memories/{Override.objects.get().memory_id}") == history
    download = alice.client.get(f"/resources/{sample.resource_id}/content")
    assert b"".join(download.streaming_content).startswith(b"The walnut contract")  # type: ignore[attr-defined]
    trash = call(alice, "get", "/memories/trash")["trash"]
    call(alice, "post", f"/memories/{trash[-1]['memory_id']}/restore")
    assert search_texts(alice, "rumour")
    [deleted] = call(alice, "get", "/resources", deleted="true")["resources"]
    assert "The old walnut contract." not in search_texts(alice, "old")
    call(alice, "post", f"/resources/{deleted['resource_id']}/restore")
    assert "The old walnut contract." in search_texts(alice, "old")
    download = alice.client.get(f"/resources/{deleted['resource_id']}/content")
    assert b"".join(download.streaming_content) == b"The old walnut contract."  # type: ignore[attr-defined]


def test_files_of_messages_are_exported(alice: Person, storage: Path, tmp_path: Path) -> None:
    sample = create_sample_data(alice)
    export(tmp_path / "all.tar")
    remove_all_users(storage)
    assert run("import_memory", str(tmp_path / "all.tar"))["files"] == 3
    sha256 = hashlib.sha256(sample.inline).hexdigest()
    assert (storage / str(alice.user_pk) / "memory_attachments" / sha256 / "content.txt").read_bytes() == sample.inline


def test_archives_do_not_depend_on_the_storage_folder(
    alice: Person, storage: Path, tmp_path: Path, settings: Any
) -> None:
    create_sample_data(alice)
    first = export(tmp_path / "first.tar")
    remove_all_users(storage)
    settings.MEMORY_GATEWAY_STORAGE_DIR = tmp_path / "else where"
    run("import_memory", str(tmp_path / "first.tar"))
    assert export(tmp_path / "second.tar") == first
    results = call(new_key(alice), "post", "/memories/search", query="walnut notes", scope=["all_user_memory"])[
        "results"
    ]
    uris = {file["internal_uri"] for result in results for file in result["attachments"]}
    assert uris
    assert all(uri.startswith((tmp_path / "else where").as_uri()) for uri in uris)


def test_an_export_of_one_user_has_no_other_users_and_no_keys(
    alice: Person, bob: Person, storage: Path, tmp_path: Path
) -> None:
    create_sample_data(alice)
    create_sample_data(bob, "secret")
    data = export(tmp_path / "alice.tar", "--user", "alice")
    assert b"secret" not in data
    remove_all_users(storage)
    run("import_memory", str(tmp_path / "alice.tar"))
    assert set(MemoryUser.objects.values_list("user_id", flat=True)) == {"alice"}
    assert alice.client.get("/memories").status_code == 401
    assert search_texts(new_key(alice), "walnut")


def test_exported_keys_are_not_plaintext(alice: Person, tmp_path: Path) -> None:
    data = export(tmp_path / "keys.tar", "--all", "--with-keys")
    assert alice.user_key.encode() not in data
    assert b"uk_" in data  # the first characters, to tell keys apart


@pytest.mark.slow
def test_archives_do_not_depend_on_the_database(alice: Person, bob: Person, storage: Path, tmp_path: Path) -> None:
    """Export from the test database into a SQLite file and back."""
    create_sample_data(alice)
    create_sample_data(bob, "chestnut")
    first = export(tmp_path / "first.tar")
    other = tmp_path / "other"
    other.mkdir()
    shutil.copyfile(migrated_file(), other / "memory_gateway.sqlite3")
    env = server_environment(other, "")
    for arguments in (["import_memory", str(tmp_path / "first.tar")], ["export_memory", str(other / "2.tar"), "--all"]):
        done = forked.run(["manage.py", *arguments], env)
        assert done.returncode == 0, done.stderr
    assert (other / "2.tar").read_bytes() == first
    remove_all_users(storage)
    run("import_memory", str(other / "2.tar"))
    assert export(tmp_path / "third.tar") == first


def test_an_existing_user_rejects_the_whole_import(alice: Person, bob: Person, storage: Path, tmp_path: Path) -> None:
    create_sample_data(alice)
    export(tmp_path / "all.tar")
    remove_user("bob")
    with pytest.raises(CommandError, match="1 users of the archive already exist: alice"):
        run("import_memory", str(tmp_path / "all.tar"))
    assert not MemoryUser.objects.filter(user_id="bob").exists()


def test_skip_leaves_existing_users_unchanged(alice: Person, bob: Person, storage: Path, tmp_path: Path) -> None:
    create_sample_data(alice)
    export(tmp_path / "all.tar")
    create_sample_data(alice, "almond")
    remove_user("bob")
    answer = run("import_memory", str(tmp_path / "all.tar"), "--on-conflict", "skip")
    assert (answer["users"], answer["skipped"]) == (1, 1)
    assert search_texts(alice, "almond")


def test_replace_imports_the_archive_and_keeps_existing_keys(alice: Person, storage: Path, tmp_path: Path) -> None:
    create_sample_data(alice)
    first = export(tmp_path / "all.tar")
    remove_user("alice")
    again = make_person("alice")
    create_sample_data(again, "almond")
    for model in (Controls, Pause, RefusedMessage):  # the stricter of both would stay
        model.objects.filter(user=again.user_pk).delete()
    run("import_memory", str(tmp_path / "all.tar"), "--on-conflict", "replace")
    assert export(tmp_path / "second.tar") == first
    assert search_texts(again, "walnut")
    assert not search_texts(again, "almond")
    assert not (storage / str(again.user_pk)).exists()


def test_replace_does_not_restore_what_was_deleted_since(alice: Person, storage: Path, tmp_path: Path) -> None:
    """The archive still contains a memory, a session and a file that were deleted or purged since."""
    sample = create_sample_data(alice)
    other = upload(alice, "other.txt", "The other walnut.")["resource_id"]
    say(alice, "chat:gone", "The walnut secret.")
    say(alice, "chat:more", "The walnut whisper.", "The walnut stays.")
    export(tmp_path / "all.tar")
    tea, secret = id_of("I like walnut tea."), id_of("The walnut secret.")
    call(alice, "delete", f"/memories/{id_of('The walnut whisper.')}")
    call(alice, "delete", "/sessions/chat:gone")
    run("purge_trash", "--older-than", "0")
    call(alice, "delete", f"/memories/{tea}", reason="not any more")
    call(alice, "delete", "/sessions/chat:c3")
    purge_resource(alice, sample.resource_id)
    call(alice, "delete", f"/resources/{other}")
    deleted_at = Resource.objects.get(pk=other).state_since
    before = search_texts(alice, "walnut")
    run("import_memory", str(tmp_path / "all.tar"), "--on-conflict", "replace")
    assert search_texts(alice, "walnut") == before
    assert not Memory.objects.filter(text__in=["The walnut whisper.", "The walnut secret."]).exists()
    call(alice, "get", f"/memories/{secret}", status=404)
    assert not (storage / str(alice.user_pk) / sample.resource_id).exists()
    assert Resource.objects.get(pk=sample.resource_id).state == "purged"
    assert Resource.objects.get(pk=other).state_since == deleted_at
    call(alice, "post", f"/resources/{other}/restore")
    call(alice, "post", f"/resources/{sample.resource_id}/restore", status=404)
    assert "The other walnut." in search_texts(alice, "walnut")
    call(alice, "post", f"/memories/{tea}/restore")
    call(alice, "post", "/sessions/chat:c3/restore")
    assert "I like walnut tea." in search_texts(alice, "walnut")


@pytest.mark.parametrize("change", [{"state": "live"}, {"state_since": None}, {"state": "expired"}])
def test_a_deleted_file_stays_deleted_if_one_of_its_columns_says_so(
    alice: Person, storage: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    resource_id = upload(alice, "other.txt", "The other walnut.")["resource_id"]
    call(alice, "delete", f"/resources/{resource_id}")
    export(tmp_path / "all.tar")
    folder = f"users/{alice.user_pk}"
    edit_archive.change_first_line(tmp_path / "all.tar", f"{folder}/resources.jsonl", change)
    edit_archive.add(tmp_path / "all.tar", f"{folder}/tombstones.jsonl", b"")
    remove_all_users(storage)
    run("import_memory", str(tmp_path / "all.tar"))
    assert (Resource.objects.get().state, Resource.objects.get().state_since is None) == ("trashed", False)
    assert search_texts(new_key(alice), "walnut") == []


def test_the_pending_cleanup_of_a_purged_file_arrives(alice: Person, storage: Path, tmp_path: Path) -> None:
    engine = RecordingEngine(failures={"delete": [EngineUnavailable("away")]})
    due = delete_and_purge(alice, stored_resource(alice).pk, engine=engine).retry_at
    export(tmp_path / "all.tar")
    remove_all_users(storage)
    run("import_memory", str(tmp_path / "all.tar"))
    [resource] = pending_cleanups()
    assert (resource.state, resource.retry_at) == ("purged", due)


def test_erased_users_are_not_imported(alice: Person, bob: Person, storage: Path, tmp_path: Path) -> None:
    """An archive of all users must not restore an erased user unnoticed, even if another has the user id now."""
    create_sample_data(alice)
    create_sample_data(bob, "almond")
    archive = tmp_path / "all.tar"
    export(archive)
    run("erase_user", "alice", "--yes")
    make_person("alice")
    remove_user("bob")
    for how in ("fail", "replace"):
        with pytest.raises(CommandError, match="1 users of the archive were erased here: alice"):
            run("import_memory", str(archive), "--on-conflict", how)
    assert not MemoryUser.objects.filter(user_id="bob").exists()
    answer = run("import_memory", str(archive), "--on-conflict", "skip")
    assert (answer["users"], answer["skipped"]) == (1, 1)
    assert not Memory.objects.filter(user__user_id="alice").exists()
    run("erase_user", "alice", "--yes")
    answer = run("import_memory", str(archive), "--on-conflict", "replace", "--even-erased")
    assert answer["users"] == 2
    assert search_texts(new_key(alice), "walnut")


def test_the_first_user_of_a_session_id_keeps_it(alice: Person, bob: Person, tmp_path: Path, storage: Path) -> None:
    """EverOS has one session for each id, so the session of the second user gets another id there."""
    for person in (bob, alice):
        user = MemoryUser.objects.get(user_id=person.user_id)
        Session.objects.create(user=user, session_id="chat:x", engine_session_id="chat:x", kind="chat")
    first = export(tmp_path / "first.tar")
    remove_all_users(storage)
    run("import_memory", str(tmp_path / "first.tar"))
    ids = dict(Session.objects.values_list("user__user_id", "engine_session_id"))
    assert ids == {"bob": "chat:x", "alice": f"chat:x+{alice.user_pk.hex}"}
    assert export(tmp_path / "second.tar") == first


def test_an_existing_file_is_not_overwritten(alice: Person, tmp_path: Path) -> None:
    (tmp_path / "all.tar").write_text("mine")
    with pytest.raises(CommandError, match="exists"):
        export(tmp_path / "all.tar")
    assert (tmp_path / "all.tar").read_text() == "mine"
    assert os.listdir(tmp_path) == ["all.tar"]  # noqa: PTH208


def test_a_missing_file_is_reported(alice: Person, storage: Path, tmp_path: Path) -> None:
    sample = create_sample_data(alice)
    path = Resource.objects.get(pk=sample.resource_id).storage_path
    (storage / path).unlink()
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("export_memory", str(tmp_path / "all.tar"), "--all", "--json", stdout=out, stderr=StringIO())
    assert ended.value.code == 1
    assert json.loads(out.getvalue())["missing"] == [path]


def test_purged_rows_are_exported_unchanged(alice: Person, storage: Path, tmp_path: Path) -> None:
    create_sample_data(alice)
    call(alice, "delete", f"/resources/{Resource.objects.get(state='live').resource_id}")
    run("purge_trash", "--older-than", "0")
    assert set(Resource.objects.values_list("filename", flat=True)) == {""}
    first = export(tmp_path / "first.tar")
    remove_all_users(storage)
    run("import_memory", str(tmp_path / "first.tar"))
    assert export(tmp_path / "second.tar") == first


def test_rows_of_all_tables_are_counted(alice: Person, storage: Path, tmp_path: Path) -> None:
    create_sample_data(alice)
    add_sent_message(alice, "The walnut meeting is on Friday.")
    alice.client.post("/memories", {"text": "Walnuts.", "external_id": "1"}, "application/json")
    rows = run("export_memory", str(tmp_path / "all.tar"), "--all")["rows"]
    assert rows["memories"] == Memory.objects.count()
    assert (rows["tombstones"], rows["overrides"], rows["override_revisions"]) == (
        Tombstone.ledger.count(),
        Override.objects.count(),
        OverrideRevision.objects.count(),
    )
    assert min(rows.values()) > 0
