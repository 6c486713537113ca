"""Paths of stored files do not depend on file names."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.errors import NoSpace
from core.ids import new_resource_id
from core.persistence.file_keys import file_key
from core.persistence.files import create_temporary, raising_no_space, stored_files
from memories.services import files as message_files
from resources import storage as files
from resources.services import IncomingFile
from tests.resources.forms import files_below


@given(name=st.text(max_size=100))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
def test_file_names_never_become_paths(storage: Path, name: str) -> None:
    incoming = IncomingFile(name, "text/plain")
    incoming.write(b"Some text.")
    try:
        assert [Path(path).parent.name for path in files_below(storage)] == [".incoming"]
        assert files_below(storage.parent) == [f"storage/{path}" for path in files_below(storage)]
    finally:
        incoming.close()
    assert files_below(storage.parent) == []


@given(st.text(max_size=200))
def test_other_texts_are_not_resolved_as_paths(text: str) -> None:
    with pytest.raises(ValueError, match="not a key of the storage"):
        file_key(text)


@pytest.mark.parametrize(
    "tail", ["../content", "content/../../x", "content.txt/..", "content.TXT", "other", "content.\n", "content.txt\n"]
)
def test_a_path_that_leaves_its_folder_is_refused(tail: str) -> None:
    with pytest.raises(ValueError):
        file_key(f"{uuid.uuid4()}/{new_resource_id()}/{tail}")


def test_storage_paths_are_below_the_root(storage_root: Path) -> None:
    path = files.storage_path(uuid.uuid4(), new_resource_id(), ".pdf")
    with stored_files().local_copy(path) as copy:
        assert copy.is_relative_to(storage_root)


@pytest.fixture
def storage_root(settings: object, tmp_path: Path) -> Path:
    settings.MEMORY_GATEWAY_STORAGE_DIR = tmp_path  # type: ignore[attr-defined]
    return tmp_path


def test_only_the_owner_account_can_access_files_and_folders(storage_root: Path) -> None:
    descriptor, path = create_temporary()
    os.close(descriptor)
    target = files.storage_path(uuid.uuid4(), new_resource_id(), ".txt")
    stored_files().put(path, target)
    assert (storage_root / target).stat().st_mode & 0o777 == 0o600
    assert (storage_root / target).parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.django_db
def test_the_folders_of_a_message_file_are_synced_to_disk(storage_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power cut could remove an acknowledged file with its new folders."""
    synced: set[Path] = set()
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(Path(f"/proc/self/fd/{fd}").readlink()), sync(fd)))
    file = message_files.inline_file(uuid.uuid4(), b"GIF89a", "gif")
    message_files.keep(file)
    assert {storage_root / part for part in Path(file.key).parents} <= synced


def test_a_user_folder_that_is_a_symbolic_link_is_ignored(
    storage_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / new_resource_id()).mkdir()
    (storage_root / str(uuid.uuid4())).symlink_to(elsewhere)
    assert list(files.stored_folders()) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_raises_no_space(code: int) -> None:
    with pytest.raises(NoSpace, match="full"), raising_no_space():
        raise OSError(code, os.strerror(code))


def test_other_disk_errors_propagate() -> None:
    with pytest.raises(PermissionError), raising_no_space():
        raise PermissionError(errno.EACCES, "no")
