"""Quarantine of stored files without a row: `{storage}/.quarantine/{user}/{time}/…`, kept for 30 days.

Paths below the time are those in the user's folder: move a file back there to restore it.
"""

import contextlib
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from core.persistence.files import stored_files
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
    prefix: str

    def folders(self) -> list[StoredFolder]:
        return list(storage.stored_folders(self.prefix, f"{self.user_pk}/"))


def move(folder: StoredFolder, now: datetime) -> None:
    """Move a stored file with its folder into quarantine."""
    target = f"{prefix_of(folder.user_pk)}{now.astimezone(UTC).strftime(_TIME_FORMAT)}/{folder.path_below_user}/"
    stored_files().move_folder(folder.prefix, target)
    logger.warning("Moved %s to %s: no row references it", _place(folder.prefix), _place(target))


def batches() -> Iterator[Batch]:
    """Yield all batches, user by user."""
    below = (folder.prefix.split("/")[1:3] for folder in stored_files().folders(f"{FOLDER}/"))
    for user, time in sorted({(parts[0], parts[1]) for parts in below if len(parts) > 1 and parts[1]}):
        with contextlib.suppress(ValueError):
            moved_at = datetime.strptime(time, _TIME_FORMAT).replace(tzinfo=UTC)
            yield Batch(UUID(user), moved_at, f"{FOLDER}/{user}/{time}/")


def remove(folder: StoredFolder) -> None:
    """Remove a file permanently, with its folder."""
    stored_files().remove_folder(folder.prefix)
    logger.warning("Removed %s permanently", _place(folder.prefix))


def remove_empty(batch: Batch) -> None:
    """Remove the folders of a batch without files."""
    if not any(stored_files().walk(batch.prefix)):
        stored_files().remove_folder(batch.prefix)


def prefix_of(user_pk: UUID) -> str:
    return f"{FOLDER}/{user_pk}/"


def _place(prefix: str) -> str:
    return f"{stored_files().place_name()}/{prefix.removesuffix('/')}"
