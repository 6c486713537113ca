"""The lists of memories, one tab for each kind and one for all, with filters, search and pages; and adding one."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import tenants
from accounts.admin_base import actor_of
from console import queries
from console.access import ADD, VIEW, page, record_list, record_view, render
from console.filters import ALL_TAB, TAB_LABELS, Filters, ListFilters
from console.forms import MAX_TEXT_CHARS, AddForm
from console.signed_values import sign_target
from console.text import MemoryItem, memory_item
from console.word_search import WordSearch, search_of
from core.localization import localized
from memories.services.links import LATEST
from memories.services.manual import add_by_hand
from memories.services.scoped_hits import SearchCommand
from memories.services.search import search
from operations import bulk
from store import browse, categories, derived
from store.admission import NotKept
from store.browse import BrowsePage, Match, Selection, TurnPage
from store.text.normalize import fold
from store.text.statements import statements
from store.types import Owner, Position, StoredMemory

ROWS, TURNS = 50, 12
MAX_COUNTED = 2_000


@page(VIEW, reach="lists")
def memories(request: HttpRequest) -> HttpResponseBase:
    filters = ListFilters(reverse("console:memories"), request.GET)
    now = timezone.now()
    user_pk = queries.user_pk(filters.data["user"])
    conflicts = filters.conflicts(now, user_pk)
    filters.problems += conflicts
    # Kinds that the settings switch off are still listed, but no new memories are written.
    switches = {
        "self": settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY,
        "full": settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY,
    }
    context: dict[str, Any] = {
        "title": _("Memories"),
        "filters": filters,
        "is_off": not switches.get(filters.data["tab"], True),
        # Pages of memories get the list's filters, to lead back to it and to the next memory.
        "list_query": urlencode({"tab": filters.data["tab"], **filters.unpaged()}),
    }
    counts: dict[str, int] = {}
    if not conflicts:
        selection = filters.selection(now, user_pk)
        facets = browse.facets(selection, limit=100)
        found = search_of(filters, selection)
        if found:
            selection = found.of_tab(selection)
            counts = _counts_of(found)
        elif filters.are_counts_exact:
            counts = {count.key: count.count for count in facets.categories}
        if counts:
            filters.count_categories(counts)
        context |= {
            "options": facets,
            "found": found,
            "not_indexed": derived.unread_count() if found and tenants.current() is None else 0,
            "other_order": filters.first_page(sort="newest" if filters.order != "newest" else "oldest"),
            "may_jump": not filters.is_ranked,
            "any_words": filters.first_page(match="any"),
            "here_label": TAB_LABELS[filters.data["tab"]],
            "target": sign_target(bulk.freeze(selection)) if selection.is_of_live else "",
        }
        if found and found.matches is not None:
            context |= _matches(filters, selection, found.matches)
        elif filters.data["tab"] == "full" and not found:
            context |= _turns(filters, selection)
        else:
            context |= _rows(filters, selection)
        context["latest"] = LATEST if selection.mark == "replaced" else 0
        record_list(request, "memory.list", filters, (memory.owner.user_id for memory in context.pop("read")))
        is_none = filters.data["tab"] != ALL_TAB and not context["total"]
        context["elsewhere"] = _elsewhere(filters, selection, counts) if is_none else []
    return render(request, "console/memories.html", {**context, "tabs": _tabs(filters, counts)})


def _counts_of(found: WordSearch) -> dict[str, int]:
    """Return the number of matches by category, nothing if there are too many to count."""
    if found.matches is None:
        return browse.counts_by_category(found.selection)
    return Counter(match.category for match in found.matches)


def _elsewhere(filters: ListFilters, selection: Selection, counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the other tabs that have matches, with their numbers, for a tab that has none."""
    others = [tab for tab in _tabs(filters, counts) if tab["name"] not in {filters.data["tab"], ALL_TAB}]
    for tab in others:
        if tab["count"] is None:
            of_tab = replace(selection, tab=tab["name"], categories=())
            tab["count"], tab["written"] = count_up_to(of_tab, MAX_COUNTED)
        else:
            tab["written"] = f"{tab['count']:,}"
    return [tab for tab in others if tab["count"]]


