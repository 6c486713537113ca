"""Background tasks of the embedded engine: vectors, and memories that models derive from messages and files."""

from collections.abc import Callable
from datetime import timedelta
from math import inf

from django.conf import settings
from django.utils import timezone
from django_tasks import task

from core.background.tasks import PROCESS, Round, in_threads, periodic
from engines.embedded import extraction, media
from engines.registry import local_engine
from store.cover import is_attached
from store.models import PendingMedia
from store.vectors import fill


def _is_set(kind: str) -> bool:
    """Return True if the settings name a model of this kind."""
    return kind in settings.MEMORY_GATEWAY_MODELS


def _uses(kind: str) -> bool:
    """Return True if the settings name a model of this kind, and the embedded engine is in use."""
    return _is_set(kind) and not is_attached()


def _has_media(model: str, kind: PendingMedia.Kind) -> Callable[[], bool]:
    """Return a function that is true if this model is in use and a file of this kind is due."""
    return lambda: _uses(model) and media.due_files(kind, timezone.now()).exists()


@periodic(every=timedelta(days=1), when=lambda: _is_set("embedding"), at_start=True)
def find_missing_vectors(_run: Round) -> None:
    """Mark memories without a vector that are not pending: written without an endpoint, or missed by a race."""
    fill.mark_missing_pending()


@in_threads(repeat_when=lambda: _is_set("embedding") and fill.pending().exists())
@task(queue_name="embeddings")
def embed(run: Round = PROCESS) -> int:
    """Embed until nothing is pending or the endpoint fails; return the number of memories."""
    total = 0
    while not run.should_end() and (count := fill.fill(10.0)):
        total += count
    return total


@in_threads(repeat_when=lambda: _uses("llm") and extraction.due_extractions(timezone.now()).exists())
@task(queue_name="extraction")
def extract(run: Round = PROCESS) -> int:
    """Extract until nothing is due or the endpoint fails; return the number of calls whose answer was used."""
    calls = {"calls": run.concurrency} if run.concurrency else {}
    return local_engine().extract(inf, clock=run.clock, should_end=run.should_end, **calls)


@in_threads(repeat_when=_has_media("vision", PendingMedia.Kind.VISION))
@task(queue_name="extraction")
def describe_pictures(run: Round = PROCESS) -> int:
    """Have the vision model describe pictures until none is due or the endpoint fails; return their number."""
    return _read_media(PendingMedia.Kind.VISION, run)


@in_threads(repeat_when=_has_media("transcription", PendingMedia.Kind.TRANSCRIPTION))
@task(queue_name="extraction")
def transcribe(run: Round = PROCESS) -> int:
    """Have recordings transcribed until none is due or the endpoint fails; return their number."""
    return _read_media(PendingMedia.Kind.TRANSCRIPTION, run)


def _read_media(kind: PendingMedia.Kind, run: Round) -> int:
    """Read pending files of a kind."""
    calls = {"calls": run.concurrency} if run.concurrency else {}
    return local_engine().read_media(kind, inf, clock=run.clock, should_end=run.should_end, **calls)
