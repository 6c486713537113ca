"""Has a language model read what was said: in the background, a window of messages at a time.

A flush notes what it owes and waits for nothing. What a window gives and how far it was read is one transaction, so
that nothing is made twice and nothing is left out, whenever a process ends. An endpoint that fails is asked again for
days; a text that it will not take is given up after a few tries, alone, and filed by the rules instead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from accounts.models import MemoryUser
from core.model_endpoint import EndpointError
from engines.embedded import extraction_profile, extraction_rows, extraction_rules, extraction_windows
from engines.embedded.extraction_rows import Window
from engines.embedded.llm import client as llm
from engines.embedded.llm.extraction import Described, Extracted, describe, extract
from store import sessions
from store.derived_memories import owe_profile
from store.errors import database_errors
from store.extraction_models import OwedExtraction
from store.models import BARE, Memory, Session
from store.types import Owner

logger = logging.getLogger("memory_gateway.llm")

CALL_SECONDS: Final = 90.0
AT_ONCE: Final = 4
MAX_REFUSALS: Final = 5
MAX_ATTEMPTS: Final = 200
_LOOK_SECONDS: Final = 0.2
_FIRST_WAIT: Final = timedelta(seconds=5)
_LONGEST_WAIT: Final = timedelta(hours=1)
_UNREAD_KINDS: Final = frozenset({Session.Kind.RESOURCE, Session.Kind.MEMORY_EDIT})
_Answer = Extracted | Described | EndpointError


@dataclass(frozen=True, slots=True)
class _Task:
    """One call of the model, prepared: what is owed, whose it is, what is to be asked, what it is about."""

    owed: OwedExtraction
    owner: Owner
    ask: Callable[[], Extracted | Described]
    window: Window | None = None
    facts: Sequence[Memory] = ()


def owe(session: Session, batch_id: str) -> None:
    """Notes that a flushed batch is to be read, where a model is set up. Call inside the flush's transaction."""
    if llm.is_set() and session.kind not in _UNREAD_KINDS:
        OwedExtraction.objects.create(
            user_id=session.user_id,
            app_id=session.app_id,
            project_id=session.project_id,
            session=session,
            batch_id=batch_id,
        )


def owe_unread(user_pk: UUID | None = None) -> None:
    """Has the model read what was flushed before it was set up, what nothing was made of, and what was given up; of one
    user alone where one is named."""
    whose = Q() if user_pk is None else Q(user_id=user_pk)
    with database_errors(), transaction.atomic():
        given_up = OwedExtraction.objects.filter(whose, given_up_at__isnull=False)
        given_up.update(given_up_at=None, retry_at=None, last_error="", attempts=0, refusals=0)
        OwedExtraction.objects.bulk_create(OwedExtraction(**batch) for batch in _unread(whose))


def _unread(whose: Q) -> Iterable[Mapping[str, Any]]:
    """The flushed batches of what was said that nothing was made of and that are not owed; none of a session of which
    something was purged, since a model would say it again in other words."""
    batch = {"session": OuterRef("session"), "batch_id": OuterRef("batch_id")}
    said = Memory.objects.filter(
        whose, extraction_windows.SAID, memory_type=Memory.Type.EPISODE, session__hidden_at=None,
        session__deleted_at=None,
    ).exclude(batch_id="").exclude(session__kind__in=_UNREAD_KINDS)  # fmt: skip
    made = Memory.objects.filter(origin=Memory.Origin.EXTRACTED, **batch)
    purged = Memory.objects.filter(session=OuterRef("session"), batch_id=BARE)
    unread = said.filter(~Exists(made), ~Exists(purged), ~Exists(OwedExtraction.objects.filter(**batch)))
    return unread.order_by().values("user_id", "app_id", "project_id", "session_id", "batch_id").distinct()


def fill(
    seconds: float,
    *,
    clock: Callable[[], datetime] = timezone.now,
    should_end: Callable[[], bool] = lambda: False,
    call_seconds: float = CALL_SECONDS,
) -> int:
    """Has the model read what is owed, beginning nothing after so long; how many of its answers were of use.

    An endpoint that fails ends it without an error: `/health` says so, and what is left stays owed. So does what is
    being read when it `should_end`.
    """
    until, done = time.monotonic() + seconds, 0
    while llm.is_set() and time.monotonic() < until and not llm.client().endpoint.pause.left_seconds():
        with database_errors():
            due = _due(clock())
            if not due or should_end():
                break
            done += _step([task for one in due if (task := _task(one, call_seconds)) is not None], clock, should_end)
    return done


def _due(now: datetime) -> list[OwedExtraction]:
    """The oldest of each of some users: one after the other, because each has to know what the one before gave."""
    owed = OwedExtraction.objects.filter(Q(retry_at=None) | Q(retry_at__lte=now), given_up_at=None)
    found: dict[Any, OwedExtraction] = {}
    oldest = owed.select_related("session", "user").order_by("pk")[: 50 * AT_ONCE]
    for one in sorted(oldest, key=lambda one: one.session is None):  # a profile is written of what the others give
        found.setdefault((one.user_id, one.app_id, one.project_id), one)
    return list(found.values())[:AT_ONCE]


