"""The lists of memories: three tabs of the document and all, filtered, searched, paged by key."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from console import finding, queries, reads
from console.access import VIEW, page, render
from console.filters import ALL_TAB, ORIGINS, TAB_LABELS, ListState, write_position
from console.selecting import seal
from console.text import Shown, shown
from core.errors import GatewayError
from core.sentences import told
from operations import bulk
from store import browse, categories
from store.browse import Facets, Selection
from store.types import StoredMemory

ROWS, TURNS = 50, 12
MAX_COUNTED = 2_000


@page(VIEW)
@require_GET
def memories(request: HttpRequest) -> HttpResponseBase:
    state = ListState.read(reverse("console:memories"), request.GET)
    now = timezone.now()
    user_pk = queries.user_pk(state.user) if state.user else None
    context: dict[str, Any] = {
        "title": _("Memories"),
        "state": state,
        "tabs": [],
        "problems": [*state.problems, *_impossible(state, now, user_pk)],
        "origins": ORIGINS,
        "is_off": _is_off(state.tab),
    }
    if _impossible(state, now, user_pk):
        return render(request, "console/memories.html", {**context, "tabs": _tabs(state, {}), "chips": state.chips()})
    context |= _content(request, state, state.selection(now, user_pk))
    return render(request, "console/memories.html", context)


def _impossible(state: ListState, now: datetime, user_pk: UUID | None) -> list[str]:
    """Why these filters can match nothing at all."""
    found = []
    if state.user and user_pk is None:
        found.append(_("There is no user %(user)s.") % {"user": state.user})
    if state.is_backwards(now):
        found.append(_("The start lies after the end."))
    return found


def _content(request: HttpRequest, state: ListState, selection: Selection) -> dict[str, Any]:
    facets = browse.facets(selection, limit=100)
    context: dict[str, Any] = {
        "options": facets,
        "other_order": state.first_page(sort="newest" if state.oldest_first else "oldest"),
        "choices": _choices(state.tab),
        "chips": state.chips(),
        "target": seal(bulk.freeze(selection)),
    }
    if state.q:
        context |= _search(state, selection, facets)
    elif state.tab == "full":
        context |= _turns(state, selection)
    else:
        context |= _rows(state, selection)
    counts = {count.key: count.count for count in facets.categories} if state.is_whole else {}
    context["tabs"] = _tabs(state, counts)
    reads.listed(request, "memory.list", state, (memory.owner.user_id for memory in context.pop("read")))
    return context


def _rows(state: ListState, selection: Selection) -> dict[str, Any]:
    found = browse.page(selection, **state.places(), limit=ROWS, oldest_first=state.oldest_first)
    total, written = _total(selection)
    return {
        "rows": _shown(found.memories),
        "read": found.memories,
        "total": total,
        "written_total": written,
        "summary": ngettext("%(count)s matches", "%(count)s match", total) % {"count": written},
        "span": _("%(here)s of %(total)s on this page") % {"here": len(found.memories), "total": written},
        **_neighbours(state, found),
    }


def _turns(state: ListState, selection: Selection) -> dict[str, Any]:
    found = browse.turn_page(selection, **state.places(), limit=TURNS, oldest_first=state.oldest_first)
    memories = [memory for turn in found.turns for memory in turn.memories]
    lines = {line.memory.row: line for line in _shown(memories)}
    total, written = _total(selection)
    return {
        "turns": [
            {"batch_id": turn.batch_id, "first": turn.memories[0], "lines": [lines[one.row] for one in turn.memories]}
            for turn in found.turns
        ],
        "read": memories,
        "total": total,
        "written_total": written,
        "summary": ngettext("%(count)s message matches", "%(count)s messages match", total) % {"count": written},
        "span": ngettext("%(count)s turn on this page", "%(count)s turns on this page", len(found.turns))
        % {"count": len(found.turns)},
        **_neighbours(state, found),
    }


def _search(state: ListState, selection: Selection, facets: Facets) -> dict[str, Any]:
    """The best hits, without pages: what is not among them is found by other words."""
    users = [UUID(count.key) for count in facets.users] if selection.user_pk is None else [selection.user_pk]
    try:
        answer = finding.find(state.q, selection, users, limit=ROWS)
    except GatewayError as error:
        return {"read": (), "rows": [], "total": 0, "search_error": told(error.detail)}
    memories = [memory for memory, _score in answer.found]
    scores = {memory.row: score for memory, score in answer.found}
    return {
        "rows": _shown(memories, scores),
        "read": memories,
        "total": 0,
        "answer": answer,
        "summary": ngettext("%(count)s best match", "%(count)s best matches", len(memories)) % {"count": len(memories)},
    }


def _shown(memories: Any, scores: dict[int, float | None] | None = None) -> list[Shown]:
    """Memories with what belongs beside them: two statements for all."""
    stored: list[StoredMemory] = list(memories)
    edited = queries.edited([memory.row for memory in stored])
    files = queries.source_files(stored)
    return [
        shown(
            memory,
            is_edited=memory.row in edited,
            filename=files[memory.session_id].filename if memory.session_id in files else "",
            score=(scores or {}).get(memory.row),
        )
        for memory in stored
    ]


def _neighbours(state: ListState, found: Any) -> dict[str, str]:
    """The addresses of the pages before and after, in the order shown."""
    previous, following = (found.older, found.newer) if state.oldest_first else (found.newer, found.older)
    return {
        "previous": "" if previous is None else state.first_page(before=write_position(previous)),
        "following": "" if following is None else state.first_page(after=write_position(following)),
    }


def _total(selection: Selection) -> tuple[int, str]:
    """How many match, and how that is written: beyond a point only that there are more."""
    total = browse.count(selection, at_most=MAX_COUNTED)
    return total, f"{total:,}+" if total == MAX_COUNTED else f"{total:,}"


def _tabs(state: ListState, counts: dict[str, int]) -> list[dict[str, Any]]:
    """The tabs keep the filters, but for a category that belongs to one of them. Numbers stand there as long as the
    counts know all the filters."""
    sums = {tab: sum(counts.get(category, 0) for category in held) for tab, held in categories.TABS.items()}
    sums[ALL_TAB] = sum(counts.values())
    return [
        {
            "name": tab,
            "label": label,
            "count": sums[tab] if counts else None,
            "url": state.first_page(tab=tab, category=""),
            "is_on": tab == state.tab,
        }
        for tab, label in TAB_LABELS.items()
    ]


def _choices(tab: str) -> list[tuple[str, Any]]:
    of_tab = categories.CATEGORIES if tab == ALL_TAB else categories.TABS[tab]
    return [(category, categories.label(category)) for category in of_tab]


def _is_off(tab: str) -> bool:
    """Whether the settings keep this kind no more; what is stored stays listed."""
    switches = {
        "self": settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY,
        "full": settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY,
    }
    return not switches.get(tab, True)
