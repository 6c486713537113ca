"""Compare the gateway with plain SQLite FTS5: retrieval, answers, what deletions survive, and poisoned memories.

`--data` names files or folders with questions as `retrieval` reads them, among them LongMemEval's public file. A line
of `--output` holds the verdicts on one answer of one system, without its text. The hashes of `--data` and of
this file are printed, and the commit, which holds the other inputs.
"""

import argparse
import hashlib
import json
import statistics
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.answers.client import BEGAN_MS, DAY_MS, Person, Said, SystemUser
from benchmarks.answers.kinds import KINDS
from benchmarks.answers.poison import SOURCES, STATED, poison
from benchmarks.answers.run import PARTS
from benchmarks.answers.run import judge as judge_cases
from benchmarks.processes import PROJECT, gateway
from benchmarks.retrieval.compare import ask, judge, tell
from benchmarks.retrieval.questions import load
from benchmarks.scoreboard import returns
from benchmarks.scoreboard.peers import TOKENIZERS, Fts5, Mem0Process

GATEWAY: Final = "gateway"
MEM0: Final = "mem0"
_DATA: Final = PROJECT.parent / "shared" / "eval"
Create = Callable[[str], SystemUser]


class Verdict(NamedTuple):
    """One answer: what it adds to the means of a section, by measure."""

    section: str
    question: str
    values: Mapping[str, float]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark. Exit codes: 0 when no deleted fact came back and none was lost, 1 otherwise."""
    options = _options(arguments)
    files = sorted(file for path in options.data for file in (path.glob("*_dev.json*") if path.is_dir() else [path]))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    means: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with options.output.open("w", encoding="utf-8") as output:
        for system in (systems := _systems(options)):
            for verdict in _verdicts(system, files, options):
                for measure, value in verdict.values.items():
                    means[verdict.section, measure][system].append(value)
                print(json.dumps({"system": system, **verdict._asdict()}, ensure_ascii=False), file=output, flush=True)
    _print_table(means, systems)
    is_kept = _print_returns(options)
    for path in [*files, options.output]:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")
    print("commit", subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=PROJECT, text=True).strip())
    return int(not is_kept)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scoreboard", description=__doc__)
    parser.add_argument("--data", type=Path, action="append", help="a file or folder of questions")
    parser.add_argument("--limit", type=int, help="cases of each kind and part; default: all")
    parser.add_argument("--output", type=Path, default=PROJECT / "build" / "scoreboard.jsonl")
    parser.add_argument("--mem0", help="the Python of an environment with mem0ai, which is then asked too")
    parser.add_argument("--embedding", default="", help="mem0's model: http://host/v1#model?dimensions=N")
    options = parser.parse_args(arguments)
    options.data = options.data or [_DATA]
    return options


def _systems(options: argparse.Namespace) -> tuple[str, ...]:
    return (GATEWAY, *TOKENIZERS, *([MEM0] if options.mem0 else ()))


def _verdicts(system: str, files: Sequence[Path], options: argparse.Namespace) -> Iterator[Verdict]:
    """Yield the verdicts on all answers of a system."""
    limit = options.limit
    if system == MEM0:
        with Mem0Process(options.mem0, options.embedding) as process:
            yield from _of(process.user, files, limit)
    elif system == GATEWAY:
        with tempfile.TemporaryDirectory() as folder, gateway(Path(folder), LOG_BODIES="false") as (port, _pid):
            yield from _of(lambda name: Person.create(port, name), files, limit)
    else:
        yield from _of(lambda _name: Fts5(TOKENIZERS[system]), files, limit)


def _of(create: Create, files: Sequence[Path], limit: int | None) -> Iterator[Verdict]:
    for file in files:
        yield from _retrieval(create, file)
    for kind in KINDS:
        for part in PARTS:
            for number, (_case, shown) in enumerate(judge_cases(create, kind, part, limit)):
                yield Verdict(f"answers: {kind.name}", f"{part} {number}", shown)
    yield from _poisoning(create("poisoned"))


def _retrieval(create: Create, file: Path) -> Iterator[Verdict]:
    questions = load(file)
    asked = {question.user for question in questions.questions}
    users = {}
    for number, user in enumerate(sorted(asked)):
        users[user] = create(f"u_{questions.name[:40]}_{number}")
        tell(users[user], questions.told[user])
    found = judge(questions, lambda question: ask(users[question.user], question))
    for number, one in enumerate(found):
        values = {
            "turns: R@10": one.recall,
            "turns: MRR": one.rank and 1 / one.rank,
            "sessions: one of those wanted in 5": one.any_session,
            "sessions: all of those wanted in 5": one.every_session,
        }
        yield Verdict(f"retrieval: {questions.name}", str(number), values)


def _poisoning(user: SystemUser) -> Iterator[Verdict]:
    """Ask for statements of the user after 200 texts of others."""
    user.say(Said(text, BEGAN_MS + day * DAY_MS, session="own") for day, text in enumerate(STATED.values()))
    texts = poison()
    for source in SOURCES:
        of_source = [text for one, text in texts if one == source]
        if source == "file":
            for number, text in enumerate(of_source):
                user.upload(f"note{number}.txt", text)
        else:
            role, sender = ("user", "mallory") if source == "participant" else (source, "")
            began = BEGAN_MS + 10 * DAY_MS
            user.say(Said(text, began + n * 1000, role, source, sender) for n, text in enumerate(of_source))
    for question, stated in STATED.items():
        asked = user.ask(question)
        own = [result for result in asked.results if result["text"] == stated]
        values = {
            "the user's statement among 10": bool(own),
            "not marked as replaced": all(result["superseded_by"] is None for result in own),
            "recalled": any(stated in line for line in asked.recalled),
        }
        yield Verdict("poisoning", question, values)


def _print_table(means: Mapping[tuple[str, str], Mapping[str, Sequence[float]]], systems: Sequence[str]) -> None:
    print(f"{'section':32} {'measure':46} {'n':>6}", *(f"{system:>15}" for system in systems))
    for (section, measure), values in means.items():
        shown = [f"{statistics.fmean(values[system]):15.3f}" for system in systems]
        print(f"{section:32} {measure:46} {len(values[GATEWAY]):6}", *shown)


def _print_returns(options: argparse.Namespace) -> bool:
    """Print what of the deleted facts came back. Return True if the gateway kept all decisions."""
    peers = {}
    for name, tokenizer in TOKENIZERS.items():
        with closing(Fts5(tokenizer)) as peer:
            peers[name] = dict(returns.of_peer(peer))
    if options.mem0:
        with Mem0Process(options.mem0, options.embedding) as process:
            peers[MEM0] = dict(returns.of_peer(process.user("returns")))
    is_kept = True
    for step, count in returns.of_gateway():
        is_kept &= count.back == count.lost == 0
        of_peers = [f"{peers[name][step].back if step in peers[name] else '-':>15}" for name in peers]
        measure = f"{step}: back of {count.deleted}, lost {count.lost}"
        print(f"{'does it come back':32} {measure:46} {'':6} {count.back:15}", *of_peers, flush=True)
    return is_kept
