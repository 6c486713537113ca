"""Files: the list, what failed, one file with the text that was read, another try, deleting for good."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.admin_base import actor_of
from accounts.audit import record
from console import counts, failures, keyset, reads
from console.access import VIEW, next_address, page, render
from console.filters import parse_position, write_position
from console.lists import FILE_TYPES, RESOURCE_STATES, ResourceState
from console.state import plain
from console.text import parts
from core.errors import NotFound
from operations import operator_jobs, worker
from resources import services
from resources.models import Resource
from store import browse
from store.browse import Selection
from store.models import Session
from store.types import StoredMemory

ROWS: Final = 50
PASSAGES: Final = 50
VIEW_FILES, CHANGE_FILES, DELETE_FILES = (f"resources.{verb}_resource" for verb in ("view", "change", "delete"))


@page(VIEW_FILES)
@require_GET
def resources(request: HttpRequest) -> HttpResponseBase:
    state = ResourceState.read(reverse("console:resources"), request.GET)
    found = keyset.newest_first(_selected(state), state, time="created_at", limit=ROWS)
    reads.listed(request, "resource.list", state, (row.user.user_id for row in found.rows), subject_type="resource")
    by_state = _counts(state)
    causes = failures.causes() if not state.q and not state.user else []
    context: dict[str, Any] = {
        "title": _("Resources"),
        "state": state,
        "rows": found.rows,
        "memories": _memory_counts(found.rows),
        "states": _state_links(state, by_state),
        "labels": RESOURCE_STATES,
        "types": FILE_TYPES,
        "chips": state.chips(),
        "problems": state.problems,
        "causes": causes,
        "rarer": failures.of_rarer(causes),
        "total": by_state.get(state.state, 0) if state.state else sum(by_state.values()),
        **state.neighbours(found),
    }
    return render(request, "console/resources.html", context)


@page(VIEW_FILES)
@require_GET
def resource(request: HttpRequest, resource_id: str) -> HttpResponseBase:
    found = _get(resource_id)
    place = request.GET.get("after", "")
    try:
        after = parse_position(place) if place else None
    except ValueError:
        after = None
    text = None
    if request.user.has_perm(VIEW):
        text = browse.page(_memories_of(found), after=after, limit=PASSAGES, oldest_first=True)
    _opened(request, "resource.view", found)
    memories: tuple[StoredMemory, ...] = text.memories if text else ()
    context: dict[str, Any] = {
        "title": found.filename or found.resource_id,
        "resource": found,
        "label": RESOURCE_STATES[found.status],
        "type": FILE_TYPES.get(found.content_type, found.content_type),
        "passages": [(memory, list(parts(memory.text))) for memory in memories],
        "more": write_position(text.newer) if text and text.newer else "",
        "is_start": after is None,
        "attachments": list(found.attachments.order_by("pk")[:50]),
        "count": _memory_counts([found]).get(found.pk, 0),
        "can_download": bool(found.storage_path) and found.deleted_at is None,
    }
    return render(request, "console/resource.html", context)


@page(VIEW_FILES)
@require_GET
def content(request: HttpRequest, resource_id: str) -> HttpResponseBase:
    """The file as it was uploaded: always to be kept, never to be shown by this site."""
    found = _get(resource_id)
    stored = services.content_of(found.user_id, resource_id)
    _opened(request, "resource.download", found)
    headers = {
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
    }
    return FileResponse(
        stored.file, as_attachment=True, filename=stored.filename, content_type=stored.mime_type, headers=headers
    )


@page(CHANGE_FILES)
@require_POST
def retry(request: HttpRequest) -> HttpResponseBase:
    """Failures are tried again: ticked ones, those of one cause, or all that wait. What was read is read anew."""
    chosen = plain(request.POST.getlist("id")[:ROWS])
    cause = request.POST.get("cause", "")
    failed = failures.waiting() if cause == "all" else failures.of_cause(cause)
    if chosen:
        failed = Resource.objects.filter(pk__in=chosen)
    count = services.retry(failed, actor=actor_of(request))
    job = _reread(request, chosen)
    worker.wake()
    if count or not job:
        said = ngettext("%(count)s file is tried again.", "%(count)s files are tried again.", count)
        messages.success(request, said % {"count": f"{count:,}"})
    return redirect("console:job", job=job) if job else redirect(next_address(request, reverse("console:resources")))


@page(DELETE_FILES)
@require_http_methods(["GET", "POST"])
def remove(request: HttpRequest, resource_id: str) -> HttpResponseBase:
    """For good, so it is asked first."""
    found = _get(resource_id)
    if found.deleted_at is not None:
        raise NotFound("This resource was deleted already.")
    if request.method == "POST":
        services.delete_as(found.user_id, found.user.user_id, resource_id, actor=actor_of(request))
        messages.success(request, _("Deleted for good, with what was read from it."))
        return redirect("console:resources")
    context = {"title": _("Delete this file for good?"), "resource": found}
    context["count"] = _memory_counts([found]).get(found.pk, 0)
    return render(request, "console/resource_delete.html", context)


def _selected(state: ResourceState) -> QuerySet[Resource]:
    rows = _narrowed(state)
    if state.state:
        return rows.filter(status=state.state)
    return rows if state.cause else rows.filter(deleted_at__isnull=True)


def _narrowed(state: ResourceState) -> QuerySet[Resource]:
    """All filters but the state."""
    rows = failures.of_cause(state.cause) if state.cause else Resource.objects.all()
    if state.q:
        rows = rows.filter(Q(filename__icontains=state.q) | Q(pk=state.q) | Q(user__user_id=state.q))
    if state.user:
        rows = rows.filter(user__user_id=state.user)
    if state.type:
        rows = rows.filter(content_type=state.type)
    return rows.select_related("user")


def _counts(state: ResourceState) -> dict[str, int]:
    return dict(_narrowed(state).order_by().values_list("status").annotate(number=Count("pk")))


def _state_links(state: ResourceState, numbers: dict[str, int]) -> list[dict[str, Any]]:
    live = sum(number for name, number in numbers.items() if name != Resource.Status.DELETED)
    every = [("", _("All"), live), *((name, label, numbers.get(name, 0)) for name, label in RESOURCE_STATES.items())]
    return [
        {
            "label": label,
            "count": count,
            "url": state.first_page(state=name, cause=""),
            "is_on": state.state == name,
            "is_bad": name == Resource.Status.FAILED and count,
        }
        for name, label, count in every
    ]


def _memory_counts(rows: list[Resource]) -> dict[str, int]:
    """How many live memories each file has, by resource id. One statement."""
    of_session = {(row.user_id, row.app_id, row.project_id, row.session_id): row.pk for row in rows}
    found = Session.objects.filter(session_id__in=[row.session_id for row in rows]).values_list(
        "user_id", "app_id", "project_id", "session_id", "pk"
    )
    sessions = {row[4]: of_session[row[:4]] for row in found if row[:4] in of_session}
    numbers = counts.of_sessions(sessions)
    return {row.pk: 0 for row in rows} | {resource_id: numbers.get(pk, 0) for pk, resource_id in sessions.items()}


def _memories_of(found: Resource) -> Selection:
    return Selection(
        user_pk=found.user_id, app_id=found.app_id, project_id=found.project_id, session_id=found.session_id
    )


def _get(resource_id: str) -> Resource:
    found = Resource.objects.select_related("user").filter(pk__in=plain([resource_id])).first()
    if found is None:
        raise NotFound("There is no such resource.")
    return found


def _opened(request: HttpRequest, action: str, found: Resource) -> None:
    record(actor_of(request), action, subject_type="resource", subject_id=found.pk, user_id=found.user.user_id)


def _reread(request: HttpRequest, chosen: list[str]) -> Any:
    """The job that reads the ticked files anew which were read already; None if there are none."""
    read = (Resource.Status.EXTRACTED, Resource.Status.EMPTY)
    named = Resource.objects.filter(pk__in=chosen, status__in=read)
    pairs = set(named.values_list("user_id", "session_id")) if chosen else set()
    if not pairs:
        return None
    sessions = Session.objects.filter(session_id__in=[session_id for _user, session_id in pairs])
    rows = [pk for pk, user, session_id in sessions.values_list("pk", "user_id", "session_id")
            if (user, session_id) in pairs]  # fmt: skip
    return operator_jobs.reread_sessions(rows, actor=actor_of(request)).pk if rows else None
