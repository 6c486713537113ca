"""Ask questions with known answers over REST: by keyword, among other users' memories, and with vectors.

A last row asks `memory_recall` over MCP, with its defaults, beside the same search with every rule off.

The files are not part of the project; `--data` names their folder. Measured are R@10, the share of the memories that
answer a question among the first ten results, and MRR, 1 / the rank of the first of them among the first fifty.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from benchmarks.answers.client import Person, Said, SystemUser
from benchmarks.processes import PROJECT, gateway, gateway_environment
from benchmarks.retrieval.questions import Question, QuestionSet, Told, load

DEPTH = 50
_ADDED_AT_ONCE = 100
_VECTOR_SECONDS = 600.0
_BEGAN_MS = 1_700_000_000_000
"""When the first session of a user began, if the file does not say."""
_TURN_MS = 1000
TARGETS = {"conversations": (0.71, 0.52), "passages": (0.99, 0.0)}
"""The least R@10 and MRR by keyword, by how the file's name begins."""
_NOISE = 0.005
"""With vectors no set may be worse by more than this, and one has to be better."""
_LOST_BY_RECALL = 0.003
"""The most R@10 that the defaults of `memory_recall` may cost."""
_LINE_END = re.compile(r"(?: \[characters [^\]]*\])? \(\d+%\) \[id: [^\]]*\]\s*(?:</[\w-]+>.*)?$", re.DOTALL)
_RULES_OFF = {"method": "hybrid", "min_relevance": 0, "fold": False, "history": True, "top_k": 10}
_BEST_SESSIONS = 5


@dataclass(frozen=True, slots=True)
class Quality:
    recall: float
    mrr: float
    median_ms: float

    def __str__(self) -> str:
        return f"R@10 {self.recall:.3f}, MRR {self.mrr:.3f}, median {self.median_ms:.1f} ms"


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one answer.

    `recall`: the share of the memories wanted among the first ten. `rank`: of the first of them, 0 if absent.
    `any_session`, `every_session`: whether one, or all, of the sessions wanted are among the first five.
    """

    recall: float
    rank: int
    any_session: bool
    every_session: bool
    seconds: float


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark. Exit codes: 0 when every target was met, 1 when one was missed, 2 without files."""
    options = _options(arguments)
    sets = [load(path) for path in sorted(options.data.glob("*")) if path.name.startswith(tuple(TARGETS))]
    if not sets:
        print(f"No questions in {options.data}: --data names the folder that has them", file=sys.stderr)
        return 2
    alone = _measure("by keyword, alone", sets, "keyword", others=0)
    among = _measure(f"by keyword, among {options.others:,} others", sets, "keyword", others=options.others)
    missed = any(_is_below(one.name, quality[one.name]) for quality in (alone, among) for one in sets)
    missed |= any(among[name].recall < alone[name].recall - _NOISE for name in alone)
    missed |= _through_recall(sets)
    if options.embedding_url:
        is_local = options.embedding_url.startswith("local:")
        model = "" if is_local else f"#{options.embedding_model}"
        settings = {"MODELS": f"embedding={options.embedding_url}{model}"}
        told = _measure("hybrid, alone", sets, "hybrid", others=0, **settings)
        missed |= any(told[name].recall < alone[name].recall - _NOISE for name in alone)
        missed |= all(told[name].recall <= alone[name].recall + _NOISE for name in alone)
    print("A target was missed." if missed else "All targets were met.")
    return int(missed)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks retrieval", description=__doc__)
    parser.add_argument("--data", type=Path, default=PROJECT.parent / "shared" / "eval", help="the files' folder")
    parser.add_argument("--others", type=int, default=200_000, help="memories of other users beside")
    parser.add_argument("--embedding-url", default="", help="an endpoint, or local:/folder, to measure hybrid with")
    parser.add_argument("--embedding-model", default="all-minilm-l6-v2")
    return parser.parse_args(arguments)


