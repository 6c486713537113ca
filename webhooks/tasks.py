"""The background task that delivers webhooks, and the receiver of the events that they report."""

from datetime import timedelta

from core.background.tasks import Round, periodic, task
from core.events import changed
from webhooks.services import delivery

task("deliver_webhook", queue="webhooks", slots=4)(delivery.deliver)
changed.connect(delivery.record_event)


@periodic("deliver_webhooks", queue="webhooks", lease=timedelta(seconds=30))
def deliver_webhooks(run: Round) -> None:
    """Start the deliveries that are due. The lease keeps the order: one process delivers."""
    delivery.start_due(run.clock())
