"""Archives that are damaged or meant to do harm: refused before anything comes in."""

from __future__ import annotations

import hashlib
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
from tests.operations import tars
from tests.operations.furnished import furnish
from tests.operations.test_export_import import export, forget_everybody, run

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
        ("memories", {"text": None}, "text must be a text"),
        ("memories", {"text": ["a", "list"]}, "text must be a text"),
        ("memories", {"text": "half \ud800 of a character"}, "not JSON"),
        ("memories", {"payload": {"said": "NUL \x00"}}, "not JSON"),
        ("memories", {"payload": []}, "payload must be an object"),
        ("memories", {"seq": True}, "seq must be a whole number"),
        ("memories", {"session": ["default"]}, "list of names"),
        ("memories", {"session": ["default", "default", {}]}, "list of names"),
        ("attachments", {"internal_uri": None}, "internal_uri must be a text"),
        ("override_revisions", {"override": {}}, "override must be a text"),
        ("sessions", {"created_at": 5}, "created_at must be a text"),
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


OTHER = "0b0b0b0b-0000-4000-8000-000000000000"
THEIRS = f"{OTHER}/r_{32 * 'b'}/content.txt"
ATTACHED = f"{OTHER}/memory_attachments/{64 * 'b'}/content.txt"


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("resources", {"storage_path": THEIRS}),
        ("attachments", {"internal_uri": f"file://{{storage}}/{ATTACHED}"}),
        ("attachments", {"internal_uri": f"file:///data/storage/{ATTACHED}"}),
        ("memories", {"payload": {"message": {"content": [{"file": f"{{storage}}/{ATTACHED}"}]}}}),
    ],
)
def test_nobody_s_files_come_with_another_s_rows(
    archive: Path, alice: UUID, table: str, change: dict[str, Any]
) -> None:
    """They would be shown to, sent out for and removed with the user of the archive."""
    tars.change_first_line(archive, f"users/{alice}/{table}.jsonl", change)
    assert "which is not this user's" in refusal(archive)


def test_a_path_that_is_none_of_the_storage_is_refused(archive: Path, alice: UUID) -> None:
    tars.change_first_line(archive, f"users/{alice}/resources.jsonl", {"storage_path": "../../secret_key"})
    assert "no place of a stored file" in refusal(archive)


@pytest.mark.parametrize("line", [b"[" * 100_000, b"NaN", b"9" * 7000, b"\xff\xfe"])
def test_what_no_reader_gets_through_is_no_row(archive: Path, alice: UUID, line: bytes) -> None:
    name = f"users/{alice}/audit.jsonl"
    tars.write(archive, {**tars.contents(archive), name: line + b"\n"})
    assert f"{name}, line 1: not JSON" in refusal(archive)


def test_a_user_twice_is_refused(archive: Path, alice: UUID) -> None:
    name = f"users/{alice}/user.jsonl"
    tars.write(archive, {**tars.contents(archive), name: 2 * tars.content(archive, name)})
    assert "does not hold the user" in refusal(archive)


@pytest.mark.parametrize(
    "files", [None, 5, [], {"users/x": None}, {"users/x": {}}, {"users/x": {"size": "1", "sha256": 1}}]
)
def test_a_manifest_that_is_none_is_refused(archive: Path, files: Any) -> None:
    tars.change_manifest(archive, {"files": files})
    assert "does not say size and SHA-256" in refusal(archive)


def test_rows_of_others_cannot_be_taken_over(archive: Path, alice: UUID) -> None:
    """A row that refers to somebody else's by its key."""
    bob = MemoryUser.objects.get(pk=make_person("bob").user_pk)
    theirs = Resource.objects.create(user=bob, session_id="resource:bob:x", filename="x.txt", content_type="text")
    tars.change_first_line(archive, f"users/{alice}/attachments.jsonl", {"resource": theirs.pk})
    with pytest.raises(CommandError, match="not there"):
        run("import_memory", str(archive))
    assert not MemoryUser.objects.filter(user_id="alice").exists()


def test_a_trail_that_comes_along_points_no_erasure_at_another(archive: Path, alice: UUID) -> None:
    """Who names alice in a request to erase her gets no bob erased, and bob's own erasure is none the worse."""
    bob = MemoryUser.objects.get(pk=make_person("bob").user_pk)
    tars.change_first_line(
        archive, f"users/{alice}/audit.jsonl", {"action": "user.erase_begin", "subject_id": str(bob.pk)}
    )
    run("import_memory", str(archive))
    assert erase.find("alice") == alice
    erase.erase(bob.pk, actor=Actor.command("tests"))
    assert list(MemoryUser.objects.values_list("user_id", flat=True)) == ["alice"]
