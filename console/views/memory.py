"""The page of a memory with text, history and source; edit, deletion and restoring; its place in a file."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import orjson
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.admin_base import actor_of
from accounts.audit import record
from console import cases, queries
from console.access import CHANGE, DELETE, VIEW, next_address, page, record_view, render, require
from console.filters import ORIGINS, ListFilters
from console.forms import EditForm, ReasonForm, RestoreForm, indented
from console.hidden import reasons_of
from console.signed_values import undo_address
from console.templatetags.panel import marked
from console.text import compare, memory_item, parts
from console.views.logged_search import VIEW_SEARCHES, uses_of
from console.views.memories import in_order, write_position
from console.views.resources import VIEW_FILES
from console.word_search import search_of
from core.errors import InvalidInput, NotFound
from core.persistence.files import stored_files
from documents import rendering
from memories.queries import Event, history, superseded
from memories.services import decisions, links, lookup
from memories.services.decisions import Change, OverrideValues
from memories.services.lookup import MemoryRef
from resources.models import Resource
from resources.queries import attachments_of
from store import browse
from store.browse import Match
from store.expiry import has_ended
from store.models import State
from store.neighbors import context_windows
from store.text.terms import beginnings, terms
from store.types import KEPT, METADATA, NOT_REPLACED, TAGS, NewExpiry, Position, StoredMemory

MAX_RELATED: Final = 20
_EVENT_LABELS: Final = {
    "override": gettext_lazy("Edited"),
    "override_undo": gettext_lazy("Original text restored"),
    "delete": gettext_lazy("Moved to trash"),
    "restore": gettext_lazy("Restored from trash"),
    "superseded": gettext_lazy("Superseded"),
    "original": gettext_lazy("Original text"),
}


@page(VIEW, reach="memory")
def memory(request: HttpRequest, row: int) -> HttpResponseBase:
    found = browse.get(row)
    events = [*history(found.owner, found.memory_id), *superseded(found)]
    record_view(request, found)
    place = _in_list(request, found)
    context = {**_page(found, events), "place": place, "list_query": request.GET.urlencode() if place else ""}
    context |= cases.context(request, "memory", row)
    if request.user.has_perm(VIEW_SEARCHES):
        context["uses"] = uses_of(found)
    return render(request, "console/memory.html", context)


@page(VIEW, reach="memory")
def text(request: HttpRequest, row: int) -> HttpResponseBase:
    """Send the whole text to a list that shows only a piece of it, with the words of its search marked."""
    found = browse.get(row)
    record_view(request, found)
    query = request.GET.get("q", "")
    written = marked(found.text, (*terms(query), *beginnings(query)))
    return HttpResponse(format_html('<a href="{}">{}</a>', reverse("console:memory", args=[row]), written))


@page(VIEW, reach="memory")
def raw(request: HttpRequest, row: int) -> HttpResponseBase:
    """Send the memory as a JSON file."""
    found = browse.get(row)
    record_view(request, found, {"raw": True})
    response = HttpResponse(_indented(found), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="memory-{row}.json"'
    return response


@page(CHANGE, "GET", "POST", reach="memory")
def change(request: HttpRequest, row: int) -> HttpResponseBase:
    """Edit a memory and its tags and metadata. If another operator saved meanwhile, ask before overwriting.

    The address has the filters of the list from which the operator came. *Save and next* opens its next memory.
    """
    found = browse.get(row)
    if request.method != "POST":
        record_view(request, found)
        return _form(request, found, EditForm.of(found, etag_of(found)))
    form = EditForm(request.POST, memory=found)
    if not form.is_valid():
        record_view(request, found)
        return _form(request, found, form, status=422)
    is_next = request.POST.get("then") == "next"
    following = _in_list(request, found, page="console:memory-edit").get("following", "") if is_next else ""
    with transaction.atomic():
        lookup.lock_user(found.owner.user_pk)
        found = browse.get(row)
        if form.cleaned_data["etag"] == etag_of(found):
            changes = _save(request, found, form)
            saved_text = _("Saved. Agents now read the new text.") if changes else _("Saved.")
            done = _with_copies(saved_text, len(changes[1:]))
            messages.success(request, done, extra_tags=undo_address("categorize", changes))
            return redirect(following or reverse("console:memory", args=[row], query=request.GET))
    # The page shows both texts. Saving again overwrites, because its form has the new `etag`.
    record_view(request, found)
    saved, submitted = compare(found.text, form.cleaned_data["text"])
    context = {
        "title": _("The memory was changed meanwhile"),
        "memory": found,
        "form": form,
        "saved": saved,
        "submitted": submitted,
        "etag": etag_of(found),
    }
    return render(request, "console/memory_stale.html", context, status=412)


@page(CHANGE, "POST", reach="memory")
def revert(request: HttpRequest, row: int) -> HttpResponseBase:
    found = browse.get(row)
    _first, *copies = decisions.undo_override(
        found.owner.user_pk, _ref(found), with_copies=True, actor=actor_of(request)
    )
    restored = _("Original text restored. Earlier edits stay in the history.")
    messages.success(request, _with_copies(restored, len(copies)))
    return redirect("console:memory", row=row)


@page(CHANGE, "POST", reach="memory")
def keep(request: HttpRequest, row: int) -> HttpResponseBase:
    """Decide that no newer memory replaces this one, or end that decision."""
    found = browse.get(row)
    is_kept = request.POST.get("kept") == "1"
    links.set_kept(found.owner.user_pk, _ref(found), is_kept=is_kept, actor=actor_of(request))
    if is_kept:
        messages.success(request, _("Saved. No newer memory replaces this one."))
    else:
        messages.success(request, _("Saved. A newer memory may replace this one."))
    return redirect(next_address(request, reverse("console:memory", args=[row])))


@page(DELETE, "POST", reach="memory")
def remove(request: HttpRequest, row: int) -> HttpResponseBase:
    found = browse.get(row)
    form = ReasonForm(request.POST)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    deleted = None
    if found.is_live:  # else the user's own deletion would become the operator's
        deleted = decisions.delete_copies(found.owner.user_pk, _ref(found), reason=reason, actor=actor_of(request))
    if deleted and deleted.created:
        done = _with_copies(_("Moved to trash."), len(deleted.copy_ids))
        messages.success(request, done, extra_tags=undo_address("delete", deleted.changes))
    else:
        messages.warning(request, _("The memory is already in the trash."))
    return redirect(next_address(request, reverse("console:memory", args=[row])))


@page(DELETE, "POST", reach="memory")
def restore(request: HttpRequest, row: int) -> HttpResponseBase:
    found = browse.get(row)
    expires_at: NewExpiry = KEPT
    if "expires_at" in request.POST:
        form = RestoreForm(request.POST)
        if not form.is_valid():
            raise InvalidInput.of_field("expires_at", str(form.errors["expires_at"][0]))
        expires_at = form.cleaned_data["expires_at"]
    restored = decisions.restore(found.owner.user_pk, _ref(found), expires_at=expires_at, actor=actor_of(request))
    done = _("Restored. Agents can find it again.")
    if found.is_session_hidden:
        done = _("Restored. Agents can find it once its session is restored too.")
    messages.success(request, _with_copies(done, len(restored[1:])))
    return redirect("console:memory", row=row)


def _with_copies(done: str, count: int) -> str:
    """Return the notice of a decision, with the number of copies that it included."""
    if not count:
        return done
    return f"{done} {ngettext('Also %(count)s copy.', 'Also %(count)s copies.', count) % {'count': count}}"


def etag_of(memory: StoredMemory) -> str:
    """Return a hash that identifies the version of a memory."""
    labels = [memory.payload.get(name) for name in (TAGS, METADATA)]
    version = [memory.text, memory.category, memory.importance, labels]
    return hashlib.sha256(orjson.dumps(version)).hexdigest()[:32]


def _in_list(request: HttpRequest, found: StoredMemory, *, page: str = "console:memory") -> dict[str, str]:
    """Return the address of the list from which the operator came, and of pages of the memories next to this one."""
    if not request.GET:
        return {}
    filters, now = ListFilters(reverse("console:memories"), request.GET), timezone.now()
    user_pk = queries.user_pk(filters.data["user"])
    if filters.conflicts(now, user_pk):
        return {}
    selection, here = filters.selection(now, user_pk), Position(found.created_at_ms, found.row)
    query = {"tab": filters.data["tab"], **filters.unpaged()}

    def address(memories: Sequence[StoredMemory | Match]) -> str:
        return reverse(page, args=[memories[0].row], query=query) if memories else ""

    searched = search_of(filters, selection)
    if searched:
        selection = searched.of_tab(selection)
    if searched and searched.matches is not None and filters.is_ranked:
        wanted = selection.wanted_categories()
        ranked = in_order(filters, [one for one in searched.matches if wanted is None or one.category in wanted])
        place = next((number for number, match in enumerate(ranked) if match.row == found.row), None)
        before, after = (ranked[max(0, place - 1) : place], ranked[place + 1 :]) if place is not None else ([], [])
        return {"list": filters.first_page(), "previous": address(before), "following": address(after)}
    oldest_first = filters.oldest_first
    return {
        "list": filters.first_page(),
        "previous": address(browse.page(selection, before=here, limit=1, oldest_first=oldest_first).memories),
        "following": address(browse.page(selection, after=here, limit=1, oldest_first=oldest_first).memories),
    }


def _page(found: StoredMemory, events: list[Event]) -> dict[str, Any]:
    undone = {event.values["override_id"] for event in events if event.action == "override_undo"}
    overrides = [event for event in events if event.action == "override"]
    is_edited = any(event.values["override_id"] not in undone for event in overrides)
    originals = [event.values.get("text") for event in events if event.action == "original"]
    before = originals[-1] if is_edited and originals else None
    linked = links.links_of(found)
    session_id = found.session_id or ""
    attached = attachments_of(found.owner, [session_id]) if session_id else {}
    # The address opens the transcript at this memory.
    position = write_position(Position(found.created_at_ms, found.row - 1))
    session = {
        "session": session_id, "app": found.owner.app_id, "project": found.owner.project_id, "after": position
    }  # fmt: skip
    return {
        "title": _("Memory of %(user)s") % {"user": found.owner.user_id},
        "memory": found,
        "item": memory_item(found, is_edited=is_edited),
        "parts": list(parts(found.text)),
        "source_text": before or found.text,
        "etag": etag_of(found),
        "changes": compare(before, found.text) if before is not None and before != found.text else None,
        "revision": len(overrides),
        "is_edited": is_edited,
        "events": events[::-1],
        "event_labels": _EVENT_LABELS,
        "neighbors": context_windows(found.owner, [found.memory_id], 1).get(found.memory_id),
        "source": queries.source_files([found]).get(session_id),
        "attachments": attached.get(session_id, ()),
        "raw": _indented(found),
        "metadata": indented(found.payload.get(METADATA)),
        "origin": ORIGINS.get(found.origin, found.origin),
        "added": queries.addition(found),
        "session_url": reverse("console:transcript", args=[found.owner.user_pk], query=session),
        "reason": ReasonForm()["reason"],
        "restore_form": RestoreForm() if has_ended(found.expires_at) else None,
        "is_hidden": not found.is_live or found.is_session_hidden,
        "is_kept": bool(found.payload.get(NOT_REPLACED)),
        "is_replaced": bool(linked.replaced_by),
        "why_hidden": reasons_of([found]).get(found.row),
        "related": [
            (_("Covered by"), queries.covering(found)[:MAX_RELATED]),
            (_("Derived from"), _existing(found, found.sources)),
            (_("Supersedes"), _existing(found, found.supersedes)),
            (_("Replaced by"), _existing(found, linked.replaced_by)),
            (_("Replaces"), _existing(found, linked.replaces)),
        ],
    }


def _existing(found: StoredMemory, memory_ids: Sequence[str]) -> list[StoredMemory]:
    """Return the memories with these ids, at most `MAX_RELATED`, without those that no longer exist."""
    pairs = [(found.owner, memory_id) for memory_id in memory_ids[:MAX_RELATED]]
    rows = queries.stored_of(pairs)
    return [rows[pair] for pair in pairs if pair in rows]


def _indented(found: StoredMemory) -> str:
    return orjson.dumps(queries.as_json(found), option=orjson.OPT_INDENT_2).decode()


def _save(request: HttpRequest, found: StoredMemory, form: EditForm) -> list[Change]:
    """Save an edit of a memory, its wording also of its copies. Return the changes of wording, to undo them."""
    values, reason, actor = form.changed_values(found), form.cleaned_data["reason"], actor_of(request)
    user_pk, ref, labels = found.owner.user_pk, _ref(found), form.changed_labels(found)
    if labels:
        decisions.set_labels(user_pk, ref, labels, actor=actor)
    if labels and values == OverrideValues():
        return []
    return decisions.override_copies(user_pk, ref, values, reason=reason, actor=actor).changes


def _form(request: HttpRequest, found: StoredMemory, form: EditForm, *, status: int = 200) -> HttpResponse:
    place = _in_list(request, found, page="console:memory-edit")
    context = {
        "title": _("Edit memory"),
        "memory": found,
        "form": form,
        "original": queries.original_text(found.row),
        "place": place,
        "list_query": request.GET.urlencode() if place else "",
    }
    return render(request, "console/memory_edit.html", context, status=status)


def _ref(found: StoredMemory) -> MemoryRef:
    return MemoryRef(found.memory_id, app_id=found.owner.app_id, project_id=found.owner.project_id)


_IMAGE_HEADERS: Final = {
    # Made from an uploaded file: it must never run as a page of this site, nor be kept by the browser.
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
    "Content-Disposition": 'attachment; filename="page.jpg"',
}


@page(VIEW, reach="memory")
def place(request: HttpRequest, row: int) -> HttpResponseBase:
    found, resource = _passage(request, row)
    record_view(request, found)
    context = {"title": resource.filename or resource.pk, "memory": found, "resource": resource}
    return render(request, "console/place.html", context)


@page(VIEW, reach="memory")
def place_image(request: HttpRequest, row: int) -> HttpResponseBase:
    """Send the page as an image. A document that cannot be drawn has none."""
    found, resource = _passage(request, row)
    number = found.payload.get("page") or 1
    detail = {"page": number}
    record(actor_of(request), "resource.page", resource.pk, user_id=found.owner.user_id, detail=detail)
    with stored_files().local_copy(resource.file_key) as path:
        drawn = rendering.draw_page(
            path,
            resource.mime_type or "",
            number,
            box=found.payload.get("box"),
            text=found.original_text or found.text,
            user=request.user.pk,
        )
    return HttpResponse(drawn, content_type="image/jpeg", headers=_IMAGE_HEADERS)


def _passage(request: HttpRequest, row: int) -> tuple[StoredMemory, Resource]:
    """Return a memory and its file.

    Raises: `NotFound`, also for a file that is deleted or cannot be drawn, `Forbidden` for operators who may not view
    files.
    """
    found = browse.get(row)
    live = Resource.objects.select_related("user").filter(user_id=found.owner.user_pk, state=State.LIVE)
    resource = live.filter(pk=found.payload.get("resource_id"), session_id=found.session_id).first()
    if resource is None or not resource.storage_path or found.is_session_hidden:
        raise NotFound(_("There is no stored file of this memory."))
    require(request, VIEW_FILES)
    if not rendering.can_draw(resource.mime_type, found.payload.get("page")):
        raise NotFound(_("Pages of this file cannot be shown."))
    return found, resource
