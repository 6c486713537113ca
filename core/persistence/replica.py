"""Reads on a streaming replica of PostgreSQL (`MEMORY_GATEWAY_READ_DATABASE_URL`).

Guarantees: a caller's read is on the replica only if it has replayed the caller's last write, which it is asked before
each read; while it lags by more than `MAX_LAG_SECONDS`, does not answer or is promoted, all reads are on the primary; a
read that fails is done again on the primary.

Ours, because Django's routers choose by model and see neither raw SQL nor who reads. Inside a read the alias "default"
is the replica's connection, so no query names a database.
"""

import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial, wraps
from typing import Any, Final, TypeVar, cast

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import Error

from core import monitoring
from core.persistence.recent_writes import UNKNOWN, recent_writes

logger = logging.getLogger("memory_gateway.replica")

ALIAS: Final = "replica"
MAX_LAG_SECONDS: Final = 0.4
PROBE_SECONDS: Final = 0.2
LEFT_AFTER_SECONDS: Final = 0.8
"""Without an answer for so long, the replica is left, and reads that wait for it are ended."""
_MAX_SAMPLES: Final = 100
_WRITTEN: Final = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
_FLUSHED: Final = "SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn"
_REPLAYED: Final = "SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() - '0/0'::pg_lsn"
_Result = TypeVar("_Result")


def is_configured() -> bool:
    return ALIAS in settings.DATABASES


def read(caller: str, call: Callable[[], _Result]) -> _Result:
    """Return the result of a call that only reads, on the replica if it is as new as what the caller has seen.

    The call is repeated on the primary if it writes after all, or if the replica fails.
    """
    if not is_configured() or _thread.is_reading or connections[DEFAULT_DB_ALIAS].in_atomic_block:
        return call()
    _thread.is_reading = True
    try:
        return _read(caller, call)
    finally:
        _thread.is_reading = False


def _read(caller: str, call: Callable[[], _Result]) -> _Result:
    monitor = _monitor()
    wanted = recent_writes().of(caller) if monitor.is_current() else UNKNOWN
    source = "primary"
    if wanted < UNKNOWN and monitor.has_replayed(wanted):
        source = "replica"
        try:
            with monitor.used():
                return call()
        except Exception as error:
            if not _is_of_database(error):
                raise
            logger.info("A read is repeated on the primary: %s", error, extra={"cause": error})
            source = "repeated"
        finally:
            monitoring.REPLICA_READS.labels(source).inc()
        return call()
    monitoring.REPLICA_READS.labels(source).inc()
    return call()


def reads(caller_of: Callable[..., str]) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
    """Decorate a view that only reads, also by POST. `caller_of` gets its arguments."""

    def decorate(view: Callable[..., _Result]) -> Callable[..., _Result]:
        @wraps(view)
        def reading(*args: Any, **kwargs: Any) -> _Result:
            if not is_configured():
                return view(*args, **kwargs)
            return read(caller_of(*args, **kwargs), partial(view, *args, **kwargs))

        reading.only_reads = True  # type: ignore[attr-defined]
        return reading

    return decorate


def is_read(found: Any, method: str) -> bool:
    """Return True if the view of a request, which the resolver found, is decorated with `reads`."""
    view, name = getattr(found, "func", None), method.lower()
    handler = getattr(getattr(view, "cls", None), getattr(view, "actions", {}).get(name, name), None)
    return hasattr(handler, "only_reads")


def stream(caller: str, parts: Generator[bytes]) -> Iterator[bytes]:
    """Yield what is read while it is sent. What fails after the beginning fails as it does on the primary."""
    if not is_configured() or not _monitor().is_current() or not _monitor().has_replayed(recent_writes().of(caller)):
        yield from parts
        return
    monitoring.REPLICA_READS.labels("replica").inc()
    try:
        while True:
            with _monitor().used():
                part = next(parts, None)
            if part is None:
                return
            yield part
    finally:
        with _monitor().used():
            parts.close()


@contextmanager
def primary() -> Iterator[None]:
    """Write on the primary, inside a read: the audit trail of who reads."""
    if not _is_inside():
        yield
        return
    inner = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = _thread.primary
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = inner


def note_write(caller: str) -> None:
    """Remember that the caller has seen all that is committed until now: later reads are as new."""
    if not is_configured():
        return
    try:
        lsn = int(_row(connections[DEFAULT_DB_ALIAS], _WRITTEN)[0])
    except Error:
        lsn = UNKNOWN
    if not recent_writes().add(caller, lsn):  # others cannot know of it
        _monitor().wait_until_replayed(lsn)


def user_of(user_pk: object) -> str:
    """Return the name of a user as a caller."""
    return f"user:{user_pk}"


def operator_of(operator_pk: object) -> str:
    """Return the name of an operator as a caller."""
    return f"operator:{operator_pk}"


def problem() -> str:
    """Return what is wrong with the replica, empty for nothing."""
    return "" if not is_configured() else _monitor().problem()


