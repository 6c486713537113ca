"""Deeds of operators that take long, as kinds of jobs: emptying the trash, an archive of a user, reading files anew.

None of them can be undone.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.db import connections
from django.utils import timezone

from accounts.audit import Actor, record
from core.errors import NotFound
from memories.models import Tombstone
from operations import jobs, purge, reingest
from operations.bulk import Target, selected
from operations.export import export as write_archive
from operations.jobs import Handler, Run
from operations.models import Job
from operations.moves.plan import Target as Move
from resources import storage
from resources.services import storage_binding
from store import browse
from store.models import Session
from store.types import Position

PURGE: Final = "purge"
EXPORT: Final = "export"
REREAD: Final = "reread"
STEP: Final = 100
ARCHIVES_KEPT: Final = timedelta(days=1)
_FOLDER: Final = "exports"
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# Also what an export that was killed left of it.
_ARCHIVE: Final = re.compile(rf"{_UUID}/{_FOLDER}/\.?{_UUID}\.tar(?:\.mg-part)?")


def empty(target: Target, *, actor: Actor) -> Job:
    """Purges the selected memories of the trash: freeze a selection that is `in_trash`."""
    return jobs.submit(PURGE, {"target": target.as_json()}, actor=actor, total=selected(target).count())


def empty_sessions(tombstone_ids: Sequence[str], *, actor: Actor) -> Job:
    """Purges some deleted sessions with all that is in them."""
    return jobs.submit(PURGE, {"tombstones": list(tombstone_ids)}, actor=actor, total=len(tombstone_ids))


def archive(user_pk: UUID, *, actor: Actor) -> Job:
    """Writes everything of a user into one file, which is kept for a day."""
    return jobs.submit(EXPORT, {"user_pk": str(user_pk)}, actor=actor)


def reread(target: Target, *, actor: Actor) -> Job:
    """Tells the engine anew what was said and uploaded in the sessions of the selected memories."""
    sessions = selected(target).filter(session__isnull=False).values_list("session_id", flat=True)
    return reread_sessions(list(sessions.distinct()), actor=actor)


def reread_sessions(session_rows: Sequence[int], *, actor: Actor) -> Job:
    """The same for some sessions, by their rows."""
    return jobs.submit(REREAD, {"sessions": sorted(session_rows)}, actor=actor, total=len(session_rows))


def archive_of(job: Job) -> Path:
    """The file that an export wrote. Errors: `NotFound`."""
    path = _archive_path(job)
    if job.kind != EXPORT or not path.is_file():
        raise NotFound("This archive is not there any more: an archive is kept for a day.")
    return path


def remove_old_archives(now: datetime) -> int:
    """Removes what exports left a day ago; how many."""
    before = (now - ARCHIVES_KEPT).timestamp()
    found = storage.root().glob(f"*/{_FOLDER}/*")
    ours = [path for path in found if _ARCHIVE.fullmatch(path.relative_to(storage.root()).as_posix())]
    old = [path for path in ours if path.lstat().st_mtime < before]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _archive_path(job: Job) -> Path:
    """In the user's own folder: whoever is erased takes it with them."""
    return storage.root() / str(UUID(job.params["user_pk"])) / _FOLDER / f"{job.pk}.tar"


def _purge(run: Run) -> dict[str, Any]:
    storage_binding.require()
    purged, seen = run.cursor.get("purged", 0), run.cursor.get("seen", 0)
    with _kept_alive(run):
        for size, tombstone_ids, place in _batches(run.params, run.cursor):
            counts = purge.purge_memory(tombstone_ids, actor=run.actor)
            seen, purged = seen + size, purged + counts.memories + counts.sessions
            cursor = {**place, "seen": seen, "purged": purged}
            run.report(seen, max(run.job.total, seen), cursor=cursor)
    return {"purged": purged, "left": seen - purged}


def _batches(params: Mapping[str, Any], cursor: Mapping[str, Any]) -> Iterator[tuple[int, list[str], dict[str, Any]]]:
    """How many, their tombstones, and where the next ones begin."""
    if "tombstones" in params:
        for first in range(cursor.get("seen", 0), len(params["tombstones"]), STEP):
            ids = params["tombstones"][first : first + STEP]
            yield len(ids), ids, {}
        return
    target = Target.from_json(params["target"])
    after = Position(*cursor["after"]) if "after" in cursor else None
    while keys := browse.keys(target.selection, after=after, limit=STEP, up_to_row=target.up_to_row, rows=target.rows):
        after = keys[-1]
        found = Tombstone.objects.filter(row__in=[key.row for key in keys], undone_at__isnull=True)
        yield len(keys), list(found.values_list("pk", flat=True)), {"after": list(after)}


def _finish_purge(job: Job) -> None:
    """One line in the trail for all of it, beside those of each memory."""
    given = job.params.get("target")
    detail = {"filter": given["selection"], "at": given["at"]} if given else {"sessions": len(job.params["tombstones"])}
    detail |= {"count": job.cursor.get("purged", 0), "status": job.status}
    _record(job, "memories.purge", detail)


def _export(run: Run) -> dict[str, Any]:
    storage_binding.require()
    path = _archive_path(run.job)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with _kept_alive(run):
        manifest = write_archive([UUID(run.params["user_pk"])], path, actor=run.actor)
    size, rows = path.stat().st_size, sum(manifest.rows.values())
    return {"rows": rows, "files": manifest.files, "missing": len(manifest.missing), "bytes": size}


def _reread(run: Run) -> dict[str, Any]:
    storage_binding.require()
    done, told = run.cursor.get("done", 0), run.cursor.get("told", 0)
    failed = run.cursor.get("failed", 0)
    sessions = run.params["sessions"]
    with _kept_alive(run):
        for number, row in enumerate(sessions[done:], done + 1):
            planned = reingest.plan(Move(session_pk=row))
            if planned.sessions:
                outcome = reingest.run(planned, actor=run.actor, workers=1)
                told, failed = told + outcome.counts["sessions"], failed + len(outcome.failures)
            run.report(number, len(sessions), cursor={"done": number, "told": told, "failed": failed})
    return {"reread": told, "failed": failed, "left": len(sessions) - told - failed}


def _finish_reread(job: Job) -> None:
    found = Session.objects.filter(pk__in=job.params["sessions"]).values_list("user__user_id", flat=True)
    users = sorted(set(found))[:100]
    _record(job, "memories.reread", {"sessions": len(job.params["sessions"]), "users": users, "status": job.status})


def _record(job: Job, action: str, detail: Mapping[str, Any]) -> None:
    record(Actor(job.actor_kind, job.actor), action, subject_type="job", subject_id=str(job.pk), detail=detail)


@contextmanager
def _kept_alive(run: Run) -> Iterator[None]:
    """Holds the job through steps that take longer than its lease."""
    ended = threading.Event()

    def renew() -> None:
        try:
            while not ended.wait(jobs.LEASE.total_seconds() / 3):
                run.mine().update(leased_until=timezone.now() + jobs.LEASE)
        finally:
            connections.close_all()

    keeper = threading.Thread(target=renew, name="job-lease", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()


jobs.KINDS |= {
    PURGE: Handler(_purge, finish=_finish_purge),
    EXPORT: Handler(_export),
    REREAD: Handler(_reread, finish=_finish_reread),
}
