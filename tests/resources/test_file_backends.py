"""A local folder and a bucket do the same with the keys of stored files."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import pytest

from core.ids import new_resource_id
from core.persistence import files
from core.persistence.file_keys import FileKey, file_key
from core.persistence.files import stored_files
from operations.files import put
from resources import quarantine, storage

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 26, 2, 0, tzinfo=UTC)


@pytest.fixture(params=["folder", "bucket"], autouse=True)
def _backend(request: pytest.FixtureRequest, storage: Path) -> None:
    if request.param == "bucket":
        request.getfixturevalue("bucket")


def stored(data: bytes, user: object, name: str = "") -> FileKey:
    key = file_key(f"{user}/{name or new_resource_id()}/content.txt")
    put(key, BytesIO(data))
    return key


def keys(prefix: str = "") -> list[str]:
    return [file.key for file in stored_files().walk(prefix)]


def test_a_missing_file_has_no_content_no_digest_and_no_copy(storage: Path) -> None:
    key = file_key(f"{uuid4()}/{new_resource_id()}/content.txt")
    assert not stored_files().exists(key)
    assert files.digest_of(key) == ""
    for opened in (lambda: stored_files().open_key(key), lambda: stored_files().open_whole(key)):
        with pytest.raises(FileNotFoundError), opened():
            pytest.fail("a missing file was opened")
    with files.local_copy(key) as path:
        assert not path.exists()
    assert [path for path in storage.rglob("*") if path.is_file()] == []


def test_a_stored_file_is_read_by_its_key(storage: Path) -> None:
    key = stored(b"The walnut is ripe.", uuid4())
    for opened in (stored_files().open_key(key), stored_files().open_whole(key)):
        with opened as file:
            assert file.read() == b"The walnut is ripe."
    with files.local_copy(key) as path:
        assert files.digest_of(path) == files.digest_of(key) != ""


def test_the_folders_of_uploads_and_messages_are_found_user_by_user() -> None:
    users = sorted(map(str, (uuid4(), uuid4())))
    upload, message = new_resource_id(), f"memory_attachments/{'a' * 64}"
    for user in users:
        stored(b"upload", user, upload)
        stored(b"message", user, message)
    put(FileKey(f".archives/{users[0]}/a.tar"), BytesIO(b"archive"))
    found = list(storage.stored_folders())
    assert [str(folder.user_pk) for folder in found] in (
        [users[0]] * 2 + [users[1]] * 2,
        [users[1]] * 2 + [users[0]] * 2,
    )
    assert {(folder.path_below_user, folder.name, folder.is_message_file) for folder in found} == {
        (upload, upload, False),
        (message, "a" * 64, True),
    }
    assert all(folder.has_files for folder in found)


def test_files_are_moved_into_quarantine_and_removed_from_it() -> None:
    user, message = uuid4(), f"memory_attachments/{'a' * 64}"
    upload = stored(b"upload", user)
    stored(b"message", user, message)
    kept = stored(b"kept", uuid4())
    for folder in list(storage.stored_folders()):
        if folder.user_pk == user:
            quarantine.move(folder, NOW)
    assert keys(f"{user}/") == []
    [batch] = quarantine.batches()
    assert (batch.user_pk, batch.moved_at) == (user, NOW)
    assert keys(batch.prefix) == [
        f"{batch.prefix}{message}/content.txt",
        batch.prefix + upload.partition("/")[2],
    ]
    quarantine.remove_empty(batch)  # it is not empty
    folders = batch.folders()
    assert {(folder.user_pk, folder.path_below_user) for folder in folders} == {
        (user, message),
        (user, upload.split("/")[1]),
    }
    for folder in folders:
        quarantine.remove(folder)
    quarantine.remove_empty(batch)
    assert list(quarantine.batches()) == []
    assert keys() == [kept]


def test_a_removed_folder_says_what_it_held() -> None:
    user = uuid4()
    stored(b"four", user)
    kept = stored(b"kept", uuid4())
    assert stored_files().remove_folder(f"{user}/") == [4]
    assert stored_files().remove_folder(f"{user}/") == []
    assert keys() == [kept]
