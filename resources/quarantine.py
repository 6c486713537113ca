"""Quarantine of stored files without a row: `{storage}/.quarantine/{user}/{time}/…`, kept for 30 days.

Paths below the time are those in the user's folder: move a file back there to restore it.
"""

import contextlib
import logging
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from core.persistence import files
from core.persistence.files import MESSAGE_FILES, entries, root
from resources import storage
from resources.storage import StoredFolder

logger = logging.getLogger("memory_gateway.storage")

FOLDER = ".quarantine"
KEPT = timedelta(days=30)
_TIME_FORMAT = "%Y%m%dT%H%M%S%fZ"


class Batch(NamedTuple):
    """Files of one user that were moved into quarantine at the same time."""

    user_pk: UUID
    moved_at: datetime
    path: Path

    def folders(self) -> list[StoredFolder]:
        return list(storage.folders_below(self.path, self.user_pk))


def move(folder: StoredFolder, now: datetime) -> Path:
    """Move a stored file with its folder into quarantine and return its new path."""
    batch = folder_of(folder.user_pk) / now.astimezone(UTC).strftime(_TIME_FORMAT)
    target = batch / folder.path_below_user
    if files.is_local():
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.path.rename(target)
    for key in folder.keys:
        name = Path(key).name
        files.stored_files().move(key, (target / name).relative_to(root()).as_posix())
    logger.warning("Moved %s to %s: no row references it", folder.path, target)
    return target


def batches() -> Iterator[Batch]:
    """Yield all batches, user by user."""
    for path in _batch_folders():
        with contextlib.suppress(ValueError):
            moved_at = datetime.strptime(path.name, _TIME_FORMAT).replace(tzinfo=UTC)
            yield Batch(UUID(path.parent.name), moved_at, path)


def _batch_folders() -> Iterator[Path]:
    """Yield the paths `{storage}/.quarantine/{user}/{time}`."""
    if files.is_local():
        for user_folder in entries(root() / FOLDER):
            yield from entries(user_folder)
        return
    keys = (Path(file.key) for file in files.stored_files().walk(f"{FOLDER}/"))
    found = {Path(*key.parts[:3]) for key in keys if len(key.parts) > 3}
    yield from (root() / folder for folder in sorted(found))


def remove(folder: StoredFolder) -> None:
    """Remove a file permanently, with its folder."""
    if files.is_local():
        shutil.rmtree(folder.path)
    for key in folder.keys:
        files.stored_files().remove(key)
    logger.warning("Removed %s permanently", folder.path)


def remove_empty(batch: Batch) -> None:
    """Remove those folders of a batch that are empty."""
    with contextlib.suppress(OSError):
        (batch.path / MESSAGE_FILES).rmdir()
    with contextlib.suppress(OSError):
        batch.path.rmdir()
        batch.path.parent.rmdir()


def folder_of(user_pk: UUID) -> Path:
    return root() / FOLDER / str(user_pk)
