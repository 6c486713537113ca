from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandParser

from accounts.audit import Actor
from core.errors import InvalidInput
from operations import jobs
from operations.commands import Answer, JobCommand
from operations.importers import import_gateway

ACTOR: Final = Actor.command("import_gateway")


class Command(JobCommand):
    help = (
        "Import the users of the original gateway, with their API keys, resources, attachments, tombstones and "
        "overrides. Without --apply it prints a plan. An interrupted import continues when it is run again; --undo "
        "removes it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", nargs="?", type=Path, help="its SQLite file")
        parser.add_argument(
            "--storage", type=Path, metavar="FOLDER", help="its storage folder (default: storage beside the file)"
        )
        parser.add_argument("--apply", action="store_true", help="import")
        parser.add_argument("--undo", metavar="JOB", help="remove what this job imported")

    def run(self, *, path: Path | None, storage: Path | None, apply: bool, undo: str | None, **options: Any) -> Answer:
        if undo is not None:
            done = self.run_job(jobs.undo(undo, actor=ACTOR, is_for_worker=False))
            undone, left = done.result["undone"], done.result["left"]
            return Answer(done.result, f"Removed {undone:,} rows. {left:,} stay, because they are in use.")
        if path is None:
            raise InvalidInput("Give the SQLite file of the original gateway, or --undo with a job.")
        folder = path.parent / "storage" if storage is None else storage
        planned = import_gateway.plan(path, folder, actor=ACTOR, report=self.report)
        data = planned.as_json()
        lines = _lines(data)
        if not apply:
            return Answer(data, "\n".join([*lines, "Import with --apply."]))
        total = sum(sum(data[name].values()) for name in _TITLES)
        done = self.run_job(import_gateway.start(path, folder, total=total, actor=ACTOR))
        data = {name: done.result[name] for name in (*_TITLES, "at")}
        return Answer({**data, "job": str(done.pk)}, "\n".join([*_lines(data), f"Undo with --undo {done.pk}"]))


_TITLES: Final = {"new": "New", "duplicates": "Known already", "left": "Not imported"}


def _lines(data: dict[str, Any]) -> list[str]:
    """Return the counts as lines; the first rows of what is not imported follow its reason."""
    lines = []
    for name, title in _TITLES.items():
        counts = [f"{number:,} {what}{_rows(data['at'].get(what))}" for what, number in data[name].items()]
        lines.append(f"{title}: {', '.join(counts) or 'none'}.")
    return lines


def _rows(numbers: list[int] | None) -> str:
    return f" (rows {', '.join(map(str, numbers))})" if numbers else ""
