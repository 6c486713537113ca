from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.server.request_body import (
    BodyStream,
    ClientGone,
    ClientTimeouts,
    IncomingBody,
    Message,
    Receive,
    TooMuch,
    TooSlow,
)

PATIENT = ClientTimeouts()
QUICK = ClientTimeouts(stall_seconds=0.05, grace_seconds=0.1, bytes_per_second=1000, linger_seconds=0.1)
LEAVE = None
_Result = TypeVar("_Result")


def sending(*parts: bytes | None, then: str = "ends", pause_seconds: float = 0.0) -> Receive:
    """A client that sends these parts (`LEAVE`: it leaves) and then ends the body or "stalls"."""
    left = list(parts)

    async def receive() -> Message:
        await asyncio.sleep(pause_seconds)
        if not left:
            await asyncio.Event().wait()
        part = left.pop(0)
        if part is LEAVE:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(left) or then == "stalls"}

    return receive


def incoming(
    receive: Receive, *, length: int | None = 10, max_bytes: int = 1000, timeouts: ClientTimeouts = PATIENT
) -> IncomingBody:
    return IncomingBody(receive, length, max_bytes, timeouts)


def read_in_thread(receive: Receive, read: Callable[[BodyStream], _Result], *, beginning: bytes = b"") -> _Result:
    async def main() -> _Result:
        stream = BodyStream(incoming(receive, length=None, max_bytes=10**6), asyncio.get_running_loop(), beginning)
        return await asyncio.to_thread(read, stream)

    return asyncio.run(main())


def test_a_body_of_no_length_is_complete_at_once() -> None:
    assert incoming(sending(), length=0).is_complete


def test_a_small_body_is_read_whole_and_a_large_one_not_begun() -> None:
    async def main() -> None:
        small = incoming(sending(b"01234", b"56789"))
        assert await small.beginning(100) == b"0123456789"
        assert small.is_complete
        large = incoming(sending(b"x" * 10), length=10)
        assert await large.beginning(9) == b""
        assert not large.is_complete

    asyncio.run(main())


def test_a_body_of_unknown_length_is_read_until_it_is_known_to_be_large() -> None:
    async def main() -> None:
        body = incoming(sending(b"aaa", b"bbb", b"ccc"), length=None)
        assert await body.beginning(5) == b"aaabbb"
        assert not body.is_complete

    asyncio.run(main())


@pytest.mark.parametrize(
    ("receive", "timeouts", "error"),
    [
        (sending(b"half", LEAVE), PATIENT, ClientGone),
        (sending(b"half", then="stalls"), QUICK, TooSlow),
        (sending(*[b"x"] * 50, pause_seconds=0.01), QUICK, TooSlow),
        (sending(b"x" * 600, b"x" * 401), PATIENT, TooMuch),
    ],
    ids=["leaves", "stalls", "drips", "sends too much"],
)
def test_a_body_that_does_not_arrive_is_an_error(
    receive: Receive, timeouts: ClientTimeouts, error: type[Exception]
) -> None:
    async def main() -> None:
        with pytest.raises(error):
            await incoming(receive, length=None, timeouts=timeouts).beginning(10_000)

    asyncio.run(main())


def test_our_own_slowness_is_not_held_against_the_client() -> None:
    async def main() -> None:
        timeouts = ClientTimeouts(stall_seconds=0.5, grace_seconds=0.5)
        body = incoming(sending(b"a", b"b", b"c"), timeouts=timeouts)
        for expected in (b"a", b"b", b"c"):
            assert await body.part() == expected
            await asyncio.sleep(0.6)

    asyncio.run(main())


def test_what_an_answered_client_still_sends_is_discarded_for_a_while() -> None:
    async def main() -> None:
        finishing = incoming(sending(*[b"x" * 100] * 20))
        await finishing.discard()
        assert finishing.is_complete
        with pytest.raises((TimeoutError, TooSlow)):
            await incoming(sending(*[b"x" * 100] * 200, pause_seconds=0.01), timeouts=QUICK).discard()

    asyncio.run(main())


def test_a_truncated_body_is_an_error_for_the_thread_that_reads_it() -> None:
    with pytest.raises(ClientGone):
        read_in_thread(sending(b"half", LEAVE), lambda stream: stream.read(100))
    with pytest.raises(ClientGone):
        read_in_thread(sending(b"half", LEAVE), lambda stream: stream.readline())


@given(st.lists(st.text("ab\n").map(str.encode), min_size=1), st.lists(st.integers(-1, 7), max_size=20), st.binary())
def test_a_stream_reads_like_a_file(parts: list[bytes], sizes: list[int], beginning: bytes) -> None:
    file = io.BytesIO(beginning + b"".join(parts))

    def read_both(stream: BodyStream) -> list[tuple[Any, Any]]:
        pairs: list[tuple[Any, Any]] = []
        for number, size in enumerate(sizes):
            method = "readline" if number % 2 else "read"
            pairs.append((getattr(stream, method)(size), getattr(file, method)(size)))
        return [*pairs, (stream.read(), file.read())]

    for got, expected in read_in_thread(sending(*parts), read_both, beginning=beginning):
        assert got == expected
