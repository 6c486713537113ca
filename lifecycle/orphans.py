"""Files that no row speaks of: what a crash left while a file arrived, or between a file and its row."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from resources import queries, storage

# A file is older than its row by the time of one transaction; an hour is beyond doubt.
MIN_AGE = timedelta(hours=1)
_BATCH = 500


def remove_orphans(now: datetime) -> int:
    """Removes temporary files and resource folders without a row that are older than an hour; how many."""
    before = (now - MIN_AGE).timestamp()
    removed = storage.remove_old_temporaries(before)
    folders = storage.old_resource_folders(before)
    while batch := list(islice(folders, _BATCH)):
        removed += _remove_unknown(batch)
    return removed


def _remove_unknown(folders: list[tuple[str, Path]]) -> int:
    known = queries.resource_ids_with_files([resource_id for resource_id, _ in folders])
    unknown = [folder for resource_id, folder in folders if resource_id not in known]
    for folder in unknown:
        storage.remove_folder(folder)
    return len(unknown)
