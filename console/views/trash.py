"""The trash: memories and sessions that can come back until they are purged, and what was deleted lately."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext
from django.views.decorators.http import require_GET, require_POST

from accounts.admin_base import actor_of
from console import counts, keyset, queries, reads
from console.access import DELETE, VIEW, next_address, page, render
from console.filters import parse_position, write_position
from console.hidden import whys
from console.lists import SessionTrashState, TrashState
from console.selecting import seal
from console.state import plain
from console.text import shown
from console.views.bulk import PURGE
from core.errors import BadRequest
from core.rest import Forbidden
from memories.models import Tombstone
from memories.services.decisions import restore_sessions
from operations import bulk, jobs, operator_jobs, purge, worker
from operations.models import Job
from store import browse
from store.browse import BrowsePage, Selection
from store.models import Session
from store.types import Owner, StoredMemory

ROWS: Final = 50
RECENT: Final = 5
MAX_COUNTED: Final = 5_000


@page(VIEW)
@require_GET
def trash(request: HttpRequest) -> HttpResponseBase:
    address = reverse("console:trash")
    is_of_sessions = request.GET.get("kind") == "sessions"
    state: TrashState | SessionTrashState = (
        SessionTrashState.read(address, request.GET) if is_of_sessions else TrashState.read(address, request.GET)
    )
    user_pk = queries.user_pk(state.user) if state.user else None
    problems = list(state.problems)
    retention = purge.retention()
    context: dict[str, Any] = {
        "title": _("Trash"),
        "state": state,
        "days": retention.days if retention else None,
        "tabs": _tabs(state),
    }
    if state.user and user_pk is None:
        problems.append(_("There is no user %(user)s.") % {"user": state.user})
    elif isinstance(state, SessionTrashState):
        context |= _sessions(state, user_pk, retention)
    elif state.kind == "aside":
        context |= _set_aside(state, Selection(user_pk=user_pk, in_trash=True, hidden_by="gateway"))
    else:
        context |= _memories(state, Selection(user_pk=user_pk, in_trash=True, hidden_by="user"), retention)
    reads.listed(request, "memory.trash", state, context.pop("users", ()))
    recent = [] if state.after or state.before or state.user else _recent()
    return render(request, "console/trash.html", {**context, "problems": problems, "recent": recent})


@page(DELETE)
@require_POST
def sessions(request: HttpRequest) -> HttpResponseBase:
    """Deleted sessions are restored, or purged after a preview."""
    found = list(_deleted_sessions().filter(pk__in=plain(request.POST.getlist("id")[:ROWS])))
    verb, back = request.POST.get("do", ""), next_address(request, f"{reverse('console:trash')}?kind=sessions")
    if not found:
        messages.warning(request, _("Nothing was selected."))
        return redirect(back)
    if verb == "restore":
        return _restore(request, found, back)
    if verb != "purge":
        raise BadRequest("This is nothing that can be done with deleted sessions.")
    if not request.user.has_perm(PURGE):
        raise Forbidden(f"This needs the permission {PURGE}.")
    if not request.POST.get("confirmed"):
        rows, numbers = _session_rows(found)
        context: dict[str, Any] = {"title": _("Purge these sessions for good?"), "found": found, "back": back}
        context["numbers"] = {pk: numbers.get(row, 0) for pk, row in rows.items()}
        context["total"] = sum(numbers.values())
        return render(request, "console/trash_sessions.html", context)
    job = operator_jobs.empty_sessions([one.pk for one in found], actor=actor_of(request))
    worker.wake()
    return redirect("console:job", job=job.pk)


def _memories(state: TrashState, selection: Selection, retention: timedelta | None) -> dict[str, Any]:
    found = _page(state, selection)
    deleted = _tombstones(found.memories)
    return {
        "rows": [
            {"item": shown(memory), "tombstone": deleted.get(memory.row), **_end(deleted.get(memory.row), retention)}
            for memory in found.memories
        ],
        "target": seal(bulk.freeze(selection)),
        **_around(state, selection, found),
    }


def _set_aside(state: TrashState, selection: Selection) -> dict[str, Any]:
    """What nobody deleted: it comes back with its source, or not at all."""
    found = _page(state, selection)
    why = whys(found.memories)
    return {
        "set_aside": [{"item": shown(memory), "why": why[memory.row]} for memory in found.memories],
        **_around(state, selection, found),
    }


def _page(state: TrashState, selection: Selection) -> BrowsePage:
    return browse.page(
        selection,
        after=parse_position(state.after) if state.after else None,
        before=parse_position(state.before) if state.before else None,
        limit=ROWS,
    )


def _around(state: TrashState, selection: Selection, found: BrowsePage) -> dict[str, Any]:
    total = browse.count(selection, at_most=MAX_COUNTED)
    return {
        "total": total,
        "written_total": f"{total:,}+" if total == MAX_COUNTED else f"{total:,}",
        "users": [memory.owner.user_id for memory in found.memories],
        "previous": state.first_page(before=write_position(found.newer)) if found.newer else "",
        "following": state.first_page(after=write_position(found.older)) if found.older else "",
    }


def _tombstones(memories: tuple[StoredMemory, ...]) -> dict[int | None, Tombstone]:
    found = Tombstone.objects.filter(row__in=[memory.row for memory in memories], undone_at__isnull=True)
    return {one.row_id: one for one in found}


def _sessions(state: SessionTrashState, user_pk: Any, retention: timedelta | None) -> dict[str, Any]:
    deleted = _deleted_sessions()
    if user_pk is not None:
        deleted = deleted.filter(user_id=user_pk)
    found = keyset.newest_first(deleted, state, time="created_at", limit=ROWS)
    rows, numbers = _session_rows(found.rows)
    return {
        "sessions": [
            {"tombstone": one, "count": numbers.get(rows.get(one.pk, 0), 0), **_end(one, retention)}
            for one in found.rows
        ],
        "total": deleted.count(),
        "users": [one.user.user_id for one in found.rows],
        **state.neighbours(found),
    }


def _deleted_sessions() -> QuerySet[Tombstone]:
    return purge.due(None).filter(memory_id="")


def _session_rows(found: list[Tombstone]) -> tuple[dict[str, int], dict[int, int]]:
    """The sessions of tombstones, and how many memories each holds: two statements."""
    wanted = {(one.user_id, one.app_id, one.project_id, one.session_id): one.pk for one in found}
    sessions = Session.objects.filter(session_id__in=[one.session_id for one in found]).values_list(
        "user_id", "app_id", "project_id", "session_id", "pk"
    )
    rows = {wanted[row[:4]]: row[4] for row in sessions if row[:4] in wanted}
    return rows, counts.held_by(rows.values())


def _end(tombstone: Tombstone | None, retention: timedelta | None) -> dict[str, Any]:
    """In how many days it is purged; None where the trash is kept for ever."""
    if tombstone is None or retention is None:
        return {"days_left": None}
    left: timedelta = tombstone.created_at + retention - timezone.now()
    days = max(0, -(-left // timedelta(days=1)))
    return {"days_left": days, "is_soon": days <= 3}


def _recent() -> list[dict[str, Any]]:
    """The last deletions of many that can still be undone, without those that nothing is left of."""
    found = Job.objects.filter(kind="delete", undone_at__isnull=True, done__gt=0, created_at__gt=_a_while_ago())
    latest = found.filter(status__in=["done", "stopped", "failed"]).order_by("-created_at")[:RECENT]
    return [
        {
            "job": job,
            "count": job.cursor.get("changed", 0),
            "filter": job.params["target"]["selection"] if "rows" not in job.params["target"] else {},
        }
        for job in latest
        if job.cursor.get("changed")
    ]


def _a_while_ago() -> datetime:
    return timezone.now() - jobs.KEPT


def _restore(request: HttpRequest, found: list[Tombstone], back: str) -> HttpResponseBase:
    named = [(Owner(one.user.pk, one.user.user_id, one.app_id, one.project_id), one.session_id) for one in found]
    restored = len(restore_sessions(named, actor=actor_of(request)))
    said = ngettext("%(count)s session restored.", "%(count)s sessions restored.", restored)
    messages.success(request, said % {"count": restored})
    return redirect(back)


def _tabs(state: TrashState | SessionTrashState) -> list[dict[str, Any]]:
    every = (
        (_("Memories"), TrashState(path=state.path, user=state.user)),
        (pgettext("list", "Sessions"), SessionTrashState(path=state.path, user=state.user)),
        (_("Set aside"), TrashState(path=state.path, user=state.user, kind="aside")),
    )
    return [{"label": label, "url": one.url(), "is_on": one.kind == state.kind} for label, one in every]
