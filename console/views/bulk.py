"""Decisions about many memories. A few are changed immediately; more are previewed and changed by a job."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from django.contrib import messages
from django.http import HttpRequest, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts import tenants
from accounts.admin_base import actor_of
from accounts.audit import record
from console.access import CHANGE, DELETE, EXPORT, VIEW, next_address, page, render, require
from console.forms import ReasonForm
from console.queries import as_json
from console.signed_values import read_target, read_undo, sign_target, target_of, undo_address
from console.views.resources import DELETE_FILES
from core.errors import BadRequest
from operations import bulk as services
from operations import jobs, operator_jobs
from operations.bulk import AT_ONCE, Target
from store import browse
from store.models import Memory
from store.types import Position, StoredMemory

EXPORT_ROWS, SAMPLES = 500, 3
PURGE: Final = "memories.delete_tombstone"
REREAD: Final = "resources.change_resource"


@dataclass(frozen=True, slots=True)
class _Action:
    """An action on many memories.

    A preview is shown first for at least `preview_from` ticked rows and for selections by filter; None means never.
    """

    permission: str
    preview_from: int | None
    title: Promise
    hint: Promise
    icon_name: str = "retry"
    is_dangerous: bool = False


_ACTIONS: Final = {
    "delete": _Action(
        DELETE,
        AT_ONCE + 1,
        gettext_lazy("Move to trash"),
        gettext_lazy("You can restore them until they are purged. One undo restores all of them."),
        icon_name="trash",
    ),
    "restore": _Action(DELETE, None, gettext_lazy("Restore"), gettext_lazy("Agents can find them again.")),
    "categorize": _Action(CHANGE, None, gettext_lazy("Change category"), gettext_lazy("You can undo this.")),
    "export": _Action(
        EXPORT,
        AT_ONCE + 1,
        gettext_lazy("Export"),
        gettext_lazy("The file holds the full text of these memories. The audit trail records who exported them."),
        icon_name="download",
    ),
    "purge": _Action(
        PURGE,
        0,
        gettext_lazy("Purge"),
        gettext_lazy("The memories, their edits and their history are removed permanently. This cannot be undone."),
        icon_name="trash",
        is_dangerous=True,
    ),
    "reread": _Action(
        REREAD,
        0,
        gettext_lazy("Re-ingest"),
        gettext_lazy(
            "The engine receives the files and messages of the whole sessions again and creates new "
            "memories. Deletions and edits are kept. Memories without a source do not change."
        ),
    ),
}


_SUCCESS_MESSAGES: Final = {
    "delete": lambda count: ngettext("%(count)s memory moved to trash.", "%(count)s memories moved to trash.", count),
    "restore": lambda count: ngettext("%(count)s memory restored.", "%(count)s memories restored.", count),
    "categorize": lambda count: ngettext("%(count)s memory changed.", "%(count)s memories changed.", count),
}


@page(VIEW, "POST", reach="lists")
def bulk(request: HttpRequest) -> HttpResponseBase:
    verb, action = _action_of(request, request.POST)
    target = _reachable(target_of(request.POST))
    back = next_address(request, reverse("console:memories"))
    if verb == "categorize" and not request.POST.get("category"):
        messages.warning(request, _("Choose a category."))
        return redirect(back)
    if target.rows == ():
        messages.warning(request, _("No rows are selected. Select at least one."))
        return redirect(back)
    needs_preview = action.preview_from is not None and (target.rows is None or len(target.rows) >= action.preview_from)
    if needs_preview and not request.POST.get("confirmed"):
        return redirect(
            reverse("console:bulk-preview", query={"do": verb, "target": sign_target(target), "next": back})
        )
    return _export(request, target) if verb == "export" else _execute(request, verb, target, back)


def _reachable(target: Target) -> Target:
    """Return the target without rows and users that the operator may not see."""
    if tenants.current() is None:
        return target
    rows = target.rows
    if rows is not None:
        known = set(tenants.reachable(Memory.objects.filter(pk__in=rows)).values_list("pk", flat=True))
        rows = tuple(row for row in rows if row in known)
    return replace(target, selection=replace(target.selection, tenants=tenants.current()), rows=rows)


def _action_of(request: HttpRequest, given: QueryDict) -> tuple[str, _Action]:
    """Return the action that a form names, and check the permission for it. Raises: `BadRequest`, `Forbidden`."""
    verb = given.get("do", "")
    action = _ACTIONS.get(verb)
    if action is None:
        raise BadRequest(_("This action is not available for several memories at once."))
    require(request, action.permission)
    return verb, action


@page(VIEW, "POST", reach="lists")
def undo(request: HttpRequest) -> HttpResponseBase:
    """Undo a decision that was made without a job."""
    kind, changes = read_undo(request.GET.get("changes", ""))
    require(request, undo_permission(kind))
    actor = actor_of(request)
    if not services.undo(kind, changes, decided_by=actor, actor=actor):
        messages.warning(request, _("Nothing was undone: a later change is kept."))
        return redirect(next_address(request, reverse("console:memories")))
    return _undone(request)


@page(VIEW, "POST", reach="job")
def undo_job(request: HttpRequest, job: str) -> HttpResponseBase:
    found = jobs.get(job)
    require(request, undo_permission(found.kind))
    is_large = found.done > AT_ONCE
    undoing_job = jobs.undo(job, actor=actor_of(request), is_for_worker=is_large)
    if is_large:
        return redirect("console:job", job=undoing_job.pk)
    jobs.run_now(undoing_job)
    return _undone(request)


def undo_permission(kind: str) -> str:
    """Return the permission to undo a decision, which is the permission to make it."""
    return {"categorize": CHANGE, "delete_resource": DELETE_FILES}.get(kind, DELETE)


def _undone(request: HttpRequest) -> HttpResponseBase:
    messages.success(request, _("Undone. Later changes are kept."))
    return redirect(next_address(request, reverse("console:memories")))


@page(VIEW, reach="lists")
def preview(request: HttpRequest) -> HttpResponseBase:
    """Show the numbers of memories, by category, that an action would change."""
    verb, action = _action_of(request, request.GET)
    if action.preview_from is None:
        raise BadRequest(_("The selection is not valid. Select the rows in the list again."))
    target = read_target(request.GET.get("target", ""))
    target = _reachable(target)
    found, samples = services.preview(target), _samples(target)
    detail = {"do": verb, "filter": target.selection.as_record(), "count": found.total}
    users = {memory.owner.user_id for memory in samples}
    record(actor_of(request), "memory.preview", users=users, detail=detail)
    count = found.sessions if verb == "reread" else found.total
    title, button = {
        "delete": (
            ngettext("Move %(count)s memory to trash?", "Move %(count)s memories to trash?", count),
            ngettext("Move %(count)s to trash", "Move %(count)s to trash", count),
        ),
        "purge": (
            ngettext("Purge %(count)s memory?", "Purge %(count)s memories?", count),
            ngettext("Purge %(count)s", "Purge %(count)s", count),
        ),
        "export": (ngettext("Export %(count)s memory?", "Export %(count)s memories?", count), _("Export")),
        "reread": (ngettext("Re-ingest %(count)s session?", "Re-ingest %(count)s sessions?", count), _("Re-ingest")),
    }[verb]
    context: dict[str, Any] = {
        "title": title % {"count": f"{count:,}"},
        "verb": verb,
        "action": action,
        "button": button % {"count": f"{count:,}"},
        "preview": found,
        "reason": ReasonForm()["reason"],
        "samples": samples,
        "rows": [(name, number, number / found.total) for name, number in found.by_category.items()],
        "target": sign_target(target),
        "next": next_address(request, reverse("console:memories")),
    }
    return render(request, "console/bulk.html", context)


def _samples(target: Target) -> list[StoredMemory]:
    keys = browse.keys(target.selection, after=None, limit=SAMPLES, up_to_row=target.up_to_row, rows=target.rows)
    return browse.get_many([key.row for key in keys])


def _export(request: HttpRequest, target: Target) -> HttpResponseBase:
    """Send the selected memories as JSON lines, oldest first; the audit trail gets one event for all of them."""
    selected = services.selected(target)
    users = list(selected.order_by().values_list("user__user_id", flat=True).distinct())
    detail = {"filter": target.selection.as_record(), "rows": selected.count()}
    user_id = users[0] if len(users) == 1 else ""
    record(actor_of(request), "memory.export", user_id=user_id, users=users, detail=detail)
    headers = {"Content-Disposition": 'attachment; filename="memories.jsonl"'}
    return StreamingHttpResponse(_lines(target), content_type="application/x-ndjson", headers=headers)


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
            yield orjson.dumps(as_json(memory), option=orjson.OPT_APPEND_NEWLINE)


def _execute(request: HttpRequest, verb: str, target: Target, back: str) -> HttpResponseBase:
    """Change a few ticked rows immediately, and more by a job."""
    actor = actor_of(request)
    params = {"category": request.POST.get("category", "")} if verb == "categorize" else {}
    form = ReasonForm(request.POST)
    if verb == "delete" and form.is_valid():
        params["reason"] = form.cleaned_data["reason"]
    if verb in _SUCCESS_MESSAGES and target.rows is not None and len(target.rows) <= AT_ONCE:
        changes = services.decide(verb, target.rows, params, actor=actor)
        count = len(changes)
        undo_url = undo_address(verb, changes)
    else:
        if verb == "purge":
            job = operator_jobs.purge_memories(target, actor=actor)
        elif verb == "reread":
            job = operator_jobs.reread(target, actor=actor)
        else:
            job = services.start(verb, target, params, actor=actor)
        if not job.is_over:
            return redirect(reverse("console:job", args=[job.pk], query={"next": back}))
        count = job.result.get("changed", 0)
        undo_url = reverse("console:job-undo", args=[job.pk]) if jobs.can_undo(job) else ""
    if verb == "restore" and target.rows is not None and (left := len(set(target.rows)) - count) > 0:
        message = ngettext(
            "%(count)s memory stays in the trash. If it has expired, restore it on its page with a new time.",
            "%(count)s memories stay in the trash. Restore those that have expired on their pages, with a new time.",
            left,
        )
        messages.warning(request, message % {"count": f"{left:,}"})
    messages.success(request, _SUCCESS_MESSAGES[verb](count) % {"count": f"{count:,}"}, extra_tags=undo_url)
    return redirect(back)