def _matches(filters: ListFilters, selection: Selection, ranked: Sequence[Match]) -> dict[str, Any]:
    """Return the page of ranked memories. Its pages are numbered by rows."""
    wanted = selection.wanted_categories()
    ranked = [match for match in ranked if wanted is None or match.category in wanted]
    if filters.is_ranked:
        ranked = in_order(filters, ranked)
        start = filters.cleaned_data["start"] or 0
        read = browse.get_many([match.row for match in ranked[start : start + ROWS]])
        links = {
            "previous": filters.first_page(start=str(max(0, start - ROWS) or "")) if start else "",
            "following": filters.first_page(start=str(start + ROWS)) if len(ranked) > start + ROWS else "",
        }
    else:
        after, before = filters.bounds()
        page = browse.page(selection, after=after, before=before, limit=ROWS, oldest_first=filters.oldest_first)
        read, links = list(page.memories), page_links(filters, page, oldest_first=filters.oldest_first)
    return _listed(filters, selection, read, len(ranked), f"{len(ranked):,}") | links


def in_order(filters: ListFilters, ranked: Sequence[Match]) -> list[Match]:
    """Return matches, which are sorted by relevance, in the order of the list."""
    if filters.order != "importance":
        return list(ranked)
    return sorted(ranked, key=lambda match: -1.0 if match.importance is None else match.importance, reverse=True)


def _rows(filters: ListFilters, selection: Selection) -> dict[str, Any]:
    after, before = filters.bounds()
    found = browse.page(selection, after=after, before=before, limit=ROWS, oldest_first=filters.oldest_first)
    total, written = count_up_to(selection, MAX_COUNTED)
    links = page_links(filters, found, oldest_first=filters.oldest_first)
    return _listed(filters, selection, found.memories, total, written) | links


def _listed(
    filters: ListFilters, selection: Selection, read: Sequence[StoredMemory], total: int, written: str
) -> dict[str, Any]:
    return {
        "rows": _memory_items(filters, selection, read),
        "read": read,
        "has_importance": any(memory.importance is not None for memory in read),
        "has_agent": any(memory.agent_id for memory in read),
        "total": total,
        "written_total": written,
        "summary": ngettext("%(count)s match", "%(count)s matches", total) % {"count": written},
    }


def _turns(filters: ListFilters, selection: Selection) -> dict[str, Any]:
    after, before = filters.bounds()
    found = browse.turn_page(selection, after=after, before=before, limit=TURNS, oldest_first=filters.oldest_first)
    read = [memory for turn in found.turns for memory in turn.memories]
    items = {item.memory.row: item for item in _memory_items(filters, selection, read)}
    total, written = count_up_to(selection, MAX_COUNTED)
    count = len(found.turns)
    return {
        "turns": [
            {"batch_id": turn.batch_id, "first": turn.memories[0], "lines": [items[one.row] for one in turn.memories]}
            for turn in found.turns
        ],
        "read": read,
        "total": total,
        "written_total": written,
        "summary": ngettext("%(count)s matching message", "%(count)s matching messages", total) % {"count": written},
        "span": ngettext("%(count)s turn on this page", "%(count)s turns on this page", count) % {"count": count},
        **page_links(filters, found, oldest_first=filters.oldest_first),
    }


def _memory_items(filters: ListFilters, selection: Selection, stored: Sequence[StoredMemory]) -> list[MemoryItem]:
    """Return memories with their file names and whether they were edited: two statements for all.

    In the list of one user, those that say something may be replaced: three more statements.
    """
    user_pk = selection.user_pk if selection.is_of_live and any(statements(one.text) for one in stored) else None
    replaced = filters.replaced(user_pk) if user_pk else {}
    edited = queries.edited([memory.row for memory in stored])
    files = queries.source_files(stored)
    return [
        memory_item(
            memory,
            is_edited=memory.row in edited,
            filename=files[memory.session_id].filename if memory.session_id in files else "",
            words=selection.words,
            newer=replaced.get(memory.row),
        )
        for memory in stored
    ]


