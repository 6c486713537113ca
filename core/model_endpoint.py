"""Client for a model behind an OpenAI-compatible endpoint, with a deadline and exponential backoff.

Every failure becomes an `EndpointError` whose message contains no secret. After a failure, calls fail at once for a
pause that grows with each further failure.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from core.errors import GatewayError
from core.http_client import Deadline, HttpClient, HttpError, TimedOut, TooLarge, Undecodable

CONNECTIONS: Final = 8
_MAX_ANSWER_BYTES: Final = 16 * 2**20
_FIRST_PAUSE_SECONDS: Final = 2.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_REFUSED: Final = frozenset({400, 413, 422})


class EndpointError(GatewayError):
    """A call to a model failed. `is_refusal`: the model rejects this input; it may accept another."""

    status, code, title = 503, "model_unavailable", "A model's endpoint failed"

    def __init__(self, detail: str, *, is_refusal: bool = False, retry_after_seconds: int | None = None) -> None:
        super().__init__(detail, retry_after_seconds=retry_after_seconds)
        self.is_refusal = is_refusal


@dataclass
class Pause:
    """The backoff state of an endpoint: `error` is the reason for the pause, None while the endpoint works."""

    clock: Callable[[], float] = time.monotonic
    error: str | None = None
    _until: float = 0.0
    _seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def left_seconds(self) -> float:
        return max(self._until - self.clock(), 0.0) if self.error else 0.0

    def begin(self, error: EndpointError) -> None:
        with self._lock:
            if self.left_seconds():
                return
            self._seconds = min(max(2 * self._seconds, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
            requested = min(error.retry_after_seconds or 0, _LONGEST_PAUSE_SECONDS)
            self._until, self.error = self.clock() + max(self._seconds, requested), error.detail

    def end(self) -> None:
        with self._lock:
            self.error, self._seconds = None, 0.0


class Endpoint:
    """An endpoint shared by all threads of the process, one per address. `name` is its name in messages."""

    def __init__(self, base_url: str, api_key: str, name: str) -> None:
        self._name = name
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        self._http = HttpClient(base_url, headers=headers, pool_size=CONNECTIONS)
        self.pause = Pause()

    def post(self, path: str, body: Mapping[str, Any], deadline: Deadline) -> Any:
        """Send a JSON body and return the JSON of the response.

        Raises: `EndpointError`, at once during a pause.
        """
        if left := self.pause.left_seconds():
            raise EndpointError(f"{self.pause.error} It is asked again later.", retry_after_seconds=int(left) + 1)
        try:
            answer = self._exchange(path, orjson.dumps(body), deadline)
        except EndpointError as error:
            if not error.is_refusal:
                self.pause.begin(error)
            raise
        return answer

    def fail(self, detail: str) -> EndpointError:
        """Start a pause and return the error for an invalid response."""
        error = EndpointError(f"{self._name} {detail}")
        self.pause.begin(error)
        return error

    def _exchange(self, path: str, body: bytes, deadline: Deadline) -> Any:
        try:
            with self._http.send("POST", path, body, deadline) as response:
                if response.status != 200:
                    raise self._refusal(response.status, response.retry_after_seconds())
                return orjson.loads(response.body(_MAX_ANSWER_BYTES))
        except orjson.JSONDecodeError:
            raise EndpointError(f"{self._name} did not answer in JSON.") from None
        except (TooLarge, Undecodable):
            raise EndpointError(f"{self._name} gave an answer that cannot be read.") from None
        except TimedOut:
            raise EndpointError(f"{self._name} took too long.") from None
        except HttpError as error:
            raise EndpointError(f"{self._name} {'broke off' if error.was_sent else 'cannot be reached'}.") from None

    def _refusal(self, status: int, after: int | None) -> EndpointError:
        detail = f"{self._name} answered with status {status}."
        if status in {401, 403}:
            detail = f"{self._name} does not accept the key (status {status})."
        elif status == 429:
            detail = f"{self._name} wants fewer calls (status 429)."
        return EndpointError(detail, is_refusal=status in _REFUSED, retry_after_seconds=after)
