"""One decision about many memories: a few are done at once, more are previewed first."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from django.contrib import messages
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from accounts.admin_base import actor_of
from accounts.audit import record
from console.access import CHANGE, DELETE, VIEW, page, render
from console.records import record_of
from console.selecting import seal, target_of
from console.views.memory import next_address
from engine import browse, categories
from engine.port import Position
from lifecycle import bulk as services
from lifecycle import jobs
from lifecycle.bulk import Target
from lifecycle.models import Job
from memory_gateway.core.errors import BadRequest
from memory_gateway.core.rest import Forbidden

EXPORT_ROWS = 500
_PERMISSIONS = {"delete": DELETE, "restore": DELETE, "categorise": CHANGE}


@page(VIEW)
@require_POST
def bulk(request: HttpRequest) -> HttpResponseBase:
    verb = request.POST.get("do", "")
    if verb == "export":
        return _export(request, target_of(request.POST))
    if verb not in _PERMISSIONS:
        raise BadRequest("This is nothing that can be done with many memories.")
    if not request.user.has_perm(_PERMISSIONS[verb]):
        raise Forbidden(f"This needs the permission {_PERMISSIONS[verb]}.")
    target = target_of(request.POST)
    if target.rows == ():
        messages.warning(request, _("Nothing was selected."))
    elif verb == "delete" and _is_large(target) and not request.POST.get("confirmed"):
        return _preview(request, target)
    else:
        _tell(request, verb, _act(request, verb, target))
    return redirect(next_address(request, reverse("console:memories")))


@page(DELETE)
@require_POST
def undo(request: HttpRequest, job: str) -> HttpResponseBase:
    done = jobs.undo(job, actor=actor_of(request))
    if done.total <= services.AT_ONCE:
        done = jobs.run_now(done)
    messages.success(request, _("Undone. What was changed by others since then stays as they left it."))
    return redirect(next_address(request, reverse("console:memories")))


def _is_large(target: Target) -> bool:
    """A few rows that somebody ticked one by one are known; what a filter finds is looked at first."""
    return target.rows is None or len(target.rows) > services.AT_ONCE


def _preview(request: HttpRequest, target: Target) -> HttpResponseBase:
    shown = services.preview(target)
    context = {
        "title": ngettext("Move %(count)s memory to trash?", "Move %(count)s memories to trash?", shown.total)
        % {"count": f"{shown.total:,}"},
        "shown": shown,
        "rows": [
            {
                "label": categories.label(name),
                "kind": categories.tab_of(name),
                "count": count,
                "share": count / shown.total,
            }
            for name, count in shown.by_category.items()
        ],
        "target": seal(target),
        "next": next_address(request, reverse("console:memories")),
    }
    return render(request, "console/bulk.html", context)


def _export(request: HttpRequest, target: Target) -> HttpResponseBase:
    """The selected memories as JSON lines, oldest first; one line in the trail for all of them."""
    detail = {"filter": target.selection.as_json(), "rows": None if target.rows is None else len(target.rows)}
    record(actor_of(request), "memory.export", subject_type="memory", subject_id="", detail=detail)
    named = {"Content-Disposition": 'attachment; filename="memories.jsonl"'}
    return StreamingHttpResponse(_lines(target), content_type="application/x-ndjson", headers=named)


def _lines(target: Target) -> Iterator[bytes]:
    keys: list[Position] = []
    while keys := browse.keys(
        target.selection,
        after=keys[-1] if keys else None,
        limit=EXPORT_ROWS,
        up_to_row=target.up_to_row,
        rows=target.rows,
    ):
        for memory in browse.get_many([key.row for key in keys]):
            yield orjson.dumps(record_of(memory), option=orjson.OPT_APPEND_NEWLINE)


def _act(request: HttpRequest, verb: str, target: Target) -> Job:
    actor = actor_of(request)
    if verb == "categorise":
        return services.categorise(target, category=request.POST.get("category", ""), actor=actor)
    if verb == "restore":
        return services.restore(target, actor=actor)
    return services.delete(target, reason=request.POST.get("reason", "")[:200], actor=actor)


def _tell(request: HttpRequest, verb: str, job: Job) -> None:
    """What was done, with its undo; of a large one, that it is under way."""
    if not job.is_over:
        messages.info(request, _("%(count)s memories are being worked on.") % {"count": f"{job.total:,}"})
        return
    count = job.result.get("changed", 0)
    named = {
        "delete": ngettext("%(count)s memory moved to trash.", "%(count)s memories moved to trash.", count),
        "restore": ngettext("%(count)s memory restored.", "%(count)s memories restored.", count),
        "categorise": ngettext("%(count)s memory changed.", "%(count)s memories changed.", count),
    }
    undo_url = reverse("console:job-undo", args=[job.pk]) if jobs.can_undo(job) else ""
    messages.success(request, named[verb] % {"count": f"{count:,}"}, extra_tags=undo_url)
