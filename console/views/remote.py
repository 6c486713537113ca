"""The page of the remote: the outbox in figures, refused messages, sessions that wait, and what remotes still hold."""

from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.admin_base import actor_of
from accounts.audit import record
from console.access import CHANGE, VIEW, next_address, page, record_list, render, require
from console.filters import RemoteFilters
from console.keyset import newest_first
from console.views.resources import CHANGE_FILES
from core.errors import existing
from remote import queries, refusals
from resources import services
from resources.models import Resource
from store.models import Session, owned_by

WAITING: Final = "waiting"


@page(VIEW)
def remote(request: HttpRequest) -> HttpResponseBase:
    filters = RemoteFilters(reverse("console:remote"), request.GET)
    found, lists = queries.summary(), [("", _("Refused")), (WAITING, _("Waiting"))]
    counts = {"": found.refused, WAITING: found.sessions}
    context: dict[str, Any] = {
        "title": _("Remote"),
        "filters": filters,
        "base_url": settings.MEMORY_GATEWAY_BACKEND_BASE_URL,
        "summary": found,
        "figures": [
            (_("Waiting"), found.waiting, found.oldest),
            (_("Unconfirmed"), found.unconfirmed, None),
            (_("Sent, not flushed"), found.buffered, None),
            (_("Refused"), found.refused, None),
            (_("Withheld"), found.withheld, None),
            (_("Residue"), found.residue, None),
        ],
        "lists": [{**link, "count": counts[link["name"]]} for link in filters.links("list", lists)],
        **(_waiting(request, filters) if filters.data["list"] else _refused(request, filters)),
    }
    return render(request, "console/remote.html", context)


def _refused(request: HttpRequest, filters: RemoteFilters) -> dict[str, Any]:
    shown = newest_first(queries.refused_entries(), filters)
    record_list(request, "remote.list", filters, (row.user.user_id for row in shown.rows))
    return shown._asdict()


def _waiting(request: HttpRequest, filters: RemoteFilters) -> dict[str, Any]:
    shown = newest_first(queries.waiting_sessions(), filters)
    record_list(request, "remote.list", filters, (row.user.user_id for row in shown.rows))
    waiting = queries.waiting_of(shown.rows)
    # Messages may have been confirmed since the sessions were read.
    rows = [{"session": row, "waiting": waiting[row.pk]} for row in shown.rows if row.pk in waiting]
    return {**shown._asdict(), "rows": rows}


@page(CHANGE, "POST")
def retry(request: HttpRequest) -> HttpResponseBase:
    """Send the refused messages of a session again, and ingest its file again if that failed."""
    sessions = Session.objects.select_related("user").filter(pk=_row(request.POST.get("session", "")))
    session = existing(sessions, _("There is no such session."))
    actor = actor_of(request)
    with transaction.atomic():
        if session.kind == Session.Kind.RESOURCE:
            require(request, CHANGE_FILES)
            files = Resource.objects.filter(owned_by(session.owner), session_id=session.session_id)
            services.retry(files, actor=actor)
        count = refusals.retry(session)
        if count:
            user_id, detail = session.user.user_id, {"messages": count}
            record(actor, "remote.retry", session.session_id, subject_type="session", user_id=user_id, detail=detail)
    if count:
        text = ngettext("%(count)s message is sent again.", "%(count)s messages are sent again.", count)
        messages.success(request, text % {"count": count})
    else:
        messages.info(request, _("The session has no refused messages."))
    return redirect(next_address(request, reverse("console:remote")))


def _row(text: str) -> int:
    """Return a primary key, 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
