"""One decision about many memories: a few are done at once, more are previewed first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from django.contrib import messages
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from accounts.admin_base import actor_of
from accounts.audit import Actor, record
from console.access import CHANGE, DELETE, VIEW, next_address, page, render
from console.forms import ReasonForm
from console.records import record_of
from console.selecting import seal, seal_undo, target_of, unseal_undo
from core.errors import BadRequest
from core.rest import Forbidden
from operations import bulk as services
from operations import jobs, operator_jobs, worker
from operations.bulk import AT_ONCE, Preview, Target
from operations.models import Job
from store import browse, categories
from store.types import Position

EXPORT_ROWS = 500
PURGE: Final = "memories.delete_tombstone"
REREAD: Final = "resources.change_resource"


@dataclass(frozen=True, slots=True)
class _Action:
    """`asks_from`: from how many ticked rows on it is previewed; a filter's rows are always many. None: never."""

    permission: str
    asks_from: int | None
    title: Promise
    hint: Promise
    is_dangerous: bool = False


_ACTIONS: Final = {
    "delete": _Action(
        DELETE,
        AT_ONCE + 1,
        gettext_lazy("Move to trash"),
        gettext_lazy("They can be restored until the trash is purged. One undo brings all of them back."),
        is_dangerous=True,
    ),
    "restore": _Action(DELETE, None, gettext_lazy("Restore"), gettext_lazy("Agents find them again.")),
    "categorise": _Action(CHANGE, None, gettext_lazy("Change category"), gettext_lazy("One undo takes it back.")),
    "purge": _Action(
        PURGE,
        0,
        gettext_lazy("Purge"),
        gettext_lazy("They go for good, with their edits and their history. There is no undo."),
        is_dangerous=True,
    ),
    "reread": _Action(
        REREAD,
        0,
        gettext_lazy("Read anew"),
        gettext_lazy(
            "The engine gets the files and messages of their whole sessions again and makes new memories of them; "
            "what was deleted or edited stays so. What has no source to be read from stays as it is."
        ),
    ),
}


_DONE: Final = {
    "delete": lambda count: ngettext("%(count)s memory moved to trash.", "%(count)s memories moved to trash.", count),
    "restore": lambda count: ngettext("%(count)s memory restored.", "%(count)s memories restored.", count),
    "categorise": lambda count: ngettext("%(count)s memory changed.", "%(count)s memories changed.", count),
}


@page(VIEW)
@require_POST
def bulk(request: HttpRequest) -> HttpResponseBase:
    verb = request.POST.get("do", "")
    if verb == "export":
        return _export(request, target_of(request.POST))
    action = _ACTIONS.get(verb)
    if action is None:
        raise BadRequest("This is nothing that can be done with many memories.")
    _require(request, action.permission)
    target = target_of(request.POST)
    back = next_address(request, reverse("console:memories"))
    if verb == "categorise" and not request.POST.get("category"):
        messages.warning(request, _("Choose a category."))
        return redirect(back)
    if target.rows == ():
        messages.warning(request, _("Nothing was selected."))
        return redirect(back)
    if _must_ask(action, target) and not request.POST.get("confirmed"):
        return _ask(request, verb, target, back)
    return _carry_out(request, verb, target, back)


@page(VIEW)
@require_POST
def undo(request: HttpRequest) -> HttpResponseBase:
    """Undo a decision that was made at once."""
    kind, changes = unseal_undo(request.GET.get("changes", ""))
    _require(request, undoing(kind))
    actor = actor_of(request)
    services.undo(kind, changes, decided_by=actor, actor=actor)
    return _undone(request)


@page(VIEW)
@require_POST
def undo_job(request: HttpRequest, job: str) -> HttpResponseBase:
    _require(request, undoing(jobs.get(job).kind))
    done = jobs.undo(job, actor=actor_of(request))
    if done.total > AT_ONCE:
        worker.wake()
        return redirect("console:job", job=done.pk)
    jobs.run_now(done)
    return _undone(request)


def undoing(kind: str) -> str:
    """Return the permission to undo a decision: the same as to make it."""
    return CHANGE if kind == "categorise" else DELETE


def _undone(request: HttpRequest) -> HttpResponseBase:
    messages.success(request, _("Undone. What was changed by others since then stays as they left it."))
    return redirect(next_address(request, reverse("console:memories")))


def _require(request: HttpRequest, permission: str) -> None:
    if not request.user.has_perm(permission):
        raise Forbidden(f"This needs the permission {permission}.")


def _must_ask(action: _Action, target: Target) -> bool:
    return action.asks_from is not None and (target.rows is None or len(target.rows) >= action.asks_from)


def _ask(request: HttpRequest, verb: str, target: Target, back: str) -> HttpResponseBase:
    """What would be done to how many, before anything is."""
    found = services.preview(target)
    context: dict[str, Any] = {
        "title": _question(verb, found),
        "verb": verb,
        "action": _ACTIONS[verb],
        "button": _button(verb, found.total),
        "shown": found,
        "rows": _by_category(found),
        "target": seal(target),
        "next": back,
    }
    return render(request, "console/bulk.html", context)


def _question(verb: str, found: Preview) -> str:
    count = found.total
    said = {
        "delete": ngettext("Move %(count)s memory to trash?", "Move %(count)s memories to trash?", count),
        "purge": ngettext("Purge %(count)s memory for good?", "Purge %(count)s memories for good?", count),
        "reread": ngettext("Read %(count)s session anew?", "Read %(count)s sessions anew?", found.sessions),
    }
    return said[verb] % {"count": f"{found.sessions if verb == 'reread' else count:,}"}


def _button(verb: str, count: int) -> str:
    said = {
        "delete": ngettext("Move %(count)s to trash", "Move %(count)s to trash", count),
        "purge": ngettext("Purge %(count)s", "Purge %(count)s", count),
        "reread": _("Read anew"),
    }
    return said[verb] % {"count": f"{count:,}"}


def _by_category(found: Preview) -> list[dict[str, Any]]:
    return [
        {
            "label": categories.label(name) if categories.tab_of(name) else name,
            "kind": categories.tab_of(name),
            "count": count,
            "share": count / found.total,
        }
        for name, count in found.by_category.items()
    ]


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


def _carry_out(request: HttpRequest, verb: str, target: Target, back: str) -> HttpResponseBase:
    """Decide about a few ticked rows at once, and about more by a job."""
    params = {"category": request.POST.get("category", "")} if verb == "categorise" else {}
    form = ReasonForm(request.POST)
    if verb == "delete" and form.is_valid():
        params["reason"] = form.cleaned_data["reason"]
    if verb in _DONE and target.rows is not None and len(target.rows) <= AT_ONCE:
        changes = services.decide(verb, target.rows, params, actor=actor_of(request))
        count = len(changes)
        undo_url = f"{reverse('console:undo')}?{urlencode({'changes': seal_undo(verb, changes)})}" if changes else ""
    else:
        job = _start(verb, target, params, actor_of(request))
        if not job.is_over:
            worker.wake()
            return redirect("console:job", job=job.pk)
        count = job.result.get("changed", 0)
        undo_url = reverse("console:job-undo", args=[job.pk]) if jobs.can_undo(job) else ""
    messages.success(request, _DONE[verb](count) % {"count": f"{count:,}"}, extra_tags=undo_url)
    return redirect(back)


def _start(verb: str, target: Target, params: Mapping[str, Any], actor: Actor) -> Job:
    if verb == "purge":
        return operator_jobs.empty(target, actor=actor)
    if verb == "reread":
        return operator_jobs.reread(target, actor=actor)
    return services.start(verb, target, params, actor=actor)
