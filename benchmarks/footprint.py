"""Footprint: size of the installed packages, time from a start to the first answer, memory of an idle gateway."""

import argparse
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.processes import free_port, python

MOST_MIB = 120
MOST_SECONDS = 1.5
MOST_ENVIRONMENT_MIB = 300
_BLOCK = 512
_SETTINGS = ("MEMORY_GATEWAY_", "DATABASE_", "DJANGO_")


def main(arguments: Sequence[str]) -> int:
    """Start the gateway twice, as `make run` does; print figures of the second start. Exit code 1 above a target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks footprint", description=main.__doc__)
    parser.add_argument("--idle", type=float, default=10.0, metavar="SECONDS", help="before memory is read")
    idle = parser.parse_args(arguments).idle
    with tempfile.TemporaryDirectory() as folder:
        start(Path(folder), 0.0)
        seconds, cpu_seconds, memory = start(Path(folder), idle)
    packages = environment_mib(Path(sys.prefix))
    figures = (
        ("installed packages", packages, MOST_ENVIRONMENT_MIB, "MiB"),
        ("start to first answer", seconds, MOST_SECONDS, "s"),
        ("idle memory (PSS)", memory, MOST_MIB, "MiB"),
    )
    for name, figure, most, unit in figures:
        print(f"{name:24} {figure:8.2f} {unit:4} target {most}  {'met' if figure <= most else 'MISSED'}")
    print(f"{'CPU of the start':24} {cpu_seconds:8.2f} s")
    if (Path(sys.prefix) / ".dev").exists():
        print("This environment has the packages for development too: measure one made with `make run` alone.")
    return 0 if all(figure <= most for _, figure, most, _ in figures) else 1


def start(folder: Path, idle_seconds: float) -> tuple[float, float, float]:
    """Start and stop a gateway; return the seconds to its first answer, its CPU seconds by then, its memory in MiB."""
    port = free_port()
    env = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    env |= {
        "MEMORY_GATEWAY_ENV_FILE": "",
        "MEMORY_GATEWAY_DB_PATH": str(folder / "gateway.sqlite3"),
        "MEMORY_GATEWAY_STORAGE_DIR": str(folder / "files"),
        "MEMORY_GATEWAY_PORT": str(port),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    began = time.monotonic()
    with python(["manage.py", "start"], port, folder / "log", env) as pid:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=30).close()
        seconds, cpu_seconds = time.monotonic() - began, sum(map(_cpu_seconds, processes(pid)))
        time.sleep(idle_seconds)
        return seconds, cpu_seconds, sum(map(memory_mib, processes(pid)))


def processes(pid: int) -> Iterator[int]:
    """Yield a process and those that it started."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from processes(int(child))


def memory_mib(pid: int) -> float:
    """Return the proportional set size of a process."""
    report = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in report.splitlines() if line.startswith("Pss:")) / 1024


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and of the ended ones that it started."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def environment_mib(folder: Path) -> float:
    """Return the disk usage of a folder, as `du` counts it."""
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * _BLOCK / 2**20
