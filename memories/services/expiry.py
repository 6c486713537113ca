"""End memories and sessions whose time has passed, before anything reads them."""

from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.models import MemoryUser
from memories.services import decisions
from store import expiry

_AT_ONCE: Final = 2_000


def end_due(*, user_pk: UUID, **_: Any) -> None:
    """Move to the trash what has expired of a user, and note when the next memory or session expires.

    Each part is a transaction. A reader that comes in between ends the next part.
    """
    while _end_part(user_pk):
        pass


def _end_part(user_pk: UUID) -> bool:
    """End a part of what is due; return True if there may be more."""
    now = timezone.now()
    with transaction.atomic():
        due = MemoryUser.objects.select_for_update(no_key=True).filter(pk=user_pk, next_expiry_at__lte=now)
        user = due.first()
        if user is None:
            return False
        sessions = list(expiry.sessions_due(user_pk, now)[:_AT_ONCE])
        memories = list(expiry.memories_due(user_pk, now).select_related("user", "session")[:_AT_ONCE])
        decisions.expire(user, sessions, memories)
        if max(len(sessions), len(memories)) == _AT_ONCE:
            return True
        expiry.renew(user_pk)
        return False
