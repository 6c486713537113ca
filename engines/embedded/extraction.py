"""Extract memories from flushed messages with a language model, in the background, a window of messages at a time.

A flush queues its batch and does not wait. The memories of a window and the progress in its batch are written in one
transaction, so an interrupted process neither repeats nor skips messages. A failing endpoint is retried for days; a
window that the model refuses is given up after a few tries, and the rules choose the categories of its messages.
"""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, Min, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.db.models.lookups import IsNull
from django.utils import timezone

from accounts import expiry
from accounts.controls import paused_users
from accounts.models import MemoryUser
from core.background.leases import Claim
from core.background.model_calls import call, in_parallel, is_due
from core.network.language_model import client as llm_client
from core.network.language_model import is_set as has_llm
from core.network.model_endpoint import EndpointError
from core.persistence.database_errors import database_errors
from engines.embedded import comparison, extraction_rows, extraction_rules, extraction_windows
from engines.embedded.comparison import Comparison, ComparisonAnswer, compare
from engines.embedded.extraction_prompts import ExtractionAnswer, ProfileAnswer, describe, extract
from engines.embedded.extraction_windows import Window
from store import sessions, writes
from store.derived_memories import queue_profile
from store.models import Memory, PendingExtraction, Session, State
from store.types import Owner

logger = logging.getLogger("memory_gateway.llm")

CALL_SECONDS: Final = 90.0
MAX_CALLS: Final = 4
"""The calls that a process makes at once, unless `run` gets another number."""
MAX_OWNERS: Final = 1000
"""The owners of whom all processes together take extractions at once."""
LEASE: Final = timedelta(seconds=30)
_HARMLESS_LINES: Final = (
    {"person": "ann"},
    {"message": 1, "role": "user", "speaker": "ann", "at": "2026-01-01T12:00+00:00", "text": "I live in Oslo."},
)
_SKIPPED_KINDS: Final = frozenset({Session.Kind.RESOURCE, Session.Kind.MEMORY_EDIT})
_Answer = ExtractionAnswer | ProfileAnswer | ComparisonAnswer | EndpointError


@dataclass(frozen=True, slots=True)
class _ModelCall:
    """A prepared call of the model: for a window of messages, the facts of a profile, or a comparison of memories."""

    pending: PendingExtraction
    owner: Owner
    ask: Callable[[], ExtractionAnswer | ProfileAnswer | ComparisonAnswer]
    window: Window | None = None
    facts: Sequence[Memory] = ()
    comparison: Comparison | None = None


def queue_batch(session: Session, batch_id: str) -> None:
    """Queue a flushed batch for extraction if an LLM is configured. Call inside the flush's transaction."""
    if session.kind not in _SKIPPED_KINDS and has_llm():
        PendingExtraction.objects.create(
            user_id=session.user_id,
            app_id=session.app_id,
            project_id=session.project_id,
            session=session,
            batch_id=batch_id,
        )


def queue_missing(user_pk: UUID | None = None) -> None:
    """Queue batches without derived memories and batches that were given up, of one user or of all.

    Batches of a session with a purged memory are left out: the model could derive the purged content again.
    """
    of_user = Q() if user_pk is None else Q(user_id=user_pk)
    batch = {"session": OuterRef("session"), "batch_id": OuterRef("batch_id")}
    flushed = Memory.objects.filter(
        of_user,
        extraction_windows.IS_MESSAGE,
        memory_type=Memory.Type.EPISODE,
    ).exclude(Q(batch_id="") | Q(session__kind__in=_SKIPPED_KINDS))
    missing = flushed.filter(
        ~Exists(Memory.objects.filter(origin=Memory.Origin.EXTRACTED, chunk_index=None, **batch)),
        ~Exists(Memory.objects.filter(session=OuterRef("session"), state=State.PURGED)),
        ~Exists(PendingExtraction.objects.filter(**batch)),
    )
    rows = missing.order_by().values("user_id", "app_id", "project_id", "session_id", "batch_id").distinct()
    with database_errors(), transaction.atomic():
        given_up = PendingExtraction.objects.filter(of_user, given_up_at__isnull=False)
        given_up.update(given_up_at=None, retry_at=None, last_error="", attempts=0, refusals=0)
        PendingExtraction.objects.bulk_create(PendingExtraction(**row) for row in rows)


