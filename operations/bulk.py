"""Delete, restore or categorize many memories: with a preview, as a job in steps, and with one undo.

A few selected rows are processed immediately, without a job (`decide`, `undo`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Self

from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, QuerySet
from django.utils import timezone

from accounts.audit import Actor
from core.errors import InvalidInput
from core.messages import Translatable as _
from memories.models import Override
from memories.services import decisions
from memories.services.decisions import Change, OverrideValues
from operations import jobs
from operations.jobs import Handler, Run
from operations.models import Job
from resources.services import undo_deletions
from store import browse
from store.browse import Selection
from store.categories import CATEGORIES
from store.models import Memory
from store.types import Position

AT_ONCE: Final = 25
"""The most rows that a request processes itself instead of the worker."""
STEP_ROWS: Final = 200
MAX_ROWS: Final = 1000
"""The most rows that a request may name; more must be selected by a filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The memories of an action: those that a filter matches, or some of them by row id.

    It is fixed at the time `at`: later rows, with ids greater than `up_to_row`, are not included.
    """

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
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Return the target from the data of `as_json`. Raises: KeyError, TypeError, ValueError for other data."""
        return cls(
            selection=Selection.from_json(given["selection"]),
            rows=tuple(int(row) for row in given["rows"]) if "rows" in given else None,
            at=datetime.fromisoformat(given["at"]),
            up_to_row=int(given["up_to_row"]),
        )


@dataclass(frozen=True, slots=True)
class Preview:
    """The effect of an action. `edited` counts memories with an active override, `since` matching later memories."""

    total: int
    by_category: dict[str, int]
    users: int
    sessions: int
    edited: int
    since: int


def freeze(selection: Selection) -> Target:
    """Return the target of all memories that the filter matches now."""
    last = Memory.objects.aggregate(last=Max("pk"))["last"]
    return Target(selection=selection, at=timezone.now(), up_to_row=last or 0)


def of_rows(rows: Sequence[int], *, in_trash: bool = False) -> Target:
    """Return the target of some memories by row id. Raises: `InvalidInput` for too many."""
    if len(rows) > MAX_ROWS:
        raise InvalidInput.of_field(
            "rows", _("can be at most %(number)s at once; use a filter instead", number=MAX_ROWS)
        )
    return replace(freeze(Selection(in_trash=in_trash)), rows=tuple(rows))


def preview(target: Target) -> Preview:
    rows = selected(target)
    by_category = rows.values_list("category").annotate(number=Count("pk")).order_by("-number")
    totals = rows.aggregate(users=Count("user_id", distinct=True), sessions=Count("session_id", distinct=True))
    active = Override.objects.filter(row_id=OuterRef("pk"), undone_at__isnull=True)
    total = sum(number for _, number in by_category)
    return Preview(
        total=total,
        by_category=dict(by_category),
        users=totals["users"],
        sessions=totals["sessions"],
        edited=rows.filter(Exists(active)).count(),
        since=0 if target.rows is not None else max(0, browse.count(target.selection) - total),
    )


def start(kind: str, target: Target, params: Mapping[str, Any], *, actor: Actor) -> Job:
    """Start a job on the selected memories: `delete` (with a reason), `restore` or `categorize`.

    A small job is complete when this returns. Raises: `InvalidInput` for an unknown category.
    """
    if kind == "categorize":
        _require_known(params)
    total = selected(target).count()
    params = {"target": target.as_json(), **params}
    job = jobs.submit(kind, params, actor=actor, total=total, is_for_worker=total > AT_ONCE)
    return jobs.run_now(job) if total <= AT_ONCE else job


def selected(target: Target) -> QuerySet[Memory]:
    """Return the memories of a target that its filter still matches."""
    rows = browse.rows_of(target.selection, begins_with_words=bool(target.selection.words))
    rows = rows.filter(pk__lte=target.up_to_row)
    return rows if target.rows is None else rows.filter(pk__in=target.rows)


