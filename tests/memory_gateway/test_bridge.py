"""The bridge against a fake ASGI server: what it makes of a scope, and what it sends."""

from __future__ import annotations

import asyncio
import errno
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from core.errors import GatewayError
from memory_gateway.server import thread_pool
from memory_gateway.server.request_body import ClientTimeouts, Message, Receive
from memory_gateway.server.wsgi_bridge import (
    Answer,
    Scope,
    WSGIApplication,
    WSGIBridge,
    body_length,
    header_variables,
    with_content_length,
    wsgi_environ,
)

Sent = list[Message]


def scope_of(method: str = "GET", path: bytes = b"/", headers: Iterable[tuple[bytes, bytes]] = ()) -> Scope:
    return {
        "type": "http",
        "method": method,
        "path": path.decode(),
        "raw_path": path,
        "query_string": b"",
        "http_version": "1.1",
        "headers": list(headers),
    }


def refuse(scope: Scope, error: GatewayError) -> Answer:
    return Answer(error.status, [(b"x-code", error.code.encode())], error.code.encode())


def receiving(*messages: Message) -> Receive:
    left = list(messages)

    async def receive() -> Message:
        return left.pop(0) if left else await asyncio.Future()

    return receive


def exchange(application: WSGIApplication, scope: Scope, *messages: Message, max_body_bytes: int = 10**6) -> Sent:
    """All that the bridge sends."""
    sent: Sent = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def main() -> None:
        timeouts = ClientTimeouts(stall_seconds=0.2, linger_seconds=0.1)
        bridge = WSGIBridge(application, refuse=refuse, max_body_bytes=max_body_bytes, timeouts=timeouts)
        await bridge(scope, receiving(*messages), send)

    asyncio.run(main())
    return sent


def body_of(sent: Sent) -> bytes:
    return b"".join(message.get("body", b"") for message in sent)


def hello(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"hel", b"lo"]


def test_an_answer_goes_back_whole_with_its_length() -> None:
    start, body = exchange(hello, scope_of())
    assert start["status"] == 200
    assert start["headers"] == [(b"content-type", b"text/plain"), (b"content-length", b"5")]
    assert (body["body"], body["more_body"]) == (b"hello", False)


def test_a_canceled_request_is_answered_503() -> None:
    sent: Sent = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def main() -> None:
        bridge = WSGIBridge(_wait_a_while, refuse=refuse, max_body_bytes=1)
        request = asyncio.create_task(bridge(scope_of(), receiving(), send))
        await asyncio.sleep(0.05)
        request.cancel()
        await request

    asyncio.run(main())
    assert (sent[0]["status"], body_of(sent)) == (503, b"shutting_down")


def _wait_a_while(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
    time.sleep(0.3)
    return hello(environ, start)


def test_a_stream_delays_no_other_request_of_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "SLOW_SECONDS", 60)
    may_end = threading.Event()

    def parts() -> Iterator[bytes]:
        yield b"first"
        assert may_end.wait(30)
        yield b"last"

    def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        return parts() if environ["PATH_INFO"] == "/stream" else hello(environ, start)

    async def main() -> None:
        bridge = WSGIBridge(application, refuse=refuse, max_body_bytes=1, client_key=lambda _scope, _beginning: "alice")
        began, streamed, sent = asyncio.Event(), list[Message](), list[Message]()

        async def note(message: Message) -> None:
            streamed.append(message)
            began.set()

        async def send(message: Message) -> None:
            sent.append(message)

        stream = asyncio.create_task(bridge(scope_of(path=b"/stream"), receiving(), note))
        await asyncio.wait_for(began.wait(), 30)
        await asyncio.wait_for(bridge(scope_of(), receiving(), send), 30)
        assert body_of(sent) == b"hello"
        may_end.set()
        await stream
        assert body_of(streamed) == b"firstlast"

    asyncio.run(main())


def test_a_full_disk_is_507_for_a_chunked_body(monkeypatch: pytest.MonkeyPatch) -> None:
    class FullDisk(tempfile.SpooledTemporaryFile[bytes]):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", FullDisk)
    chunked = scope_of("POST", headers=[(b"transfer-encoding", b"chunked")])
    parts: list[Message] = [{"type": "http.request", "body": bytes(300_000), "more_body": True}]
    sent = exchange(hello, chunked, *parts, {"type": "http.request", "body": b"x"})
    assert (sent[0]["status"], body_of(sent)) == (507, b"no_space")


def test_a_closing_method_is_called_after_the_answer() -> None:
    closed: list[bool] = []

    class Result(list[bytes]):
        def close(self) -> None:
            closed.append(True)

    def application(environ: dict[str, Any], start: Callable[..., Any]) -> Result:
        start("200 OK", [])
        return Result([b"x"])

    exchange(application, scope_of())
    assert closed == [True]


def test_the_length_of_a_body() -> None:
    assert body_length(scope_of()) == 0
    assert body_length(scope_of(headers=[(b"content-length", b"7")])) == 7
    assert body_length(scope_of(headers=[(b"transfer-encoding", b"chunked")])) is None


def test_a_head_answer_keeps_the_length_that_a_get_would_have() -> None:
    promised = Answer(200, [(b"content-length", b"9")], b"")
    assert with_content_length(promised, is_head=True) == [(b"content-length", b"9")]
    assert with_content_length(Answer(200, [], b"body"), is_head=True) == [(b"content-length", b"4")]


def test_a_wrong_length_of_the_application_is_corrected() -> None:
    wrong = Answer(200, [(b"content-length", b"9")], b"four")
    assert with_content_length(wrong, is_head=False) == [(b"content-length", b"4")]


def test_paths_keep_their_bytes() -> None:
    assert wsgi_environ(scope_of(path=b"/%E4%BD%A0%2F%FF"))["PATH_INFO"].encode("latin1") == "/你/".encode() + b"\xff"


def test_repeated_headers_are_joined_and_underscores_dropped() -> None:
    headers = [(b"cookie", b"a=1"), (b"cookie", b"b=2"), (b"x-a", b"1"), (b"x-a", b"2"), (b"x_a", b"3")]
    assert header_variables(headers) == {"HTTP_COOKIE": "a=1; b=2", "HTTP_X_A": "1,2"}
    assert header_variables([(b"content_type", b"x"), (b"content-type", b"y")]) == {"CONTENT_TYPE": "y"}
