"""WSGI application inside an ASGI server.

A body is bounded while it arrives, and never passes as complete if it is not. Small ones are read on the event loop,
larger ones by a small pool of threads: slow clients occupy no other thread. Responses other than streams are returned
as a whole.

Not chosen: a2wsgi, which passes truncated bodies as complete and lets slow clients occupy all threads; Django's ASGI
handler, which changes threads more often.

The protocol's rules (HEAD, 204, chunked bodies, disconnects) are ours to test. `python -m benchmarks http` measures a
request end to end.
"""

import asyncio
import contextlib
import errno
import io
import logging
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator
from typing import IO, Any, NamedTuple
from urllib.parse import unquote_to_bytes

from core.errors import BadRequest, GatewayError, NoSpace, TooLarge, UnsupportedType
from core.limits.concurrency import before_external_call
from core.messages import Translatable as _
from core.rest import RequestTimeout
from memory_gateway.server.request_body import (
    BodyError,
    BodyStream,
    ClientGone,
    ClientTimeouts,
    IncomingBody,
    Receive,
    Scope,
    Send,
    TooMuch,
)
from memory_gateway.server.thread_pool import Pool

logger = logging.getLogger("memory_gateway.server.wsgi_bridge")

SMALL_BODY_BYTES = 256 * 1024
# Parameters with a character set or in several parts (RFC 2231). Media types have none, and Django's parser, which runs
# before any error handling, raises on some of them.
_EXTENDED_PARAMETER = re.compile(rb"\*[0-9]*\*?\s*=")
_MEDIA_TYPES = {b"accept", b"content-type"}

Environ = dict[str, Any]
Headers = list[tuple[bytes, bytes]]
WSGIApplication = Callable[[Environ, Any], Iterable[bytes]]


class Answer(NamedTuple):
    """A complete response."""

    status: int
    headers: Headers
    body: bytes


class ShuttingDown(GatewayError):
    status, code, title = 503, "shutting_down", _("Shutting down")


class InternalError(GatewayError):
    status, code, title = 500, "internal_error", _("Internal error")


Refuse = Callable[[Scope, GatewayError], Answer]
ClientKey = Callable[[Scope, bytes], Hashable]


