import math
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from accounts.services import find_user
from core.errors import InvalidInput, NotFound, existing
from operations.commands import Answer, OperationsCommand
from operations.reingest.plan import Plan, Target, plan
from operations.reingest.run import Outcome, resume, run
from resources.models import Resource
from store.models import IS_PURGED, Session, State


class Command(OperationsCommand):
    help = (
        "Read files again, and send sessions again to the remote that is attached, or with --into remote those that it "
        "lacks. Decisions stay. Without --apply, only print the plan. Exit code 1 if a session failed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--all", action="store_true", help="all data of all users")
        parser.add_argument("--user", metavar="USER_ID", help="all data of one user")
        parser.add_argument("--session", metavar="SESSION_ID", help="one session of --user")
        parser.add_argument("--resource", metavar="RESOURCE_ID", help="one file")
        parser.add_argument("--into", choices=("remote",), help="only send sessions that the remote lacks")
        parser.add_argument("--apply", action="store_true", help="carry out the plan")
        parser.add_argument("--dry-run", action="store_true", help="only print the plan (default)")
        parser.add_argument("--resume", action="store_true", help="continue the last interrupted run")
        parser.add_argument(
            "--workers", type=int, default=4, help="number of concurrent sessions, 1 to 16 (default: %(default)s)"
        )
        parser.add_argument(
            "--calls-per-minute", type=int, default=0, help="maximum calls to the remote (default: no limit)"
        )
        parser.add_argument("--price", type=float, help="price per million tokens, for the estimate")

    def run(self, **options: Any) -> Answer:
        if not 1 <= options["workers"] <= 16 or options["calls_per_minute"] < 0:
            raise InvalidInput("--workers must be 1 to 16 and --calls-per-minute 0 or more.")
        if not 0 <= (options["price"] or 0) < math.inf:
            raise InvalidInput("--price must be 0 or more.")
        pace = {"workers": options["workers"], "calls_per_minute": options["calls_per_minute"]}
        if options["resume"]:
            return _of_outcome(resume(report=self.report, **pace))
        planned = plan(_target(options), options["into"], price=options["price"])
        if not options["apply"] or options["dry_run"]:
            data = asdict(planned)
            del data["target"]
            return Answer(data, _text_of(planned))
        actor = Actor.command("reingest")
        return _of_outcome(run(planned, actor=actor, report=self.report, **pace))


def _target(options: dict[str, Any]) -> Target:
    """Errors: `InvalidInput`, `NotFound`."""
    given = [name for name in ("all", "user", "resource") if options[name]]
    if len(given) != 1 or (options["session"] and given != ["user"]):
        raise InvalidInput("Specify what to ingest: --all, --user, --user with --session, or --resource.")
    if options["resource"]:
        if not Resource.objects.filter(pk=options["resource"], state=State.LIVE).exists():
            raise NotFound("There is no such resource.")
        return Target(resource_id=options["resource"])
    if options["all"]:
        return Target()
    user = find_user(options["user"])
    if not options["session"]:
        return Target(user_pk=user.pk)
    session = existing(
        Session.objects.filter(~IS_PURGED, user=user, session_id=options["session"]),
        "There is no such session.",
    )
    return Target(session_pk=session.pk)


def _text_of(planned: Plan) -> str:
    estimate = planned.estimate
    counts = f"{planned.sessions:,} sessions, {planned.resources:,} files, {planned.messages:,} messages and passages"
    size = f"{planned.size_bytes / 2**20:,.1f} MB"
    cost = "" if estimate.cost is None else f" at a cost of {estimate.cost:,.2f}"
    minutes = max(1, round(estimate.seconds / 60))
    lines = [
        f"{counts} ({size}), {planned.memories:,} memories",
        f"{planned.tombstones:,} deletions and {planned.overrides:,} overrides stay in force",
        f"about {estimate.calls:,} calls, {estimate.tokens:,} tokens{cost}, {minutes:,} minutes with one worker",
        "Nothing was changed. Run again with --apply to carry out the plan.",
    ]
    return "\n".join(lines)


def _of_outcome(outcome: Outcome) -> Answer:
    counts = outcome.counts
    lines = [
        f"{counts['sessions']:,} sessions, {counts['messages']:,} messages and files",
        f"{counts['made']:,} memories created, {counts['replaced']:,} replaced, {counts['stayed']:,} unchanged",
        f"{counts['carried']:,} decisions transferred to new passages, {counts['kept']:,} kept on old ones",
    ]
    lines += [f"  session {row} failed: {reason}" for row, reason in outcome.failures.items()]
    return Answer({**counts, "failures": outcome.failures}, "\n".join(lines), outcome.is_ok)
