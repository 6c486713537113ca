"""Generate load: each of a number of connections sends its next request when the last one is answered."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

import uvloop

_HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    """A request, built once, so that sending it costs little."""

    host: str
    port: int
    data: bytes

    @classmethod
    def post(cls, port: int, path: str, body: bytes, *, key: str = "", host: str = "127.0.0.1") -> Request:
        authorization = f"Authorization: Bearer {key}\r\n" if key else ""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json\r\n{authorization}Content-Length: {len(body)}\r\n\r\n"
        )
        return cls(host, port, head.encode() + body)


@dataclass(slots=True)
class Result:
    """Outcome of a load. `latencies` are seconds in the order of the responses; `seconds` is the duration."""

    seconds: float
    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """Return the seconds within which this share (0 to 1) of the responses arrived."""
        ordered = sorted(self.latencies)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    def require_ok(self) -> None:
        assert set(self.statuses) == {200}, f"not every answer was 200: {dict(self.statuses)}"


def run(request: Request, connections: int, seconds: float) -> Result:
    """Send for `seconds` over a number of connections."""
    return uvloop.run(run_on_loop(request, connections, seconds))


async def run_on_loop(request: Request, connections: int, seconds: float, pause_seconds: float = 0.0) -> Result:
    """Do the same on a running event loop, with a pause of `pause_seconds` between a response and the next request."""
    result = Result(0.0)
    began = time.perf_counter()
    until = began + seconds
    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(_connection(request, until, result, pause_seconds))
    result.seconds = time.perf_counter() - began
    return result


async def _connection(request: Request, until: float, result: Result, pause_seconds: float) -> None:
    reader, writer = await asyncio.open_connection(request.host, request.port, limit=2**20)
    try:
        while (sent_at := time.perf_counter()) < until:
            writer.write(request.data)
            status = await status_of_answer(reader)
            result.latencies.append(time.perf_counter() - sent_at)
            result.statuses[status] += 1
            if pause_seconds:
                await asyncio.sleep(pause_seconds)
    finally:
        writer.close()


async def status_of_answer(reader: asyncio.StreamReader) -> int:
    """Read the next response and return its status."""
    head = await reader.readuntil(_HEAD_END)
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            await reader.readexactly(int(value))
    return int(head[9:12])
