"""Find stored files without a row, which a crash leaves during an upload or before the row is written.

They are moved into quarantine, unless they are so many that the storage probably belongs to another database.
"""

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
from core.messages import MANAGE
from operations import erase
from remote import outbox
from resources import quarantine, queries, storage
from resources.models import Attachment
from resources.storage import StoredFolder

logger = logging.getLogger("memory_gateway.storage")

# A file is older than its row by the duration of a transaction; an hour is always enough.
MIN_AGE = timedelta(hours=1)
MAX_MOVED = 100
MAX_WHOLE_USER = 10
_BATCH = 500


@dataclass(slots=True)
class Orphans:
    """The folders of files without a row, the erased users among their users, and the number of files per user."""

    folders: list[StoredFolder] = field(default_factory=list)
    of_erased: set[UUID] = field(default_factory=set)
    stored: Counter[UUID] = field(default_factory=Counter)

    def to_move(self) -> list[StoredFolder]:
        return [folder for folder in self.folders if folder.user_pk not in self.of_erased]

    def objection(self) -> str:
        """Return the reason if these are too many to be moved, else an empty text."""
        moving, stored = self.to_move(), self.stored.total()
        of_users = Counter(folder.user_pk for folder in moving)
        whole = [pk for pk, count in of_users.items() if count == self.stored[pk] > MAX_WHOLE_USER]
        if len(moving) <= max(MAX_MOVED, stored // 100) and not whole:
            return ""
        return (
            f"{len(moving):,} of {stored:,} stored files have no row, including all files of {len(whole):,} users "
            f"with more than {MAX_WHOLE_USER} files. Nothing was moved. Check that this is the right database. "
            f"To move the files anyway, run `{MANAGE} doctor --fix --any-number`."
        )


def clear(now: datetime) -> int:
    """Remove or quarantine files without a row that are older than an hour; return their number.

    Partial uploads and files of erased users are removed. Others are moved into quarantine, and removed after 30 days
    there.
    """
    before = (now - MIN_AGE).timestamp()
    removed = storage.remove_old_temporaries(before)
    for batch in quarantine.batches():
        if now - batch.moved_at >= quarantine.KEPT:
            for folder in _without_row(batch.user_pk, batch.folders()):
                quarantine.remove(folder)
                removed += 1
            quarantine.remove_empty(batch)
    found = find(before)
    removed += remove_erased(found)
    if objection := found.objection():
        logger.error(objection)
        return removed
    return removed + move(found.to_move(), now)


def find(before: float) -> Orphans:
    """Return the files without a row in the whole storage that are older than `before` (Unix time in seconds)."""
    found = Orphans()
    resources: list[StoredFolder] = []
    for user_pk, folders in groupby(storage.stored_folders(), key=attrgetter("user_pk")):
        messages: list[StoredFolder] = []
        for folder in folders:
            found.stored[user_pk] += 1
            if folder.modified_at < before:
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
    """Move files into quarantine, unless they have a row by now; return the number of moved files."""
    moved = 0
    for user_pk, of_user in groupby(sorted(folders, key=attrgetter("user_pk")), key=attrgetter("user_pk")):
        with transaction.atomic():
            # Uploads, and messages that use a stored file again, lock the user too.
            MemoryUser.objects.select_for_update().filter(pk=user_pk).first()
            for folder in _without_row(user_pk, list(of_user)):
                quarantine.move(folder, now)
                moved += 1
    return moved


def remove_erased(found: Orphans) -> int:
    """Remove files of users who were erased according to the audit trail; return the number of files."""
    folders = [folder for folder in found.folders if folder.user_pk in found.of_erased]
    for folder in folders:
        quarantine.remove(folder)
    return len(folders)


def attached(user_pk: UUID) -> set[str]:
    """Return the digests of files in messages that attachments or unconfirmed messages refer to."""
    named = Attachment.objects.filter(user_id=user_pk, source=Attachment.Source.MEMORY_ADD)
    items = (item for message in outbox.waiting_messages(user_pk) for item in message.content)
    return {*named.values_list("sha256", flat=True), *(item.sha256 for item in items if item.file)}


def _without_row(user_pk: UUID, folders: Sequence[StoredFolder]) -> list[StoredFolder]:
    messages = [folder for folder in folders if folder.is_message_file]
    resources = [folder for folder in folders if not folder.is_message_file]
    return _without_resource(resources) + _without_attachment(user_pk, messages)


def _without_attachment(user_pk: UUID, folders: Sequence[StoredFolder]) -> list[StoredFolder]:
    digests = attached(user_pk) if folders else set()
    return [folder for folder in folders if folder.name not in digests]


def _without_resource(folders: Sequence[StoredFolder]) -> list[StoredFolder]:
    found = []
    for first in range(0, len(folders), _BATCH):
        batch = folders[first : first + _BATCH]
        known = queries.resource_ids_with_files([folder.name for folder in batch])
        found += [folder for folder in batch if folder.name not in known]
    return found