def _step(tasks: Sequence[_Task], clock: Callable[[], datetime], should_end: Callable[[], bool]) -> int:
    done = 0
    for task, answer in _answers(tasks, should_end):
        if isinstance(answer, EndpointError):
            _put_off(task, answer, clock())
        else:
            _take_in(task, answer, clock())
            done += 1
    return done


def _answers(tasks: Sequence[_Task], should_end: Callable[[], bool]) -> Iterator[tuple[_Task, _Answer]]:
    """Asks for all at once. The threads only call the model, and a process that ends does not wait for them."""
    found: dict[int, _Answer] = {}

    def ask(place: int) -> None:
        try:
            found[place] = tasks[place].ask()
        except EndpointError as error:
            found[place] = error

    threads = [threading.Thread(target=ask, args=(place,), name="llm", daemon=True) for place in range(len(tasks))]
    for thread in threads:
        thread.start()
    for place, thread in enumerate(threads):
        while thread.is_alive() and not should_end():
            thread.join(_LOOK_SECONDS)
        if place in found:
            yield tasks[place], found[place]


def _task(owed: OwedExtraction, seconds: float) -> _Task | None:
    """None, and nothing owed any more, where there is nothing to read."""
    owner = Owner(owed.user_id, owed.user.user_id, owed.app_id, owed.project_id)
    if owed.session is None:
        facts = extraction_profile.facts_of(owner)
        if facts:
            lines = list(extraction_profile.lines_of(facts))
            return _Task(owed, owner, lambda: describe(llm.client(), lines, seconds), facts=facts)
    elif (window := extraction_windows.next_of(owner, owed)) is not None:
        lines = list(extraction_windows.lines_of(owner, window))
        of_agents: bool = settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY
        return _Task(owed, owner, lambda: extract(llm.client(), lines, seconds, of_agents=of_agents), window)
    owed.delete()
    return None


def _take_in(task: _Task, answer: Extracted | Described, now: datetime) -> None:
    with transaction.atomic():
        owed = _locked(task)
        if owed is None:
            return
        if isinstance(answer, Described):
            # Where a fact has changed meanwhile it stays owed.
            if extraction_profile.write(task.owner, task.facts, answer, now) is not None:
                owed.delete()
        elif task.window is not None:
            _write(task.owner, owed, task.window, answer, now)


def _locked(task: _Task) -> OwedExtraction | None:
    """What is owed, with its user locked; None where it is gone, or another process has read on."""
    if not MemoryUser.objects.select_for_update(no_key=True).filter(pk=task.owner.user_pk).exists():
        return None
    return OwedExtraction.objects.select_for_update().filter(pk=task.owed.pk, after_seq=task.owed.after_seq).first()


def _write(owner: Owner, owed: OwedExtraction, window: Window, extracted: Extracted, now: datetime) -> None:
    session = sessions.live(owner, owed.session.session_id) if owed.session else None
    if session is None or session.hidden_at is not None:
        owed.delete()
        return
    if not window.is_current():
        return  # it stays owed, and is read as it is now
    made = extraction_rows.write(owner, session, window, extracted, now)
    if any(row.category.startswith("user_") for row in made):
        owe_profile(owner)
    _read_on(owed, window.messages[-1].seq)


def _read_on(owed: OwedExtraction, seq: int) -> None:
    """What is owed begins behind that place now. Where nothing is left there, the next look takes it away."""
    owed.after_seq, owed.attempts, owed.refusals = seq, 0, 0
    owed.retry_at, owed.last_error = None, ""
    owed.save()


def _put_off(task: _Task, error: EndpointError, now: datetime) -> None:
    """Another try later; after the last one the window is left to the rules, and what comes after it is read."""
    logger.warning("llm: %s", error.detail)
    with transaction.atomic():
        owed = _locked(task)
        if owed is None:
            return
        owed.attempts += 1
        owed.refusals += error.is_refusal
        wait = min(_FIRST_WAIT * 2 ** min(owed.attempts - 1, 20), _LONGEST_WAIT)
        owed.retry_at, owed.last_error = now + wait, error.detail[:300]
        if owed.refusals >= MAX_REFUSALS or owed.attempts >= MAX_ATTEMPTS:
            _give_up(owed, task.window, now)
        owed.save()


def _give_up(owed: OwedExtraction, window: Window | None, now: datetime) -> None:
    owed.given_up_at = now
    if window is None:
        return
    last = window.messages[-1].seq
    OwedExtraction.objects.create(
        user_id=owed.user_id, app_id=owed.app_id, project_id=owed.project_id, session_id=owed.session_id,
        batch_id=owed.batch_id, after_seq=last, until_seq=owed.until_seq,
    )  # fmt: skip
    owed.until_seq = last
    for row in window.messages:
        category = extraction_rules.category(row.payload.get("role", "user"), row.text)
        if category and row.category.startswith("full_context_"):
            Memory.objects.filter(pk=row.pk, category=row.category).update(category=category)
