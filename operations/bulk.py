"""Decisions about many memories: previewed, made in steps with progress, undone once.

A few ticked rows are decided about at once, without a job (`decide`, `undo`).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, QuerySet
from django.utils import timezone

from accounts.audit import Actor, record
from core.errors import InvalidInput
from memories.models import Override
from memories.services import decisions
from memories.services.decisions import Change, OverrideValues
from operations import jobs
from operations.jobs import Handler, Run
from operations.models import Job
from store import browse
from store.browse import Selection
from store.categories import CATEGORIES
from store.models import Memory
from store.types import Position

AT_ONCE: Final = 25
STEP_ROWS: Final = 200
PAUSE_SECONDS: Final = 0.02
MAX_NAMED_USERS: Final = 100
MAX_ROWS: Final = 1000
"""As many rows as one request names; more are selected by a filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What an action takes: all that a filter found when it was frozen, or some rows. What was written later is not
    among it: its row lies beyond `up_to_row`."""

    selection: Selection
    at: datetime
    up_to_row: int
    rows: tuple[int, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        rows = {} if self.rows is None else {"rows": list(self.rows)}
        return {
            "selection": self.selection.as_json(),
            "at": self.at.isoformat(),
            "up_to_row": self.up_to_row,
            **rows,
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Target:
        """Errors: KeyError, TypeError, ValueError where it is not what `as_json` wrote."""
        return cls(
            selection=Selection.from_json(given["selection"]),
            rows=tuple(int(row) for row in given["rows"]) if "rows" in given else None,
            at=datetime.fromisoformat(given["at"]),
            up_to_row=int(given["up_to_row"]),
        )


@dataclass(frozen=True, slots=True)
class Preview:
    """What an action would take. `edited` have a correction in force; `since` match too, but came later."""

    total: int
    by_category: dict[str, int]
    users: int
    sessions: int
    edited: int
    since: int


def freeze(selection: Selection) -> Target:
    """All that the filter finds now."""
    last = Memory.objects.aggregate(last=Max("pk"))["last"]
    return Target(selection=selection, at=timezone.now(), up_to_row=last or 0)


def of_rows(rows: Sequence[int], *, in_trash: bool = False) -> Target:
    """Some memories by their rows. Errors: `InvalidInput` for too many."""
    if len(rows) > MAX_ROWS:
        raise InvalidInput.of_field("rows", f"at most {MAX_ROWS} at once; select by a filter instead")
    frozen = freeze(Selection(in_trash=in_trash))
    return Target(selection=frozen.selection, rows=tuple(rows), at=frozen.at, up_to_row=frozen.up_to_row)


def preview(target: Target) -> Preview:
    rows = selected(target)
    by_category = rows.values_list("category").annotate(number=Count("pk")).order_by("-number")
    counted = rows.aggregate(users=Count("user_id", distinct=True), sessions=Count("session_id", distinct=True))
    in_force = Override.objects.filter(row_id=OuterRef("pk"), undone_at__isnull=True)
    total = sum(number for _, number in by_category)
    return Preview(
        total=total,
        by_category=dict(by_category),
        users=counted["users"],
        sessions=counted["sessions"],
        edited=rows.filter(Exists(in_force)).count(),
        since=0 if target.rows is not None else max(0, browse.count(target.selection) - total),
    )


def start(kind: str, target: Target, params: Mapping[str, Any], *, actor: Actor) -> Job:
    """Decide about the selected memories by a job: `delete` (with a reason), `restore` or `categorise`.

    A small job is done when this returns. Raises: `InvalidInput` for an unknown category.
    """
    if kind == "categorise":
        _require_known(params)
    total = selected(target).count()
    job = jobs.submit(kind, {"target": target.as_json(), **params}, actor=actor, total=total)
    return jobs.run_now(job) if total <= AT_ONCE else job


def selected(target: Target) -> QuerySet[Memory]:
    """Return the memories that a target still selects."""
    rows = browse.rows_of(target.selection).filter(pk__lte=target.up_to_row)
    return rows if target.rows is None else rows.filter(pk__in=target.rows)


def decide(kind: str, rows: Collection[int], params: Mapping[str, Any], *, actor: Actor, job: str = "") -> list[Change]:
    """Decide about some memories by their rows, in one transaction. Return what `undo` needs.

    Raises: `InvalidInput` for an unknown category, ValueError for an unknown kind.
    """
    if kind == "delete":
        return decisions.delete_many(rows, reason=params.get("reason", ""), actor=actor, job=job)
    if kind == "restore":
        return decisions.restore_many(rows, actor=actor, job=job)
    if kind == "categorise":
        _require_known(params)
        return decisions.override_many(rows, OverrideValues(category=params["category"]), actor=actor, job=job)
    raise ValueError(f"{kind!r} is no decision about memories.")


def undo(kind: str, changes: Sequence[Change], *, decided_by: Actor, actor: Actor, job: str = "") -> int:
    """Undo what `decide` returned as far as it is still so. Return how many. Raises: ValueError for an unknown kind."""
    if kind == "delete":
        rows, tombstones = [change[0] for change in changes], {change[1] for change in changes}
        undone = decisions.restore_many(rows, tombstone_ids=tombstones, deleted_by=decided_by, actor=actor, job=job)
        return len(undone)
    if kind == "restore":
        return decisions.undo_restore(changes, actor=actor, job=job)
    if kind == "categorise":
        return decisions.undo_overrides(changes, actor=actor, job=job)
    raise ValueError(f"{kind!r} is no decision about memories.")


def _require_known(params: Mapping[str, Any]) -> None:
    if params["category"] not in CATEGORIES:
        raise InvalidInput.of_field("category", f"must be one of {', '.join(CATEGORIES)}")


def _run(run: Run) -> dict[str, Any]:
    """Decide in steps, each one transaction: its decisions, what undoing them needs, where the next step begins."""
    target = Target.from_json(run.params["target"])
    seen, changed = run.cursor.get("seen", 0), run.cursor.get("changed", 0)
    while keys := _next(target, run.cursor):
        with transaction.atomic():
            rows = [key.row for key in keys]
            changes = decide(run.job.kind, rows, run.params, actor=run.actor, job=str(run.job.pk))
            seen, changed = seen + len(keys), changed + len(changes)
            cursor = {"after": list(keys[-1]), "seen": seen, "changed": changed}
            run.step(changes, done=seen, total=max(run.job.total, seen), cursor=cursor)
        _let_others_write(run, len(rows))
    return {"changed": changed, "left": seen - changed}


def _next(target: Target, cursor: Mapping[str, Any]) -> list[Position]:
    after = Position(*cursor["after"]) if "after" in cursor else None
    return browse.keys(target.selection, after=after, limit=STEP_ROWS, up_to_row=target.up_to_row, rows=target.rows)


def _undo(run: Run, job: Job) -> dict[str, Any]:
    """Undo the newest step first, so that each finds memories as it left them."""
    undone, seen = run.cursor.get("undone", 0), run.cursor.get("seen", 0)
    total = sum(len(step.changes) for step in job.steps.all())
    decided_by = Actor(job.actor_kind, job.actor)
    while step := job.steps.filter(number__lt=run.cursor.get("before", 2**31)).order_by("-number").first():
        with transaction.atomic():
            undone += undo(job.kind, step.changes, decided_by=decided_by, actor=run.actor, job=str(run.job.pk))
            seen += len(step.changes)
            run.report(seen, total, cursor={"before": step.number, "undone": undone, "seen": seen})
        _let_others_write(run, len(step.changes))
    return {"undone": undone, "left": total - undone}


def _let_others_write(run: Run, rows: int) -> None:
    """On SQLite one writes at a time, and who waits must find a gap. Errors: `jobs.Ended`."""
    run.check()
    if rows > AT_ONCE:
        time.sleep(PAUSE_SECONDS)


def _finish(job: Job) -> None:
    """Record the whole job in one event; those of its steps name the memories."""
    target = Target.from_json(job.params["target"])
    only = {name: value for name, value in job.params.items() if name != "target"}
    rows = {} if target.rows is None else {"rows": len(target.rows), "users": _users(target.rows)}
    record(
        Actor(job.actor_kind, job.actor),
        f"memories.{job.kind}",
        subject_type="job",
        subject_id=str(job.pk),
        detail={
            **only,
            **rows,
            "filter": target.selection.as_json(),
            "at": target.at.isoformat(),
            "count": job.cursor.get("changed", 0),
            "status": job.status,
        },
    )


def _users(rows: Sequence[int]) -> list[str]:
    """Whose memories they are, as far as a line of the trail names users."""
    names = Memory.objects.filter(pk__in=rows).order_by().values_list("user__user_id", flat=True).distinct()
    return sorted(names)[:MAX_NAMED_USERS]


jobs.KINDS |= dict.fromkeys(("delete", "restore", "categorise"), Handler(_run, finish=_finish, undo=_undo))
