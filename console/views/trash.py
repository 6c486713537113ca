"""The trash: deleted memories, sessions and resources, which can be restored until they are purged."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from accounts import tenants
from accounts.admin_base import actor_of
from accounts.audit import record
from console import queries
from console.access import DELETE, VIEW, next_address, page, record_list, render, require
from console.filters import (
    FILE_TYPES,
    NO_WORDS,
    AutoHiddenFilters,
    ResourceTrashFilters,
    SessionTrashFilters,
    TrashFilters,
    TrashTabFilters,
)
from console.forms import unknown_user
from console.hidden import reasons_of, tombstones_of
from console.keyset import ROWS, newest_first
from console.signed_values import sign_target
from console.text import memory_item
from console.views.bulk import PURGE
from console.views.jobs import describe_selection
from console.views.memories import count_up_to, page_links
from console.views.resources import DELETE_FILES, VIEW_FILES
from console.word_search import search
from core.errors import BadRequest, Conflict, InvalidInput, NotFound
from core.localization import localized
from memories.models import Tombstone
from memories.services.decisions import restore_sessions
from operations import bulk, jobs, operator_jobs
from operations.cleanup import purge
from operations.models import Job
from resources import services
from resources.models import Resource
from store import browse
from store.models import Memory, State

RECENT: Final = 5
MAX_COUNTED: Final = 5_000
_FILTERS: Final[dict[str, type[TrashTabFilters]]] = {
    "sessions": SessionTrashFilters,
    "resources": ResourceTrashFilters,
    "auto-hidden": AutoHiddenFilters,
}
# The title and the button of the preview of a purge.
_PREVIEWS: Final[dict[str, tuple[Promise, Callable[[int], str]]]] = {
    "sessions": (
        gettext_lazy("Purge these sessions?"),
        lambda count: ngettext("Purge %(count)s session", "Purge %(count)s sessions", count),
    ),
    "resources": (
        gettext_lazy("Purge these resources?"),
        lambda count: ngettext("Purge %(count)s resource", "Purge %(count)s resources", count),
    ),
}


@page(VIEW, reach="lists")
def trash(request: HttpRequest) -> HttpResponseBase:
    kind = _FILTERS.get(request.GET.get("kind", ""), TrashFilters)
    filters = kind(reverse("console:trash"), request.GET)
    may = request.user.has_perm
    may_restore = may(DELETE_FILES if kind is ResourceTrashFilters else DELETE)
    if kind is ResourceTrashFilters:
        require(request, VIEW_FILES)
    user_id = filters.data["user"]
    user_pk = queries.user_pk(user_id)
    retention = purge.retention()
    context: dict[str, Any] = {
        "title": _("Trash"),
        "filters": filters,
        "days": retention.days if retention else None,
        "tabs": _tabs(filters, may_view_files=may(VIEW_FILES)),
        "may_restore": may_restore,
        "may_purge": may(PURGE) and (may_restore or kind is TrashFilters),
    }
    if user_id and user_pk is None:
        filters.problems.append(unknown_user(user_id))
    elif isinstance(filters, ResourceTrashFilters):
        context |= _page(_deleted_resources(), filters, user_pk, retention, text="filename", time="state_since")
    elif isinstance(filters, SessionTrashFilters):
        sessions = _deleted_sessions().filter(filters.deletions())
        context |= _page(sessions, filters, user_pk, retention, text="session_id", time="created_at")
    else:
        context |= _memories(filters, user_pk, retention)
    recent = _recent() if filters.is_empty and tenants.current() is None else []
    named = queries.users_by_key(one["user_pk"] for one in recent)
    record_list(request, "trash.view", filters, [*context.pop("users", ()), *named], subject_type="memory")
    return render(request, "console/trash.html", {**context, "recent": recent})


@page(DELETE, "POST", reach="lists")
def sessions(request: HttpRequest) -> HttpResponseBase:
    """Restore deleted sessions, or purge them after a preview."""
    return _restore_or_purge(
        request,
        "sessions",
        _deleted_sessions(),
        restore=_restore_sessions,
        start_purge=operator_jobs.purge_sessions,
    )


@page(DELETE_FILES, "POST", reach="lists")
def resources(request: HttpRequest) -> HttpResponseBase:
    """Restore deleted resources, or purge them after a preview."""
    return _restore_or_purge(
        request,
        "resources",
        _deleted_resources(),
        restore=_restore_resources,
        start_purge=operator_jobs.purge_resources,
    )


def _restore_or_purge(
    request: HttpRequest,
    kind: str,
    deleted: QuerySet[Any],
    *,
    restore: Callable[[HttpRequest, list[Any]], None],
    start_purge: Callable[..., Job],
) -> HttpResponseBase:
    verb = request.POST.get("do", "")
    found = list(deleted.filter(pk__in=queries.without_nul(request.POST.getlist("id")[:ROWS])))
    back = next_address(request, reverse("console:trash", query={"kind": kind}))
    if not found:
        messages.warning(request, _("No rows are selected. Select at least one."))
        return redirect(back)
    if verb == "restore":
        restore(request, found)
        return redirect(back)
    if verb != "purge":
        raise BadRequest(_("This action is not available for deleted items."))
    require(request, PURGE)
    if not request.POST.get("confirmed"):
        users = {one.user.user_id for one in found}
        record(actor_of(request), "trash.view", subject_type="memory", users=users, detail={"purge": kind})
        title, button = _PREVIEWS[kind]
        context = {
            "title": title,
            "found": found,
            "numbers": _memory_counts(found),
            "button": button(len(found)) % {"count": len(found)},
            "back": back,
        }
        return render(request, f"console/trash_{kind}.html", context)
    return redirect("console:job", job=start_purge([one.pk for one in found], actor=actor_of(request)).pk)


def _restore_sessions(request: HttpRequest, found: Sequence[Tombstone]) -> None:
    sessions = [(one.owner, one.session_id) for one in found]
    restored = len(restore_sessions(sessions, actor=actor_of(request)))
    message = ngettext("%(count)s session restored.", "%(count)s sessions restored.", restored)
    messages.success(request, message % {"count": restored})
    if restored < len(sessions):
        messages.warning(
            request,
            _(
                "Sessions of resources in the trash were not restored: restore the resources. Nor were those that have "
                "expired: the user restores them with a new time."
            ),
        )


def _restore_resources(request: HttpRequest, found: Sequence[Resource]) -> None:
    """Restore resources, and show the refusals of those that cannot be restored."""
    restored = 0
    for one in found:
        try:
            services.restore_as(one.user_id, one.user.user_id, one.pk, actor=actor_of(request))
            restored += 1
        except (Conflict, NotFound) as error:
            messages.error(request, f"{one.filename}: {localized(error.detail)}")
        except InvalidInput:
            text = _("%(name)s has expired: the user restores it with a new time.")
            messages.error(request, text % {"name": one.filename})
    if restored:
        message = ngettext("%(count)s resource restored.", "%(count)s resources restored.", restored)
        messages.success(request, message % {"count": restored})


def _page(
    deleted: QuerySet[Any],
    filters: TrashTabFilters,
    user_pk: UUID | None,
    retention: timedelta | None,
    *,
    text: str,
    time: str,
) -> dict[str, Any]:
    """Return a page of deleted sessions or resources. `text` and `time` are the columns to compare with the filters."""
    values = filters.cleaned_data
    conditions = {
        "user_id": user_pk,
        f"{text}__icontains": values["q"],
        f"{time}__gte": values["since"],
        f"{time}__lt": values["until"],
    }
    deleted = queries.narrowed(deleted, **conditions)
    found = newest_first(deleted, filters, time=time)
    numbers = _memory_counts(found.rows)
    return {
        **found._asdict(),
        "rows": [
            {"deleted": one, "count": numbers[one.pk], **_days_left(getattr(one, time), retention)}
            for one in found.rows
        ],
        "types": FILE_TYPES,
        "total": deleted.count(),
        "users": [one.user.user_id for one in found.rows],
    }


def _deleted_resources() -> QuerySet[Resource]:
    return tenants.reachable(Resource.objects.filter(state=State.TRASHED).select_related("user"))


def _memories(filters: TrashTabFilters, user_pk: UUID | None, retention: timedelta | None) -> dict[str, Any]:
    """Return deleted memories, or those hidden by the gateway, which can only be restored with their source."""
    selection, values = filters.selection(user_pk), filters.cleaned_data
    if values["q"] and not selection.words:
        filters.problems.append(str(NO_WORDS))
        return {}
    wanted = filters.deletions() if isinstance(filters, TrashFilters) else Q()
    among = Tombstone.objects.filter(wanted, undone_at__isnull=True).values("row") if wanted else None
    if selection.words:
        selection = search(values["q"], selection).of_tab(selection)
    found = browse.page(selection, after=values["after"], before=values["before"], limit=ROWS, among=among)
    total, written = count_up_to(selection, MAX_COUNTED, among=among)
    context: dict[str, Any] = {
        "total": total,
        "written_total": written,
        "users": [memory.owner.user_id for memory in found.memories],
        **page_links(filters, found),
    }
    if isinstance(filters, AutoHiddenFilters):
        reasons = reasons_of(found.memories)
        return {
            **context,
            "rows": [
                {"item": memory_item(one, words=selection.words), "why_hidden": reasons[one.row]}
                for one in found.memories
            ],
        }
    deleted = tombstones_of([memory.row for memory in found.memories])
    rows = []
    for memory in found.memories:
        tombstone = deleted.get(memory.row)
        deleted_at = tombstone.created_at if tombstone else None
        item = memory_item(memory, words=selection.words)
        rows.append({"item": item, "tombstone": tombstone, **_days_left(deleted_at, retention)})
    # A selection by filter has no operator and no cause: only ticked rows can be changed then.
    target = "" if wanted else sign_target(bulk.freeze(selection))
    return {**context, "rows": rows, "target": target}


def _deleted_sessions() -> QuerySet[Tombstone]:
    return tenants.reachable(purge.due(None).filter(memory_id=""))


def _memory_counts(found: Sequence[Tombstone] | Sequence[Resource]) -> dict[str, int]:
    """Return the numbers of memories of deleted sessions, which the rollups exclude, by key. Two statements."""
    sessions = {(one.user_id, one.app_id, one.project_id, one.session_id): one.pk for one in found}
    rows = queries.session_rows(sessions)
    numbers = queries.counts_by("session", Memory.objects.filter(session__in=list(rows.values())))
    return {one.pk: numbers.get(rows.get(one.pk), 0) for one in found}


def _days_left(deleted_at: datetime | None, retention: timedelta | None) -> dict[str, Any]:
    """Return the days until the purge, rounded up; None if the trash is kept forever."""
    if deleted_at is None or retention is None:
        return {"days_left": None}
    left = deleted_at + retention - timezone.now()
    days = max(0, -(-left // timedelta(days=1)))
    return {"days_left": days, "is_soon": days <= 3}


def _recent() -> list[dict[str, Any]]:
    """Return the last bulk deletions that changed something and can be undone."""
    since = timezone.now() - jobs.KEPT
    found = Job.objects.filter(kind="delete", undone_at__isnull=True, done__gt=0, created_at__gt=since)
    latest = found.filter(status__in=["done", "stopped", "failed"]).order_by("-created_at")[:RECENT]
    return [
        {
            "job": job,
            "count": job.cursor.get("changed", 0),
            "user_pk": job.params["target"]["selection"].get("user_pk", ""),
            "filter": describe_selection(job.params["target"]["selection"])
            if "rows" not in job.params["target"]
            else (),
        }
        for job in latest
        if job.cursor.get("changed")
    ]


def _tabs(filters: TrashTabFilters, *, may_view_files: bool) -> list[dict[str, Any]]:
    kinds = [("", _("Memories")), ("sessions", pgettext("list", "Sessions")), ("auto-hidden", _("Auto-hidden"))]
    if may_view_files:
        kinds.insert(2, ("resources", _("Resources")))
    return filters.links("kind", kinds)
