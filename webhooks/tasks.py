"""The background tasks that deliver webhooks, and the receiver of the events that they report."""

from uuid import UUID

from django.utils import timezone
from django_tasks import task

from core.background.tasks import PROCESS, Round, in_threads
from core.events import changed
from webhooks.services import delivery

changed.connect(delivery.record_event)


# Many threads, because a thread only waits for its receiver, and few per user: a user whose receivers hang holds two.
@in_threads(64, share=2)
@task(queue_name="webhooks")
def deliver_webhook(user: str, webhook_pk: str) -> int:  # noqa: ARG001  for the fair pool
    """Send the due deliveries of a webhook for one turn of its user, or of the silent receivers."""
    return delivery.deliver(UUID(webhook_pk))


@in_threads(repeat_when=lambda: delivery.due(timezone.now()).exists())
@task(queue_name="webhooks")
def deliver_webhooks(run: Round = PROCESS) -> None:
    """Start the deliveries that are due."""
    delivery.start_due(run.clock())