def _measure(
    title: str, sets: Sequence[QuestionSet], method: str, *, others: int, **settings: str
) -> dict[str, Quality]:
    """Return the quality of each set in a gateway that has all sets."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port, _ = stack.enter_context(gateway(folder, LOG_BODIES="false", **settings))
        if others:
            _fill(folder, others)
        found = {}
        for one in sets:
            people = _people(port, one)
            _wait_for_vectors(port)
            found[one.name] = _quality(one, lambda asked, people=people: ask(people[asked.user], asked, method=method))
            print(f"{title:40} {one.name:20} {found[one.name]}", flush=True)
    return found


def _through_recall(sets: Sequence[QuestionSet]) -> bool:
    """Compare `memory_recall` with the search that it makes, without its rules. Return True if it finds less."""
    missed = False
    with tempfile.TemporaryDirectory() as name, gateway(Path(name), LOG_BODIES="false") as (port, _):
        for one in sets:
            people = _people(port, one)
            bare = _quality(one, lambda asked, people=people: ask(people[asked.user], asked, **_RULES_OFF))
            recall = _quality(one, lambda asked, people=people, one=one: _recalled(people[asked.user], asked, one))
            print(f"{'the same search with every rule off':40} {one.name:20} {bare}", flush=True)
            print(f"{'through memory_recall':40} {one.name:20} {recall}", flush=True)
            missed |= recall.recall < bare.recall - _LOST_BY_RECALL
    return missed


def _recalled(person: Person, question: Question, questions: QuestionSet) -> list[str]:
    """Return the texts of the memories that `memory_recall` shows, whole ones for those that it cuts."""
    lines, _bytes = person.recall(question.text)
    shown = [_LINE_END.sub("", line).strip("… ").replace("\n   ", "\n") for line in lines]
    texts = [told.text for told in questions.told[question.user]]
    return [next((text for text in texts if part in text), part) for part in shown]


def _fill(folder: Path, number: int) -> None:
    command = [sys.executable, "manage.py", "seed_memories", str(number), "--users", str(max(number // 1000, 1))]
    subprocess.run(command, cwd=PROJECT, env=gateway_environment(folder), check=True, capture_output=True)


def _people(port: int, questions: QuestionSet) -> dict[str, Person]:
    """Create the users of a set and tell each the own memories."""
    people = {
        user: Person.create(port, f"u_{questions.name[:40]}_{number}") for number, user in enumerate(questions.told)
    }
    for user, person in people.items():
        tell(person, questions.told[user])
    return people


def tell(person: SystemUser, memories: Sequence[Told]) -> None:
    """Add a user's memories as chat messages."""
    sessions: dict[str, list[Told]] = {}
    for told in memories:
        sessions.setdefault(told.session, []).append(told)
    for place, (session, turns) in enumerate(sessions.items()):
        began_ms = turns[0].began_ms or _BEGAN_MS + place * 3_600_000
        said = [Said(one.text, began_ms + turn * _TURN_MS, one.role, session) for turn, one in enumerate(turns)]
        for start in range(0, len(said), _ADDED_AT_ONCE):
            person.say(said[start : start + _ADDED_AT_ONCE])


def _wait_for_vectors(port: int) -> None:
    deadline = time.monotonic() + _VECTOR_SECONDS
    while time.monotonic() < deadline:
        with urlopen(f"http://127.0.0.1:{port}/health") as response:
            report = json.load(response)
        if not report["backend"]["data"].get("embeddings", {}).get("pending"):
            return
        time.sleep(1)
    raise TimeoutError("The vectors of the memories are not ready.")


def _quality(questions: QuestionSet, found_by: Callable[[Question], list[str]]) -> Quality:
    judged = list(judge(questions, found_by))
    return Quality(
        statistics.fmean(one.recall for one in judged),
        statistics.fmean(one.rank and 1 / one.rank for one in judged),
        statistics.median(one.seconds for one in judged) * 1000,
    )


def judge(questions: QuestionSet, found_by: Callable[[Question], list[str]]) -> Iterator[Judged]:
    """Ask each question of a set. `found_by` returns the texts of the memories found, best first."""
    by_text = {user: {told.text: told for told in all_told} for user, all_told in questions.told.items()}
    sessions = {user: {told.id: told.session for told in all_told} for user, all_told in questions.told.items()}
    for question in questions.questions:
        began = time.perf_counter()
        texts = found_by(question)
        seconds = time.perf_counter() - began
        found = [by_text[question.user].get(text) for text in texts]
        ids = [told.id if told else "" for told in found]
        first = next((rank for rank, one in enumerate(ids, 1) if one in question.answered_by), 0)
        wanted = {sessions[question.user][one] for one in question.answered_by}
        best = set(list(dict.fromkeys(told.session for told in found if told))[:_BEST_SESSIONS])
        recall = len(question.answered_by & set(ids[:10])) / len(question.answered_by)
        yield Judged(recall, first, bool(wanted & best), wanted <= best, seconds)


def ask(person: SystemUser, question: Question, **options: object) -> list[str]:
    """Return the texts of the first fifty memories found."""
    return [result["text"] for result in person.search(question.text, **{"top_k": DEPTH, **options})]


def _is_below(name: str, quality: Quality) -> bool:
    least_recall, least_mrr = next(target for kind, target in TARGETS.items() if name.startswith(kind))
    return quality.recall < least_recall or quality.mrr < least_mrr
