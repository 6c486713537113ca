"""The background task that writes the log of searches."""

from core.background.tasks import Round, in_each_process
from memories.services import search_log


@in_each_process()
def write_search_log(_run: Round) -> None:
    """Write the searches of this process: each has its own."""
    search_log.write()
