"""Periodic tasks that call a model: they extract facts and profiles, and compute vectors, outside of requests."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from engines.registry import get_engine, local_engine
from operations.periodic import PeriodicTask
from store.vectors import fill
from store.vectors.client import wanted_model


class ExtractionTask(PeriodicTask):
    """Has the language model extract memories from flushed messages. Does nothing without an LLM endpoint or with an
    external engine."""

    lease_name = "reading"
    lease_for = timedelta(seconds=300)

    def run_once(self) -> int:
        """Extract until nothing is due or the endpoint fails; return the number of calls whose answer was used."""
        if not settings.MEMORY_GATEWAY_LLM_BASE_URL or get_engine().is_external:
            return 0
        engine = local_engine()
        return self._repeat(lambda: engine.extract(60.0, clock=self._clock, should_end=lambda: self._is_stopping))


class EmbeddingTask(PeriodicTask):
    """Computes missing vectors: those that a flush had no time for, and those of an outage. Does nothing without an
    embedding endpoint or with an external engine."""

    lease_name = "vectors"
    lease_for = timedelta(seconds=120)
    _is_first = True

    def run_once(self) -> int:
        """Embed until nothing is pending or the endpoint fails; return the number of memories."""
        if wanted_model() is None or get_engine().is_external:
            return 0
        return self._repeat(self._embed)

    def _embed(self) -> int:
        if self._is_first:
            # Written while no endpoint was set, or by a transaction that did not see the first vectors.
            fill.owe_what_is_lacking()
            self._is_first = False
        return fill.fill(10.0)
