"""Measure how soon a worker begins what another process enqueued: `python -m benchmarks.tasks`.

Set `DATABASE_URL` to an empty, migrated PostgreSQL database. Each row is a backend of Django's Tasks interface: ours;
`django-tasks-db` where it is installed. One process submits jobs that do nothing, 200 one at a time and 800 at once;
another runs them. The time is from before the commit to the begin of one of the 200; the memory is the worker's share
(PSS), idle and after the 1,000.
"""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from accounts.audit import Actor  # noqa: E402
from benchmarks.footprint import memory_mib  # noqa: E402
from core.background import tasks  # noqa: E402
from operations import jobs  # noqa: E402

TIMED: Final = 200
OTHERS: Final = 800
PAUSE_SECONDS: Final = 0.15
SETTLE_SECONDS: Final = 3.0
SETTINGS: Final = {"django-tasks-db": "benchmarks.tasks_db_settings", "ours": "memory_gateway.settings"}
COMMANDS: Final = {
    "django-tasks-db": ["db_worker", "--queue-name", "*", "--interval", "0.1"],
    "ours": ["worker", "--queues", "jobs"],
}
_BEGUN: Final = "BENCHMARK_TASKS_BEGUN"


def begin(run: jobs.Run) -> dict[str, Any]:
    """Note the time at which a job begins."""
    with Path(os.environ[_BEGUN]).open("a", encoding="utf-8") as file:
        file.write(f"{run.params['number']} {time.monotonic()}\n")
    return {}


jobs.KINDS["benchmark"] = jobs.Handler(begin)


def measure(backend: str) -> None:
    """Print a row of the table: the times in milliseconds and the memory in MiB."""
    with TemporaryDirectory() as folder:
        begun = Path(folder) / "begun"
        begun.touch()
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": SETTINGS[backend], _BEGUN: str(begun)}
        worker = [sys.executable, "-m", "benchmarks.tasks", "worker", *COMMANDS[backend]]
        process = subprocess.Popen(worker, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            submit("first")
            times(begun, 1)
            time.sleep(SETTLE_SECONDS)
            idle = memory_mib(process.pid)
            submitted = {}
            for number in range(TIMED):
                time.sleep(random.uniform(PAUSE_SECONDS, 2 * PAUSE_SECONDS))
                submitted[str(number)] = time.monotonic()
                submit(str(number))
            found = times(begun, 1 + TIMED)
            waits = sorted((found[number] - at) * 1000 for number, at in submitted.items())
            for number in range(OTHERS):
                submit(f"other {number}")
            times(begun, 1 + TIMED + OTHERS)
            after = memory_mib(process.pid)
        finally:
            process.kill()
            process.wait()
    p50, p95 = waits[TIMED // 2], waits[TIMED * 95 // 100]
    print(f"{backend:16} {p50:8.1f} {p95:8.1f} {idle:8.1f} {after:8.1f}")


def submit(number: str) -> None:
    jobs.submit("benchmark", {"number": number}, actor=Actor.command("benchmark"))


def times(begun: Path, count: int) -> dict[str, float]:
    """Wait for so many jobs; return the time at which each began."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        lines = [line.rsplit(maxsplit=1) for line in begun.read_text(encoding="utf-8").splitlines()]
        if len(lines) >= count:
            return {number: float(at) for number, at in lines}
        time.sleep(0.05)
    raise TimeoutError(f"{len(lines)} of {count} jobs began within two minutes")


def main() -> int:
    if connection.vendor != "postgresql":
        print("Set DATABASE_URL to an empty, migrated PostgreSQL database.", file=sys.stderr)
        return 2
    backend = next(name for name, module in SETTINGS.items() if module == os.environ["DJANGO_SETTINGS_MODULE"])
    if backend == "ours":
        print(f"{'backend':16} {'p50 ms':>8} {'p95 ms':>8} {'idle MiB':>8} {'then MiB':>8}", flush=True)
        tasks.limit_to(())
    else:
        call_command("migrate", "django_tasks_database", verbosity=0)
    measure(backend)
    if backend == "ours" and importlib.util.find_spec("django_tasks_db"):
        other = {**os.environ, "DJANGO_SETTINGS_MODULE": SETTINGS["django-tasks-db"]}
        return subprocess.run([sys.executable, "-m", "benchmarks.tasks"], env=other, check=False).returncode
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        call_command(*sys.argv[2:])
    else:
        sys.exit(main())