def page_links(filters: Filters, found: BrowsePage | TurnPage, *, oldest_first: bool = False) -> dict[str, str]:
    """Return the addresses of the previous and the next page."""
    previous, following = (found.older, found.newer) if oldest_first else (found.newer, found.older)
    shown = len(found.memories) if isinstance(found, BrowsePage) else len(found.turns)
    return {
        "previous": filters.further_page(-ROWS, before=write_position(previous)) if previous else "",
        "following": filters.further_page(shown, after=write_position(following)) if following else "",
    }


def write_position(position: Position) -> str:
    return f"{position.created_at_ms}.{position.row}"


def count_up_to(selection: Selection, limit: int, *, among: QuerySet[Any] | None = None) -> tuple[int, str]:
    """Return the number of matches, at most `limit`, and its text: `limit` has a plus sign."""
    total = browse.count(selection, at_most=limit, among=among)
    return total, f"{total:,}+" if total == limit else f"{total:,}"


def count_of(filters: ListFilters, now: datetime, limit: int) -> int:
    """Return the number of memories of a list, at most `limit`."""
    user_pk = queries.user_pk(filters.data["user"])
    if filters.conflicts(now, user_pk):
        return 0
    selection = filters.selection(now, user_pk)
    found = search_of(filters, selection)
    if found and found.matches is not None:
        wanted = selection.wanted_categories()
        return min(limit, sum(wanted is None or match.category in wanted for match in found.matches))
    return min(limit, browse.count(found.of_tab(selection) if found else selection, at_most=limit))


def _tabs(filters: ListFilters, counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the tabs, whose addresses keep all filters except the category. Without `counts` they have no numbers."""
    sums = {tab: sum(counts.get(category, 0) for category in of_tab) for tab, of_tab in categories.TABS.items()}
    sums[ALL_TAB] = sum(counts.values())
    links = filters.links("tab", TAB_LABELS.items(), category="")
    return [{**link, "count": sums[link["name"]] if counts else None} for link in links]


@page(ADD, "GET", "POST", reach="lists")
def add(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        names = ("user", "agent", "category", "app", "project")
        return _add_form(request, AddForm(initial={name: request.GET.get(name, "") for name in names}))
    form = AddForm(request.POST)
    if not form.is_valid():
        return _add_form(request, form, status=422)
    values = form.cleaned_data
    duplicate = None if values["again"] else _duplicate_of(form.owner, values["text"])
    if duplicate is not None:
        record_view(request, duplicate)
        return _add_form(request, form, status=409, duplicate=duplicate)
    try:
        added = add_by_hand(
            form.owner,
            category=values["category"],
            text=values["text"],
            agent_id=values["agent"],
            tags=values["tags"],
            metadata=values["metadata"],
            origin="panel",
            expires_at=values["expires_at"],
            actor=actor_of(request),
        )
    except NotKept as error:
        form.add_error(None, str(localized(error.detail)))
        return _add_form(request, form, status=error.status)
    messages.success(request, _("Memory added. Agents can find it now."))
    return redirect("console:memory", row=added.row)


def _duplicate_of(owner: Owner, text: str) -> StoredMemory | None:
    """Return a memory with the same normalized text. Similar texts do not count: they may state different facts."""
    command = SearchCommand(query=text, scopes=frozenset({"all_user_memory"}), method="keyword", include_profile=False)
    hits = [found.hit for found in search(owner, command).results if fold(found.hit.text) == fold(text)]
    rows = queries.stored_of((owner, hit.memory_id) for hit in hits)
    return next(iter(rows.values()), None)


def _add_form(
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
