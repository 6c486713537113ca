"""Tell a gateway small cases and ask: updates, questions about the past, echoes, times, words, what has no answer.

Each case has a separate user. The cases in `own` were written by those who know the rules, the others by people who
knew nothing of them: `seen` were read since, to make the rules better, `unseen` were not. The table shows the share of
cases that each measure passes: over `POST /memories/search`, and over MCP with the defaults of `memory_recall`.
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.answers.client import Person, SystemUser
from benchmarks.answers.kinds import KINDS, Case, Kind, Shown
from benchmarks.processes import gateway

CASES: Final = Path(__file__).parent / "cases"
PARTS: Final = ("own", "seen", "unseen")


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark. Exit codes: 0 when every target was met, 1 when one was missed."""
    options = _options(arguments)
    missed = False
    with tempfile.TemporaryDirectory() as folder, gateway(Path(folder), LOG_BODIES="false") as (port, _pid):
        print(f"{'kind':13} {'measure':45} {'own':>12} {'seen':>12} {'unseen':>12}")
        for kind in KINDS:
            if not options.kind or kind.name in options.kind:
                missed |= _run(port, kind, options)
    print("A target was missed." if missed else "All targets were met.")
    return int(missed)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks answers", description=__doc__)
    parser.add_argument("--kind", choices=[kind.name for kind in KINDS], action="append", help="default: all")
    parser.add_argument("--limit", type=int, help="cases of each kind and part; default: all")
    parser.add_argument("--part", choices=PARTS, action="append", help="default: all")
    parser.add_argument("--show", action="store_true", help="name the cases that fail")
    return parser.parse_args(arguments)


def _run(port: int, kind: Kind, options: argparse.Namespace) -> bool:
    """Run the cases of one kind, print a line for each measure, and return True if one missed its target."""
    passed: defaultdict[str, dict[str, list[bool]]] = defaultdict(dict)
    for part in options.part or PARTS:
        for case, verdicts in judge(lambda name: Person.create(port, name), kind, part, options.limit):
            for measure, shown in verdicts.items():
                passed[measure].setdefault(part, []).append(shown)
                if not shown and options.show:
                    print(f"  {measure}: {json.dumps(case, ensure_ascii=False)}", file=sys.stderr)
    missed = False
    for measure, targets in kind.targets.items():
        shares = []
        own, others = targets
        for part, target in zip(PARTS, (own, others, others), strict=True):
            shown = passed[measure].get(part, [])
            share = sum(shown) / len(shown) if shown else 1.0
            missed |= share < target
            shares.append(f"{share:.0%} of {len(shown)}{'!' if share < target else ''}" if shown else "-")
        print(f"{kind.name:13} {measure:45}", *(f"{share:>12}" for share in shares), flush=True)
    return missed


def judge(
    create: Callable[[str], SystemUser], kind: Kind, part: str, limit: int | None
) -> Iterator[tuple[Case, Shown]]:
    """Tell and ask the cases of one kind and part, each a separate user that `create` makes by its name."""
    for number, case in enumerate(_cases(part, kind.name, limit)):
        yield case, kind.tell_and_ask(create(f"{kind.name}_{part}_{number}"), case)


def _cases(part: str, name: str, limit: int | None) -> Iterator[dict[str, Any]]:
    path = CASES / part / f"{name}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    yield from (json.loads(line) for line in lines[:limit])
