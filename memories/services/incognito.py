"""Incognito sessions: what is said in them is found in them only while they last, then it is purged for good.

The first add of a session makes it incognito, and nothing unsets that. It ends when it is deleted, with a flush that
says so, or after a time without a message. Then its id is closed, and `operations.cleanup.incognito` purges it.
No model, remote and re-ingest gets its messages: see `store.admission.is_held`.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from core.errors import InvalidInput, SessionEnded
from core.logs import are_bodies_private
from core.messages import Translatable as _
from store import sessions
from store.models import Session, State, owned_by
from store.types import Owner


def begin(owner: Owner, session_id: str) -> None:
    """Create an incognito session, unless it is one. Raises: `InvalidInput` for a session that is not."""
    with transaction.atomic(), connection.cursor() as cursor:
        pk = sessions.create(cursor, owner, session_id)
        if pk is not None:
            are_bodies_private.set(True)
            Session.objects.filter(pk=pk).update(incognito_until=_until())
            return
    if Session.objects.filter(owned_by(owner), session_id=session_id, incognito_until=None).exists():
        raise InvalidInput.of_field(
            "incognito", _("must be in the first add of a session, but this one exists: choose another session_id")
        )


def require_open(session: Session) -> None:
    """Raise `SessionEnded` for an incognito session that has ended."""
    until = session.incognito_until
    if until is not None:
        are_bodies_private.set(True)
    if until is not None and (session.state == State.PURGED or until <= timezone.now()):
        raise SessionEnded(_("This incognito session has ended and is closed for good. Choose another session_id."))


def extend(session: Session) -> bool:
    """Let an incognito session last on from now; return False for others."""
    if session.incognito_until is None:
        return False
    Session.objects.filter(pk=session.pk, incognito_until__gt=timezone.now()).update(incognito_until=_until())
    return True


def end(owner: Owner, session_id: str) -> None:
    """End an incognito session; leave others as they are."""
    now = timezone.now()
    Session.objects.filter(owned_by(owner), session_id=session_id, incognito_until__gt=now).update(incognito_until=now)


def find(owner: Owner, session_id: str) -> Session | None:
    """Return the incognito session of that id, if there is one."""
    return Session.objects.filter(owned_by(owner), session_id=session_id, incognito_until__isnull=False).first()


def _until() -> datetime:
    return timezone.now() + timedelta(seconds=settings.MEMORY_GATEWAY_INCOGNITO_SECONDS)
