"""The pages of users: the list, the data of one user, its export and its erasure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.http import content_disposition_header
from django.utils.translation import get_language, gettext_lazy, ngettext, pgettext, pgettext_lazy
from django.utils.translation import gettext as _

from accounts import oauth, services, tenants
from accounts.admin_base import actor_of
from accounts.audit import record
from accounts.controls import pauses_of
from accounts.models import AuditEvent, MemoryUser
from agents.tools.caller import Caller
from agents.tools.context import make_context
from console import cases, queries
from console.access import DELETE, EXPORT, VIEW, next_address, page, render
from console.filters import OTHER_LABEL, TAB_LABELS, ListFilters, UserPageFilters
from console.forms import EraseForm
from console.keyset import ROWS, newest_first
from console.signed_values import read_receipt, sign_receipt, undo_address
from console.text import memory_item
from console.views.people import VIEW_USERS
from console.views.person import READ_FACTS, current_facts, mentions, timeline
from core.errors import NotFound, existing
from memories.services.decisions import delete_session_undoably
from operations import erase, operator_jobs, person_export
from operations.bulk import AT_ONCE
from profiles.diff import Difference, differences
from profiles.documents import Document
from profiles.labels import Language
from profiles.schemas import MODELS
from profiles.services import read_both
from resources.models import Resource
from store import browse, categories
from store.browse import Selection
from store.models import IS_PURGED, Session, State
from store.types import Owner

LATEST: Final = 8
PROFILE_FIELDS: Final = 8
ERASE, ADD_USERS = (f"accounts.{verb}_memoryuser" for verb in ("erase", "add"))
AUDIT: Final = "accounts.view_auditevent"
_ERASED_LABELS: Final = {
    "memories": gettext_lazy("Memories"),
    "sessions": pgettext_lazy("how many", "Sessions"),
    "resources": gettext_lazy("Resources"),
    "files": gettext_lazy("Files"),
    "attachments": gettext_lazy("Attachments"),
    "tombstones": gettext_lazy("Deletions"),
    "overrides": gettext_lazy("Edits"),
    "profiles": gettext_lazy("Profiles"),
    "keys": gettext_lazy("API keys"),
    "oauth_clients": gettext_lazy("Applications"),
    "audit": gettext_lazy("Audit events"),
    "jobs": gettext_lazy("Jobs"),
    "job_rows": gettext_lazy("Rows in jobs of several users"),
}


@page(VIEW_USERS, reach="user")
def user(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    found = _get(pk)
    filters = UserPageFilters(reverse("console:user", args=[pk]), request.GET)
    view = filters.data["view"]
    record(actor_of(request), "user.view", str(pk), user_id=found.user_id, detail={"view": view})
    imitated = queries.imitations([found.user_id]).get(found.user_id)
    context: dict[str, Any] = {
        "title": found.user_id,
        "person": found,
        "filters": filters,
        "imitated": imitated,
        "paused": [pause.get_source_display() for pause in pauses_of(pk).values()],
        "search_field": ListFilters(reverse("console:memories"), {})["q"],
    }
    if view == "overview" and request.user.has_perm(VIEW):
        context |= cases.context(request, "user", pk)
    if view == "sessions" and request.user.has_perm(VIEW):
        sessions = newest_first(queries.with_talks(_sessions_of(found.pk)), filters, time="created_at")
        context |= {**sessions._asdict(), "sessions": _described(sessions.rows)}
    elif view == "timeline" and request.user.has_perm(VIEW):
        context["timeline"] = timeline(found, filters)
    elif view == "told" and request.user.has_perm(VIEW):
        owner = Owner(pk, found.user_id, "default", "default")
        context["told"] = make_context(Caller(owner, "", actor_of(request), may=request.user.has_perm)).text
    elif view == "audit" and request.user.has_perm(AUDIT):
        trail = newest_first(queries.trail_of(found.user_id), filters)
        queries.name_actors(trail.rows)
        tenants.hide_others(trail.rows)
        context |= {**trail._asdict(), "events": trail.rows}
    else:
        context |= _overview(request, found)
    tabs = (
        ("overview", _("Overview"), VIEW_USERS),
        ("timeline", _("Timeline"), VIEW),
        ("told", _("Prompt preview"), VIEW),
        ("sessions", pgettext("list", "Sessions"), VIEW),
        ("audit", _("Audit trail"), AUDIT),
    )
    visible = [(name, label) for name, label, permission in tabs if request.user.has_perm(permission)]
    context["tabs"] = filters.links("view", visible, what="", **{"from": "", "to": ""})
    return render(request, "console/user.html", context)


@page(EXPORT, "POST", reach="user")
def export(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Start a job that writes all data of a user to one archive."""
    _get(pk)
    job = operator_jobs.export_user(pk, actor=actor_of(request))
    return redirect("console:job", job=job.pk)


