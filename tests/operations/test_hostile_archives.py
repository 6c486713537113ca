"""Damaged and hostile archives are rejected before anything is imported."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError
from django.test import override_settings

from accounts.audit import Actor
from accounts.models import MemoryUser
from operations import erase
from resources.models import Resource
from store.models import Memory
from tests.conftest import make_person
from tests.operations import edit_archive
from tests.operations.sample_data import add_sent_message, create_sample_data
from tests.operations.test_export_import import export, remove_all_users, run

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def exported(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[UUID, bytes]:
    """The primary key and the archive of a user who was removed. Created once, outside of the tests' transactions."""
    folder = tmp_path_factory.mktemp("exported")
    with django_db_blocker.unblock(), override_settings(MEMORY_GATEWAY_STORAGE_DIR=folder / "storage"):
        person = make_person("alice")
        create_sample_data(person)
        add_sent_message(person, "The walnut meeting is on Friday.")
        data = export(folder / "all.tar")
        remove_all_users(folder / "storage")
    return person.user_pk, data


@pytest.fixture
def alice(exported: tuple[UUID, bytes]) -> UUID:
    return exported[0]


@pytest.fixture
def archive(exported: tuple[UUID, bytes], storage: Path, tmp_path: Path) -> Path:
    path = tmp_path / "all.tar"
    path.write_bytes(exported[1])
    return path


def import_error(path: Path) -> str:
    """Return the error of the import, and assert that nothing was imported."""
    with pytest.raises(CommandError) as refused:
        run("import_memory", str(path))
    assert refused.value.returncode == 2
    assert not MemoryUser.objects.exists()
    assert not Memory.objects.exists()
    return str(refused.value)


def test_damage_is_reported_with_the_file_and_both_checksums(archive: Path, alice: UUID) -> None:
    data = archive.read_bytes()
    assert data.count(b"walnut tea") == 1
    archive.write_bytes(data.replace(b"walnut tea", b"walnut sea"))
    message = import_error(archive)
    name = f"users/{alice}/memories.jsonl"
    lines = edit_archive.content(archive, name)
    assert f"{name} has SHA-256 {hashlib.sha256(lines).hexdigest()}, but the manifest says" in message
    assert hashlib.sha256(lines.replace(b"walnut sea", b"walnut tea")).hexdigest() in message


def test_a_damaged_manifest_is_rejected(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes().replace(b'"format": "memory', b'"format": "nemory'))
    assert "manifest.json has SHA-256" in import_error(archive)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_a_truncated_archive_is_rejected(archive: Path, share: float) -> None:
    data = archive.read_bytes()
    archive.write_bytes(data[: int(data.index(b"manifest.json") * share)])
    import_error(archive)


@pytest.mark.parametrize("kind", ["symlink", "hardlink", "fifo", "device", "folder"])
def test_members_other_than_plain_files_are_rejected(archive: Path, kind: str) -> None:
    edit_archive.add_special(archive, kind)
    assert "not a regular file" in import_error(archive)


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "users/../evil", "users//evil", "a\\b", "users/\n"])
def test_unsafe_member_names_are_rejected(archive: Path, name: str) -> None:
    edit_archive.add(archive, name, b"x")
    assert "invalid name" in import_error(archive)


def test_members_missing_from_the_manifest_are_rejected(archive: Path) -> None:
    edit_archive.add(archive, "users/extra", b"x", in_manifest=False)
    assert "users/extra" in import_error(archive)


def test_members_of_unknown_users_are_rejected(archive: Path) -> None:
    edit_archive.add(archive, "users/extra", b"x")
    assert "users/extra, which belongs to none of its users" in import_error(archive)


@pytest.mark.parametrize("path", ["files/secret_key", "files/r_1/content", "files/memory_attachments/x/content.sh"])
def test_paths_that_are_no_stored_file_are_rejected(archive: Path, alice: UUID, path: str) -> None:
    edit_archive.add(archive, f"users/{alice}/{path}", b"x")
    assert "which is not a stored file" in import_error(archive)


def test_compressed_archives_are_rejected(archive: Path) -> None:
    """Archives are never decompressed, so there are no decompression bombs."""
    edit_archive.compress(archive)
    assert "is not an archive" in import_error(archive)


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("outbox", {"message": {"content": [{"file": "/etc/passwd"}]}}, "not in the archive"),
        ("memories", {"session": ["default", "default", "no such"]}, "does not exist"),
        ("memories", {"session": "chat:c1"}, "list of names"),
        ("memories", {"memory_type": "nonsense"}, "memory_type"),
        ("memories", {"created_at_ms": "soon"}, "created_at_ms"),
        ("memories", {"unknown": 1}, "does not know"),
        ("memories", {"text": None}, "text must be a string"),
        ("memories", {"text": ["a", "list"]}, "text must be a string"),
        ("memories", {"seq": True}, "seq must be a whole number"),
        ("memories", {"session": ["default"]}, "list of names"),
        ("memories", {"session": ["default", "default", {}]}, "list of names"),
        ("attachments", {"internal_uri": None}, "internal_uri must be a string"),
        ("override_revisions", {"override": {}}, "override must be a string"),
        ("sessions", {"created_at": 5}, "created_at must be a string"),
        ("sessions", {"created_at": "yesterday"}, "created_at"),
        ("sessions", {"created_at": "two\nlines"}, "created_at: “two lines” value has an invalid format"),
        ("override_revisions", {"override": "o_" + 32 * "0"}, "does not exist"),
        ("user", {"user_id": "mallory"}, "does not contain the user"),
    ],
)
def test_invalid_rows_are_rejected(
    archive: Path, alice: UUID, table: str, change: dict[str, Any], message: str
) -> None:
    name = f"users/{alice}/{table}.jsonl"
    edit_archive.change_first_line(archive, name, change)
    assert message in import_error(archive)


