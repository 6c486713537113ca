"""Stored files that no row refers to: what a crash left while a file arrived, or between a file and its row.

They are moved into quarantine, unless they are so many that the database is more likely to be the wrong one.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from django.db import transaction

from accounts.models import MemoryUser
from operations import erase
from resources import quarantine, queries, storage
from resources.models import Attachment
from resources.storage import StoredFolder
from store.external import journal

logger = logging.getLogger("memory_gateway.storage")

# A file is older than its row by the time of one transaction; an hour is beyond doubt.
MIN_AGE = timedelta(hours=1)
MAX_MOVED = 100
MAX_WHOLE_USER = 10
_BATCH = 500


@dataclass(slots=True)
class Orphans:
    """`folders` without a row, those `of_erased` users among them, and how many files each user has in all."""

    folders: list[StoredFolder] = field(default_factory=list)
    of_erased: set[UUID] = field(default_factory=set)
    stored: Counter[UUID] = field(default_factory=Counter)

    def to_move(self) -> list[StoredFolder]:
        return [folder for folder in self.folders if folder.user_pk not in self.of_erased]

    def to_remove(self) -> list[StoredFolder]:
        return [folder for folder in self.folders if folder.user_pk in self.of_erased]

    def objection(self) -> str:
        """Return why so many must not be moved, or nothing."""
        moving, stored = self.to_move(), self.stored.total()
        of_users = Counter(folder.user_pk for folder in moving)
        whole = [pk for pk, count in of_users.items() if count == self.stored[pk] > MAX_WHOLE_USER]
        if len(moving) <= max(MAX_MOVED, stored // 100) and not whole:
            return ""
        return (
            f"{len(moving):,} of {stored:,} stored files have no row, among them all files of {len(whole):,} users "
            f"with more than {MAX_WHOLE_USER} files: nothing was moved. Check that this is the right database; "
            "`manage.py doctor --fix --any-number` moves them all the same."
        )


def clear(now: datetime) -> int:
    """Clear the storage of what no row refers to and is older than an hour. Return how many files were removed or
    moved.

    Partial uploads and what is left of erased users are removed, files without a row moved into quarantine, and
    removed from there after 30 days.
    """
    before = (now - MIN_AGE).timestamp()
    removed = storage.remove_old_temporaries(before) + _remove_expired(now)
    found = find(before)
    if objection := found.objection():
        logger.error(objection)
        return removed + remove_erased(found)
    return removed + remove_erased(found) + move(found.to_move(), now)


def find(before: float) -> Orphans:
    """Look through the whole storage folder; `before` is Unix time in seconds."""
    found = Orphans()
    resources: list[StoredFolder] = []
    for user_pk, folders in groupby(storage.stored_folders(), key=attrgetter("user_pk")):
        messages: list[StoredFolder] = []
        for folder in folders:
            found.stored[user_pk] += 1
            if folder.is_older_than(before):
                (messages if folder.is_message_file else resources).append(folder)
        found.folders += _without_attachment(user_pk, messages)
        if len(resources) >= _BATCH:
            found.folders += _without_resource(resources)
            resources = []
    found.folders += _without_resource(resources)
    users = {folder.user_pk for folder in found.folders}
    gone = users - set(MemoryUser.objects.filter(pk__in=users).values_list("pk", flat=True))
    found.of_erased = erase.erased(gone) if gone else set()
    return found


def move(folders: Iterable[StoredFolder], now: datetime) -> int:
    """Move files into quarantine, unless they have a row by now. Return how many."""
    moved = 0
    for user_pk, of_user in groupby(sorted(folders, key=attrgetter("user_pk")), key=attrgetter("user_pk")):
        with transaction.atomic():
            # A message that uses its file again, and an upload, hold the user meanwhile.
            MemoryUser.objects.select_for_update().filter(pk=user_pk).first()
            for folder in _without_row(user_pk, list(of_user)):
                quarantine.move(folder, now)
                moved += 1
    return moved


def remove_erased(found: Orphans) -> int:
    """Remove what is left of users who were erased: the audit trail says so. Return how many files."""
    left = found.to_remove()
    for folder in left:
        quarantine.remove(folder)
    return len(left)


def attached(user_pk: UUID) -> set[str]:
    """The digests of files that came in messages and are still spoken of."""
    named = Attachment.objects.filter(user_id=user_pk, source=Attachment.Source.MEMORY_ADD)
    owed = {
        item.file.parent.name
        for message in journal.unconfirmed_messages(user_pk)
        for item in message.content
        if item.file
    }
    return owed | set(named.values_list("sha256", flat=True))


def _remove_expired(now: datetime) -> int:
    """Remove what has been in quarantine for 30 days, except what a row refers to again."""
    removed = 0
    for batch in quarantine.batches():
        if now - batch.moved_at >= quarantine.KEPT:
            for folder in _without_row(batch.user_pk, batch.folders()):
                quarantine.remove(folder)
                removed += 1
            quarantine.remove_empty(batch)
    return removed


def _without_row(user_pk: UUID, folders: Sequence[StoredFolder]) -> list[StoredFolder]:
    messages = [folder for folder in folders if folder.is_message_file]
    resources = [folder for folder in folders if not folder.is_message_file]
    return _without_resource(resources) + _without_attachment(user_pk, messages)


def _without_attachment(user_pk: UUID, folders: Sequence[StoredFolder]) -> list[StoredFolder]:
    kept = attached(user_pk) if folders else set()
    return [folder for folder in folders if folder.name not in kept]


def _without_resource(folders: Sequence[StoredFolder]) -> list[StoredFolder]:
    found = []
    for first in range(0, len(folders), _BATCH):
        batch = folders[first : first + _BATCH]
        known = queries.resource_ids_with_files([folder.name for folder in batch])
        found += [folder for folder in batch if folder.name not in known]
    return found
