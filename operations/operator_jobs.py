"""Jobs of operators that cannot be undone: purge items in the trash, export a user, re-ingest sessions."""

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Final
from uuid import UUID

from accounts.audit import Actor
from core.errors import NotFound
from core.messages import Translatable as _
from core.persistence.file_keys import FileKey
from core.persistence.files import INCOMING, root, stored_files
from memories.models import Tombstone
from operations import files, jobs
from operations.archives.export import export as write_archive
from operations.bulk import Target, next_keys, selected
from operations.cleanup import purge
from operations.jobs import Handler, Run
from operations.models import Job
from operations.reingest.plan import Target as ReingestTarget
from operations.reingest.plan import plan
from operations.reingest.run import run as reingest
from resources.models import Resource
from resources.services import storage_binding
from store.models import Session, State

PURGE: Final = "purge"
EXPORT: Final = "export"
REREAD: Final = "reread"
STEP: Final = 100


def purge_memories(target: Target, *, actor: Actor) -> Job:
    """Start a job that purges memories in the trash; the target's selection must be `in_trash`."""
    return jobs.submit(PURGE, {"target": target.as_json()}, actor=actor, total=selected(target).count())


def purge_sessions(tombstone_ids: Sequence[str], *, actor: Actor) -> Job:
    """Start a job that purges deleted sessions with all their memories and files."""
    return jobs.submit(PURGE, {"tombstones": list(tombstone_ids)}, actor=actor, total=len(tombstone_ids))


def purge_resources(resource_ids: Sequence[str], *, actor: Actor) -> Job:
    """Start a job that purges resources in the trash, with their files and memories."""
    return jobs.submit(PURGE, {"resources": list(resource_ids)}, actor=actor, total=len(resource_ids))


def export_user(user_pk: UUID, *, actor: Actor) -> Job:
    """Start a job that exports a user into an archive, which is kept for a day."""
    return jobs.submit(EXPORT, {"user_pk": str(user_pk)}, actor=actor)


def reread(target: Target, *, actor: Actor) -> Job:
    """Start a job that re-ingests the sessions of the selected memories."""
    sessions = selected(target).filter(session__isnull=False).values_list("session_id", flat=True)
    return reread_sessions(list(sessions.distinct()), actor=actor)


def reread_sessions(session_rows: Sequence[int], *, actor: Actor) -> Job:
    """Start a job that re-ingests sessions, given by row id."""
    return jobs.submit(REREAD, {"sessions": sorted(session_rows)}, actor=actor, total=len(session_rows))


def open_archive(job: Job) -> BinaryIO:
    """Open the archive of an export. Raises: `NotFound` after it has expired, `StorageUnavailable`."""
    try:
        if job.kind == EXPORT:
            return stored_files().open_key(_archive_key(job))
    except FileNotFoundError:
        pass
    raise NotFound(_("The archive has expired. Archives are kept for one day. Start a new export."))


def _archive_key(job: Job) -> FileKey:
    return files.archive_key(UUID(job.params["user_pk"]), f"{job.pk}.tar")


def _run_purge(run: Run) -> dict[str, Any]:
    storage_binding.require()
    if "resources" in run.params:
        return _purge_resources(run)
    purged, seen = run.cursor.get("purged", 0), run.cursor.get("seen", 0)
    while batch := _next_batch(run.params, run.cursor, seen):
        size, tombstone_ids, place = batch
        counts = purge.purge_memory(tombstone_ids, actor=run.actor)
        seen, purged = seen + size, purged + counts.memories + counts.sessions
        cursor = {**place, "seen": seen, "purged": purged}
        run.report(seen, max(run.job.total, seen), cursor=cursor)
    return {"purged": purged, "left": seen - purged}


def _purge_resources(run: Run) -> dict[str, Any]:
    ids, purged = run.params["resources"], run.cursor.get("purged", 0)
    for seen in range(run.cursor.get("seen", 0), len(ids)):
        in_trash = Resource.objects.filter(pk=ids[seen], state=State.TRASHED)
        purged += purge.purge_resources(in_trash, actor=run.actor)
        run.report(seen + 1, len(ids), cursor={"seen": seen + 1, "purged": purged})
    return {"purged": purged, "left": len(ids) - purged}


def _next_batch(
    params: Mapping[str, Any], cursor: Mapping[str, Any], seen: int
) -> tuple[int, list[str], dict[str, Any]] | None:
    """Return the size of the next batch, its tombstones, and the cursor after it; None at the end."""
    if "tombstones" in params:
        ids = params["tombstones"][seen : seen + STEP]
        return (len(ids), ids, {}) if ids else None
    if not (keys := next_keys(Target.from_json(params["target"]), cursor, STEP)):
        return None
    found = Tombstone.objects.filter(row__in=[key.row for key in keys], undone_at__isnull=True)
    return len(keys), list(found.values_list("pk", flat=True)), {"after": list(keys[-1])}


def _finish_purge(job: Job) -> None:
    """Record one audit event for the job, in addition to one per memory."""
    given = job.params.get("target")
    if given:
        detail = {"filter": given["selection"], "at": given["at"]}
    elif "resources" in job.params:
        detail = {"resources": len(job.params["resources"])}
    else:
        detail = {"sessions": len(job.params["tombstones"])}
    jobs.record_end(job, "job.purge", {**detail, "count": job.cursor.get("purged", 0)})


def _run_export(run: Run) -> dict[str, Any]:
    storage_binding.require()
    path = root() / INCOMING / f"{run.job.pk}.tar"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    manifest = write_archive([UUID(run.params["user_pk"])], path, actor=run.actor)
    size, rows = path.stat().st_size, sum(manifest.rows.values())
    stored_files().put(path, _archive_key(run.job))
    path.unlink(missing_ok=True)
    return {"rows": rows, "files": manifest.files, "missing": len(manifest.missing), "bytes": size}


def _run_reread(run: Run) -> dict[str, Any]:
    storage_binding.require()
    done, moved, failed = (run.cursor.get(name, 0) for name in ("done", "moved", "failed"))
    sessions = run.params["sessions"]
    for number, row in enumerate(sessions[done:], done + 1):
        planned = plan(ReingestTarget(session_pk=row))
        if planned.sessions:
            outcome = reingest(planned, actor=run.actor, workers=1)
            moved, failed = moved + outcome.counts["sessions"], failed + len(outcome.failures)
        run.report(number, len(sessions), cursor={"done": number, "moved": moved, "failed": failed})
    return {"reread": moved, "failed": failed, "left": len(sessions) - moved - failed}


def _finish_reread(job: Job) -> None:
    found = Session.objects.filter(pk__in=job.params["sessions"]).values_list("user__user_id", flat=True)
    jobs.record_end(job, "job.reread", {"sessions": len(job.params["sessions"])}, users=found)


jobs.KINDS |= {
    PURGE: Handler(_run_purge, finish=_finish_purge),
    EXPORT: Handler(_run_export),
    REREAD: Handler(_run_reread, finish=_finish_reread),
}