def decide(kind: str, rows: Collection[int], params: Mapping[str, Any], *, actor: Actor, job: str = "") -> list[Change]:
    """Delete, restore or categorize memories by row id, in one transaction; return the changes for `undo`.

    Raises: `InvalidInput` for an unknown category, ValueError for an unknown kind.
    """
    if kind == "delete":
        return decisions.delete_many(rows, reason=params.get("reason", ""), actor=actor, job=job)
    if kind == "restore":
        return decisions.restore_many(rows, actor=actor, job=job)
    if kind == "categorize":
        _require_known(params)
        return decisions.override_many(rows, OverrideValues(category=params["category"]), actor=actor, job=job)
    raise ValueError(f"{kind!r} is not a decision about memories.")


def undo(kind: str, changes: Sequence[Change], *, decided_by: Actor, actor: Actor, job: str = "") -> int:
    """Undo changes of `decide`, or deletions of a session or resource, that are still in effect; return their number.

    Raises: ValueError for an unknown kind.
    """
    if kind == "delete":
        rows, tombstones = [change[0] for change in changes], {change[1] for change in changes}
        undone = decisions.restore_many(rows, tombstone_ids=tombstones, deleted_by=decided_by, actor=actor, job=job)
        return len(undone)
    if kind == "delete_session":
        return decisions.undo_session_deletions(changes, deleted_by=decided_by, actor=actor)
    if kind == "delete_resource":
        return undo_deletions(changes, actor=actor)
    if kind == "restore":
        return decisions.undo_restore(changes, actor=actor, job=job)
    if kind == "categorize":
        return decisions.undo_overrides(changes, actor=actor, job=job)
    raise ValueError(f"{kind!r} is not a decision about memories.")


def _require_known(params: Mapping[str, Any]) -> None:
    if params["category"] not in CATEGORIES:
        raise InvalidInput.of_field("category", _("must be one of %(choices)s", choices=", ".join(CATEGORIES)))


def _run(run: Run) -> dict[str, Any]:
    """Process the target in steps: each is one transaction of decisions, changes to undo, and the job's cursor."""
    target = Target.from_json(run.params["target"])
    seen, changed = run.cursor.get("seen", 0), run.cursor.get("changed", 0)
    while keys := next_keys(target, run.cursor, STEP_ROWS):
        with transaction.atomic():
            rows = [key.row for key in keys]
            changes = decide(run.job.kind, rows, run.params, actor=run.actor, job=str(run.job.pk))
            seen, changed = seen + len(keys), changed + len(changes)
            cursor = {"after": list(keys[-1]), "seen": seen, "changed": changed}
            run.step(changes, done=seen, total=max(run.job.total, seen), cursor=cursor)
        if len(rows) > AT_ONCE:
            run.pause()
    return {"changed": changed, "left": seen - changed}


def next_keys(target: Target, cursor: Mapping[str, Any], limit: int) -> list[Position]:
    """Return the positions of the next selected memories after a job's cursor."""
    after = Position(*cursor["after"]) if "after" in cursor else None
    return browse.keys(target.selection, after=after, limit=limit, up_to_row=target.up_to_row, rows=target.rows)


def _undo(run: Run, job: Job, changes: list[Change]) -> tuple[int, int]:
    decided_by = Actor(job.actor_kind, job.actor)
    undone = undo(job.kind, changes, decided_by=decided_by, actor=run.actor, job=str(run.job.pk))
    return undone, len(changes) - undone


def _finish(job: Job) -> None:
    """Record the whole job in one audit event; the events of its steps name the memories."""
    target = Target.from_json(job.params["target"])
    detail = {name: value for name, value in job.params.items() if name != "target"}
    users: Iterable[str] = ()
    if target.rows is not None:
        users = Memory.objects.filter(pk__in=target.rows).order_by().values_list("user__user_id", flat=True).distinct()
        detail |= {"rows": len(target.rows)}
    detail |= {"filter": target.selection.as_record(), "at": target.at.isoformat()}
    jobs.record_end(job, f"job.{job.kind}", {**detail, "count": job.cursor.get("changed", 0)}, users=users)


jobs.KINDS |= dict.fromkeys(("delete", "restore", "categorize"), Handler(_run, finish=_finish, undo=_undo))