@page(EXPORT, "POST", reach="user")
def download(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Send all data of a user as a person reads it: one HTML page with the original files, and JSON beside it."""
    found = _get(pk)
    record(actor_of(request), "user.export", str(pk), user_id=found.user_id)
    parts = person_export.export(found, person_export.Words.now(found.user_id))
    name = content_disposition_header(as_attachment=True, filename=f"{found.user_id}.zip") or "attachment"
    return StreamingHttpResponse(parts, content_type="application/zip", headers={"Content-Disposition": name})


@page(ERASE, "GET", "POST", reach="user")
def erasure(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Preview an erasure. When the operator has typed the user id, erase the data and show the receipt once."""
    found = _get(pk)
    form = EraseForm(request.POST if request.method == "POST" else None, user_id=found.user_id)
    if form.is_valid():
        receipt = erase.erase(pk, actor=actor_of(request))
        context = {
            "title": _("Erased"),
            "receipt": receipt,
            "signed": sign_receipt(receipt),
            "removed": _labeled(receipt["removed"]),
            "rows": sum(receipt["removed"].values()),
            **{name: datetime.fromisoformat(receipt[name]) for name in ("begun_at", "erased_at")},
        }
        return render(request, "console/erased.html", context)
    record(actor_of(request), "user.view", str(pk), user_id=found.user_id, detail={"view": "erase"})
    context = {
        "title": _("Erase %(user)s?") % {"user": found.user_id},
        "person": found,
        "planned": _labeled(erase.plan(pk)),
        "form": form,
    }
    return render(request, "console/erase.html", context, status=422 if form.errors else 200)


@page(ERASE, "POST", reach="lists")
def receipt(request: HttpRequest) -> HttpResponseBase:
    """Send the receipt of an erasure, which the gateway does not keep, as a file."""
    found = read_receipt(request.POST.get("receipt", ""))
    headers = {"Content-Disposition": f'attachment; filename="erased-{found["receipt_id"]}.json"'}
    return HttpResponse(
        orjson.dumps(found, option=orjson.OPT_INDENT_2), content_type="application/json", headers=headers
    )


@page(DELETE, "POST", reach="user")
def remove_session(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Move a session with its memories to the trash, one with many memories after a preview."""
    row = request.POST.get("session", "")
    known = _sessions_of(pk).select_related("user")
    found = known.filter(pk=int(row)).first() if row.isdecimal() and len(row) < 19 else None
    if found is None:
        raise NotFound(_("There is no such session."))
    count = queries.memories_of_sessions([found.pk]).get(found.pk, 0)
    back = next_address(request, reverse("console:user", args=[pk]))
    if count > AT_ONCE and not request.POST.get("confirmed"):
        record(actor_of(request), "session.view", found.session_id, user_id=found.user.user_id)
        context = {"title": _("Move this session to the trash?"), "person": found.user, "session": found}
        return render(request, "console/session_delete.html", {**context, "count": count, "back": back})
    is_shown = found.state == State.LIVE  # else the user's own deletion would become the operator's
    changes = delete_session_undoably(found.owner, found.session_id, actor=actor_of(request)) if is_shown else []
    if not changes:
        messages.warning(request, _("The session is already in the trash."))
        return redirect(back)
    message = ngettext(
        "Session with %(count)s memory moved to trash.", "Session with %(count)s memories moved to trash.", count
    )
    undo = undo_address("delete_session", changes)
    messages.success(request, message % {"count": f"{count:,}"}, extra_tags=undo)
    return redirect(back)


@page("accounts.revoke_userkey", "POST", reach="user")
def remove_connection(request: HttpRequest, pk: UUID, connection: UUID) -> HttpResponseBase:
    """End a connection of an application to a user."""
    oauth.revoke(connection, user_pk=pk, actor=actor_of(request))
    messages.success(request, _("Application disconnected. Its requests now fail."))
    return redirect("console:user", pk=pk)


def _labeled(counts: Mapping[str, int]) -> list[tuple[Promise, int]]:
    """Return the counts that concern operators: internal tables have no label."""
    return [(_ERASED_LABELS[name], number) for name, number in counts.items() if number and name in _ERASED_LABELS]


def _get(pk: UUID) -> MemoryUser:
    return existing(services.active_users().filter(pk=pk), _("There is no such user."))


def _overview(request: HttpRequest, found: MemoryUser) -> dict[str, Any]:
    """Return the context of the parts that the operator may see."""
    may = request.user.has_perm
    context: dict[str, Any] = {"states": dict(Resource.Status.choices), "keys": None}
    if may("accounts.view_userkey"):
        context["keys"] = [(key, services.is_live(key)) for key in services.keys_of(found.pk)[:ROWS]]
        context["connections"] = list(oauth.connections_of(found.pk)[:ROWS])
    if may(VIEW):
        facets = browse.facets(Selection(user_pk=found.pk), limit=LATEST, with_sessions=False)
        by_tab = dict.fromkeys((*categories.TABS, ""), 0)
        for one in facets.categories:
            by_tab[categories.tab_of(one.key)] += one.count
        total, start, kinds = sum(by_tab.values()), 0.0, []
        for tab, count in by_tab.items():  # parts of one bar, side by side
            label = TAB_LABELS.get(tab, OTHER_LABEL)
            kinds.append({"tab": tab, "label": label, "count": count, "x": start, "share": count / (total or 1)})
            start += count / (total or 1)
        context |= {"agents": facets.agents, "kinds": kinds, "total": total}
        read = browse.page(Selection(user_pk=found.pk, tab="user"), limit=READ_FACTS).memories
        edited = queries.edited([memory.row for memory in read])
        context["current"] = current_facts(read, edited)
        context["facts"] = [memory_item(memory, is_edited=memory.row in edited) for memory in read[:LATEST]]
        talks = _sessions_of(found.pk).exclude(session_id__startswith="resource:")  # files have a card
        context["sessions"] = _described(queries.with_talks(talks).order_by("-pk")[:LATEST])
    if may(VIEW) and may(ERASE):
        context["mentions_query"], context["mentions"] = mentions(found)
    if may("resources.view_resource"):
        context["files"] = queries.counts_by("status", Resource.objects.filter(user=found, state=State.LIVE))
    if may("profiles.view_profilememory"):
        context["profiles"] = [(document, _profile_values(document)) for document in read_both(found.pk).values()]
    if may(AUDIT):
        changes, reads = (
            queries.trail_of(found.user_id, kind).order_by("-pk")
            for kind in (AuditEvent.Kind.CHANGE, AuditEvent.Kind.READ)
        )
        by_people = reads.exclude(actor_kind=AuditEvent.ActorKind.KEY)
        events = queries.first_events(changes[:LATEST], by_people[:LATEST])
        queries.name_actors(events)
        context["events"] = [event for event in events if event.kind == AuditEvent.Kind.CHANGE]
        context["readers"] = [event for event in events if event.kind == AuditEvent.Kind.READ]
    return context


def _profile_values(document: Document) -> list[Difference]:
    """Return the first fields of a profile that have a value."""
    language: Language = "zh" if (get_language() or "").startswith("zh") else "en"
    if document.is_disabled:
        return []
    return differences(MODELS[document.kind](), document.content, language)[:PROFILE_FIELDS]


def _sessions_of(user_pk: UUID) -> QuerySet[Session]:
    return Session.objects.filter(~IS_PURGED, user_id=user_pk, incognito_until=None)


def _described(sessions: Iterable[Session]) -> list[dict[str, Any]]:
    sessions = list(sessions)
    files, talks = queries.files_of_sessions(sessions), queries.talks(sessions)
    return [
        {"session": one, "talk": talks[one.pk], "title": files.get(one.pk, talks[one.pk].title)} for one in sessions
    ]
