"""Archives that are damaged or meant to do harm: refused before anything comes in."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError
from django.test import override_settings

from accounts.models import MemoryUser
from engine.models import Memory
from resources.models import Resource
from tests.conftest import make_person
from tests.lifecycle import tars
from tests.lifecycle.furnished import furnish
from tests.lifecycle.test_export_import import export, forget_everybody, run

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def exported(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[UUID, bytes]:
    """The key of a user who is here no more, and their archive: made once, outside of any test's transaction."""
    folder = tmp_path_factory.mktemp("exported")
    with django_db_blocker.unblock(), override_settings(MEMORY_GATEWAY_STORAGE_DIR=folder / "storage"):
        person = make_person("alice")
        furnish(person)
        data = export(folder / "all.tar")
        forget_everybody(folder / "storage")
    return person.user_pk, data


@pytest.fixture
def alice(exported: tuple[UUID, bytes]) -> UUID:
    return exported[0]


@pytest.fixture
def archive(exported: tuple[UUID, bytes], storage: Path, tmp_path: Path) -> Path:
    path = tmp_path / "all.tar"
    path.write_bytes(exported[1])
    return path


def refusal(path: Path) -> str:
    """What the command says; nothing may have come in."""
    with pytest.raises(CommandError) as refused:
        run("import_memory", str(path))
    assert refused.value.returncode == 2
    assert not MemoryUser.objects.exists()
    assert not Memory.objects.exists()
    return str(refused.value)


def test_damage_is_refused_with_the_file_and_both_checksums(archive: Path, alice: UUID) -> None:
    data = archive.read_bytes()
    assert data.count(b"walnut tea") == 1
    archive.write_bytes(data.replace(b"walnut tea", b"walnut sea"))
    said = refusal(archive)
    name = f"users/{alice}/memories.jsonl"
    lines = tars.content(archive, name)
    assert f"{name} has SHA-256 {hashlib.sha256(lines).hexdigest()}, the manifest says" in said
    assert hashlib.sha256(lines.replace(b"walnut sea", b"walnut tea")).hexdigest() in said


def test_a_damaged_manifest_is_refused(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes().replace(b'"format": "memory', b'"format": "nemory'))
    assert "manifest.json has SHA-256" in refusal(archive)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_a_cut_archive_is_refused(archive: Path, share: float) -> None:
    data = archive.read_bytes()
    archive.write_bytes(data[: int(data.index(b"manifest.json") * share)])
    refusal(archive)


@pytest.mark.parametrize("kind", ["symlink", "hardlink", "fifo", "device", "folder"])
def test_anything_but_plain_files_is_refused(archive: Path, kind: str) -> None:
    tars.add_special(archive, kind)
    assert "no plain file" in refusal(archive)


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "users/../evil", "users//evil", "a\\b", "users/\n"])
def test_names_that_lead_elsewhere_are_refused(archive: Path, name: str) -> None:
    tars.add(archive, name, b"x")
    assert "not allowed" in refusal(archive)


def test_what_the_manifest_does_not_name_is_refused(archive: Path) -> None:
    tars.add(archive, "users/extra", b"x", in_manifest=False)
    assert "users/extra" in refusal(archive)


def test_a_name_of_no_user_is_refused_although_the_manifest_has_it(archive: Path) -> None:
    tars.add(archive, "users/extra", b"x")
    assert "users/extra, which belongs to none of its users" in refusal(archive)


@pytest.mark.parametrize("path", ["files/secret_key", "files/r_1/content", "files/memory_attachments/x/content.sh"])
def test_files_that_are_none_of_the_storage_are_refused(archive: Path, alice: UUID, path: str) -> None:
    tars.add(archive, f"users/{alice}/{path}", b"x")
    assert "which is no stored file" in refusal(archive)


def test_compressed_archives_are_refused(archive: Path) -> None:
    """Nothing is ever inflated, so there is no bomb."""
    tars.compress(archive)
    assert "is no archive" in refusal(archive)


@pytest.mark.parametrize(
    ("table", "change", "said"),
    [
        ("memories", {"payload": {"message": {"content": [{"file": "/etc/passwd"}]}}}, "not in the archive"),
        ("memories", {"session": ["default", "default", "no such"]}, "not there"),
        ("memories", {"session": "chat:c1"}, "list of names"),
        ("memories", {"memory_type": "nonsense"}, "memory_type"),
        ("memories", {"created_at_ms": "soon"}, "created_at_ms"),
        ("memories", {"unknown": 1}, "does not know"),
        ("memories", {"text": None}, "text"),
        ("sessions", {"created_at": "yesterday"}, "created_at"),
        ("override_revisions", {"override": "o_" + 32 * "0"}, "not there"),
        ("user", {"user_id": "mallory"}, "does not hold the user"),
    ],
)
def test_rows_that_could_not_be_are_refused(
    archive: Path, alice: UUID, table: str, change: dict[str, Any], said: str
) -> None:
    name = f"users/{alice}/{table}.jsonl"
    tars.change_first_line(archive, name, change)
    assert said in refusal(archive)


def test_rows_of_others_cannot_be_taken_over(archive: Path, alice: UUID) -> None:
    """A row that refers to somebody else's by its key."""
    bob = MemoryUser.objects.get(pk=make_person("bob").user_pk)
    theirs = Resource.objects.create(user=bob, session_id="resource:bob:x", filename="x.txt", content_type="text")
    tars.change_first_line(archive, f"users/{alice}/attachments.jsonl", {"resource": theirs.pk})
    with pytest.raises(CommandError, match="not there"):
        run("import_memory", str(archive))
    assert not MemoryUser.objects.filter(user_id="alice").exists()
