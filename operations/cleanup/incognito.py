"""Purge incognito sessions that have ended: rows, files, and what was kept of the requests that wrote them.

Nothing but the closed id remains, and that in the audit trail. A purge that was interrupted is carried out again.
"""

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import IdempotencyKey
from core.persistence.file_keys import MESSAGE_FILES, is_key
from core.persistence.files import stored_files
from engines.registry import get_engine
from memories.models import LoggedSearch, Override, Tombstone
from memories.services import lookup
from operations import files
from operations.cleanup import compaction
from resources.models import Attachment
from store.models import Session, owned_by

PURGED: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The end of an incognito session that has been purged."""


def ended(now: datetime) -> QuerySet[Session]:
    """Return the incognito sessions that have ended and are not purged."""
    return Session.objects.filter(incognito_until__lte=now, incognito_until__gt=PURGED).order_by("pk")


def purge_ended() -> int:
    """Purge the incognito sessions that have ended, and return their number. Raises: `EngineError`."""
    return _purge(ended(timezone.now()))


def purge_all(user_pk: UUID | None = None) -> int:
    """Purge all incognito sessions, as after a restore: they may have ended meanwhile. Return their number."""
    found = Session.objects.filter(incognito_until__gt=PURGED)
    return _purge(found if user_pk is None else found.filter(user=user_pk))


def _purge(found: QuerySet[Session]) -> int:
    sessions = list(found.select_related("user"))
    with ExitStack() as all_of_them:  # one that fails stops no other, and is raised after them
        if sessions:
            compaction.overwrite_deleted()
            all_of_them.callback(compaction.forget_words)
        for session in reversed(sessions):
            all_of_them.callback(_purge_one, session)
    return len(sessions)


def _purge_one(session: Session) -> None:
    owner, session_id = session.owner, session.session_id
    get_engine().delete(owner, session_id)
    of_session = owned_by(owner) & Q(session_id=session_id)
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        Override.objects.filter(of_session).delete()
        Tombstone.ledger.filter(of_session).delete()
        IdempotencyKey.objects.filter(user=owner.user_pk, result__session_id=session_id).delete()
        conversation = Q(conversation_id__in=[session_id, session_id.partition(":")[2] or session_id])
        LoggedSearch.objects.filter(conversation, user=owner.user_pk).delete()
        attachments = Attachment.objects.filter(of_session)
        referenced = set(filter(is_key, attachments.values_list("internal_uri", flat=True)))
        attachments.delete()
        # Inside the transaction: after a crash the attachments still exist for the next purge.
        own = {key for key in referenced if key.startswith(f"{owner.user_pk}/{MESSAGE_FILES}/")}
        for key in own.difference(files.of_rows(session.user)):  # no other attachment refers to it
            stored_files().remove(key)
        Session.objects.filter(pk=session.pk).update(incognito_until=PURGED)
        record(Actor.system("worker"), "session.purge", session_id, user_id=owner.user_id, detail={"incognito": True})
