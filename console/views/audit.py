"""The audit trail: who did what to which subject, and when."""

from __future__ import annotations

import json
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from accounts.models import AuditEvent
from console import keyset
from console.access import page, render
from console.lists import ACTORS, AuditState
from console.state import parse_moment
from console.views.users import AUDIT
from memories.services.decisions import EVENTS

ROWS: Final = 50


@page(AUDIT)
@require_GET
def audit(request: HttpRequest) -> HttpResponseBase:
    state = AuditState.read(reverse("console:audit"), request.GET)
    # By key: the database's own clock, which wrote the times, is not as fine on SQLite as what they are compared with.
    found = keyset.newest_first(_selected(state), state, limit=ROWS)
    context: dict[str, Any] = {
        "title": _("Audit trail"),
        "state": state,
        "events": found.rows,
        "actors": ACTORS,
        "chips": state.chips(),
        "problems": state.problems,
        **state.neighbours(found),
    }
    return render(request, "console/audit.html", context)


def _selected(state: AuditState) -> QuerySet[AuditEvent]:
    given = {
        "user_id": state.user,
        "actor": state.actor,
        "actor_kind": state.kind,
        "action__startswith": state.action,
    }
    found = AuditEvent.objects.filter(**{name: value for name, value in given.items() if value})
    if state.subject:
        found = found.filter(_about(state.subject))
    if state.since:
        found = found.filter(at__gte=parse_moment(state.since))
    if state.until:
        found = found.filter(at__lt=parse_moment(state.until, is_end=True))
    return found


def _about(subject_id: str) -> Q:
    """Match events about one subject, and decisions about many that name it, or their job, among their ids."""
    named = Q(detail__job=subject_id)
    # SQLite stores JSON with escapes, PostgreSQL without.
    for written in {json.dumps(subject_id), json.dumps(subject_id, ensure_ascii=False)}:
        named |= Q(detail__memory_ids__icontains=written) | Q(detail__session_ids__icontains=written)
    return Q(subject_id=subject_id) | (Q(action__in=EVENTS) & named)
