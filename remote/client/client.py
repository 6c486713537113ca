"""HTTP client of EverOS 1.0 to 1.6 with limits on time, size and concurrency, and typed answers.

Raises on every call: `EngineUnavailable` and its subclasses (temporary), `EngineRefused` (permanent). The error text of
EverOS is only logged.
"""

import copy
import re
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeVar

import orjson

from core.errors import EngineError, EngineRefused, EngineUnavailable, OutcomeUnknown
from core.limits.concurrency import Bulkhead
from core.messages import Translatable as _
from core.network.http_client import Deadline, HttpClient, HttpError, TooLarge, Undecodable
from remote.client import failures, wire
from remote.client.content import Body
from remote.client.resilience import Breaker, Retry

READS_AT_ONCE = 32
WRITES_AT_ONCE = 16
SETTLE_SECONDS = 3.0
"""The wait after a write with an unknown outcome, before the gateway checks if EverOS carried it out."""
_MAX_VERIFIED_BYTES = 4 * 2**20
"""The largest call that is looked up in EverOS's buffer, whose listing includes file contents. Larger calls are sent
again without a check; EverOS ignores the duplicates."""
_TASK_POLL_SECONDS = 0.25
_TASK_POLL_CAP_SECONDS = 2.0
_TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_STATUS_OF_TASK_ERROR = {"INVALID_INPUT": 422, "UNSUPPORTED_FORMAT": 415, "EXTERNAL_SERVICE_UNAVAILABLE": 503}
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "gzip"}
_SEARCH = "/api/v1/memory/search"
_DELETE = "/api/v2/memory/delete"
_DELETE_BY_IDS = "/api/v2/memory/delete_by_ids"
_Data = TypeVar("_Data", bound=wire.Records)


@dataclass(frozen=True, slots=True)
class AddAnswer:
    request_id: str
    status: Literal["accumulated", "extracted"]


@dataclass(frozen=True, slots=True)
class FlushAnswer:
    """The answer of a flush.

    `status` is None for a queued flush, which reports no result. `failed_before` are the errors of earlier tries of
    this call; after one, "no_extraction" does not mean that there was nothing to extract. `is_verified`: the flush was
    not sent again, because EverOS lists its memories.
    """

    request_id: str
    status: Literal["extracted", "no_extraction"] | None
    failed_before: tuple[OutcomeUnknown, ...] = ()
    is_verified: bool = False


