from pathlib import Path
from typing import Any, get_args

from django.core.management.base import CommandParser

from core.errors import InvalidInput
from operations import evaluation
from operations.commands import Answer, OperationsCommand
from store.types import Method

_SHOWN = 20
"""The worse questions that are listed as text; `--json` has all."""


class Command(OperationsCommand):
    help = (
        "Measure how well searches find what labeled questions expect: recall, rank, latency, with 95 % intervals. The "
        "engine is the configured one. Exit code 1 if a forbidden memory was found. A line of the file: "
        '{"user": "u_1", "query": "…", "expected": ["memory id"], "texts": ["part of a text"], "forbidden": []}'
    )
    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        files = parser.add_mutually_exclusive_group(required=True)
        files.add_argument("--questions", type=Path, metavar="FILE", help="questions to ask, JSON lines")
        files.add_argument(
            "--write", type=Path, metavar="FILE", help="write questions from edits and deletions to a new file instead"
        )
        parser.add_argument("--user", action="append", metavar="USER_ID", help="with --write: of this user; repeatable")
        parser.add_argument(
            "--method",
            action="append",
            choices=get_args(Method),
            help="how to search; repeatable, the first one is compared with the others (default: hybrid)",
        )
        parser.add_argument("--save", type=Path, metavar="FILE", help="save the results of the last method")
        parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with results saved before")

    def run(
        self,
        *,
        questions: Path,
        write: Path | None,
        user: list[str] | None,
        method: list[Method] | None,
        save: Path | None,
        compare: Path | None,
        **options: Any,
    ) -> Answer:
        for path in filter(None, (write, save)):
            if path.exists():
                raise InvalidInput(f"{path} exists already.")
        if write is not None:
            count = evaluation.save(write, evaluation.questions_of_decisions(user))
            return Answer({"file": str(write), "questions": count}, f"{write}: {count:,} questions.")
        asked = evaluation.load(questions)
        before = evaluation.load_results(compare) if compare else None
        methods = method or ["hybrid"]
        results = {one: evaluation.ask(asked, one, self.report) for one in methods}
        if save:
            evaluation.save(save, results[methods[-1]])
        data: dict[str, Any] = {"methods": {one: evaluation.summarize(found) for one, found in results.items()}}
        compared = dict.fromkeys(methods[1:], results[methods[0]]) if before is None else dict.fromkeys(methods, before)
        data["compared"] = {one: evaluation.compare(base, results[one]) for one, base in compared.items()}
        is_ok = not any(summary["forbidden_found"] for summary in data["methods"].values())
        against = str(compare or methods[0])
        return Answer(data, "\n".join([*_summaries(data["methods"]), *_differences(data["compared"], against)]), is_ok)


def _summaries(methods: dict[str, Any]) -> list[str]:
    return [
        f"{method}: {found['questions']:,} questions, "
        + ", ".join(f"{name} {_shown(found[name])}" for name in ("recall@1", "recall@5", "recall@10", "mrr"))
        + f", p50 {found['p50_ms']} ms, p95 {found['p95_ms']} ms"
        + (f", {found['forbidden_found']:,} forbidden memories found" if found["forbidden_found"] else "")
        for method, found in methods.items()
    ]


def _differences(compared: dict[str, Any], against: str) -> list[str]:
    lines = []
    for method, found in compared.items():
        worse = found["worse"]
        difference = f"recall@10 {_shown(found['recall@10'])}, mrr {_shown(found['mrr'])}"
        lines.append(f"{method} less {against}, {found['questions']:,} questions: {difference}; {len(worse):,} worse")
        lines += [
            f"  {one['recall@10']:+.2f} {one['reciprocal_rank']:+.2f} {one['user']}: {one['query']}"
            for one in worse[:_SHOWN]
        ]
    return lines


def _shown(value: dict[str, float] | None) -> str:
    return "-" if value is None else f"{value['mean']:.3f} ({value['low']:.3f} to {value['high']:.3f})"
