import math
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from accounts.services import find_user
from core.errors import InvalidInput, NotFound, existing
from operations.commands import Answer, OperationsCommand
from operations.models import UnmatchedDecision
from operations.moves import reingest
from operations.moves.plan import Plan, Target, plan
from operations.moves.reingest import Outcome
from resources.models import Resource
from store.models import Session

_SHOWN = ("session_id", "memory_id", "tombstone_id", "override_id", "hides")


class Command(OperationsCommand):
    help = (
        "Replay messages and files into an engine, and transfer deletions, overrides and categories to the new "
        "memories. Without --apply, only print the plan. Exit code 1 if something could not be moved."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--all", action="store_true", help="all data of all users")
        parser.add_argument("--user", metavar="USER_ID", help="all data of one user")
        parser.add_argument("--session", metavar="SESSION_ID", help="one session of --user")
        parser.add_argument("--resource", metavar="RESOURCE_ID", help="one file")
        parser.add_argument(
            "--into", choices=("embedded", "upstream"), help="target engine (default: the current engine)"
        )
        parser.add_argument("--apply", action="store_true", help="carry out the plan")
        parser.add_argument("--dry-run", action="store_true", help="only print the plan (default)")
        parser.add_argument("--resume", action="store_true", help="continue the last interrupted move")
        parser.add_argument(
            "--workers", type=int, default=4, help="number of concurrent sessions, 1 to 16 (default: %(default)s)"
        )
        parser.add_argument(
            "--calls-per-minute", type=int, default=0, help="maximum calls to EverOS (default: no limit)"
        )
        parser.add_argument("--price", type=float, help="price per million tokens, for the estimate")

    def run(self, **options: Any) -> Answer:
        if not 1 <= options["workers"] <= 16 or options["calls_per_minute"] < 0:
            raise InvalidInput("--workers must be 1 to 16 and --calls-per-minute 0 or more.")
        if not 0 <= (options["price"] or 0) < math.inf:
            raise InvalidInput("--price must be 0 or more.")
        pace = {"workers": options["workers"], "calls_per_minute": options["calls_per_minute"]}
        if options["resume"]:
            return _of_outcome(reingest.resume(report=self.report, **pace))
        planned = plan(_target(options), options["into"], price=options["price"])
        if not options["apply"] or options["dry_run"]:
            data = asdict(planned)
            del data["target"]
            return Answer(data, _text_of(planned))
        actor = Actor.command("reingest")
        return _of_outcome(reingest.run(planned, actor=actor, report=self.report, **pace))


def _target(options: dict[str, Any]) -> Target:
    """Errors: `InvalidInput`, `NotFound`."""
    given = [name for name in ("all", "user", "resource") if options[name]]
    if len(given) != 1 or (options["session"] and given != ["user"]):
        raise InvalidInput("Specify what to move: --all, --user, --user with --session, or --resource.")
    if options["resource"]:
        if not Resource.objects.filter(pk=options["resource"], deleted_at__isnull=True).exists():
            raise NotFound("There is no such resource.")
        return Target(resource_id=options["resource"])
    if options["all"]:
        return Target()
    user = find_user(options["user"])
    if not options["session"]:
        return Target(user_pk=user.pk)
    session = existing(
        Session.objects.filter(user=user, session_id=options["session"], deleted_at__isnull=True),
        "There is no such session.",
    )
    return Target(session_pk=session.pk)


def _text_of(planned: Plan) -> str:
    estimate = planned.estimate
    replays = f"{planned.messages:,} messages to replay ({planned.size_bytes / 2**20:,.1f} MB)"
    counts = f"{planned.sessions:,} sessions, {planned.resources:,} files"
    cost = "" if estimate.cost is None else f" at a cost of {estimate.cost:,.2f}"
    minutes = max(1, round(estimate.seconds / 60))
    lines = [
        f"{counts}, {replays}, {planned.memories:,} memories to replace",
        f"{planned.tombstones:,} deletions and {planned.overrides:,} overrides to transfer",
        f"about {estimate.calls:,} calls, {estimate.tokens:,} tokens{cost}, {minutes:,} minutes with one worker",
        "Nothing was changed. Run again with --apply to carry out the plan.",
    ]
    return "\n".join(lines)


def _of_outcome(outcome: Outcome) -> Answer:
    found = UnmatchedDecision.objects.filter(job=outcome.job).select_related("user").order_by("pk")
    unmatched = [{"user_id": one.user.user_id, **{name: getattr(one, name) for name in _SHOWN}} for one in found]
    verified = asdict(outcome.verified)
    data = {
        **outcome.counts,
        "failures": outcome.failures,
        "verified": verified,
        "unmatched_decisions": unmatched,
    }
    counts = outcome.counts
    replaced = f"{counts['replaced']:,} replaced, {counts['stayed']:,} unchanged"
    unmatched_count = f"{counts['unmatched']:,} of them without a matching new memory"
    lines = [
        f"{counts['sessions']:,} sessions moved: {counts['messages']:,} messages replayed",
        f"{counts['made']:,} memories created, {replaced}",
        f"{counts['carried']:,} decisions transferred, {counts['kept']:,} kept on the old memory, {unmatched_count}",
    ]
    for item in unmatched:
        where = f"{item['user_id']} {item['session_id']} {item['memory_id']}"
        decision = item["tombstone_id"] or item["override_id"]
        lines.append(f"  {where}: {decision} hides {len(item['hides'])} memories until an operator decides")
    lines += [f"  session {row} was not moved: {reason}" for row, reason in outcome.failures.items()]
    lines += [f"  {name.replace('_', ' ')}: {count:,}" for name, count in verified.items() if count]
    lines.append("Verification passed." if outcome.verified.is_ok else "Verification failed: see above.")
    return Answer(data, "\n".join(lines), outcome.is_ok)
