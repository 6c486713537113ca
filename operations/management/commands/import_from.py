from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandParser

from accounts.audit import Actor
from accounts.services import find_user
from core.errors import InvalidInput
from core.ids import check_name
from operations import jobs
from operations.commands import Answer, JobCommand
from operations.importers import import_from
from operations.importers.import_from import Plan, Request
from operations.importers.sources import READERS
from store.types import Owner

ACTOR: Final = Actor.command("import_from")


class Command(JobCommand):
    help = (
        "Import memories of another store for one user. Without --apply it prints a plan: new memories, duplicates, "
        "and what cannot be imported. An interrupted import continues when it is run again; --undo removes it."
    )
    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", nargs="?", choices=READERS, help="kind of store")
        self.add_options(parser)

    def add_options(self, parser: CommandParser) -> None:
        """Add all arguments but the source."""
        parser.add_argument("path", nargs="?", type=Path, help="its file or folder")
        parser.add_argument("--user", metavar="USER_ID", help="user who gets the memories")
        parser.add_argument("--source-user", metavar="ID", help="user of the source, if it has several")
        parser.add_argument("--app-id", default="default", help="application of the memories (default: %(default)s)")
        parser.add_argument("--project-id", default="default", help="project of the memories (default: %(default)s)")
        parser.add_argument(
            "--category",
            default="user_memory_fact",
            help="category of memories that have none (default: %(default)s)",
        )
        parser.add_argument("--apply", action="store_true", help="import")
        parser.add_argument("--undo", metavar="JOB", help="remove the memories that this job imported")

    def run(self, *, undo: str | None, apply: bool, **options: Any) -> Answer:
        if undo is not None:
            done = self.run_job(jobs.undo(undo, actor=ACTOR, is_for_worker=False))
            undone, left = done.result["undone"], done.result["left"]
            return Answer(done.result, f"Removed {undone:,} memories. {left:,} were edited or purged since.")
        request = _request(**options)
        planned = import_from.plan(request, report=self.report)
        data = {"new": planned.new, "duplicates": planned.duplicates, "left": dict(planned.left), "at": planned.places}
        if planned.undated:
            data["undated"] = {"count": planned.undated, "at": planned.unread_dates}
        left = _left(planned)
        text = f"{planned.new:,} new memories, {planned.duplicates:,} duplicates. {left}"
        if not apply:
            return Answer(data, f"{text} Import with --apply.")
        total = planned.new + planned.duplicates
        job = jobs.interrupted_or_new(import_from.KIND, request.as_json(), actor=ACTOR, total=total)
        done = self.run_job(job)
        made, skipped = done.result["made"], done.result["left"]
        return Answer(
            {**data, "job": str(done.pk), "made": made},
            f"Imported {made:,} memories, skipped {skipped:,} that exist already or were deleted. "
            f"{left} Undo with --undo {done.pk}",
        )


def _left(planned: Plan) -> str:
    """Return a sentence with the parts of the source that are not imported, by reason and with their first places."""
    parts = []
    for reason, number in planned.left.most_common():
        places = planned.places[reason]
        more = ", …" if number > len(places) else ""
        parts.append(f"{number:,} {reason} ({', '.join(places)}{more})")
    undated = ""
    if planned.undated:
        undated = f" {planned.undated:,} dates cannot be read ({', '.join(planned.unread_dates)}): the file's is used."
    return f"{planned.left.total():,} of {planned.total:,} skipped{': ' if parts else ''}{'; '.join(parts)}.{undated}"


def _request(*, source: str | None, path: Path | None, user: str | None, **options: Any) -> Request:
    if source is None or path is None or user is None:
        raise InvalidInput("Give the source, its path and --user, or --undo with a job.")
    try:
        scope = (check_name(options["app_id"]), check_name(options["project_id"]))
    except ValueError as error:
        raise InvalidInput(f"The app or project ID is invalid: it {error.args[0]}.") from error
    return Request(
        source=source,
        path=path,
        owner=Owner(find_user(user).pk, user, *scope),
        of_user=options["source_user"],
        category=options["category"],
    )
