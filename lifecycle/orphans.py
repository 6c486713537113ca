"""Files that no row speaks of: what a crash left while a file arrived, or between a file and its row."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from uuid import UUID

from django.db import transaction

from accounts.models import MemoryUser
from engine import upstream_journal
from resources import queries, storage
from resources.models import Attachment

# A file is older than its row by the time of one transaction; an hour is beyond doubt.
MIN_AGE = timedelta(hours=1)
_BATCH = 500
_Folder = tuple[UUID, str, Path]
"""The user, the digest and the place of a file that came in a message."""


def remove_orphans(now: datetime) -> int:
    """Removes what no row speaks of and is older than an hour: temporary files, folders of resources, files that came
    in messages. Returns how many."""
    before = (now - MIN_AGE).timestamp()
    removed = storage.remove_old_temporaries(before)
    folders = storage.old_resource_folders(before)
    while batch := list(islice(folders, _BATCH)):
        removed += _remove_unknown(batch)
    return removed + _remove_unattached(before)


def _remove_unattached(before: float) -> int:
    """Files of messages that no attachment names, nor a message whose outcome is still open. Who takes up such a file
    again just now holds its user meanwhile."""
    removed = 0
    folders = storage.old_message_folders(before)
    for user_pk, of_user in groupby(folders, key=itemgetter(0)):
        if unknown := _unattached(attached(user_pk), of_user):
            with transaction.atomic():
                MemoryUser.objects.select_for_update().filter(pk=user_pk).first()
                still_unknown = _unattached(attached(user_pk), unknown)
                for _, _, folder in still_unknown:
                    storage.remove_folder(folder)
            removed += len(still_unknown)
    return removed


def _unattached(kept: Collection[str], folders: Iterable[_Folder]) -> list[_Folder]:
    return [folder for folder in folders if folder[1] not in kept]


def attached(user_pk: UUID) -> set[str]:
    """The digests of files that came in messages and are still spoken of."""
    named = Attachment.objects.filter(user_id=user_pk, source=Attachment.Source.MEMORY_ADD)
    owed = {
        item.file.parent.name
        for message in upstream_journal.unsettled_messages(user_pk)
        for item in message.content
        if item.file
    }
    return owed | set(named.values_list("sha256", flat=True))


def _remove_unknown(folders: list[tuple[str, Path]]) -> int:
    known = queries.resource_ids_with_files([resource_id for resource_id, _ in folders])
    unknown = [folder for resource_id, folder in folders if resource_id not in known]
    for folder in unknown:
        storage.remove_folder(folder)
    return len(unknown)
