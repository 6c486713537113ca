"""One memory: what agents read, what was changed, where it came from; edited, deleted and restored."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import orjson
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.admin_base import actor_of
from console import queries, reads
from console.access import CHANGE, DELETE, VIEW, next_address, page, render
from console.filters import ORIGINS, write_position
from console.forms import EditForm, ReasonForm
from console.hidden import whys
from console.records import record_of
from console.text import compare, parts, shown
from engines.registry import get_engine
from memories.queries import Event, history, superseded
from memories.services import decisions, lookup
from memories.services.lookup import MemoryRef
from resources.queries import attachments_of
from store import browse
from store.types import Position, StoredMemory

NAMED: Final = 20


@page(VIEW)
@require_GET
def memory(request: HttpRequest, row: int) -> HttpResponseBase:
    found = browse.get(row)
    events = [*history(found.owner, found.memory_id), *superseded(found)]
    reads.opened(request, "memory.view", found)
    return render(request, "console/memory.html", _page(found, events))


@page(VIEW)
@require_GET
def text(request: HttpRequest, row: int) -> HttpResponseBase:
    """The whole text, for a list that was sent only the beginning."""
    found = browse.get(row)
    reads.opened(request, "memory.view", found)
    return HttpResponse(format_html('<a href="{}">{}</a>', reverse("console:memory", args=[row]), found.text))


@page(VIEW)
@require_GET
def raw(request: HttpRequest, row: int) -> HttpResponseBase:
    """The row as it is stored, as JSON to keep; file contents never are in it."""
    found = browse.get(row)
    reads.opened(request, "memory.view", found, {"raw": True})
    answer = HttpResponse(_indented(found), content_type="application/json")
    answer["Content-Disposition"] = f'attachment; filename="memory-{row}.json"'
    return answer


@page(CHANGE)
@require_http_methods(["GET", "POST"])
def change(request: HttpRequest, row: int) -> HttpResponseBase:
    """Other words, another category or importance: an override. What somebody else saved meanwhile is never lost."""
    found = browse.get(row)
    if request.method != "POST":
        reads.opened(request, "memory.view", found)
        return _form(request, found, EditForm.of(found, etag_of(found)))
    form = EditForm(request.POST, memory=found)
    if not form.is_valid():
        return _form(request, found, form, status=422)
    with transaction.atomic():
        lookup.lock_user(found.owner.user_pk)
        found = browse.get(row)
        if form.cleaned_data["etag"] == etag_of(found):
            decisions.override(found.owner.user_pk, _which(found), form.correction(), actor=actor_of(request))
            messages.success(request, _("Saved. Agents read the new words from now on."))
            return redirect("console:memory", row=row)
    return _stale(request, found, form)


@page(CHANGE)
@require_POST
def revert(request: HttpRequest, row: int) -> HttpResponseBase:
    found = browse.get(row)
    decisions.undo_override(found.owner.user_pk, _which(found), actor=actor_of(request))
    messages.success(request, _("The engine's text is back. The edits stay in the history."))
    return redirect("console:memory", row=row)


@page(DELETE)
@require_POST
def remove(request: HttpRequest, row: int) -> HttpResponseBase:
    found = browse.get(row)
    form = ReasonForm(request.POST)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    decisions.delete(found.owner.user_pk, _which(found), reason=reason, actor=actor_of(request))
    messages.success(request, _("Moved to trash."), extra_tags=reverse("console:memory-restore", args=[row]))
    return redirect(next_address(request, reverse("console:memory", args=[row])))


@page(DELETE)
@require_POST
def bring_back(request: HttpRequest, row: int) -> HttpResponseBase:
    found = browse.get(row)
    decisions.restore(found.owner.user_pk, _which(found), actor=actor_of(request))
    messages.success(request, _("Restored. Agents find it again."))
    return redirect("console:memory", row=row)


def etag_of(memory: StoredMemory) -> str:
    """Tells one wording from another."""
    wording = orjson.dumps([memory.text, memory.category, memory.importance])
    return hashlib.sha256(wording).hexdigest()[:32]


def _page(found: StoredMemory, events: list[Event]) -> dict[str, Any]:
    override = _in_force(events)
    before = _original(events) if override is not None else None
    files = attachments_of(found.owner, [found.session_id]) if found.session_id else {}
    return {
        "title": _("Memory of %(user)s") % {"user": found.owner.user_id},
        "memory": found,
        "item": shown(found, is_edited=override is not None),
        "parts": list(parts(found.text)),
        "changes": compare(before, found.text) if before is not None and before != found.text else None,
        "revision": sum(event.action == "override" for event in events),
        "is_edited": override is not None,
        "events": events[::-1],
        "around": queries.around(found),
        "source": queries.source_files([found]).get(found.session_id or ""),
        "attachments": files.get(found.session_id or "", ()),
        "raw": _indented(found),
        "origin": ORIGINS.get(found.origin, found.origin),
        "session_url": _session_url(found),
        "is_hidden": found.hidden_at is not None or found.is_session_hidden,
        "why": whys([found]).get(found.row),
        "made_of": _named(found, "sources"),
        "replaces": _named(found, "supersedes"),
        "is_pending": found.memory_type == "unprocessed_message" and get_engine().is_external,
    }


def _named(found: StoredMemory, field: str) -> list[StoredMemory]:
    """The memories that its record names, as far as they are still there."""
    pairs = [(found.owner, memory_id) for memory_id in found.payload.get(field, ())[:NAMED]]
    rows = queries.stored_of(pairs)
    return [rows[pair] for pair in pairs if pair in rows]


def _session_url(found: StoredMemory) -> str:
    """The session's list, open where the memory stands."""
    named = {"tab": "all", "user": found.owner.user_id, "session": found.session_id or ""}
    place = write_position(Position(found.created_at_ms, found.row + 1))
    return f"{reverse('console:memories')}?{urlencode({**named, 'after': place})}"


def _in_force(events: list[Event]) -> Event | None:
    """The correction that holds now."""
    undone = {event.values["override_id"] for event in events if event.action == "override_undo"}
    standing = [event for event in events if event.action == "override" and event.values["override_id"] not in undone]
    return standing[-1] if standing else None


def _original(events: list[Event]) -> str | None:
    """What the engine said before the correction that holds now."""
    texts = [event.values["text"] for event in events if event.action == "original"]
    return texts[-1] if texts else None


def _indented(found: StoredMemory) -> str:
    return orjson.dumps(record_of(found), option=orjson.OPT_INDENT_2).decode()


def _form(request: HttpRequest, found: StoredMemory, form: EditForm, *, status: int = 200) -> HttpResponse:
    context = {"title": _("Edit memory"), "memory": found, "form": form}
    return render(request, "console/memory_edit.html", context, status=status)


def _stale(request: HttpRequest, found: StoredMemory, form: EditForm) -> HttpResponse:
    """Both texts, and the choice between them: saving again is meant."""
    saved, yours = compare(found.text, form.cleaned_data["text"])
    context = {
        "title": _("Somebody was faster"),
        "memory": found,
        "form": form,
        "saved": saved,
        "yours": yours,
        "etag": etag_of(found),
    }
    return render(request, "console/memory_stale.html", context, status=412)


def _which(found: StoredMemory) -> MemoryRef:
    return MemoryRef(found.memory_id, app_id=found.owner.app_id, project_id=found.owner.project_id)
