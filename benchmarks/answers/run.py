"""Tell a gateway small cases and ask: updates, questions about the past, echoes, times, words, what has no answer.

Each case has a separate user. The cases in `own` were written by those who know the rules, the ones in `unseen` before
the rules, without knowledge of them. The table shows the share of cases that each measure passes, by
half: over `POST /memories/search`, and over MCP with the defaults of `memory_recall`.
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.answers.client import Person
from benchmarks.answers.kinds import KINDS, Kind
from benchmarks.processes import gateway

CASES: Final = Path(__file__).parent / "cases"
HALVES: Final = ("own", "unseen")


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark. Exit codes: 0 when every target was met, 1 when one was missed."""
    options = _options(arguments)
    missed = False
    with tempfile.TemporaryDirectory() as folder, gateway(Path(folder), LOG_BODIES="false") as (port, _pid):
        print(f"{'kind':13} {'measure':45} {'own':>12} {'unseen':>12}")
        for kind in KINDS:
            if not options.kind or kind.name in options.kind:
                missed |= _run(port, kind, options)
    print("A target was missed." if missed else "All targets were met.")
    return int(missed)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks answers", description=__doc__)
    parser.add_argument("--kind", choices=[kind.name for kind in KINDS], action="append", help="default: all")
    parser.add_argument("--limit", type=int, help="cases of each kind and half; default: all")
    parser.add_argument("--half", choices=HALVES, action="append", help="default: both")
    parser.add_argument("--show", action="store_true", help="name the cases that fail")
    return parser.parse_args(arguments)


def _run(port: int, kind: Kind, options: argparse.Namespace) -> bool:
    """Run the cases of one kind, print a line for each measure, and return True if one missed its target."""
    passed: defaultdict[str, dict[str, list[bool]]] = defaultdict(dict)
    for half in options.half or HALVES:
        for number, case in enumerate(_cases(half, kind.name, options.limit)):
            person = Person.create(port, f"{kind.name}_{half}_{number}")
            for measure, shown in kind.tell_and_ask(person, case).items():
                passed[measure].setdefault(half, []).append(shown)
                if not shown and options.show:
                    print(f"  {measure}: {json.dumps(case, ensure_ascii=False)}", file=sys.stderr)
    missed = False
    for measure, targets in kind.targets.items():
        shares = []
        for half, target in zip(HALVES, targets, strict=True):
            verdicts = passed[measure].get(half, [])
            share = sum(verdicts) / len(verdicts) if verdicts else 1.0
            missed |= share < target
            shares.append(f"{share:.0%} of {len(verdicts)}{'!' if share < target else ''}" if verdicts else "-")
        print(f"{kind.name:13} {measure:45} {shares[0]:>12} {shares[1]:>12}", flush=True)
    return missed


def _cases(half: str, name: str, limit: int | None) -> Iterator[dict[str, Any]]:
    path = CASES / half / f"{name}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    yield from (json.loads(line) for line in lines[:limit])
