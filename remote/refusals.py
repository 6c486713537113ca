"""Messages that the remote refused for good: they stay here, and are sent again only if an operator asks for it."""

from django.db import transaction

from core.background.tasks import enqueue
from remote import outbox, remote_sessions
from store.models import Session


def retry(session: Session) -> int:
    """Let the refused messages of a session wait again, and return their number.

    A round begins now; the next flush of the session takes them.
    """
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        count = outbox.wait_again(outbox.entries(locked))
        if count:
            remote_sessions.schedule_retry(locked, None)
            enqueue("retry_deliveries")
    return count
