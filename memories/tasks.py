"""The background task that writes the log of searches."""

from core.background.tasks import Round, periodic
from memories.services import search_log


@periodic("write_search_log")
def write_search_log(_run: Round) -> None:
    """Write the searches of this process. No queue and no lease: each process has its own."""
    search_log.write()
