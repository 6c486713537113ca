"""The two transports, which send calls, and the descriptors that bind calls to them.

Each endpoint is written once, as a method that returns a `Call`. On a client it returns the parsed answer; on an
asynchronous client, an awaitable of it.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import update_wrapper, wraps
from pathlib import Path
from typing import Any, BinaryIO, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, overload

import httpx2

from memory_gateway_client.calls import Call, Page
from memory_gateway_client.errors import MemoryGatewayError, NoAnswer, problem_of, retry_after_of

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Transport | AsyncTransport")
Outcome = httpx2.Response | httpx2.TransportError

OUTCOME_UNKNOWN: Final = "upstream_outcome_unknown"
_NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_TEMPORARY: Final = (httpx2.NetworkError, httpx2.TimeoutException, httpx2.RemoteProtocolError)


@dataclass(frozen=True)
class Retries:
    """Bounds of retries: how often a call is sent at most, and the longest wait between two attempts in seconds.

    An answer whose `Retry-After` is longer is raised at once.
    """

    attempts: int = 3
    longest_wait: float = 30.0

    def wait(self, call: Call[Any], outcome: Outcome, attempt: int) -> float | None:
        """Return the seconds to wait before the call is sent again; None if it must not be.

        A call that is not idempotent is repeated only if it was not carried out: there was no connection, or the
        gateway says so. A 409 with `Retry-After` says that an earlier attempt still runs.
        """
        if attempt >= self.attempts or not call.is_repeatable:
            return None
        backoff = min(2.0 ** (attempt - 2) * random.uniform(0.5, 1), self.longest_wait)  # noqa: S311
        if isinstance(outcome, httpx2.TransportError):
            may_be_done = not isinstance(outcome, _NEVER_SENT)
            is_lost = not isinstance(outcome, _TEMPORARY) or (may_be_done and not call.is_idempotent)
            return None if is_lost else backoff
        seconds = retry_after_of(outcome)
        is_running = outcome.status_code == 409 and call.is_idempotent and seconds is not None
        if outcome.status_code not in {429, 503} and not is_running:
            return None
        if not call.is_idempotent and not _was_refused(outcome):
            return None
        if seconds is None:
            return backoff
        return seconds if seconds <= self.longest_wait else None


def _was_refused(response: httpx2.Response) -> bool:
    """Return True if the gateway did nothing. A 503 of a proxy, or without `Retry-After`, does not say so."""
    if response.status_code == 429:
        return True
    code = problem_of(response).code
    return bool(code) and code != OUTCOME_UNKNOWN and retry_after_of(response) is not None


def _error_of(outcome: Outcome) -> MemoryGatewayError:
    """Return the error to raise for an outcome that is not 2xx."""
    if isinstance(outcome, httpx2.Response):
        return problem_of(outcome)
    reason = str(outcome) or type(outcome).__name__
    error = NoAnswer(f"The gateway did not answer: {reason.rstrip('.')}.")
    error.__cause__ = outcome
    return error


class _Stream:
    """A file that has only `read`, because httpx2 takes the size of a pipe for its length."""

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read


@dataclass(frozen=True)
class Settings:
    """The settings of both transports. `base_url` has no slash at its end."""

    base_url: str
    headers: dict[str, str]
    retries: Retries

    @contextmanager
    def request(self, http: httpx2.Client | httpx2.AsyncClient, call: Call[Any]) -> Iterator[httpx2.Request]:
        """Yield the call's request. A file given by its path is open inside the block."""
        with contextlib.ExitStack() as stack:
            content: dict[str, Any] = {} if call.body is None else {"json": call.body}
            if call.upload is not None:
                file = call.upload.file
                opened: Any = stack.enter_context(file.open("rb")) if isinstance(file, Path) else file
                if not opened.seekable():
                    opened = _Stream(opened)
                content = {"data": call.body, "files": {"file": (call.upload.filename, opened)}}
            headers = {**self.headers, **call.headers}
            yield http.build_request(
                call.method, self.base_url + call.path, params=call.params, headers=headers, **content
            )


