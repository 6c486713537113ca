"""The conversations of a person: list, read, delete, restore."""

from typing import Final

from django.db.models import OuterRef, QuerySet, Subquery
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console import queries
from console.text import memory_item
from core.errors import existing
from memories.services import decisions
from portal.access import Visit, actor_of, page, render
from portal.views.memories import position_in, row_in, written
from store import browse
from store.browse import Selection
from store.models import IS_PURGED, Memory, Session, State

ROWS: Final = 30
MESSAGES: Final = 100


@page()
def conversations(request: Visit) -> HttpResponseBase:
    """List the conversations, newest first, each with its first message."""
    before = row_in(request.GET.get("before", ""))
    rows = _sessions_of(request).filter(state=State.LIVE).annotate(first=_first_message())
    if before:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: ROWS + 1])
    shown = found[:ROWS]
    numbers = queries.memories_of_sessions([one.pk for one in shown])
    hidden = _sessions_of(request).filter(state=State.TRASHED)
    context = {
        "title": _("Conversations"),
        "rows": [{"session": one, "count": numbers.get(one.pk, 0)} for one in shown],
        "following": reverse("portal:conversations", query={"before": shown[-1].pk}) if len(found) > ROWS else "",
        "undoable": hidden.filter(pk=row_in(request.GET.get("deleted", ""))).first(),
    }
    return render(request, "conversations.html", context)


@page()
def conversation(request: Visit, row: int) -> HttpResponseBase:
    """Show the messages of a conversation in their order."""
    session = _owned(request, row)
    selection = Selection(
        user_pk=request.link.user.pk,
        app_id=session.app_id,
        project_id=session.project_id,
        session_id=session.session_id,
    )
    after = position_in(request.GET.get("after", ""))
    found = browse.page(selection, after=after, limit=MESSAGES, oldest_first=True)
    here = reverse("portal:conversation", args=[row])
    context = {
        "title": _("Conversation"),
        "session": session,
        "items": [memory_item(one) for one in found.memories if one.origin != Memory.Origin.EXTRACTED],
        "following": f"{here}?after={written(found.newer)}" if found.newer else "",
        "first": here if after else "",
    }
    return render(request, "conversation.html", context)


@page("POST")
def delete(request: Visit, row: int) -> HttpResponseBase:
    """Move a conversation to the trash, with what is known from it."""
    session = _owned(request, row)
    decisions.delete_session(session.owner, session.session_id, actor=actor_of(request))
    return redirect(reverse("portal:conversations", query={"deleted": row}))


@page("POST")
def restore(request: Visit, row: int) -> HttpResponseBase:
    """Restore a conversation from the trash."""
    session = _owned(request, row)
    decisions.restore_session(session.owner, session.session_id, actor=actor_of(request))
    return redirect("portal:conversations")


def _owned(request: Visit, row: int) -> Session:
    found = _sessions_of(request).filter(pk=row) if row < 2**63 else Session.objects.none()
    return existing(found, _("There is no such conversation."))


def _sessions_of(request: Visit) -> QuerySet[Session]:
    own = Session.objects.filter(~IS_PURGED, user=request.link.user, incognito_until=None).select_related("user")
    return own.exclude(kind=Session.Kind.RESOURCE)


def _first_message() -> Subquery:
    messages = Memory.objects.filter(session=OuterRef("pk"), state=State.LIVE)
    return Subquery(messages.order_by("seq", "created_at_ms", "pk").values("text")[:1])
