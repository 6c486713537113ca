"""`manage.py reingest`: tell an engine anew what was said and uploaded, with every decision about it."""

from __future__ import annotations

import math
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from accounts.services import find_user
from core.errors import InvalidInput, NotFound
from operations import reingest
from operations.commands import Answer, LifecycleCommand
from operations.models import UnmatchedDecision
from operations.moves.plan import Plan, Target
from operations.reingest import Outcome
from resources.models import Resource
from store.models import Session

_SHOWN = ("session_id", "memory_id", "tombstone_id", "override_id", "hides")


class Command(LifecycleCommand):
    help = (
        "Tell an engine anew what was said and uploaded, and carry deletions, corrections, attachments and categories "
        "over to the new memories. Without --apply it only counts. Exit code 1 if something could not be moved."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--all", action="store_true", help="everything of all users")
        parser.add_argument("--user", metavar="USER_ID", help="everything of one user")
        parser.add_argument("--session", metavar="SESSION_ID", help="one session of --user")
        parser.add_argument("--resource", metavar="RESOURCE_ID", help="one file")
        parser.add_argument("--into", choices=("embedded", "upstream"), help="the engine; left out: the present one")
        parser.add_argument("--apply", action="store_true", help="do it")
        parser.add_argument("--dry-run", action="store_true", help="only count, which is the default")
        parser.add_argument("--resume", action="store_true", help="go on with the last move that broke off")
        parser.add_argument("--workers", type=int, default=4, help="sessions at a time, 1 to 16 (4)")
        parser.add_argument("--calls-per-minute", type=int, default=0, help="the most that an upstream gets (no cap)")
        parser.add_argument("--price", type=float, help="of a million tokens, to estimate the cost")

    def run(self, **options: Any) -> Answer:
        if not 1 <= options["workers"] <= 16 or options["calls_per_minute"] < 0:
            raise InvalidInput("--workers is 1 to 16, --calls-per-minute 0 or more.")
        if not 0 <= (options["price"] or 0) < math.inf:
            raise InvalidInput("--price is 0 or more.")
        pace = {"workers": options["workers"], "calls_per_minute": options["calls_per_minute"]}
        if options["resume"]:
            return _of_outcome(reingest.resume(report=self.report, stop=self.stop, **pace))
        planned = reingest.plan(_target(options), options["into"], price=options["price"])
        if not options["apply"] or options["dry_run"]:
            return Answer(planned.counts(), _text_of(planned))
        actor = Actor.command("reingest")
        return _of_outcome(reingest.run(planned, actor=actor, report=self.report, stop=self.stop, **pace))


def _target(options: dict[str, Any]) -> Target:
    """Errors: `InvalidInput`, `NotFound`."""
    given = [name for name in ("all", "user", "resource") if options[name]]
    if len(given) != 1 or (options["session"] and given != ["user"]):
        raise InvalidInput("Name what to move: --all, --user, --user with --session, or --resource.")
    if options["resource"]:
        if not Resource.objects.filter(pk=options["resource"], deleted_at__isnull=True).exists():
            raise NotFound("There is no such resource.")
        return Target(resource_id=options["resource"])
    if options["all"]:
        return Target()
    user = find_user(options["user"])
    if not options["session"]:
        return Target(user_pk=user.pk)
    session = Session.objects.filter(user=user, session_id=options["session"], deleted_at__isnull=True).first()
    if session is None:
        raise NotFound("There is no such session.")
    return Target(session_pk=session.pk)


def _text_of(planned: Plan) -> str:
    estimate = planned.estimate
    told = f"{planned.messages:,} messages to tell again ({planned.size_bytes / 2**20:,.1f} MB)"
    cost = "" if estimate.cost is None else f" at a cost of {estimate.cost:,.2f}"
    minutes = max(1, round(estimate.seconds / 60))
    lines = [
        f"{planned.sessions:,} sessions, {planned.resources:,} files, {told}, {planned.memories:,} memories to replace",
        f"{planned.tombstones:,} deletions and {planned.overrides:,} corrections to carry over",
        f"about {estimate.calls:,} calls, {estimate.tokens:,} tokens{cost}, {minutes:,} minutes with one worker",
        "Nothing was changed. Add --apply to do it.",
    ]
    return "\n".join(lines)


def _of_outcome(outcome: Outcome) -> Answer:
    found = UnmatchedDecision.objects.filter(job=outcome.job).select_related("user").order_by("pk")
    unmatched = [{"user_id": one.user.user_id, **{name: getattr(one, name) for name in _SHOWN}} for one in found]
    data = {
        **outcome.counts,
        "failures": outcome.failures,
        "verified": outcome.verified.as_dict(),
        "unmatched_decisions": unmatched,
    }
    return Answer(data, _text_of_outcome(outcome, unmatched), outcome.is_ok)


def _text_of_outcome(outcome: Outcome, unmatched: list[dict[str, Any]]) -> str:
    counts = outcome.counts
    replaced = f"{counts['replaced']:,} replaced, {counts['stayed']:,} stayed as they were"
    unheard = f"{counts['unmatched']:,} of these matched nothing new"
    lines = [
        f"{counts['sessions']:,} sessions moved: {counts['messages']:,} messages told again",
        f"{counts['made']:,} memories made, {replaced}",
        f"{counts['carried']:,} decisions carried over, {counts['kept']:,} kept on the old memory, {unheard}",
    ]
    lines += [f"  {_sentence(item)}" for item in unmatched]
    lines += [f"  session {row} stayed where it was: {reason}" for row, reason in outcome.failures.items()]
    verified = outcome.verified.as_dict()
    lines += [f"  {name.replace('_', ' ')}: {count:,}" for name, count in verified.items() if count]
    return "\n".join([*lines, "Verified." if outcome.verified.is_ok else "NOT as it must be: see above."])


def _sentence(item: dict[str, Any]) -> str:
    decision = item["tombstone_id"] or item["override_id"]
    where = f"{item['user_id']} {item['session_id']} {item['memory_id']}"
    return f"{where}: {decision} holds back {len(item['hides'])} memories until somebody decides"
