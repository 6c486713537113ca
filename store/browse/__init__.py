"""Browsing of memories for operators, of one user or of all users, over the rows and their rollups."""

from store.browse.counts import (
    BANDS,
    Count,
    Dashboard,
    Facets,
    count,
    count_in_others,
    counts_by_category,
    dashboard,
    facets,
)
from store.browse.matches import Match, matches
from store.browse.memory_lists import (
    BrowsePage,
    Turn,
    TurnPage,
    get,
    get_many,
    keys,
    lengths,
    offset_page,
    page,
    turn_page,
)
from store.browse.selection import Mark, Selection, rows_of

__all__ = [
    "BANDS",
    "BrowsePage",
    "Count",
    "Dashboard",
    "Facets",
    "Mark",
    "Match",
    "Selection",
    "Turn",
    "TurnPage",
    "count",
    "count_in_others",
    "counts_by_category",
    "dashboard",
    "facets",
    "get",
    "get_many",
    "keys",
    "lengths",
    "matches",
    "offset_page",
    "page",
    "rows_of",
    "turn_page",
]
