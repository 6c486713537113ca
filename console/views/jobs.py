"""What takes long: how far it is, what became of it, its one undo; and all that was asked for lately."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_GET, require_POST

from accounts.admin_base import actor_of
from accounts.audit import record
from accounts.models import MemoryUser
from console import keyset
from console.access import CHANGE, DELETE, VIEW, page, render
from console.lists import JobsState
from console.scope import in_words
from console.views.bulk import PURGE, REREAD, undoing
from core.rest import Forbidden
from operations import jobs, operator_jobs, reingest
from operations.models import Job

ROWS: Final = 50
EXPORT: Final = "accounts.export_memoryuser"
KINDS: Final = {
    "delete": gettext_lazy("Move memories to trash"),
    "restore": gettext_lazy("Restore memories"),
    "categorise": gettext_lazy("Change the category of memories"),
    operator_jobs.PURGE: gettext_lazy("Purge the trash"),
    operator_jobs.EXPORT: gettext_lazy("Export a user"),
    operator_jobs.REREAD: gettext_lazy("Read sessions anew"),
    reingest.KIND: gettext_lazy("Move sessions to another engine"),
    jobs.UNDO: gettext_lazy("Undo"),
}
STATES: Final = {
    "queued": gettext_lazy("waiting"),
    "running": gettext_lazy("running"),
    "done": gettext_lazy("done"),
    "failed": gettext_lazy("failed"),
    "stopped": gettext_lazy("stopped"),
}
_RESULTS: Final = {
    "changed": gettext_lazy("Changed"),
    "purged": gettext_lazy("Purged"),
    "undone": gettext_lazy("Undone"),
    "reread": gettext_lazy("Read anew"),
    "failed": gettext_lazy("Failed"),
    "left": gettext_lazy("Left as they were"),
    "rows": gettext_lazy("Rows"),
    "files": gettext_lazy("Files"),
    "missing": gettext_lazy("Files that were missing"),
    "bytes": gettext_lazy("Bytes"),
    "sessions": pgettext_lazy("how many", "Sessions"),
    "messages": gettext_lazy("Messages told again"),
    "made": gettext_lazy("Memories made"),
    "replaced": gettext_lazy("Memories replaced"),
    "unmatched": gettext_lazy("Decisions that matched nothing new"),
    "failures": gettext_lazy("Sessions that stayed where they were"),
}
_STOPPING: Final = {
    "delete": DELETE,
    "restore": DELETE,
    "categorise": CHANGE,
    operator_jobs.PURGE: PURGE,
    operator_jobs.REREAD: REREAD,
}


@page(VIEW)
@require_GET
def all_jobs(request: HttpRequest) -> HttpResponseBase:
    state = JobsState.read(reverse("console:jobs"), request.GET)
    found = keyset.newest_first(Job.objects.all(), state, time="created_at", limit=ROWS)
    context: dict[str, Any] = {
        "title": _("Jobs"),
        "state": state,
        "rows": found.rows,
        "kinds": KINDS,
        "states": STATES,
        "problems": state.problems,
        **state.neighbours(found),
    }
    return render(request, "console/jobs.html", context)


@page(VIEW)
@require_GET
def job(request: HttpRequest, job: str) -> HttpResponseBase:
    """With `part=1` only how far it is; once it is over the whole page is asked for again."""
    found = jobs.get(job)
    is_part = request.GET.get("part") == "1"
    context = {"title": KINDS.get(found.kind, found.kind), "job": found, **_progress(request, found)}
    if is_part and not found.is_over:
        return render(request, "console/parts/progress.html", context)
    answer = render(request, "console/job.html", {**context, **_outcome(request, found)})
    if is_part:
        answer["HX-Refresh"] = "true"
    return answer


@page(VIEW)
@require_POST
def stop(request: HttpRequest, job: str) -> HttpResponseBase:
    found = jobs.get(job)
    needed = _stopping(found)
    if not needed or not request.user.has_perm(needed):
        raise Forbidden(f"This needs the permission {needed}." if needed else "This cannot be stopped.")
    jobs.stop(job)
    record(actor_of(request), "job.stop", subject_type="job", subject_id=str(found.pk))
    messages.info(request, _("It ends after the step under way. What was done so far stays."))
    return redirect("console:job", job=found.pk)


@page(EXPORT)
@require_GET
def download(request: HttpRequest, job: str) -> HttpResponseBase:
    """The archive that an export wrote."""
    found = jobs.get(job)
    path = operator_jobs.archive_of(found)
    user_id = MemoryUser.objects.filter(pk=found.params["user_pk"]).values_list("user_id", flat=True).first() or ""
    record(actor_of(request), "archive.download", subject_type="job", subject_id=str(found.pk), user_id=user_id)
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store"}
    return FileResponse(
        path.open("rb"),
        as_attachment=True,
        filename=f"export-{user_id or found.pk}.tar",
        content_type="application/x-tar",
        headers=headers,
    )


def _progress(request: HttpRequest, found: Job) -> dict[str, Any]:
    needed = "" if found.is_over else _stopping(found)
    return {
        "state_label": STATES[found.status],
        "seconds_left": _seconds_left(found),
        "can_stop": bool(needed) and request.user.has_perm(needed) and not found.stop_asked_at,
    }


def _stopping(found: Job) -> str:
    """Whoever may begin it may end it: the permission, empty for what nobody ends."""
    return undoing(jobs.get(found.params["job"]).kind) if found.kind == jobs.UNDO else _STOPPING.get(found.kind, "")


def _seconds_left(found: Job) -> int | None:
    """At the pace so far; None where there is nothing to reckon from."""
    if found.started_at is None or not 0 < found.done < found.total:
        return None
    passed = (timezone.now() - found.started_at).total_seconds()
    return max(1, round(passed * (found.total - found.done) / found.done))


def _outcome(request: HttpRequest, found: Job) -> dict[str, Any]:
    target = found.params.get("target", {})
    of = found.params.get("job")
    return {
        "results": [(label, found.result[name]) for name, label in _RESULTS.items() if found.result.get(name)],
        "filter": in_words(target.get("selection", {})),
        "ticked": len(target["rows"]) if "rows" in target else None,
        "reason": found.params.get("reason", ""),
        "category": found.params.get("category", ""),
        "undoes": of,
        "can_undo": jobs.can_undo(found) and request.user.has_perm(undoing(found.kind)),
        "has_archive": found.kind == operator_jobs.EXPORT
        and found.status == Job.Status.DONE
        and request.user.has_perm(EXPORT),
    }
