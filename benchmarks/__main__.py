"""`python -m benchmarks` lists the benchmarks; `python -m benchmarks NAME …` runs one, `all` every one.

`plot` draws the plots of the documentation from its tables.
"""

import sys
from collections.abc import Callable, Sequence

from benchmarks import footprint, plot, readings, resource_scope, slow_searches, uploads
from benchmarks.answers import run as answers
from benchmarks.engine import compare as engine
from benchmarks.http import compare
from benchmarks.retrieval import compare as retrieval
from benchmarks.scoreboard import run as scoreboard
from benchmarks.topics import run as topics

BENCHMARKS: dict[str, Callable[[Sequence[str]], int]] = {
    "answers": answers.main,
    "engine": engine.main,
    "footprint": footprint.main,
    "http": compare.main,
    "readings": readings.main,
    "resource_scope": resource_scope.main,
    "retrieval": retrieval.main,
    "scoreboard": scoreboard.main,
    "slow_searches": slow_searches.main,
    "topics": topics.main,
    "uploads": uploads.main,
}


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Exit codes: 0 when every target was met, 1 when one was missed, 2 for an unknown name."""
    if not arguments:
        _list()
        return 0
    name, *rest = arguments
    if name == "plot":
        plot.draw()
        return 0
    if name == "all":
        return max([benchmark([]) for benchmark in BENCHMARKS.values()])
    if name not in BENCHMARKS:
        print(f"There is no benchmark {name!r}: {', '.join(BENCHMARKS)}, all", file=sys.stderr)
        return 2
    return BENCHMARKS[name](rest)


def _list() -> None:
    print("python -m benchmarks NAME [--help], or all; plot draws the results in docs/\n")
    for name, benchmark in BENCHMARKS.items():
        module = sys.modules[benchmark.__module__]
        print(f"  {name:16} {(module.__doc__ or '').strip().splitlines()[0]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