def run(
    seconds: float,
    *,
    clock: Callable[[], datetime] = timezone.now,
    should_end: Callable[[], bool] = lambda: False,
    call_seconds: float = CALL_SECONDS,
    calls: int = MAX_CALLS,
) -> int:
    """Process pending extractions, starting none after `seconds`; return the number of model answers that were used.

    Several processes share the work: each claims one extraction of some owners, for as many `calls` at once. Users take
    turns, and a slow call delays no other.

    A failing endpoint ends the run without an error; `/health` reports it. Calls in progress are abandoned when
    `should_end` returns True. Their extractions stay pending.
    """
    deadline, done, served = time.monotonic() + seconds, 0, set[UUID]()
    claim: Claim[PendingExtraction] = Claim(LEASE, clock)

    def take(limit: int) -> list[_ModelCall]:
        while has_llm() and time.monotonic() < deadline and not llm_client().endpoint.pause.left_seconds():
            expiry.end_all_due()
            taken = claim.take(_due(clock(), served), limit)
            if found := [one for pending in taken if (one := _next_call(pending, call_seconds)) is not None]:
                served.update(one.owner.user_pk for one in found)
                return found
            if not taken and not served:
                break
            if not taken:
                served.clear()
        return []

    with database_errors(), closing(claim):
        for model_call, answer in in_parallel(take, partial(_call, seconds=call_seconds), calls, should_end):
            done += _settle(model_call, answer, clock())
            claim.release(pk=model_call.pending.pk)
    return done


def _settle(model_call: _ModelCall, answer: _Answer, now: datetime) -> bool:
    """Store an answer, or schedule another try; return True if the model answered."""
    with transaction.atomic():
        pending = _locked(model_call)
        if isinstance(answer, EndpointError):
            if pending is not None:
                _note_failure(pending, model_call.window, answer, now)
            return False
        if pending is not None:
            _write(pending, model_call, answer, now)
        return True


def due_extractions(now: datetime) -> QuerySet[PendingExtraction]:
    """Return the extractions that can be made now: of no incognito session, and not held by a pause of the person."""
    is_of_fact = Q(memory__isnull=False)
    of_facts = is_of_fact & Q(user__in=paused_users("agents"))
    is_incognito = Q(session__incognito_until__isnull=False) | Q(memory__session__incognito_until__isnull=False)
    return PendingExtraction.objects.filter(is_due(now)).exclude(
        is_incognito | of_facts | (~is_of_fact & Q(user__in=paused_users("chats")))
    )


def _due(now: datetime, served: Collection[UUID] = ()) -> QuerySet[PendingExtraction]:
    """Return the oldest due extraction of each owner, profiles last: each needs the memories of those before it.

    Users who were `served` are left out.

    An owner of whom another process has one is left to it. A separate statement finds the oldest: PostgreSQL has no
    statistics of rows that were just queued, and as a subquery it would run again for each row.
    """
    due = due_extractions(now).exclude(user__in=served)
    owners = due.order_by().values("user", "app_id", "project_id")
    of_session = Min("pk", filter=Q(session__isnull=False))
    firsts = owners.annotate(of_session=of_session, first=Coalesce(of_session, Min("pk")))
    oldest = firsts.order_by(F("of_session").asc(nulls_last=True), "first").values_list("first", flat=True)
    return (
        due.filter(pk__in=list(oldest[:MAX_OWNERS]))
        .select_related("session", "user", "memory")
        .order_by(IsNull(F("session"), True), "pk")
    )


