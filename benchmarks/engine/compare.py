"""Compare speed, size and build time of the embedded engine, FTS5 with a user column, and LanceDB in one run.

Each number of memories is measured in a separate process and folder, with the same synthetic texts and vectors. The
gateway runs a whole search, from question to hits; the others return ids and texts. Questions are warm; systems
alternate every fifty.

An add is one message to a mostly new session; no system waits for the disk. LanceDB appends rows beside its indexes
until `optimize`, so adds are compared alone (medians) and with indexes kept (mean of 250).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import PROJECT, gateway_environment

MOST = {
    "keyword / FTS5 with a user column": 0.15,
    "vector / LanceDB with a user filter": 0.05,
    "hybrid / LanceDB, a table per user": 0.40,
    "durable add / LanceDB, its indexes kept": 0.15,
}
LEAST_RECALL = 0.99


def main(arguments: Sequence[str]) -> int:
    """Run the comparison. Exit codes: 0 when every target was met, 1 when one was missed."""
    options = _options(arguments)
    missed = [_is_missed(rows, _measured(rows, options)) for rows in options.rows]
    return int(any(missed))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks engine", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000], help="memories of all users together")
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--questions", type=int, default=200)
    return parser.parse_args(arguments)


def _measured(rows: int, options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        env = gateway_environment(Path(folder)) | {
            "DJANGO_SETTINGS_MODULE": "memory_gateway.settings",
            "OPENBLAS_NUM_THREADS": "1",
        }
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=PROJECT, env=env, check=True)
        numbers = {"rows": rows, "users": options.users, "dimensions": options.dimensions}
        arguments = [f"--{name}={value}" for name, value in {**numbers, "questions": options.questions}.items()]
        command = [sys.executable, "-m", "benchmarks.engine.measure", "--folder", folder, *arguments]
        done = subprocess.run(command, cwd=PROJECT, env=env, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _is_missed(rows: int, found: dict[str, Any]) -> bool:
    print(f"{rows:,} memories")
    for name, system in found["systems"].items():
        print(f"  {name:26} " + ", ".join(f"{what} {value}" for what, value in system.items()))
    missed = found["recall"] < LEAST_RECALL
    print(f"  recall@10 of vectors       {found['recall']:.4f} (target ≥ {LEAST_RECALL})")
    for name, ratio in found["ratios"].items():
        missed |= ratio > MOST.get(name, ratio)
        print(f"  {name:45} {ratio:.3f}" + (f" (target ≤ {MOST[name]})" if name in MOST else ""))
    sys.stdout.flush()
    return missed
