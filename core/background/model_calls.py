"""Rows of pending calls of a model, which are retried with backoff, and the threads that make such calls."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from django.db import models
from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from core.background.leases import Claimable
from core.localization import MessageField
from core.network.model_endpoint import Endpoint, EndpointError

MAX_REFUSALS: Final = 5
MAX_ATTEMPTS: Final = 200
_POLL_SECONDS: Final = 0.2
_LOOK_SECONDS: Final = 2.0
"""The interval at which further items are taken while no call ends."""
_MIN_WAIT: Final = timedelta(seconds=5)
_MAX_WAIT: Final = timedelta(hours=1)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class PendingCall(Claimable):
    """A row whose work is to call a model.

    `attempts` counts failures of the endpoint, `refusals` its refusals of the content; after `given_up_at`, no retries.
    """

    attempts = models.IntegerField(_("attempts"), default=0)
    refusals = models.IntegerField(_("refusals"), default=0)
    retry_at = models.DateTimeField(_("retry at"), null=True)
    last_error = MessageField(_("last error"), blank=True)
    given_up_at = models.DateTimeField(_("given up at"), null=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta(Claimable.Meta):
        abstract = True

    def note_failure(self, error: EndpointError, now: datetime) -> None:
        """Set the time of the next try, after the last one `given_up_at`. Save the row afterwards."""
        self.attempts += 1
        self.refusals += error.is_refusal
        wait = min(_MIN_WAIT * 2 ** min(self.attempts - 1, 20), _MAX_WAIT)
        self.retry_at, self.last_error = now + wait, error.detail
        if self.refusals >= MAX_REFUSALS or self.attempts >= MAX_ATTEMPTS:
            self.given_up_at = now


def is_due(now: datetime) -> Q:
    """Return the condition of calls that can be made now."""
    return (Q(retry_at=None) | Q(retry_at__lte=now)) & Q(given_up_at=None)


def backlog(rows: QuerySet[Any]) -> dict[str, int]:
    """Return how many calls are `pending`, and how many were `given_up`."""
    is_given_up = Q(given_up_at__isnull=False)
    return rows.aggregate(pending=Count("pk", filter=~is_given_up), given_up=Count("pk", filter=is_given_up))


def call(
    pending: PendingCall, ask: Callable[[], _Result], endpoint: Endpoint, probe: Callable[[], object]
) -> _Result | EndpointError:
    """Return the answer of the model, or the error.

    If the last refusal is due and the model refuses even `probe`, a harmless call, the endpoint fails, not the content.
    """
    try:
        return ask()
    except EndpointError as error:
        if not error.is_refusal or pending.refusals + 1 < MAX_REFUSALS:
            return error
        try:
            probe()
        except EndpointError as failure:
            decisive = EndpointError(failure.detail)
            endpoint.pause.begin(decisive)
            return decisive
        return error


def in_parallel(
    take: Callable[[int], Sequence[_Item]],
    call: Callable[[_Item], _Result],
    slots: int,
    should_end: Callable[[], bool],
) -> Iterator[tuple[_Item, _Result]]:
    """Call for each item in a thread, at most `slots` at once; yield the items with their results as they come.

    `take(limit)` gives further items whenever slots are free, also while a slow call goes on. The threads do not keep
    the process from ending. Calls in progress are abandoned when `should_end` returns True.

    Raises: the error of a call, which others do not expect, after the results of those that run.
    """
    errors: list[BaseException] = []
    for item, future in _in_threads(lambda limit: () if errors else take(limit), call, slots, should_end):
        if error := future.exception():
            errors.append(error)
        else:
            yield item, future.result()
    if errors:
        raise errors[0]


def _in_threads(
    take: Callable[[int], Sequence[_Item]],
    call: Callable[[_Item], _Result],
    slots: int,
    should_end: Callable[[], bool],
) -> Iterator[tuple[_Item, Future[_Result]]]:
    ended: SimpleQueue[tuple[_Item, Future[_Result]]] = SimpleQueue()

    def run(item: _Item) -> None:
        future: Future[_Result] = Future()
        try:
            future.set_result(call(item))
        except BaseException as error:  # noqa: BLE001  raised after the other results
            future.set_exception(error)
        ended.put((item, future))

    running = 0
    while not should_end():
        for item in take(slots - running) if running < slots else ():
            threading.Thread(target=run, args=(item,), name="model", daemon=True).start()
            running += 1
        if not running:
            return
        looks_at = time.monotonic() + _LOOK_SECONDS
        while time.monotonic() < looks_at and not should_end():
            with suppress(Empty):
                ended_call = ended.get(timeout=_POLL_SECONDS)
                running -= 1
                yield ended_call
                break
    while not ended.empty():
        yield ended.get()
