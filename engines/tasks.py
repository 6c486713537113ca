"""Background tasks of the embedded engine: vectors, and memories that models derive from messages and files."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from django.conf import settings

from core.background.tasks import Round, periodic
from engines.registry import local_engine
from store.cover import is_attached
from store.models import PendingMedia
from store.vectors import fill

LEASE: Final = timedelta(seconds=30)


def _is_set(kind: str) -> Callable[[], bool]:
    """Return a function that is true if the settings name a model of this kind."""
    return lambda: kind in settings.MEMORY_GATEWAY_MODELS


def _uses(kind: str) -> Callable[[], bool]:
    """Return a function that is true if the settings name a model of this kind, and the embedded engine is in use."""
    is_set = _is_set(kind)
    return lambda: is_set() and not is_attached()


@periodic("find_missing_vectors", queue="embeddings", every=timedelta(days=1), when=_is_set("embedding"), lease=LEASE)
def find_missing_vectors(_run: Round) -> None:
    """Mark memories without a vector that are not pending: written without an endpoint, or missed by a race."""
    fill.mark_missing_pending()


@periodic("embed", queue="embeddings", when=_is_set("embedding"))
def embed(run: Round) -> int:
    """Embed until nothing is pending or the endpoint fails; return the number of memories.

    No lease, because each batch is claimed.
    """
    total = 0
    while not run.should_end() and (count := fill.fill(10.0)):
        total += count
    return total


@periodic("extract", queue="extraction", when=_uses("llm"))
def extract(run: Round) -> int:
    """Extract until nothing is due or the endpoint fails; return the number of calls whose answer was used.

    No lease, because each extraction is claimed.
    """
    engine, total, calls = local_engine(), 0, {"calls": run.concurrency} if run.concurrency else {}
    while count := engine.extract(60.0, clock=run.clock, should_end=run.should_end, **calls):
        total += count
    return total


@periodic("describe_pictures", queue="extraction", when=_uses("vision"))
def describe_pictures(run: Round) -> int:
    """Have the vision model describe pictures until none is due or the endpoint fails; return their number."""
    return _read_media(PendingMedia.Kind.VISION, run)


@periodic("transcribe", queue="extraction", when=_uses("transcription"))
def transcribe(run: Round) -> int:
    """Have recordings transcribed until none is due or the endpoint fails; return their number."""
    return _read_media(PendingMedia.Kind.TRANSCRIPTION, run)


def _read_media(kind: PendingMedia.Kind, run: Round) -> int:
    """Read pending files of a kind. No lease, because each file is claimed."""
    engine, total, calls = local_engine(), 0, {"calls": run.concurrency} if run.concurrency else {}
    while count := engine.read_media(kind, 60.0, clock=run.clock, should_end=run.should_end, **calls):
        total += count
    return total
