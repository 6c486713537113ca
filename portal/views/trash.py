"""The trash of a person: what was deleted and can be restored."""

from typing import Any, Final

from django.db.models import Q
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from memories.queries import restorable
from operations.cleanup import purge
from portal.access import Visit, page, render
from resources import queries
from store.models import Session, State

ROWS: Final = 100


@page()
def trash(request: Visit) -> HttpResponseBase:
    """List deleted memories, conversations and files, newest first."""
    user = request.link.user
    deleted = restorable(Q(user=user)).select_related("row__session")
    memories = deleted.filter(row__isnull=False).order_by("-created_at", "-tombstone_id")[:ROWS]
    sessions = Session.objects.filter(user=user, state=State.TRASHED, incognito_until=None).exclude(
        kind=Session.Kind.RESOURCE
    )
    retention = purge.retention()
    context: dict[str, Any] = {
        "title": _("Trash"),
        "memories": list(memories),
        "sessions": list(sessions.order_by("-state_since")[:ROWS]),
        "files": list(queries.trash_of(user.pk).order_by("-state_since")[:ROWS]),
        "days": retention.days if retention else None,
    }
    return render(request, "trash.html", context)
