"""One-time links to the pages on which users see and change what is stored of them, and the sessions that they open.

A link is used up by the button on its page, not by opening it: mail and chat programs open links to preview them. Link
and session are 256 random bits and stored as digests only. Both end with the API key that made the link.
"""

import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import MemoryUser, PortalLink, UserKey
from accounts.services import active_users, digest_of, live_key_condition
from core.errors import InvalidInput, Unauthenticated, existing
from core.messages import Translatable as _

LINK_LIFETIME: Final = timedelta(minutes=10)
SESSION_LIFETIME: Final = timedelta(minutes=30)
MAX_UNOPENED: Final = 20
"""Links of a user that are not opened yet; beyond it the oldest ones stop working."""
_PREFIX: Final = "upl_"
_LINK: Final = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")
INVALID_LINK: Final = _("The link has been used, or it has expired. Open your memories in the application again.")


@dataclass(frozen=True, slots=True)
class IssuedLink:
    """A link and its plaintext, which only the application that shows it may see."""

    link: PortalLink
    plaintext: str = field(repr=False)


def create(user_pk: UUID, *, key_id: UUID | None = None, frame_origin: str = "", actor: Actor) -> IssuedLink:
    """Make a link to the pages of a user. It ends with the key `key_id` that made it, if one did.

    Raises: `InvalidInput` for an origin that the setting does not allow; `NotFound`.
    """
    if frame_origin and frame_origin not in settings.MEMORY_GATEWAY_PORTAL_ORIGINS:
        raise InvalidInput.of_field(
            "frame_origin", _("must be one of MEMORY_GATEWAY_PORTAL_ORIGINS: ask the operator to add it")
        )
    plaintext = f"{_PREFIX}{secrets.token_urlsafe(32)}"
    with transaction.atomic():
        users = active_users().select_for_update(no_key=True)
        user: MemoryUser = existing(users.filter(pk=user_pk), _("There is no such user."))
        unopened = PortalLink.objects.filter(user=user, opened_at__isnull=True).order_by("-created_at")
        excess = list(unopened.values_list("pk", flat=True)[MAX_UNOPENED - 1 :])
        PortalLink.objects.filter(pk__in=excess).delete()
        link = PortalLink.objects.create(
            user=user,
            key_id=key_id,
            frame_origin=frame_origin,
            digest=digest_of(plaintext),
            expires_at=timezone.now() + LINK_LIFETIME,
        )
        detail = {"frame_origin": frame_origin} if frame_origin else {}
        record(actor, "portal_link.create", str(link.pk), user_id=user.user_id, detail=detail)
    return IssuedLink(link, plaintext)


def find(plaintext: str) -> PortalLink:
    """Return an unopened link. Raises: `Unauthenticated`, with the same message in all cases."""
    link = _unopened(plaintext).first()
    if link is None:
        raise Unauthenticated(INVALID_LINK)
    return link


def open_session(plaintext: str) -> IssuedLink:
    """Use a link up, and return it with the plaintext of the session. Raises: `Unauthenticated`, as `find`."""
    link, session, now = find(plaintext), secrets.token_urlsafe(32), timezone.now()
    opened = {"opened_at": now, "expires_at": now + SESSION_LIFETIME, "digest": digest_of(session)}
    with transaction.atomic():
        if not PortalLink.objects.filter(pk=link.pk, opened_at__isnull=True).update(**opened):
            raise Unauthenticated(INVALID_LINK)
        link.refresh_from_db()
        record(Actor.person(link), "portal_link.open", str(link.pk), user_id=link.user.user_id)
    return IssuedLink(link, session)


def authenticate(session: str) -> PortalLink | None:
    """Return the link that opened a session, with its user and key; None if the session has ended. One statement."""
    if not session:
        return None
    return _live().filter(digest=digest_of(session), opened_at__isnull=False).first()


def end(link: PortalLink) -> None:
    """End the session of a link."""
    PortalLink.objects.filter(pk=link.pk).delete()


def forget_old(now: datetime) -> None:
    """Delete links and sessions that have expired. The audit trail keeps who made them."""
    PortalLink.objects.filter(expires_at__lte=now).delete()


def _unopened(plaintext: str) -> QuerySet[PortalLink]:
    if not _LINK.fullmatch(plaintext):
        return PortalLink.objects.none()
    return _live().filter(digest=digest_of(plaintext), opened_at__isnull=True)


def _live() -> QuerySet[PortalLink]:
    """Return the links and sessions that have not expired, whose key is live and whose user is not being erased."""
    has_key = Exists(UserKey.objects.filter(live_key_condition(), pk=OuterRef("key")))
    found = PortalLink.objects.filter(Q(key__isnull=True) | has_key, expires_at__gt=timezone.now())
    return found.filter(user__in=active_users()).select_related("user", "key")
