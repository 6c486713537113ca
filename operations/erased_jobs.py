"""Take an erased user out of the jobs of operators. A job about several users stays, with the rows of the others.

A job that is about the user alone goes, with the job that undid it. What a running job reads by position is left to it:
ids of rows that no longer exist.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import Model, QuerySet

from accounts.models import MemoryUser, UserKey
from memories.models import Override, Tombstone
from operations.jobs import UNDO
from operations.models import Job, JobStep
from resources.models import Attachment, Resource
from store.models import Memory, Session

_LISTS: Final[Mapping[str, type[Model]]] = {"tombstones": Tombstone, "resources": Resource, "sessions": Session}
"""The parameters that list what a job is about, besides `rows` of its target."""
_MODELS: Final[Mapping[str, type[Model]]] = {
    "memory": Memory,
    "user": MemoryUser,
    "key": UserKey,
    "resource": Resource,
    "session": Session,
    "attachment": Attachment,
    "tombstone": Tombstone,
    "override": Override,
}
"""The model of a change in a step, by the first item of the change; a number is the row of a memory."""
_CHANGED: Final = ("changed", "purged", "reread", "made", "undone")
_BATCH: Final = 500
_OwnRows = Mapping[type[Model], set[str]]


@dataclass(slots=True)
class _Part:
    """A job without the user. `rows` counts what was taken out, `changes` those of its undo list."""

    job: Job
    goes: bool = False
    rows: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    steps: list[JobStep] = field(default_factory=list)


def counts(user: MemoryUser) -> dict[str, int]:
    """Return how many jobs would go, and how many rows would be taken out of others."""
    return _counts(list(_parts(Job.objects.all(), user)))


def remove(user: MemoryUser) -> dict[str, int]:
    """Take the user out of all jobs; return the same counts. Call in a transaction, before their rows are removed."""
    parts = list(_parts(Job.objects.select_for_update(), user))
    for part in parts:
        if part.goes:
            part.job.delete()
            continue
        for step in part.steps:
            if step.changes or not part.job.is_over:  # the next step of a running job is numbered by their count
                step.save(update_fields=["changes"])
            else:
                step.delete()
        fields = ["params", "result", "error", "cursor", "done", "total"] if part.job.is_over else ["params", "total"]
        part.job.save(update_fields=fields)
    return _counts(parts)


def _counts(parts: Collection[_Part]) -> dict[str, int]:
    return {
        "jobs": sum(part.goes for part in parts),
        "job_rows": sum(part.rows for part in parts if not part.goes and part.job.kind != UNDO),
    }


def _parts(jobs: QuerySet[Job], user: MemoryUser) -> Iterator[_Part]:
    """Yield the jobs that change, as they will be. Nothing is written."""
    changing = list(jobs.exclude(kind=UNDO).prefetch_related("steps"))
    own = _own_rows(changing, user)
    parts = {str(job.pk): _part(job, user, own) for job in changing}
    undone = [(job, parts[job.params["job"]]) for job in jobs.filter(kind=UNDO) if job.params.get("job") in parts]
    for job, of_job in undone:
        part = _Part(job, goes=of_job.goes, rows=of_job.changes.total())
        _reduce(part, part.rows)
        parts[str(job.pk)] = part
    yield from (part for part in parts.values() if _scrub(part.job, user) or part.goes or part.rows)


def _part(job: Job, user: MemoryUser, own: _OwnRows) -> _Part:
    part = _Part(job, goes=_is_about(job.params, user))
    if part.goes:
        return part
    for step in job.steps.all():
        if taken := [change for change in step.changes if _is_own(change, own)]:
            part.changes.update(_subject(change)[0] for change in taken)
            step.changes = [change for change in step.changes if change not in taken]
            part.steps.append(step)
    listed, others = _take_from_lists(job, own)
    part.rows = listed or part.changes.total()
    if part.rows:
        part.goes = not others if listed else job.is_over and job.done <= part.rows
        _reduce(part, part.changes.total() if job.steps.all() else part.rows)
        if job.is_over:
            job.params.pop("reason", None)  # about all of them: as in audit events about several users
    return part


def _is_about(params: Any, user: MemoryUser) -> bool:
    """Return True if the parameters of a job name the user as the one that it is about."""
    if not isinstance(params, dict):
        return False
    named = {params.get("user_pk"), params.get("user"), params.get("user_id")} - {None}
    names = {str(user.pk), user.pk.hex, user.user_id}
    return not names.isdisjoint(map(str, named)) or any(_is_about(value, user) for value in params.values())


def _take_from_lists(job: Job, own: _OwnRows) -> tuple[int, int]:
    """Remove the user's rows from the lists of a job; return the numbers of removed and of remaining rows."""
    taken = kept = 0
    for holder, name, model in _lists(job):
        others = [pk for pk in holder[name] if str(pk) not in own[model]]
        taken, kept = taken + len(holder[name]) - len(others), kept + len(others)
        holder[name] = others
    return taken, kept


