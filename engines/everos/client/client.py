"""HTTP client of EverOS 1.0 to 1.5 with limits on time, size and concurrency, and typed answers.

Raises on every call: `EngineUnavailable` and its subclasses (temporary), `EngineRefused` (permanent). The error text of
EverOS is only logged.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import orjson
from pydantic import BaseModel

from core.errors import EngineError, EngineRefused, EngineUnavailable, OutcomeUnknown
from core.http_client import Deadline, HttpClient, HttpError, Response, TooLarge, Undecodable
from engines.everos.client import failures, responses, wire
from engines.everos.client.body import Body
from engines.everos.client.resilience import Breaker, Bulkhead, Retry
from engines.everos.client.responses import Envelope

READS_AT_ONCE = 32
WRITES_AT_ONCE = 16
_PER_USER_DIVISOR = 2  # one user gets at most half
SETTLE_SECONDS = 3.0
"""Wait after a write with an unknown outcome, before EverOS is asked whether it was carried out."""
_MAX_VERIFIED_BYTES = 4 * 2**20
"""EverOS's buffer listing includes file contents, so larger calls are repeated unchecked; EverOS keeps them once."""
_TASK_POLL_SECONDS = 0.25
_TASK_POLL_CAP_SECONDS = 2.0
_TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_STATUS_OF_TASK_ERROR = {"INVALID_INPUT": 422, "UNSUPPORTED_FORMAT": 415, "EXTERNAL_SERVICE_UNAVAILABLE": 503}
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "gzip"}
_T = TypeVar("_T")
_Data = TypeVar("_Data", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Options:
    """Address, timeout and retry policy. `timeout_seconds` limits a call including its retries."""

    base_url: str
    timeout_seconds: float = 120.0
    retry: Retry = field(default_factory=Retry)
    settle_seconds: float = SETTLE_SECONDS
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class AddAnswer:
    request_id: str
    status: Literal["accumulated", "extracted"]


@dataclass(frozen=True, slots=True)
class FlushAnswer:
    """The answer of a flush.

    `status` is None for a queued flush, which reports no result. `failed_before` holds the failures of earlier tries of
    this call: after one, "no_extraction" does not mean that there was nothing to extract. `is_verified`: not sent
    again, because its memories are listed.
    """

    request_id: str
    status: Literal["extracted", "no_extraction"] | None
    failed_before: tuple[OutcomeUnknown, ...] = ()
    is_verified: bool = False


class Client:
    """One per process, with one view per user (`of`). Thread-safe."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._http = HttpClient(options.base_url, headers=_HEADERS, pool_size=READS_AT_ONCE + WRITES_AT_ONCE)
        self._breaker = Breaker(clock=options.clock)
        self._reads = Bulkhead(READS_AT_ONCE, READS_AT_ONCE // _PER_USER_DIVISOR)
        self._writes = Bulkhead(WRITES_AT_ONCE, WRITES_AT_ONCE // _PER_USER_DIVISOR)
        self._user: Hashable = None

    def of(self, user: Hashable) -> Client:
        """Return this client for one user: hanging or failing calls of that user do not block other users."""
        own = object.__new__(Client)
        own.__dict__.update(self.__dict__, _user=user)
        return own

    @property
    def base_url(self) -> str:
        return self._options.base_url

    def deadline(self, seconds: float | None = None) -> Deadline:
        return Deadline.after(self._options.timeout_seconds if seconds is None else seconds, self._options.clock)

    def require_closed(self) -> None:
        """Check that the circuit is closed, before work that only makes sense with a call.

        Raises: `CircuitOpen`.
        """
        self._breaker.require_closed(self._user)

    @property
    def settle_seconds(self) -> float:
        return self._options.settle_seconds

    @property
    def timeout_seconds(self) -> float:
        return self._options.timeout_seconds

    def add(
        self,
        payload: Mapping[str, Any],
        deadline: Deadline,
        *,
        is_repeat: bool = False,
        is_done: Callable[[], bool] = lambda: False,
    ) -> AddAnswer:
        """Append messages. `is_repeat`: an earlier call with them has an unknown outcome.

        Such a call is repeated unless `is_done` reports that another process delivered the messages, or EverOS's buffer
        holds them. If the buffer cannot be read it is repeated too: until a flush, EverOS treats the same (session,
        timestamp, position) as the same message. Raises: `OutcomeUnknown` if a try may have been carried out.
        """
        body = Body(payload)
        failed: list[OutcomeUnknown] = []

        def once() -> AddAnswer:
            if (failed or is_repeat) and (is_done() or self._is_buffered(payload, len(body), deadline)):
                return AddAnswer("", "accumulated")
            status, envelope = self._write("/api/v1/memory/add", body, deadline)
            if status == 202:
                self._wait_for_task(envelope, deadline)
                return AddAnswer(envelope.request_id, "accumulated")
            return AddAnswer(envelope.request_id, responses.checked(wire.Added, envelope.data).status)

        try:
            return self._call(once, deadline, failed)
        except failures.UpstreamFailed as error:
            if not all(isinstance(one, failures.UpstreamFailed) for one in failed):
                raise
            try:
                is_buffered = self._is_buffered(payload, len(body), deadline)
            except EngineUnavailable:
                is_buffered = None
            if is_buffered is None:
                raise
            if is_buffered:
                return AddAnswer("", "accumulated")
            raise EngineUnavailable(error.detail, retry_after_seconds=error.retry_after_seconds) from error

    def flush(
        self, payload: Mapping[str, Any], deadline: Deadline, is_done: Callable[[], bool] = lambda: False
    ) -> FlushAnswer:
        """Ask EverOS to extract a session's buffer.

        After a try with an unknown outcome, repeat the call only if `is_done` does not find its memories.
        """
        body = orjson.dumps(payload)
        failed: list[OutcomeUnknown] = []

        def once() -> FlushAnswer:
            if failed and is_done():
                return FlushAnswer("", None, tuple(failed), is_verified=True)
            try:
                status, envelope = self._write("/api/v1/memory/flush", body, deadline)
            except failures.Unserved as error:  # it may have emptied the buffer before it failed
                raise failures.UpstreamFailed(error.detail, retry_after_seconds=error.retry_after_seconds) from error
            if status == 202:
                self._wait_for_task(envelope, deadline)
                return FlushAnswer(envelope.request_id, None, tuple(failed))
            flushed = responses.checked(wire.Flushed, envelope.data)
            return FlushAnswer(envelope.request_id, flushed.status, tuple(failed))

        return self._call(once, deadline, failed)

    def _call(self, once: Callable[[], _T], deadline: Deadline, failed: list[OutcomeUnknown]) -> _T:
        """Call `once` up to the configured attempts; append failures with an unknown outcome to `failed`."""

        def note(error: EngineUnavailable) -> None:
            if isinstance(error, OutcomeUnknown):
                failed.append(error)

        return self._options.retry.call(once, deadline, note, settle_seconds=self._options.settle_seconds)

    def _is_buffered(self, payload: Mapping[str, Any], size_bytes: int, deadline: Deadline) -> bool | None:
        """Return True if EverOS's buffer holds all messages of an add, None if EverOS does not list it.

        Raises: `EngineUnavailable` while EverOS cannot be asked.
        """
        if size_bytes > _MAX_VERIFIED_BYTES:
            return None
        session_id, messages = payload["session_id"], payload["messages"]
        wanted = {f"m_{session_id}_{message['timestamp']}_{index:03d}" for index, message in enumerate(messages)}
        question = {
            "user_id": messages[0]["sender_id"],
            **{name: payload[name] for name in ("app_id", "project_id") if name in payload},
            "query": "message",
            "method": "keyword",
            "top_k": 1,
            "filters": {"session_id": session_id},
        }
        try:
            envelope = self._read_once("/api/v1/memory/search", orjson.dumps(question), deadline)
            found = responses.checked(wire.Records, envelope.data)
        except (EngineRefused, failures.InvalidResponse) as error:
            failures.log("the buffer of a session cannot be listed", error.detail)
            return None
        return wanted <= {message.id for message in found.unprocessed_messages}

    def search(self, payload: Mapping[str, Any], deadline: Deadline) -> wire.Records:
        return self._read("/api/v1/memory/search", payload, deadline, wire.Records)

    def list(self, payload: Mapping[str, Any], deadline: Deadline) -> wire.Page:
        """Return one page of a user's or an agent's memories of one type."""
        return self._read("/api/v1/memory/get", payload, deadline, wire.Page)

    def health(self, deadline: Deadline) -> tuple[wire.HealthAnswer, dict[str, Any]]:
        """Return the checked answer and its raw JSON. Ignores the circuit breaker."""
        data = self._exchange("GET", "/health", None, deadline, self._health)
        return responses.checked(wire.HealthAnswer, data), data

    def _health(self, response: Response) -> Any:
        if response.status != 200:
            raise self._refusal(response)
        return responses.read_json(response)

    def _read(self, path: str, payload: Mapping[str, Any], deadline: Deadline, shape: type[_Data]) -> _Data:
        body = orjson.dumps(payload)

        def once() -> _Data:
            return responses.checked(shape, self._read_once(path, body, deadline).data)

        try:
            return self._options.retry.call(once, deadline)
        except failures.InvalidResponse:
            raise
        except OutcomeUnknown as error:  # a read changes nothing, so its outcome does not matter
            raise EngineUnavailable(error.detail, retry_after_seconds=error.retry_after_seconds) from error

    def _read_once(self, path: str, body: bytes | None, deadline: Deadline) -> Envelope:
        def read(response: Response) -> Envelope:
            if response.status != 200:
                raise self._refusal(response)
            return responses.read_envelope(response)

        with self._reads.slot(deadline, self._user), self._breaker.guard(self._user):
            return self._exchange("POST" if body else "GET", path, body, deadline, read)

    def _write(self, path: str, body: bytes | Body, deadline: Deadline) -> tuple[int, Envelope]:
        def read(response: Response) -> tuple[int, Envelope]:
            if response.status not in {200, 202}:
                raise self._refusal(response)
            return response.status, responses.read_envelope(response)

        with self._writes.slot(deadline, self._user), self._breaker.guard(self._user):
            return self._exchange("POST", path, body, deadline, read)

    def _refusal(self, response: Response) -> Exception:
        """Return the error for a response that is not a success."""
        status = response.status
        code, text = responses.read_refusal(response)
        failures.log(f"{status} {code}"[:60], text)
        return failures.of_status(status, code, response.retry_after_seconds())

    def _exchange(
        self, method: str, path: str, body: bytes | Body | None, deadline: Deadline, read: Callable[[Response], _T]
    ) -> _T:
        """Send a request and return `read(response)`."""
        try:
            with self._http.send(method, path, body, deadline) as response:
                return read(response)
        except (TooLarge, Undecodable) as error:
            raise failures.invalid_response(str(error)) from None
        except HttpError as error:
            failures.log(f"{method} {path}", f"{type(error).__name__}: {error}")
            raise (failures.no_answer() if error.was_sent else failures.not_reached()) from error

    def _wait_for_task(self, queued: Envelope, deadline: Deadline) -> None:
        """Wait until a queued call ends.

        Raises: `NoAnswer` at the deadline or if the task is unknown, `UpstreamFailed` or `EngineRefused` if it failed.
        """
        responses.checked(wire.Queued, queued.data)
        if not _TASK_ID.fullmatch(queued.request_id):
            raise failures.invalid_response("a task without a usable id")
        pause = _TASK_POLL_SECONDS
        while not (task := self._task(queued.request_id, deadline)).is_over:
            if pause >= deadline.left_seconds:
                raise failures.no_answer()
            self._options.sleep(pause)
            pause = min(pause * 2, _TASK_POLL_CAP_SECONDS)
        if task.status == "failed":
            failures.log("task failed", task.error_code or "")
            code = task.error_code or "INTERNAL_ERROR"
            raise failures.of_status(_STATUS_OF_TASK_ERROR.get(code, 500), code, None)

    def _task(self, task_id: str, deadline: Deadline) -> wire.Task:
        try:
            return responses.checked(wire.Task, self._read_once(f"/api/v1/tasks/{task_id}", None, deadline).data)
        except failures.InvalidResponse:
            raise
        except EngineError as error:  # the call was accepted; only its outcome is unknown
            raise failures.no_answer() from error