class Transport:
    """Sends calls one at a time and waits for their answers."""

    def __init__(self, http: httpx2.Client, settings: Settings, sleep: Callable[[float], None] = time.sleep) -> None:
        self.http = http
        self.settings = settings
        self._sleep = sleep

    def send(self, call: Call[T]) -> T:
        """Return the parsed answer. Raises: `MemoryGatewayError`."""
        return call.parse(self._answer(call))

    def pages(self, call: Call[Page[T]]) -> Iterator[T]:
        """Yield the items of all pages, asking for each page when it is needed."""
        following: Any = {}
        while following is not None:
            page = self.send(call.with_params(following))
            yield from page.items
            following = page.following

    def stream(self, call: Call[Any]) -> Iterator[bytes]:
        """Yield the answer's bytes as they come."""
        response = self._answer(call, stream=True)
        try:
            yield from response.iter_bytes()
        except httpx2.TransportError as error:
            raise _error_of(error) from error
        finally:
            response.close()

    def _answer(self, call: Call[Any], *, stream: bool = False) -> httpx2.Response:
        attempt = 1
        while True:
            outcome = self._outcome(call, stream=stream)
            if isinstance(outcome, httpx2.Response) and outcome.is_success:
                return outcome
            seconds = self.settings.retries.wait(call, outcome, attempt)
            if seconds is None:
                raise _error_of(outcome)
            self._sleep(seconds)
            attempt += 1

    def _outcome(self, call: Call[Any], *, stream: bool) -> Outcome:
        try:
            with self.settings.request(self.http, call) as request:
                response = self.http.send(request, stream=stream)
                if not response.is_success:
                    response.read()
                return response
        except httpx2.TransportError as error:
            return error


class AsyncTransport:
    """Sends calls without blocking the event loop."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        settings: Settings,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.http = http
        self.settings = settings
        self._sleep = sleep

    async def send(self, call: Call[T]) -> T:
        """Return the parsed answer. Raises: `MemoryGatewayError`."""
        return call.parse(await self._answer(call))

    async def pages(self, call: Call[Page[T]]) -> AsyncIterator[T]:
        """Yield the items of all pages, asking for each page when it is needed."""
        following: Any = {}
        while following is not None:
            page = await self.send(call.with_params(following))
            for item in page.items:
                yield item
            following = page.following

    async def stream(self, call: Call[Any]) -> AsyncIterator[bytes]:
        """Yield the answer's bytes as they come."""
        response = await self._answer(call, stream=True)
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except httpx2.TransportError as error:
            raise _error_of(error) from error
        finally:
            await response.aclose()

    async def _answer(self, call: Call[Any], *, stream: bool = False) -> httpx2.Response:
        attempt = 1
        while True:
            outcome = await self._outcome(call, stream=stream)
            if isinstance(outcome, httpx2.Response) and outcome.is_success:
                return outcome
            seconds = self.settings.retries.wait(call, outcome, attempt)
            if seconds is None:
                raise _error_of(outcome)
            await self._sleep(seconds)
            attempt += 1

    async def _outcome(self, call: Call[Any], *, stream: bool) -> Outcome:
        try:
            with self.settings.request(self.http, call) as request:
                response = await self.http.send(request, stream=stream)
                if not response.is_success:
                    await response.aread()
                return response
        except httpx2.TransportError as error:
            return error


class Group(Generic[S]):
    """Endpoints that share a transport and a scope (`app_id`, `project_id`; None: the gateway's default)."""

    def __init__(self, transport: S, scope: dict[str, str | None]) -> None:
        self._transport: S = transport
        self._scope = scope


class _Bound(Generic[P, T]):
    """A descriptor that sends what the method builds."""

    send: str

    def __init__(self, build: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self._build = build
        update_wrapper(self, build)  # type: ignore[arg-type]

    def _bound(self, group: Any) -> Any:
        build = self._build.__get__(group)
        send = getattr(group._transport, self.send)  # noqa: SLF001  Group is in this module

        @wraps(build)
        def sent(*args: P.args, **kwargs: P.kwargs) -> Any:
            return send(build(*args, **kwargs))

        return sent


class Endpoint(_Bound[P, T]):
    """An endpoint with one answer."""

    send = "send"

    @overload
    def __get__(self, group: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, group: Group[Transport], owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, group: Group[AsyncTransport], owner: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, group: Any, owner: Any) -> Any:
        return self if group is None else self._bound(group)


class Listing(_Bound[P, Page[T]]):
    """An endpoint whose pages are iterated."""

    send = "pages"

    @overload
    def __get__(self, group: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, group: Group[Transport], owner: Any) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, group: Group[AsyncTransport], owner: Any) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, group: Any, owner: Any) -> Any:
        return self if group is None else self._bound(group)


class Streaming(_Bound[P, None]):
    """An endpoint whose answer is bytes."""

    send = "stream"

    @overload
    def __get__(self, group: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, group: Group[Transport], owner: Any) -> Callable[P, Iterator[bytes]]: ...
    @overload
    def __get__(self, group: Group[AsyncTransport], owner: Any) -> Callable[P, AsyncIterator[bytes]]: ...
    def __get__(self, group: Any, owner: Any) -> Any:
        return self if group is None else self._bound(group)
