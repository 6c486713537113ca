"""People: who they are, everything of theirs on one page, an archive of it, and its erasure."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, Max, Q
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts import services
from accounts.admin_base import actor_of
from accounts.audit import record
from accounts.models import AuditEvent, MemoryUser, UserKey
from console import counts, keyset
from console.access import DELETE, VIEW, next_address, page, render
from console.lists import RESOURCE_STATES, UserPageState, UserState
from core.errors import NotFound
from memories.services.decisions import delete_session
from operations import erase, operator_jobs, worker
from profiles.services import read_both
from resources.models import Resource
from store import browse, categories
from store.browse import Selection
from store.models import Session
from store.types import Owner

ROWS: Final = 50
LATEST: Final = 8
VIEW_USERS, EXPORT, ERASE, ADD_USERS = (f"accounts.{verb}_memoryuser" for verb in ("view", "export", "erase", "add"))
AUDIT: Final = "accounts.view_auditevent"
_PLANNED: Final = {
    "memories": gettext_lazy("Memories"),
    "sessions": pgettext_lazy("how many", "Sessions"),
    "resources": gettext_lazy("Resources"),
    "files": gettext_lazy("Files"),
    "attachments": gettext_lazy("Attachments"),
    "tombstones": gettext_lazy("Deletions"),
    "overrides": gettext_lazy("Edits"),
    "profiles": gettext_lazy("Profiles"),
    "keys": gettext_lazy("Keys"),
    "audit": gettext_lazy("Lines in the audit trail"),
}


@page(VIEW_USERS)
@require_GET
def users(request: HttpRequest) -> HttpResponseBase:
    state = UserState.read(reverse("console:users"), request.GET)
    found = list(_listed(state)[: ROWS + 1])
    rows = found[:ROWS]
    pks = [user.pk for user in rows]
    memories, files, used = counts.of_users(pks), _files(pks), _last_used(pks)
    context: dict[str, Any] = {
        "title": _("Users"),
        "state": state,
        "rows": [
            {
                "user": user,
                "keys": vars(user)["live_key_count"],
                "memories": memories.get(user.pk, 0),
                "files": files.get(user.pk, 0),
                "used": used.get(user.pk),
            }
            for user in rows
        ],
        "first": state.url(after="") if state.after else "",
        "following": state.url(after=rows[-1].user_id) if len(found) > ROWS else "",
        "problems": state.problems,
    }
    record(
        actor_of(request), "user.list", subject_type="user", subject_id="", detail={"filter": dict(state.parameters())}
    )
    return render(request, "console/users.html", context)


@page(VIEW_USERS)
@require_GET
def user(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    found = _get(pk)
    state = UserPageState.read(reverse("console:user", args=[pk]), request.GET)
    record(
        actor_of(request),
        "user.view",
        subject_type="user",
        subject_id=str(pk),
        user_id=found.user_id,
        detail={"view": state.view},
    )
    context: dict[str, Any] = {"title": found.user_id, "person": found, "state": state, "problems": state.problems}
    if state.view == "sessions" and request.user.has_perm(VIEW):
        context |= _session_page(found, state)
    elif state.view == "audit" and request.user.has_perm(AUDIT):
        trail = keyset.newest_first(AuditEvent.objects.filter(user_id=found.user_id), state, limit=ROWS)
        context |= {"events": trail.rows, **state.neighbours(trail)}
    else:
        context |= _overview(request, found)
    return render(request, "console/user.html", {**context, "tabs": _tabs(request, state)})


@page(EXPORT)
@require_POST
def export(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Everything of theirs in one file, made by a job."""
    _get(pk)
    job = operator_jobs.archive(pk, actor=actor_of(request))
    worker.wake()
    return redirect("console:job", job=job.pk)