class _Thread(threading.local):
    primary: BaseDatabaseWrapper
    is_reading = False
    """The outermost read has chosen."""


_thread = _Thread()


def _is_inside() -> bool:
    return is_configured() and connections[DEFAULT_DB_ALIAS] is connections[ALIAS]


def _row(connection: BaseDatabaseWrapper, statement: str) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cast("tuple[Any, ...]", cursor.fetchone())


def _is_of_database(error: BaseException | None) -> bool:
    """Return True for an error of the database, or one that was raised for such an error."""
    while error is not None:
        if isinstance(error, Error):
            return True
        error = error.__cause__ or error.__context__
    return False


@cache
def _monitor() -> "_Monitor":
    return _Monitor()


class _Monitor:
    """Asks the replica five times a second what it has replayed, and ends reads that wait for one without an answer."""

    def __init__(self) -> None:
        self._answered_at = self._current_at = float("-inf")
        self._replayed = 0
        self._flushed: deque[tuple[float, int]] = deque()
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._was_current = False
        self._is_first_probe_done = threading.Event()
        for target in (self._probe_forever, self._watch_forever):
            threading.Thread(target=target, name="replica", daemon=True).start()
        self._is_first_probe_done.wait(LEFT_AFTER_SECONDS)

    def is_current(self) -> bool:
        return time.monotonic() - self._current_at < LEFT_AFTER_SECONDS

    def problem(self) -> str:
        if self.is_current():
            return ""
        answers = time.monotonic() - self._answered_at < LEFT_AFTER_SECONDS
        reason = "lags behind or was promoted" if answers else "does not answer"
        return f"The read replica {reason}: reads are on the primary."

    def has_replayed(self, lsn: int) -> bool:
        """Ask the replica. False if it does not answer."""
        replica = connections[ALIAS]
        try:
            with self._socket_of(replica):
                is_replica, replayed = _row(replica, _REPLAYED)
        except Error:
            replica.close()
            return False
        return bool(is_replica) and replayed is not None and replayed >= lsn

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the thread's queries go to the replica inside the block."""
        replica = connections[ALIAS]
        replica.alias = DEFAULT_DB_ALIAS  # rows that are read here are saved by the primary
        _thread.primary = connections[DEFAULT_DB_ALIAS]
        connections[DEFAULT_DB_ALIAS] = replica
        try:
            with self._socket_of(replica):
                yield
        except Exception as error:
            if _is_of_database(error):
                replica.close()
            raise
        finally:
            connections[DEFAULT_DB_ALIAS] = _thread.primary

    def wait_until_replayed(self, lsn: int) -> None:
        """Wait, unless the replica is left, as it then is by other processes too."""
        while self.is_current() and self._replayed < lsn:
            time.sleep(PROBE_SECONDS / 4)

    @contextmanager
    def _socket_of(self, connection: BaseDatabaseWrapper) -> Iterator[None]:
        """Register the connection's socket inside the block: a copy, whose number stays even if the other is closed."""
        connection.ensure_connection()
        with socket.socket(fileno=os.dup(connection.connection.pgconn.socket)) as copy:
            with self._lock:
                self._sockets.add(copy)
            try:
                yield
            finally:
                with self._lock:
                    self._sockets.discard(copy)

    def _probe_forever(self) -> None:
        while True:
            began = time.monotonic()
            try:
                self._probe(began)
            except Error as error:
                logger.debug("The read replica or the primary does not answer: %s", error)
                for alias in (DEFAULT_DB_ALIAS, ALIAS):
                    with suppress(Error):
                        connections[alias].close()
            self._is_first_probe_done.set()
            time.sleep(PROBE_SECONDS)

    def _probe(self, began: float) -> None:
        flushed = int(_row(connections[DEFAULT_DB_ALIAS], _FLUSHED)[0])
        with self._socket_of(connections[ALIAS]):
            is_replica, replayed = _row(connections[ALIAS], _REPLAYED)
        self._replayed = int(replayed or 0)
        if len(self._flushed) < _MAX_SAMPLES and (not self._flushed or self._flushed[-1][1] < flushed):
            self._flushed.append((began, flushed))
        while self._flushed and self._flushed[0][1] <= self._replayed:
            self._flushed.popleft()
        is_late = bool(self._flushed) and began - self._flushed[0][0] > MAX_LAG_SECONDS
        self._answered_at = began
        if is_replica and not is_late:
            self._current_at = began
        elif is_replica is False or is_late:
            self._current_at = float("-inf")

    def _watch_forever(self) -> None:
        while True:
            time.sleep(PROBE_SECONDS / 2)
            is_current = self.is_current()
            if is_current != self._was_current:
                self._was_current = is_current
                if is_current:
                    logger.info("The read replica is used.")
                else:
                    logger.warning(self.problem())
            if time.monotonic() - self._answered_at >= LEFT_AFTER_SECONDS:
                self._end_waiting_reads()

    def _end_waiting_reads(self) -> None:
        """Shut down the sockets, so that reads fail now and not when the network gives up."""
        with self._lock:
            for one in self._sockets:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
