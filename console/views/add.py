"""A memory written down by hand."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.admin_base import actor_of
from console import queries, reads
from console.access import ADD, VIEW, page, render
from console.forms import MAX_TEXT_CHARS, AddForm
from memories.services.manual import add_by_hand
from memories.services.search import SearchCommand, search
from store import browse, categories
from store.browse import Selection
from store.text.normalize import fold
from store.types import Owner, StoredMemory


@page(ADD)
@require_http_methods(["GET", "POST"])
def add(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return _form(request, AddForm(initial=_given(request)))
    form = AddForm(request.POST)
    owner = _owner(form) if form.is_valid() else None
    if owner is None:
        return _form(request, form, status=422)
    same = None if form.cleaned_data["again"] else _same(owner, form.cleaned_data["text"])
    if same is not None:
        return _form(request, form, status=409, same=same)
    given = form.cleaned_data
    added = add_by_hand(
        owner,
        category=given["category"],
        text=given["text"],
        agent_id=given["agent"],
        origin="panel",
        actor=actor_of(request),
    )
    messages.success(request, _("Added. Agents find it from now on."))
    return redirect("console:memory", row=added.row)


def _given(request: HttpRequest) -> dict[str, str]:
    """What the address begins the form with; `like` names a memory (by row) to be written down again."""
    row = request.GET.get("like", "")
    if row.isdecimal() and len(row) < 19 and request.user.has_perm(VIEW):
        found = browse.get(int(row))
        reads.opened(request, "memory.view", found)
        owner = found.owner
        where = {"user": owner.user_id, "app": owner.app_id, "project": owner.project_id, "agent": found.agent_id}
        return {**where, "category": found.category, "text": found.text}
    return {name: request.GET.get(name, "") for name in ("user", "agent", "category", "app", "project")}


def _owner(form: AddForm) -> Owner | None:
    """Whose memory it becomes; the form says it where there is no such user."""
    given = form.cleaned_data
    pk = queries.user_pk(given["user"])
    if pk is None:
        form.add_error("user", _("There is no user %(user)s.") % {"user": given["user"]})
        return None
    return Owner(pk, given["user"], given["app"], given["project"])


def _same(owner: Owner, text: str) -> StoredMemory | None:
    """A memory of the same words. Only what is exactly alike after normalisation counts: near-alike facts differ."""
    command = SearchCommand(query=text, scopes=frozenset({"all_user_memory"}), method="keyword", include_profile=False)
    hits = [found.hit for found in search(owner, command).results if fold(found.hit.text) == fold(text)]
    rows = queries.stored_of((owner, hit.memory_id) for hit in hits)
    return next(iter(rows.values()), None)


def _form(
    request: HttpRequest, form: AddForm, *, status: int = 200, same: StoredMemory | None = None
) -> HttpResponseBase:
    context: dict[str, Any] = {
        "title": _("Add memory"),
        "form": form,
        "same": same,
        "max_chars": MAX_TEXT_CHARS,
        "groups": [(tab, [(one, categories.label(one)) for one in held]) for tab, held in categories.TABS.items()],
        "options": browse.facets(Selection(), limit=100),
    }
    return render(request, "console/add.html", context, status=status)