def _lists(job: Job) -> Iterator[tuple[dict[str, Any], str, type[Model]]]:
    """Yield the lists of rows in a job's parameters: holder, name and model."""
    target = job.params.get("target")
    if isinstance(target, dict) and "rows" in target:
        yield target, "rows", Memory
    if job.is_over or job.status == Job.Status.QUEUED:  # a running job counts along these lists
        yield from ((job.params, name, model) for name, model in _LISTS.items() if name in job.params)


def _subject(change: Any) -> tuple[str, Any]:
    """Return what kind of row a change is about, and its key."""
    if not isinstance(change, list):
        return "", None
    return ("memory", change[0]) if isinstance(change[0], int) else (change[0], change[1])


def _is_own(change: Any, own: _OwnRows) -> bool:
    kind, key = _subject(change)
    return kind in _MODELS and str(key) in own[_MODELS[kind]]


def _own_rows(jobs: Iterable[Job], user: MemoryUser) -> _OwnRows:
    """Return the keys of the user's rows among all that the jobs name. A few statements for any number of jobs."""
    named = defaultdict[type[Model], set[Any]](set)
    for job in jobs:
        for kind, key in (_subject(change) for step in job.steps.all() for change in step.changes):
            if kind in _MODELS:
                named[_MODELS[kind]].add(key)
        for holder, name, model in _lists(job):
            named[model].update(holder[name])
    own = defaultdict[type[Model], set[str]](set)
    for model, keys in named.items():
        of_user = {"pk": user.pk} if model is MemoryUser else {"user": user}
        wanted = list(keys)
        for start in range(0, len(wanted), _BATCH):
            rows: QuerySet[Any] = QuerySet(model).filter(pk__in=wanted[start : start + _BATCH]).filter(**of_user)
            own[model].update(map(str, rows.values_list("pk", flat=True)))
    return own


def _reduce(part: _Part, changed: int) -> None:
    """Subtract the user's rows from the counts of a job that is over; a running one counts itself."""
    job, rows = part.job, part.rows
    job.total = max(0, job.total - rows)
    if not job.is_over:
        return
    job.done = max(0, job.done - rows) if job.status == Job.Status.DONE else min(job.done, job.total)
    for counted in (job.result, job.cursor):
        name = next((name for name in _CHANGED if counted.get(name)), None)
        taken = min(changed, counted[name]) if name else 0
        less = {"seen": rows, "left": rows - taken} | ({name: taken} if name else {})
        for counter, number in less.items():
            if isinstance(counted.get(counter), int):
                counted[counter] = max(0, counted[counter] - number)
        if isinstance(made := counted.get("new"), dict):  # by kind, in the plural
            counted["new"] = {kind: max(0, number - part.changes[kind[:-1]]) for kind, number in made.items()}


def _scrub(job: Job, user: MemoryUser) -> bool:
    """Remove texts that name the user from a job that is over; return True if there were any."""
    if not job.is_over:
        return False
    before = repr((job.params, job.result, job.error))
    names = re.compile(rf"(?<!\w)(?:{re.escape(user.user_id)}|{user.pk}|{user.pk.hex})(?!\w)")
    if names.search(job.params.get("reason", "")):
        del job.params["reason"]
    if names.search(job.params.get("of_user") or ""):
        job.params["of_user"] = None
    target = job.params.get("target")
    selection = target.get("selection", {}) if isinstance(target, dict) else {}
    if "words" in selection:
        selection["words"] = [word for word in selection["words"] if not names.search(word)]
    job.result = {
        name: value for name, value in job.result.items() if not names.search(json.dumps(value, ensure_ascii=False))
    }
    if names.search(str(job.error)):
        job.error = ""
    return before != repr((job.params, job.result, job.error))
