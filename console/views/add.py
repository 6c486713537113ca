"""The page to add a memory manually."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from accounts.admin_base import actor_of
from console import queries
from console.access import ADD, page, render
from console.forms import MAX_TEXT_CHARS, AddForm
from memories.services.manual import add_by_hand
from memories.services.search import SearchCommand, search
from store import browse, categories
from store.browse import Selection
from store.text.normalize import fold
from store.types import Owner, StoredMemory


@page(ADD, "GET", "POST")
def add(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        names = ("user", "agent", "category", "app", "project")
        return _form(request, AddForm(initial={name: request.GET.get(name, "") for name in names}))
    form = AddForm(request.POST)
    if not form.is_valid():
        return _form(request, form, status=422)
    values = form.cleaned_data
    duplicate = None if values["again"] else _duplicate(form.owner, values["text"])
    if duplicate is not None:
        return _form(request, form, status=409, duplicate=duplicate)
    added = add_by_hand(
        form.owner,
        category=values["category"],
        text=values["text"],
        agent_id=values["agent"],
        origin="panel",
        actor=actor_of(request),
    )
    messages.success(request, _("Memory added. Agents can find it now."))
    return redirect("console:memory", row=added.row)


def _duplicate(owner: Owner, text: str) -> StoredMemory | None:
    """Return a memory with the same normalized text. Similar texts do not count: they may state different facts."""
    command = SearchCommand(query=text, scopes=frozenset({"all_user_memory"}), method="keyword", include_profile=False)
    hits = [found.hit for found in search(owner, command).results if fold(found.hit.text) == fold(text)]
    rows = queries.stored_of((owner, hit.memory_id) for hit in hits)
    return next(iter(rows.values()), None)


def _form(
    request: HttpRequest, form: AddForm, *, status: int = 200, duplicate: StoredMemory | None = None
) -> HttpResponseBase:
    context: dict[str, Any] = {
        "title": _("Add memory"),
        "form": form,
        "duplicate": duplicate,
        "max_chars": MAX_TEXT_CHARS,
        "groups": [[(one, categories.label(one)) for one in names] for names in categories.TABS.values()],
        "options": browse.facets(Selection(), limit=100),
    }
    return render(request, "console/add.html", context, status=status)