def test_a_memory_without_a_payload_is_imported(archive: Path, alice: UUID) -> None:
    name, files = f"users/{alice}/memories.jsonl", edit_archive.contents(archive)
    rows = [json.loads(line) for line in files[name].splitlines()]
    for row in rows:
        row.pop("payload")
    edit_archive.write(archive, {**files, name: b"".join(json.dumps(row).encode() + b"\n" for row in rows)})
    run("import_memory", str(archive))
    assert Memory.objects.count() == len(rows)


OTHER_USER = "0b0b0b0b-0000-4000-8000-000000000000"
OTHER_FILE = f"{OTHER_USER}/r_{32 * 'b'}/content.txt"
OTHER_ATTACHMENT = f"{OTHER_USER}/memory_attachments/{64 * 'b'}/content.txt"


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("resources", {"storage_path": OTHER_FILE}),
        ("attachments", {"internal_uri": f"file://{{storage}}/{OTHER_ATTACHMENT}"}),
        ("attachments", {"internal_uri": f"file:///data/storage/{OTHER_ATTACHMENT}"}),
        ("outbox", {"message": {"content": [{"file": f"{{storage}}/{OTHER_ATTACHMENT}"}]}}),
    ],
)
def test_rows_that_refer_to_files_of_another_user_are_rejected(
    archive: Path, alice: UUID, table: str, change: dict[str, Any]
) -> None:
    """They would be shown to the imported user, sent to the engine for that user, and removed with that user."""
    edit_archive.change_first_line(archive, f"users/{alice}/{table}.jsonl", change)
    assert "which is not this user's" in import_error(archive)


def test_a_path_outside_the_archive_is_rejected(archive: Path, alice: UUID) -> None:
    edit_archive.change_first_line(archive, f"users/{alice}/resources.jsonl", {"storage_path": "../../secret_key"})
    assert "which is not in the archive" in import_error(archive)


@pytest.mark.parametrize("line", [b"[" * 100_000, b"NaN", b"9" * 7000, b"\xff\xfe"])
def test_lines_that_are_not_json_are_rejected(archive: Path, alice: UUID, line: bytes) -> None:
    name = f"users/{alice}/audit.jsonl"
    edit_archive.write(archive, {**edit_archive.contents(archive), name: line + b"\n"})
    assert f"{name}, line 1: " in import_error(archive)


def test_a_repeated_user_is_rejected(archive: Path, alice: UUID) -> None:
    name = f"users/{alice}/user.jsonl"
    edit_archive.write(archive, {**edit_archive.contents(archive), name: 2 * edit_archive.content(archive, name)})
    assert "does not contain the user" in import_error(archive)


@pytest.mark.parametrize(
    "files", [None, 5, [], {"users/x": None}, {"users/x": {}}, {"users/x": {"size": "1", "sha256": 1}}]
)
def test_an_invalid_manifest_is_rejected(archive: Path, files: Any) -> None:
    edit_archive.change_manifest(archive, {"files": files})
    assert "does not give the size and SHA-256" in import_error(archive)


def test_rows_that_refer_to_rows_of_another_user_are_rejected(archive: Path, alice: UUID) -> None:
    """A row refers to the row of another user by its primary key."""
    bob = MemoryUser.objects.get(pk=make_person("bob").user_pk)
    theirs = Resource.objects.create(user=bob, session_id="resource:bob:x", filename="x.txt", content_type="text")
    edit_archive.change_first_line(archive, f"users/{alice}/attachments.jsonl", {"resource": theirs.pk})
    with pytest.raises(CommandError, match="does not exist"):
        run("import_memory", str(archive))
    assert not MemoryUser.objects.filter(user_id="alice").exists()


def test_imported_audit_events_do_not_redirect_an_erasure(archive: Path, alice: UUID) -> None:
    """An imported audit event that names bob must not affect the erasure of either user."""
    bob = MemoryUser.objects.get(pk=make_person("bob").user_pk)
    edit_archive.change_first_line(
        archive, f"users/{alice}/audit.jsonl", {"action": "user.erase_begin", "subject_id": str(bob.pk)}
    )
    run("import_memory", str(archive))
    assert erase.find("alice") == alice
    erase.erase(bob.pk, actor=Actor.command("tests"))
    assert list(MemoryUser.objects.values_list("user_id", flat=True)) == ["alice"]