class Client:
    """A client of EverOS, with a copy per user (`of`). Thread-safe."""

    def __init__(
        self,
        base_url: str,
        *,
        timeout_seconds: float = 120.0,
        retry: Retry | None = None,
        settle_seconds: float = SETTLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the connection pool. `timeout_seconds` limits a call including its retries."""
        self.base_url = base_url
        self.timeout_seconds = timeout_seconds
        self.settle_seconds = settle_seconds
        self._retry = retry or Retry()
        self._clock = clock
        self._http = HttpClient(base_url, headers=_HEADERS, pool_size=READS_AT_ONCE + WRITES_AT_ONCE)
        self._breaker = Breaker(clock)
        # At most half of the calls for one user, so that a user's hanging calls do not block others.
        self._reads = Bulkhead(READS_AT_ONCE // 2, READS_AT_ONCE)
        self._writes = Bulkhead(WRITES_AT_ONCE // 2, WRITES_AT_ONCE)
        self.user: Hashable = None

    def of(self, user: Hashable) -> Self:
        """Return this client for one user: hanging or failing calls of that user do not block other users."""
        own = copy.copy(self)
        own.user = user
        return own

    def deadline(self, seconds: float | None = None) -> Deadline:
        return Deadline.after(self.timeout_seconds if seconds is None else seconds, self._clock)

    def require_closed(self) -> None:
        """Check that the circuit is closed, before work that is useless without a call. Raises: `CircuitOpen`."""
        self._breaker.require_closed(self.user)

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
        contains them. If the buffer cannot be read, the call is repeated too: until a flush, EverOS treats the same
        (session, timestamp, position) as the same message. Raises: `OutcomeUnknown` if a try may have been carried out.
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
            return AddAnswer(envelope.request_id, wire.Added.checked(envelope.data).status)

        try:
            return self._retry.call(once, deadline, failed, settle_seconds=self.settle_seconds)
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
            raise failures.AddFailed(error.detail, retry_after_seconds=error.retry_after_seconds) from error

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
            except failures.ServiceUnavailable as error:  # EverOS may have emptied the buffer before it failed
                raise failures.UpstreamFailed(error.detail, retry_after_seconds=error.retry_after_seconds) from error
            if status == 202:
                self._wait_for_task(envelope, deadline)
                return FlushAnswer(envelope.request_id, None, tuple(failed))
            return FlushAnswer(envelope.request_id, wire.Flushed.checked(envelope.data).status, tuple(failed))

        return self._retry.call(once, deadline, failed, settle_seconds=self.settle_seconds)

    def _is_buffered(self, payload: Mapping[str, Any], size_bytes: int, deadline: Deadline) -> bool | None:
        """Return True if EverOS's buffer contains all messages of an add, None if EverOS does not list it.

        Raises: `EngineUnavailable` while EverOS cannot be reached.
        """
        if size_bytes > _MAX_VERIFIED_BYTES:
            return None
        session_id, messages = payload["session_id"], payload["messages"]
        wanted = {f"m_{session_id}_{message['timestamp']}_{index:03d}" for index, message in enumerate(messages)}
        query = {
            "user_id": messages[0]["sender_id"],
            **{name: payload[name] for name in ("app_id", "project_id") if name in payload},
            "query": "message",
            "method": "keyword",
            "top_k": 1,
            "filters": {"session_id": session_id},
        }
        try:
            found = wire.Records.checked(self._read("POST", _SEARCH, orjson.dumps(query), deadline).data)
        except (EngineRefused, failures.InvalidResponse) as error:
            failures.log("cannot list the buffer of a session", error.detail)
            return None
        return wanted <= {message.id for message in found.unprocessed_messages}

    def search(self, payload: Mapping[str, Any], deadline: Deadline) -> wire.Records:
        """Search once, without retries: the gateway answers without EverOS after a failure."""
        return self._find(_SEARCH, payload, deadline, wire.Records, replace(self._retry, attempts=1))

    def list(self, payload: Mapping[str, Any], deadline: Deadline) -> wire.Page:
        """Return one page of a user's or an agent's memories of one type."""
        return self._find("/api/v1/memory/get", payload, deadline, wire.Page, self._retry)

    def health(self, deadline: Deadline) -> tuple[wire.HealthAnswer, dict[str, Any]]:
        """Return the checked answer and its raw JSON. Ignores the circuit breaker."""
        _status, data = self._exchange("GET", "/health", None, deadline, {200})
        return wire.HealthAnswer.checked(data), data

    def can_delete(self, deadline: Deadline) -> bool:
        """Return True if EverOS's OpenAPI document lists the calls that delete. Ignores the circuit breaker."""
        _status, data = self._exchange("GET", "/openapi.json", None, deadline, {200})
        return wire.Specification.checked(data).paths.keys() >= {_DELETE, _DELETE_BY_IDS}

    def delete(self, payload: Mapping[str, Any], deadline: Deadline) -> int:
        """Delete what a user or agent has, in a session if given; return EverOS's count. One try, no retries.

        Raises: `EngineUnavailable` while EverOS is making memories of the session, and then deletes nothing.
        """
        _status, envelope = self._write(_DELETE, orjson.dumps(payload), deadline)
        return wire.Deleted.checked(envelope.data).count

    def delete_by_ids(self, payload: Mapping[str, Any], deadline: Deadline) -> int:
        """Delete a user's episodes, at most 50; return how many existed. One try, no retries."""
        _status, envelope = self._write(_DELETE_BY_IDS, orjson.dumps(payload), deadline)
        return wire.DeletedByIds.checked(envelope.data).deleted

    def _find(
        self, path: str, payload: Mapping[str, Any], deadline: Deadline, shape: type[_Data], retry: Retry
    ) -> _Data:
        body = orjson.dumps(payload)
        try:
            return retry.call(
                lambda: shape.checked(self._read("POST", path, body, deadline).data), deadline, unknown=[]
            )
        except failures.InvalidResponse:
            raise
        except OutcomeUnknown as error:  # a read changes nothing, so its outcome does not matter
            raise EngineUnavailable(error.detail, retry_after_seconds=error.retry_after_seconds) from error

    def _read(self, method: str, path: str, body: bytes | None, deadline: Deadline) -> wire.Envelope:
        counted = self._breaker.guard(self.user, is_search=path == _SEARCH)
        with self._reads.slot(self.user, deadline.left_seconds / 2), counted:
            return wire.Envelope.checked(self._exchange(method, path, body, deadline, {200})[1])

    def _write(self, path: str, body: bytes | Body, deadline: Deadline) -> tuple[int, wire.Envelope]:
        # Wait for a slot for half of the time at most: a call sent later could time out with an unknown outcome.
        with self._writes.slot(self.user, deadline.left_seconds / 2), self._breaker.guard(self.user):
            status, data = self._exchange("POST", path, body, deadline, {200, 202})
            return status, wire.Envelope.checked(data)

    def _exchange(
        self, method: str, path: str, body: bytes | Body | None, deadline: Deadline, accepted: set[int]
    ) -> tuple[int, Any]:
        """Send a request and return the status and JSON of the response."""
        try:
            with self._http.send(method, path, body, deadline) as response:
                if response.status in accepted:
                    return response.status, wire.read_json(response)
                code, text = wire.read_refusal(response)
                failures.log(f"{response.status} {code}"[:60], text)
                raise failures.of_status(response.status, code, response.retry_after_seconds())
        except (TooLarge, Undecodable) as error:
            raise failures.invalid_response(str(error)) from None
        except HttpError as error:
            failures.log(f"{method} {path}", f"{type(error).__name__}: {error}")
            if error.was_sent:
                raise failures.no_answer() from error
            raise failures.NotReached(_("The memory engine cannot be reached.")) from error

    def _wait_for_task(self, queued: wire.Envelope, deadline: Deadline) -> None:
        """Wait until a queued call ends.

        Raises: `NoAnswer` at the deadline or if the task is unknown, `UpstreamFailed` or `EngineRefused` if it failed.
        """
        wire.Queued.checked(queued.data)
        if not _TASK_ID.fullmatch(queued.request_id):
            raise failures.invalid_response("a task without a valid id")
        pause = _TASK_POLL_SECONDS
        while (task := self._task(queued.request_id, deadline)).status not in {"success", "failed"}:
            if pause >= deadline.left_seconds:
                raise failures.no_answer()
            self._retry.sleep(pause)
            pause = min(pause * 2, _TASK_POLL_CAP_SECONDS)
        if task.status == "failed":
            code = task.error_code or "INTERNAL_ERROR"
            failures.log("task failed", code)
            raise failures.of_status(_STATUS_OF_TASK_ERROR.get(code, 500), code, None)

    def _task(self, task_id: str, deadline: Deadline) -> wire.Task:
        try:
            return wire.Task.checked(self._read("GET", f"/api/v1/tasks/{task_id}", None, deadline).data)
        except failures.InvalidResponse:
            raise
        except EngineError as error:  # EverOS accepted the call, only its outcome is unknown
            raise failures.no_answer() from error
