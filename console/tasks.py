"""Background tasks of the panel."""

from datetime import timedelta
from typing import Final

from django.conf import settings

from console import queues
from core.background.tasks import Round, periodic

LOOKED_EVERY: Final = timedelta(minutes=10)


@periodic(every=LOOKED_EVERY, when=lambda: bool(settings.MEMORY_GATEWAY_ALERT_URL))
def alert_of_queues(run: Round) -> None:
    """Send an alert for queues that have grown."""
    queues.alert(run.clock())
