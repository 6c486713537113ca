"""Measure `/health` while two clients upload PDFs of one page: its latency, × that of an idle gateway.

Busy and idle turns alternate, so that other load on the machine is in both.
"""

import argparse
import asyncio
import itertools
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.load import status_of_answer
from benchmarks.processes import call, cpu_seconds, cpu_seconds_with_children, form_data, gateway
from benchmarks.readings import SMALL_FILES

MOST: Final = 1.5
"""The target of the 99th percentile beside uploads, × that of an idle gateway."""
CLIENTS: Final = 2
PAUSE_SECONDS: Final = 0.02
"""The time between an answer of `/health` and the next request."""
_WARM_UP: Final = 10


class Gateway:
    """A running gateway with a key for each client, and the latencies of its answers in seconds."""

    def __init__(self, port: int, pid: int, page: bytes) -> None:
        self._port, self._pid, self._page = port, pid, page
        self._keys = [call(port, "/users", {"user_id": f"u_{number}"})["user_key"] for number in range(CLIENTS)]
        self._numbers = itertools.count()
        self._health = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        self.idle: list[float] = []
        self.busy: list[float] = []
        self.uploads: list[float] = []
        self.seconds = self.cpu_seconds = self.all_cpu_seconds = 0.0

    async def turn(self, uploads: int) -> None:
        """Ask `/health` while each client uploads a number of pages, then for as long without uploads."""
        began, cpu, all_cpu = time.perf_counter(), cpu_seconds(self._pid), cpu_seconds_with_children(self._pid)
        is_over = asyncio.Event()
        asking = asyncio.create_task(self._ask(self.busy, is_over.is_set))
        await asyncio.gather(*(self._send(self._pages(key, uploads), self.uploads) for key in self._keys))
        is_over.set()
        await asking
        seconds = time.perf_counter() - began
        self.seconds += seconds
        self.cpu_seconds += cpu_seconds(self._pid) - cpu
        self.all_cpu_seconds += cpu_seconds_with_children(self._pid) - all_cpu
        await asyncio.sleep(1)  # for the work after an upload
        until = time.perf_counter() + seconds
        await self._ask(self.idle, lambda: time.perf_counter() > until)

    async def _ask(self, latencies: list[float], is_over: Callable[[], bool]) -> None:
        requests = itertools.takewhile(lambda _request: not is_over(), itertools.repeat(self._health))
        await self._send(requests, latencies, PAUSE_SECONDS)

    def _pages(self, key: str, number: int) -> Iterable[bytes]:
        for _ in range(number):
            name = f"page-{next(self._numbers)}.pdf"
            content_type, body = form_data(name, "application/pdf", b"%b\n%% %b" % (self._page, name.encode()))
            head = (
                f"POST /resources HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {key}\r\n"
                f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            yield head.encode() + body

    async def _send(self, requests: Iterable[bytes], latencies: list[float], pause_seconds: float = 0.0) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        for request in requests:
            began = time.perf_counter()
            writer.write(request)
            status = await status_of_answer(reader)
            latencies.append(time.perf_counter() - began)
            assert status == 200, f"the answer is {status}"
            await asyncio.sleep(pause_seconds)
        writer.close()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks uploads", description=__doc__)
    parser.add_argument("--uploads", type=int, default=500, help="all together")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args(arguments)
    with zipfile.ZipFile(SMALL_FILES) as archive:
        page = archive.read("pdf-headings.pdf")
    with tempfile.TemporaryDirectory() as folder, gateway(Path(folder)) as (port, pid):
        uvloop.run(Gateway(port, pid, page).turn(_WARM_UP))
        measured = Gateway(port, pid, page)
        for _ in range(options.turns):
            uvloop.run(measured.turn(options.uploads // options.turns // CLIENTS))
    return _report(measured)


def _report(measured: Gateway) -> int:
    for name, latencies in (("idle", measured.idle), ("uploads", measured.busy)):
        shown = ", ".join(f"p{share:.0%} {_percentile(latencies, share) * 1000:.1f} ms" for share in (0.5, 0.95, 0.99))
        print(f"/health, {name:8} {shown.replace('%', '')} ({len(latencies)} answers)")
    number = len(measured.uploads)
    cpu, all_cpu = measured.cpu_seconds / number, measured.all_cpu_seconds / number
    print(
        f"uploads: {number / measured.seconds:.1f} a second, {all_cpu * 1000:.1f} ms of CPU time each, "
        f"{cpu * 1000:.1f} ms of them in the gateway's process"
    )
    ratio = _percentile(measured.busy, 0.99) / _percentile(measured.idle, 0.99)
    print(f"p99 beside uploads: {ratio:.2f} × idle (target ≤ {MOST})")
    return int(ratio > MOST)


def _percentile(latencies: Sequence[float], share: float) -> float:
    return sorted(latencies)[int(share * (len(latencies) - 1))]