@page(ERASE)
@require_http_methods(["GET", "POST"])
def erasure(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """What would go, then, with the user id typed, the erasure and its receipt, which is shown this once."""
    found = _get(pk)
    typed = request.POST.get("confirm", "").strip()
    is_wrong = request.method == "POST" and typed != found.user_id
    if request.method == "POST" and not is_wrong:
        receipt = erase.erase(pk, actor=actor_of(request))
        context = {"title": _("Erased"), "receipt": receipt, "rows": sum(receipt["removed"].values())}
        return render(request, "console/erased.html", context)
    planned = erase.plan(pk)
    context = {"title": _("Erase %(user)s?") % {"user": found.user_id}, "person": found, "is_wrong": is_wrong}
    context["planned"] = [(_PLANNED[name], number) for name, number in planned.items() if number and name in _PLANNED]
    return render(request, "console/erase.html", context, status=422 if is_wrong else 200)


@page(DELETE)
@require_POST
def remove_session(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """A whole session to the trash."""
    row = request.POST.get("session", "")
    found = Session.objects.select_related("user").filter(
        user_id=pk, pk=int(row) if row.isdecimal() and len(row) < 19 else 0, deleted_at__isnull=True
    ).first()  # fmt: skip
    if found is None:
        raise NotFound("There is no such session.")
    owner = Owner(pk, found.user.user_id, found.app_id, found.project_id)
    delete_session(owner, found.session_id, actor=actor_of(request))
    messages.success(request, _("The session is in the trash now, with all that is in it."))
    return redirect(next_address(request, reverse("console:user", args=[pk])))


def _listed(state: UserState) -> Any:
    """Who is being erased has no name any more: nobody can do anything about them."""
    found = services.with_live_keys(MemoryUser.objects.exclude(user_id__startswith="!")).order_by("user_id")
    if state.q:
        found = found.filter(user_id__startswith=state.q)
    return found.filter(user_id__gt=state.after) if state.after else found


def _files(pks: list[UUID]) -> dict[UUID, int]:
    live = Resource.objects.filter(user__in=pks, deleted_at__isnull=True).order_by()
    return dict(live.values_list("user").annotate(number=Count("pk")))


def _last_used(pks: list[UUID]) -> dict[UUID, Any]:
    return dict(UserKey.objects.filter(user__in=pks).order_by().values_list("user").annotate(last=Max("last_used_at")))


def _get(pk: UUID) -> MemoryUser:
    found = MemoryUser.objects.filter(~Q(user_id__startswith="!"), pk=pk).first()
    if found is None:
        raise NotFound("There is no such user.")
    return found


def _overview(request: HttpRequest, found: MemoryUser) -> dict[str, Any]:
    context: dict[str, Any] = {"states": RESOURCE_STATES}
    context |= {"keys": _keys(found) if request.user.has_perm("accounts.view_userkey") else None}
    if request.user.has_perm(VIEW):
        facets = browse.facets(Selection(user_pk=found.pk), limit=LATEST)
        by_tab = dict.fromkeys(categories.TABS, 0) | {"": 0}
        for one in facets.categories:
            by_tab[categories.tab_of(one.key)] += one.count
        context |= {"agents": facets.agents, "kinds": _strip(by_tab), "total": sum(by_tab.values())}
        context["sessions"] = _with_counts(list(_sessions_of(found).order_by("-pk")[:LATEST]))
    if request.user.has_perm("resources.view_resource"):
        live = Resource.objects.filter(user=found, deleted_at__isnull=True).order_by()
        context["files"] = dict(live.values_list("status").annotate(number=Count("pk")))
    if request.user.has_perm("profiles.view_profilememory"):
        context["profiles"] = list(read_both(found.pk).values())
    if request.user.has_perm(AUDIT):
        context["events"] = list(AuditEvent.objects.filter(user_id=found.user_id)[:LATEST])
    return context


def _strip(by_tab: dict[str, int]) -> list[dict[str, Any]]:
    """The kinds beside each other, as shares of all."""
    total, start, found = sum(by_tab.values()) or 1, 0.0, []
    for tab, count in by_tab.items():
        found.append({"tab": tab, "count": count, "x": start, "share": count / total})
        start += count / total
    return found


def _keys(found: MemoryUser) -> list[dict[str, Any]]:
    return [{"key": key, "is_live": services.is_live(key)} for key in services.keys_of(found.pk)[:ROWS]]


def _sessions_of(found: MemoryUser) -> Any:
    return Session.objects.filter(user=found, deleted_at__isnull=True)


def _session_page(found: MemoryUser, state: UserPageState) -> dict[str, Any]:
    sessions = keyset.newest_first(_sessions_of(found), state, time="created_at", limit=ROWS)
    return {"sessions": _with_counts(sessions.rows), **state.neighbours(sessions)}


def _with_counts(sessions: list[Session]) -> list[dict[str, Any]]:
    numbers = counts.of_sessions([session.pk for session in sessions])
    return [{"session": session, "count": numbers.get(session.pk, 0)} for session in sessions]


def _tabs(request: HttpRequest, state: UserPageState) -> list[dict[str, Any]]:
    every = [
        ("overview", _("Overview"), VIEW_USERS),
        ("sessions", pgettext("list", "Sessions"), VIEW),
        ("audit", _("Audit"), AUDIT),
    ]
    return [
        {"label": label, "url": state.first_page(view=name), "is_on": state.view == name}
        for name, label, needed in every
        if request.user.has_perm(needed)
    ]
