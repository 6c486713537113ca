"""The background task that delivers webhooks, and the receiver of the events that they report."""

from datetime import timedelta

from core.background.tasks import Round, periodic, task
from core.events import changed
from webhooks.services import delivery

# Many threads, because a thread only waits for its receiver, and few per user: a user whose receivers hang holds two.
task("deliver_webhook", queue="webhooks", slots=64, share=2)(delivery.deliver)
changed.connect(delivery.record_event)


@periodic("deliver_webhooks", queue="webhooks", lease=timedelta(seconds=30))
def deliver_webhooks(run: Round) -> None:
    """Start the deliveries that are due. The lease keeps the order: one process delivers."""
    delivery.start_due(run.clock())