def _next_call(pending: PendingExtraction, seconds: float) -> _ModelCall | None:
    """Return the next call of an extraction; if no messages are left, delete the extraction and return None."""
    owner = pending.owner
    if pending.memory is not None:
        if found := comparison.comparison_of(owner, pending.memory):
            lines = list(found.lines())
            return _ModelCall(pending, owner, lambda: compare(llm_client(), lines, seconds), comparison=found)
    elif pending.session is None:
        facts = extraction_rows.facts_of(owner)
        if facts:
            lines = list(extraction_rows.lines_of(facts))
            return _ModelCall(pending, owner, lambda: describe(llm_client(), lines, seconds), facts=facts)
    elif (window := extraction_windows.next_window(owner, pending)) is not None:
        lines = list(extraction_windows.lines_of(owner, window))
        of_agents: bool = settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY
        return _ModelCall(pending, owner, lambda: extract(llm_client(), lines, seconds, of_agents=of_agents), window)
    pending.delete()
    return None


def _call(model_call: _ModelCall, seconds: float) -> _Answer:
    return call(
        model_call.pending,
        model_call.ask,
        llm_client().endpoint,
        lambda: extract(llm_client(), _HARMLESS_LINES, seconds, of_agents=False),
    )


def _locked(model_call: _ModelCall) -> PendingExtraction | None:
    """Lock the user and the extraction. Return None if it was deleted or another process has continued it."""
    if not MemoryUser.objects.select_for_update(no_key=True).filter(pk=model_call.owner.user_pk).exists():
        return None
    seen = model_call.pending
    mine = PendingExtraction.objects.filter(pk=seen.pk, lease_holder=seen.lease_holder, after_seq=seen.after_seq)
    return mine.select_for_update().first()


def _write(
    pending: PendingExtraction,
    model_call: _ModelCall,
    answer: ExtractionAnswer | ProfileAnswer | ComparisonAnswer,
    now: datetime,
) -> None:
    """Write an answer. If messages or memories that the model was shown have changed, the extraction stays pending."""
    if isinstance(answer, ComparisonAnswer):
        superseded = (
            comparison.write(model_call.owner, model_call.comparison, answer, now) if model_call.comparison else []
        )
        if superseded is not None:
            pending.delete()
            if any(row.origin == Memory.Origin.EXTRACTED for row in superseded):
                queue_profile(model_call.owner)
        return
    if isinstance(answer, ProfileAnswer):
        if extraction_rows.write_profile(model_call.owner, model_call.facts, answer, now) is not None:
            pending.delete()
        return
    if model_call.window is None:
        return
    session = sessions.existing(model_call.owner, pending.session.session_id) if pending.session else None
    if session is None or session.state != State.LIVE:
        pending.delete()
    elif model_call.window.is_current():
        rows = extraction_rows.write(model_call.owner, session, model_call.window, answer, now)
        if any(row.category.startswith("user_") for row in rows):
            queue_profile(model_call.owner)
        pending.after_seq, pending.attempts, pending.refusals = model_call.window.messages[-1].seq, 0, 0
        pending.retry_at, pending.last_error = None, ""
        pending.save()


def _note_failure(pending: PendingExtraction, window: Window | None, error: EndpointError, now: datetime) -> None:
    """Schedule another try. After the last try give up the window and continue after it."""
    pending.note_failure(error, now)
    if pending.given_up_at is not None:
        logger.warning("An extraction was given up: %s", error.detail)
        if window is not None:  # give up this window only: queue the rest, categorize its messages by rules
            last = window.messages[-1].seq
            columns = ("user_id", "app_id", "project_id", "session_id", "batch_id")
            batch = {name: getattr(pending, name) for name in columns}
            PendingExtraction.objects.create(**batch, after_seq=last, until_seq=pending.until_seq)
            pending.until_seq = last
            for row in window.messages:
                category = extraction_rules.category(extraction_windows.role_of(row), row.text)
                if category and row.category.startswith("full_context_"):
                    writes.set_category(pending.owner, row, category)
    pending.save()
