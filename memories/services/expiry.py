"""End memories, sessions and files whose time has passed, before anything reads them; the defaults of a user."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import MemoryUser
from core.errors import InvalidInput
from core.labels import MAX_TAG_CHARS
from core.messages import Translatable as _
from core.redaction import masked
from memories.services import decisions
from resources import services as resources
from store import expiry
from store.categories import CATEGORIES
from store.expiry import OF_TAG

_AT_ONCE: Final = 2_000


def end_due(*, user_pk: UUID, **_others: Any) -> None:
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
        decisions.expire(user, resources.expire(user, sessions), memories)
        if max(len(sessions), len(memories)) == _AT_ONCE:
            return True
        expiry.renew(user_pk)
        return False


def set_days(user_pk: UUID, days: Mapping[str, int], *, actor: Actor) -> None:
    """Set after how many days memories expire that the user stores from now on, by category, or `tag:` and a tag.

    Memories keep their times. Raises: `InvalidInput`.
    """
    for name in days:
        tag = name.removeprefix(OF_TAG)
        if name not in CATEGORIES and (tag == name or not 0 < len(tag.strip()) <= MAX_TAG_CHARS):
            raise InvalidInput.of_field(
                f"days.{name[:64]}",
                _("must be tag: and a tag, or one of %(categories)s", categories=", ".join(CATEGORIES)),
            )
        if masked(name) != name:
            raise InvalidInput.of_field("days", _("must not name values that this gateway masks"))
    named: dict[str, int] = {}
    for name, number in days.items():
        known = f"{OF_TAG}{name.removeprefix(OF_TAG).strip()}" if name.startswith(OF_TAG) else name  # as tags are kept
        named[known] = min(number, named.get(known, number))
    with transaction.atomic():
        user = MemoryUser.objects.select_for_update(no_key=True).get(pk=user_pk)
        if named != (user.expiry_days or {}):
            user.expiry_days = named or None
            user.save(update_fields=["expiry_days"])
            record(actor, "user.set_expiry", str(user_pk), user_id=user.user_id, detail={"number": len(named)})
