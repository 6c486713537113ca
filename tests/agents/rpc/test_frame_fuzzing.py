"""Fuzzed WebSocket frames: each socket gets responses or a close code, and other sockets are served."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import struct
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.rpc.client import connect_params, connected
from tests.agents.rpc.conftest import TOKEN
from tests.server import RunningServer

pytestmark = pytest.mark.slow

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
CLOSE_CODES = {1000, 1002, 1003, 1007, 1008, 1009}
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Frame:
    """A frame to send. `length` replaces the true length in its header."""

    opcode: int
    payload: bytes
    is_last: bool = True
    reserved: int = 0
    is_masked: bool = True
    length: int | None = None

    def raw(self) -> bytes:
        length = len(self.payload) if self.length is None else self.length
        first = (self.is_last << 7) | (self.reserved << 4) | self.opcode
        mask = self.is_masked << 7
        if length < 126:
            head = struct.pack("!BB", first, mask | length)
        elif length < 2**16:
            head = struct.pack("!BBH", first, mask | 126, length)
        else:
            head = struct.pack("!BBQ", first, mask | 127, length)
        if not self.is_masked:
            return head + self.payload
        key = b"\x01\x02\x03\x04"
        return head + key + bytes(byte ^ key[index % 4] for index, byte in enumerate(self.payload))


METHODS = ["health", "connect", "memory.admin.list", "memory.admin.add", "memory.admin.delete", "tools.invoke", "x", ""]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
REQUESTS = st.fixed_dictionaries(
    {"type": st.just("req") | JSON, "id": st.just("fuzzed") | JSON, "method": st.sampled_from(METHODS) | JSON},
    optional={
        "params": JSON
        | st.dictionaries(
            st.sampled_from(["agentId", "limit", "page", "text", "category", "items", "tool", "args", "timeFrom"]), JSON
        )
    },
).map(lambda frame: json.dumps(frame).encode())
MESSAGES = REQUESTS | st.binary(max_size=200) | st.text(max_size=50).map(lambda text: text.encode("utf-8", "replace"))
CONTROL = st.builds(Frame, st.sampled_from([PING, PONG, CLOSE]), st.binary(max_size=126), st.booleans())
INVALID = st.builds(
    Frame,
    st.integers(0, 15),
    MESSAGES,
    is_last=st.booleans(),
    reserved=st.sampled_from([0, 0, 0, 1, 4, 7]),
    is_masked=st.sampled_from([True, True, True, False]),
    length=st.sampled_from([None, None, 0, 125, 2**16, 2**20, 2**40, 2**63]),
)


@st.composite
def fragmented(draw: st.DrawFn) -> list[Frame]:
    """A fragmented message, possibly with control frames in between, cut characters or no last fragment."""
    message = draw(MESSAGES | st.just("鍵".encode() * 30) | st.just(b"x" * 70_000))
    cuts = sorted(draw(st.lists(st.integers(0, len(message)), max_size=4)))
    pieces = [message[start:end] for start, end in zip([0, *cuts], [*cuts, len(message)], strict=True)]
    frames = []
    for number, piece in enumerate(pieces):
        is_last = number == len(pieces) - 1 and draw(st.integers(0, 9)) > 0
        frames.append(Frame(CONTINUATION if number else draw(st.sampled_from([TEXT, BINARY])), piece, is_last))
        if draw(st.integers(0, 4)) == 0:
            frames.append(draw(CONTROL))
    return frames


STREAMS = st.lists(
    st.builds(lambda message: [Frame(TEXT, message)], MESSAGES) | fragmented() | CONTROL.map(lambda one: [one])
    | INVALID.map(lambda one: [one]),
    min_size=1,
    max_size=5,
).map(lambda parts: [frame.raw() for part in parts for frame in part])  # fmt: skip


def response_to(server: RunningServer, token: str | None, stream: bytes) -> bytes:
    """Return everything that the server sends after a socket has sent these bytes."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        key = base64.b64encode(os.urandom(16)).decode()
        raw.sendall(
            f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        _read_until(raw, b'"connect.challenge"')
        if token:
            request = {"type": "req", "id": "c", "method": "connect", "params": connect_params(token)}
            raw.sendall(Frame(TEXT, json.dumps(request).encode()).raw())
            _read_until(raw, b'"id":"c"')
        received = b""
        with contextlib.suppress(ConnectionError, TimeoutError):
            raw.sendall(stream)
            # The end is the pong if the server understood everything, else a close frame, else the timeout.
            raw.sendall(Frame(PING, b"the end").raw())
            raw.settimeout(0.3)
            while b"the end" not in received and (more := raw.recv(65536)):
                received += more
        return received


def _read_until(raw: socket.socket, mark: bytes) -> None:
    buffer = b""
    while mark not in buffer:
        more = raw.recv(65536)
        assert more, buffer
        buffer += more


def frames_of(data: bytes) -> list[tuple[int, bytes]]:
    """Return opcode and payload of each complete frame of a server. Servers do not mask frames."""
    found = []
    while len(data) >= 2:
        length, start = data[1] & 127, 2
        if length >= 126:
            start = 4 if length == 126 else 10
            length = int.from_bytes(data[2:start])
        if len(data) < start + length:
            break
        found.append((data[0] & 15, data[start : start + length]))
        data = data[start + length :]
    return found


@pytest.mark.parametrize("examples", [60, pytest.param(2000, marks=pytest.mark.torture)])
@pytest.mark.parametrize("is_connected", [False, True])
def test_fuzzed_frames_do_not_disturb_the_server(
    server: RunningServer, tokens: dict[str, str], is_connected: bool, examples: int
) -> None:
    log_start, before, sent = len(server.log), server.rss_bytes().current, 0
    token = tokens["alice"] if is_connected else None

    with connected(server, TOKEN) as other:

        @settings(max_examples=examples)
        @given(STREAMS)
        def send(stream: list[bytes]) -> None:
            nonlocal sent
            sent += len(stream)
            for opcode, payload in frames_of(response_to(server, token, b"".join(stream))):
                check_frame(opcode, payload)
            assert other.is_alive()

        send()
    print(f"{sent} frames on {examples} connections")  # noqa: T201
    assert "Traceback" not in server.log[log_start:]
    assert server.rss_bytes().current - before < 60 * MEBIBYTE


def check_frame(opcode: int, payload: bytes) -> None:
    """Check a frame of the server: response, event, pong, or close with a known code or the client's."""
    if opcode == TEXT:
        frame: dict[str, Any] = json.loads(payload)
        assert frame["type"] in {"res", "event"}, frame
        assert "internal" not in str(frame.get("error", {}).get("message", "")), frame
    elif opcode == CLOSE:
        code = int.from_bytes(payload[:2])
        assert not payload or code in CLOSE_CODES or (code >= 1000 and code != 1011), payload
    else:
        assert opcode == PONG, (opcode, payload)


@pytest.mark.parametrize("following", [Frame(CLOSE, b"\x03\xe8"), Frame(15, b"")], ids=["close", "invalid"])
def test_an_invalid_text_and_an_end_in_one_read_close_the_connection(server: RunningServer, following: Frame) -> None:
    log_start = len(server.log)
    frames = frames_of(response_to(server, None, Frame(TEXT, b"\xff").raw() + following.raw()))
    assert [opcode for opcode, _ in frames] == [CLOSE]
    assert "Traceback" not in server.log[log_start:]
