"""Client for a model behind an OpenAI-compatible endpoint, with a deadline and exponential backoff.

Every failure becomes an `EndpointError` whose message contains no secret. After a failure, calls fail at once for a
pause that grows with each further failure.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from core.errors import GatewayError
from core.messages import Translatable as _
from core.network.http_client import Deadline, HttpClient, HttpError, TimedOut, TooLarge, Undecodable

logger = logging.getLogger("memory_gateway.models")

CONNECTIONS: Final = 8
_MAX_RESPONSE_BYTES: Final = 16 * 2**20
_FIRST_PAUSE_SECONDS: Final = 2.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_REJECTED_INPUT: Final = frozenset({400, 413, 422})


class ModelAddress(NamedTuple):
    """A model of `MEMORY_GATEWAY_MODELS`. `dimensions` 0: as many as an embedding model returns.

    An embedding model may expect prefixes before queries and texts. With a `folder`, it is read from there and runs in
    the process; it has no address.
    """

    base_url: str
    model: str
    api_key: str = ""
    dimensions: int = 0
    folder: str = ""
    query_prefix: str = ""
    text_prefix: str = ""

    @property
    def identity(self) -> str:
        """Return the model's name with its prefixes: other prefixes give other vectors."""
        prefixes = {"query_prefix": self.query_prefix, "text_prefix": self.text_prefix}
        given = {name: prefix for name, prefix in prefixes.items() if prefix}
        return f"{self.model}?{urlencode(given, quote_via=quote)}" if given else self.model


class EndpointError(GatewayError):
    """A call to a model failed. `is_refusal`: the model rejects this input; it may accept another."""

    status, code, title = 503, "model_unavailable", _("Model endpoint failed")

    def __init__(self, detail: str, *, is_refusal: bool = False, retry_after_seconds: int | None = None) -> None:
        super().__init__(detail, retry_after_seconds=retry_after_seconds)
        self.is_refusal = is_refusal


@dataclass
class Pause:
    """The backoff of an endpoint. `error` is the reason for the last pause, None after a call that succeeded."""

    clock: Callable[[], float] = time.monotonic
    error: str | None = None
    _until: float = 0.0
    _seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def left_seconds(self) -> float:
        return max(self._until - self.clock(), 0.0) if self.error else 0.0

    def recent_error(self) -> str | None:
        """Return the error; None a minute after the pause, because calls of other processes may succeed by then."""
        return self.error if self.clock() < self._until + _LONGEST_PAUSE_SECONDS else None

    def begin(self, error: EndpointError) -> None:
        with self._lock:
            if self.left_seconds():
                return
            if error.detail != self.error:  # one line for an outage, not one for each call
                logger.warning("%s Calls are paused and retried with backoff.", error.detail)
            self._seconds = min(max(2 * self._seconds, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
            requested = min(error.retry_after_seconds or 0, _LONGEST_PAUSE_SECONDS)
            self._until, self.error = self.clock() + max(self._seconds, requested), error.detail

    def end(self) -> None:
        with self._lock:
            self.error, self._seconds = None, 0.0


class Endpoint:
    """An endpoint shared by all threads of the process, one per address.

    `name` is its name in messages, `content_type` that of the bodies of all calls.
    """

    def __init__(self, base_url: str, api_key: str, name: str, *, content_type: str = "application/json") -> None:
        self.name = name
        headers = {"Content-Type": content_type, "Accept": "application/json", "Accept-Encoding": "identity"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        self._http = HttpClient(base_url, headers=headers, pool_size=CONNECTIONS)
        self.pause = Pause()

    def succeed(self) -> None:
        """End the backoff. Call for every valid response."""
        if self.pause.error:
            logger.warning("%s is available again.", self.name)
        self.pause.end()

    def post(self, path: str, body: Mapping[str, Any] | bytes, deadline: Deadline) -> Any:
        """Send a body, a mapping as JSON, and return the JSON of the response.

        Raises: `EndpointError`, at once during a pause.
        """
        if left_seconds := self.pause.left_seconds():
            raise EndpointError(
                _("%(said)s It is retried later.", said=self.pause.error), retry_after_seconds=int(left_seconds) + 1
            )
        try:
            return self._exchange(path, body if isinstance(body, bytes) else orjson.dumps(body), deadline)
        except EndpointError as error:
            if not error.is_refusal:
                self.pause.begin(error)
            raise

    def fail(self, template: str, **params: object) -> EndpointError:
        """Start a pause and return the error for an invalid response. The template may name the `endpoint`."""
        error = EndpointError(_(template, endpoint=self.name, **params))
        self.pause.begin(error)
        return error

    def _exchange(self, path: str, body: bytes, deadline: Deadline) -> Any:
        try:
            with self._http.send("POST", path, body, deadline) as response:
                if response.status != 200:
                    raise self._status_error(response.status, response.retry_after_seconds())
                return orjson.loads(response.body(_MAX_RESPONSE_BYTES))
        except orjson.JSONDecodeError:
            raise EndpointError(_("%(endpoint)s did not return JSON.", endpoint=self.name)) from None
        except (TooLarge, Undecodable):
            raise EndpointError(_("%(endpoint)s returned an unreadable response.", endpoint=self.name)) from None
        except TimedOut:
            raise EndpointError(_("%(endpoint)s timed out.", endpoint=self.name)) from None
        except HttpError as error:
            closed = _("%(endpoint)s closed the connection early.", endpoint=self.name)
            unreachable = _("%(endpoint)s cannot be reached.", endpoint=self.name)
            raise EndpointError(closed if error.was_sent else unreachable) from None

    def _status_error(self, status: int, retry_after_seconds: int | None) -> EndpointError:
        detail = _("%(endpoint)s returned status %(status)s.", endpoint=self.name, status=status)
        if status in {401, 403}:
            detail = _("%(endpoint)s rejected the credentials (status %(status)s).", endpoint=self.name, status=status)
        elif status == 429:
            detail = _("%(endpoint)s limits the rate of calls (status 429).", endpoint=self.name)
        return EndpointError(detail, is_refusal=status in _REJECTED_INPUT, retry_after_seconds=retry_after_seconds)
