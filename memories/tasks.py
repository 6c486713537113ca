"""The background tasks that write the log of searches and end what has expired, also before a read."""

from django.utils import timezone
from django_tasks import task

from accounts import expiry
from core.background.tasks import PROCESS, Round, in_each_process, in_threads
from memories.services import search_log
from memories.services.expiry import end_due

expiry.due.connect(end_due)


@in_each_process()
def write_search_log(_run: Round) -> None:
    """Write the searches of this process: each has its own."""
    search_log.write()


@in_threads(repeat_when=lambda: expiry.is_any_due(timezone.now()))
@task(queue_name="maintenance")
def end_expired(_run: Round = PROCESS) -> None:
    """End what has expired, so that webhooks hear of it in time. Reads do not wait for this."""
    expiry.end_all_due()