class WSGIBridge:
    """An ASGI application that runs a WSGI application in threads.

    One client gets one thread beside its requests that wait (see `Pool`). More would serve no more of its requests a
    second, because threads share the interpreter, and would double the time of other clients' requests.

    `client_key` identifies the client by the request and the beginning of its body.

    `refuse` renders the bridge's own errors: 413 (more than `max_body_bytes`), 408 (a slow client, see
    `ClientTimeouts`), 503 (stopping), 507 (no disk space for a chunked body), 500 (the application raised).
    """

    def __init__(
        self,
        application: WSGIApplication,
        *,
        refuse: Refuse,
        max_body_bytes: int,
        threads: int = 40,
        upload_threads: int = 8,
        timeouts: ClientTimeouts | None = None,
        client_key: ClientKey = lambda _scope, _beginning: object(),
    ) -> None:
        self._application = application
        self._refuse = refuse
        self._client_key = client_key
        self._max_body_bytes = max_body_bytes
        self._timeouts = timeouts or ClientTimeouts()
        self._pool = Pool(threads, "request", share=1)
        self._upload_pool = Pool(upload_threads, "upload", share=max(1, upload_threads // 2))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = IncomingBody(receive, body_length(scope), self._max_body_bytes, self._timeouts)
        outgoing = _Outgoing(scope["method"], send, body)
        try:
            await self._serve(scope, body, outgoing)
        except ClientGone:
            return
        except asyncio.CancelledError:  # the server's time limit for this request has passed
            await outgoing.whole(
                self._refuse(scope, ShuttingDown(_("The gateway is stopping."), retry_after_seconds=2))
            )
        except (BodyError, GatewayError) as error:
            await outgoing.whole(self._refuse(scope, refusal_of(error)))
        except Exception:
            logger.exception("%s %r failed", scope["method"], scope["path"])
            await outgoing.whole(self._refuse(scope, InternalError(_("The gateway failed."))))

    async def _serve(self, scope: Scope, body: IncomingBody, outgoing: "_Outgoing") -> None:
        require_plain_body(scope)
        for name, value in scope["headers"]:
            if name in _MEDIA_TYPES and _EXTENDED_PARAMETER.search(value):
                raise BadRequest(
                    _("The header %(name)s must not have RFC 2231 parameters.", name=name.decode().title())
                )
        if body.length is not None and body.length > self._max_body_bytes:
            raise TooMuch(_("The body is larger than %(limit)s bytes.", limit=self._max_body_bytes))
        beginning = await body.beginning(SMALL_BODY_BYTES)
        call = _Call(self._application, wsgi_environ(scope), outgoing, self._timeouts)
        caller = self._client_key(scope, beginning)
        if body.is_complete:
            answer = await self._pool.run(lambda: call.run(io.BytesIO(beginning), len(beginning)), caller)
        else:
            stream = BodyStream(body, asyncio.get_running_loop(), beginning)
            answer = await self._upload_pool.run(lambda: call.with_stream(stream, body.length), caller)
        if answer:
            await outgoing.whole(answer)
        else:
            await outgoing.last(b"")


class _Outgoing:
    """The response to one request, on the event loop."""

    def __init__(self, method: str, send: Send, body: IncomingBody) -> None:
        self._is_head = method == "HEAD"
        self._send = send
        self._body = body
        self.loop = asyncio.get_running_loop()
        self.is_started = False

    async def whole(self, answer: Answer) -> None:
        """Send a complete response. If one was already started, send nothing; the server then aborts the connection."""
        if self.is_started:
            return
        await self.begin(answer.status, with_content_length(answer, is_head=self._is_head))
        await self.last(answer.body if may_have_body(answer.status) else b"")

    async def begin(self, status: int, headers: Headers) -> None:
        self.is_started = True
        if not self._body.is_complete:
            headers = [*headers, (b"connection", b"close")]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def part(self, data: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": b"" if self._is_head else data, "more_body": more})

    async def last(self, data: bytes) -> None:
        """End the response. A client that still sends gets time to finish, because many clients read only then."""
        if self._body.is_complete or self._body.is_broken:
            await self.part(data, more=False)
            return
        await self.part(data)
        with contextlib.suppress(BodyError, TimeoutError):
            await self._body.discard()
        await self.part(b"", more=False)

    async def set_on_disconnect(self, disconnected: threading.Event) -> None:
        """Set an event on disconnect, because servers silently drop writes to a disconnected client."""
        if self._body.is_complete:
            await self._body.disconnected()
            disconnected.set()


class _Call:
    """One call of the WSGI application, in a thread."""

    def __init__(
        self, application: WSGIApplication, environ: Environ, outgoing: _Outgoing, timeouts: ClientTimeouts
    ) -> None:
        self._application = application
        self._environ = environ
        self._outgoing = outgoing
        self._timeouts = timeouts
        self._status = 500
        self._headers: Headers = []

    def with_stream(self, stream: BodyStream, length: int | None) -> Answer | None:
        """Return the response like `run`.

        Django reads `CONTENT_LENGTH` bytes, so a body of unknown length is first written to a temporary file.
        """
        if length is not None:
            return self.run(stream, length)
        with tempfile.SpooledTemporaryFile(SMALL_BODY_BYTES) as file:
            try:
                shutil.copyfileobj(stream, file, SMALL_BODY_BYTES)
            except OSError as error:
                if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                    raise NoSpace(_("There is no space left for this body.")) from error
                raise
            length = file.tell()
            file.seek(0)
            return self.run(file, length)

    def run(self, body: IO[bytes] | BodyStream, length: int) -> Answer | None:
        """Return the response; None if it was already sent as a stream."""
        self._environ["wsgi.input"] = body
        self._environ["CONTENT_LENGTH"] = str(length)
        result = self._application(self._environ, self._start_response)
        try:
            # Django's responses have `streaming`. Other results are streams, except lists and tuples.
            if not getattr(result, "streaming", not isinstance(result, list | tuple)):
                return Answer(self._status, self._headers, b"".join(result))
            if self._environ["REQUEST_METHOD"] == "HEAD" or not may_have_body(self._status):
                return Answer(self._status, self._headers, b"")
            self._stream(iter(result))
            return None
        finally:
            if close := getattr(result, "close", None):
                close()

    def _start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
        self._status = int(status[:3])
        self._headers = [(name.lower().encode("latin1"), value.encode("latin1")) for name, value in headers]

    def _stream(self, parts: Iterator[bytes]) -> None:
        first = next(parts, b"")  # before anything is sent: if it raises, the response is still a clean 500
        before_external_call.get()()
        self._wait_for(self._outgoing.begin(self._status, self._headers))
        disconnected = threading.Event()
        watcher = asyncio.run_coroutine_threadsafe(self._outgoing.set_on_disconnect(disconnected), self._outgoing.loop)
        try:
            self._wait_for(self._outgoing.part(first))
            for part in parts:
                if disconnected.is_set():
                    return
                self._wait_for(self._outgoing.part(part))
        finally:
            watcher.cancel()

    def _wait_for(self, step: Coroutine[Any, Any, None]) -> None:
        """Run a step on the event loop and wait for it.

        Raises: `ClientGone` if the client reads nothing for `stall_seconds`.
        """
        future = asyncio.run_coroutine_threadsafe(step, self._outgoing.loop)
        try:
            future.result(self._timeouts.stall_seconds)
        except TimeoutError:
            future.cancel()
            raise ClientGone("The client does not read the response.") from None


def refusal_of(error: BodyError | GatewayError) -> GatewayError:
    if isinstance(error, GatewayError):
        return error
    (detail,) = error.args
    return TooLarge(detail) if isinstance(error, TooMuch) else RequestTimeout(detail)


def require_plain_body(scope: Scope) -> None:
    """Check that the body is not compressed: nothing here decompresses it. Raises: `UnsupportedType`."""
    encoding = dict(scope["headers"]).get(b"content-encoding", b"").strip().lower()
    if encoding not in {b"", b"identity"}:
        raise UnsupportedType(_("The body must not be compressed. Send it without Content-Encoding."))


def may_have_body(status: int) -> bool:
    return status >= 200 and status not in {204, 304}


def with_content_length(answer: Answer, *, is_head: bool) -> Headers:
    """Return the headers with the body's length; a HEAD response keeps the length given by the application."""
    if is_head and not answer.body:
        return answer.headers
    headers = [header for header in answer.headers if header[0] != b"content-length"]
    if may_have_body(answer.status):
        headers.append((b"content-length", str(len(answer.body)).encode()))
    return headers


def body_length(scope: Scope) -> int | None:
    """Return the body's length: 0 without a body, None for a chunked one.

    The server has already refused conflicting or repeated lengths.
    """
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return None
    return int(headers.get(b"content-length", b"0"))


def wsgi_environ(scope: Scope) -> Environ:
    """Return PEP 3333's environ dictionary, without the body. The path of the scope is without its `root_path`."""
    server = scope.get("server") or ("localhost", 80)
    client = scope.get("client") or ("", 0)
    return {
        **header_variables(scope["headers"]),
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": scope.get("root_path", ""),
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin1"),
        "QUERY_STRING": scope["query_string"].decode("latin1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1] or 0),
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }


def header_variables(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return `HTTP_…` variables. Names with `_` are dropped: `X_Forwarded_For` must not pass as `X-Forwarded-For`."""
    variables: dict[str, str] = {}
    for name, raw in headers:
        if b"_" in name:
            continue
        variable, value = name.decode("latin1").upper().replace("-", "_"), raw.decode("latin1")
        if variable not in {"CONTENT_TYPE", "CONTENT_LENGTH"}:
            variable = f"HTTP_{variable}"
        if variable in variables:
            value = f"{variables[variable]}{'; ' if variable == 'HTTP_COOKIE' else ','}{value}"
        variables[variable] = value
    return variables
