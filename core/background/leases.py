"""Leases: the one way in which a process claims rows of pending work.

Guarantees: one process has a row, until it releases it, stops renewing it, or ends. A claim never waits. Other
columns say when work is due.

Ours: the claim is part of its row, on both databases. Not chosen: session locks, which PgBouncer and SQLite lack, and
a broker. It costs two updates and a thread per piece of work.

A holder is `host:pid:random`. The host includes the process namespace, because a pid is unique only there; the random
part starts with a process token.
"""

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from django.apps import apps
from django.db import DatabaseError, OperationalError, connection, connections, models, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

logger = logging.getLogger("memory_gateway.worker")

_Row = TypeVar("_Row", bound="Leased")
_RANDOM_CHARS = 8
_PAST = timedelta(seconds=1)


class Leased(models.Model):
    """A row that one holder works on at a time. The lease ends when its holder stops renewing it or ends."""

    lease_holder = models.CharField(_("lease holder"), max_length=128, blank=True)
    leased_until = models.DateTimeField(_("leased until"), null=True, blank=True)

    class Meta:
        abstract = True

    def is_held(self, now: datetime) -> bool:
        """Return True if a live holder has the lease."""
        is_expired = not self.lease_holder or self.leased_until is None or self.leased_until < now
        return not is_expired and not is_dead(self.lease_holder)


class Claimable(Leased):
    """A pending row that `claimed` leases. The database sets the default, for processes of an earlier version."""

    lease_holder = models.CharField(_("lease holder"), max_length=128, blank=True, default="", db_default="")

    class Meta(Leased.Meta):
        abstract = True


def take(
    rows: QuerySet[_Row],
    limit: int,
    lasts: timedelta,
    *,
    now: datetime | None = None,
    holder: str | None = None,
    **values: Any,
) -> list[_Row]:
    """Lease at most `limit` of the rows that are free, and set `values` in them; return them as they are then.

    A value may be a function of the row as it was before. A row is free without a lease, when its lease has expired,
    when its holder was a process of this machine that has ended, and for the same `holder` (by default a new one). Rows
    that another process is claiming at this moment are left to it, without a wait (`SKIP LOCKED`).
    """
    now, holder = now or timezone.now(), holder or new_holder()
    holders = rows.exclude(lease_holder="").order_by().values_list("lease_holder", flat=True).distinct()
    own_or_gone = [one for one in holders if one == holder or is_dead(one)]
    is_open = Q(lease_holder="") | Q(leased_until__isnull=True) | Q(leased_until__lt=now)
    free = rows.filter(is_open | Q(lease_holder__in=own_or_gone))
    # SQLite's one writer is not disturbed for nothing.
    if not connection.features.has_select_for_update and not free.exists():
        return []
    values |= {"lease_holder": holder, "leased_until": now + lasts}
    is_same_for_all = not any(map(callable, values.values()))
    with transaction.atomic():
        found = list(free.select_for_update(skip_locked=True, of=("self",))[:limit])
        if found and is_same_for_all:
            QuerySet(rows.model).filter(pk__in=[row.pk for row in found]).update(**values)
        for row in found:
            of_row = {name: value(row) if callable(value) else value for name, value in values.items()}
            if not is_same_for_all:
                QuerySet(rows.model).filter(pk=row.pk).update(**of_row)
            for name, value in of_row.items():
                setattr(row, name, value)
    return found


class Claim(Generic[_Row]):
    """The rows that one piece of work holds. It takes further ones as it goes, and releases each when it is done."""

    def __init__(self, lasts: timedelta, clock: Callable[[], datetime]) -> None:
        self._lasts = lasts
        self._clock = clock
        self._holder = new_holder()
        self._renewing = ExitStack()
        self._mine: QuerySet[_Row] | None = None

    def take(self, rows: QuerySet[_Row], limit: int) -> list[_Row]:
        """Take at most `limit` of the rows that are free, and renew them from now on."""
        others = rows.exclude(lease_holder=self._holder)
        found = take(others, limit, self._lasts, now=self._clock(), holder=self._holder)
        if found and self._mine is None:
            self._mine = QuerySet(rows.model).filter(lease_holder=self._holder)
            self._renewing.enter_context(renewed(self._mine, self._lasts, clock=self._clock))
        return found

    def release(self, **condition: object) -> None:
        """Release the rows, or those that match. If that fails, they expire."""
        try:
            if self._mine is not None:
                self._mine.filter(**condition).update(lease_holder="", leased_until=None)
        except DatabaseError as error:
            logger.warning("A lease could not be released and will expire: %s", error, extra={"cause": error})

    def close(self) -> None:
        self._renewing.close()
        self.release()


@contextmanager
def claimed(
    rows: QuerySet[_Row], limit: int, lasts: timedelta, *, clock: Callable[[], datetime] = timezone.now
) -> Iterator[list[_Row]]:
    """Take at most `limit` of the rows, yield them, and release those that still exist after the block."""
    claim: Claim[_Row] = Claim(lasts, clock)
    with closing(claim):
        yield claim.take(rows, limit)


def release_all() -> int:
    """Release every lease of this process, which is about to end; return their number."""
    mine, count = new_holder()[:-_RANDOM_CHARS], 0
    for model in apps.get_models():
        if issubclass(model, Leased):
            leased: QuerySet[Leased] = QuerySet(model).exclude(lease_holder="").filter(lease_holder__startswith=mine)
            count += leased.update(leased_until=timezone.now() - _PAST)
    return count


@contextmanager
def renewed(
    rows: QuerySet[Any],
    lasts: timedelta,
    *,
    clock: Callable[[], datetime] = timezone.now,
    every: timedelta | None = None,
) -> Iterator[None]:
    """Renew the lease of `rows` inside the block, for work that takes longer than `lasts`.

    `rows` must select by the holder. The default interval is a third of the lease, which allows for failed writes.
    """
    seconds, ended = (every or lasts / 3).total_seconds(), threading.Event()

    def renew() -> None:
        try:
            while not ended.wait(seconds):
                try:
                    rows.update(leased_until=clock() + lasts)
                except OperationalError as error:
                    logger.warning("A lease could not be renewed: %s", error, extra={"cause": error})
        finally:
            connections.close_all()

    renewing = threading.Thread(target=renew, name="lease", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()


def new_holder() -> str:
    """Return a new holder for one piece of work in this process, at most 128 characters long."""
    return f"{_host()}:{os.getpid()}:{_process_token(os.getpid())}{secrets.token_hex(_RANDOM_CHARS // 2)}"


def is_dead(holder: str) -> bool:
    """Return True if the holder was a process of this machine that has ended; False if that cannot be known."""
    host, pid, random = (*holder.rsplit(":", 2), "", "")[:3]
    if host != _host() or not pid.isdecimal():
        return False
    if int(pid) == os.getpid():
        return not random.startswith(_process_token(os.getpid()))
    return not _is_running(int(pid))


@cache
def _host() -> str:
    namespace = Path("/proc/self/ns/pid")
    suffix = f"@{namespace.readlink().name.strip('pid:[]')}" if namespace.is_symlink() else ""
    return f"{socket.gethostname()[:64]}{suffix}"


@cache
def _process_token(_pid: int) -> str:
    """Return a random text of this process. A forked child inherits the cache; its other pid gets it a new text."""
    return secrets.token_hex(4)


def _is_running(pid: int) -> bool:
    """Return False also for a killed process whose parent has not noticed yet."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return status.rpartition(")")[2].split()[:1] != ["Z"]
