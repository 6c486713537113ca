"""The saved views that an operator sees in the menu, with their counts.

A count is at most `MOST` and is kept for a minute, so that the menu costs no page more than one statement: what is
missing is counted after the page, by `console.views.saved_views.counts`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from zlib import crc32

from django.core.cache import cache as process_cache
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from accounts import tenants
from accounts.models import SavedView
from console.filters import Filters, ListFilters, ResourceFilters, SearchFilters, UserFilters

MOST: Final = 1_000
SHOWN: Final = 30
MAX_OF_OPERATOR: Final = 100
KEPT_SECONDS: Final = 60
_Page = SavedView.Page
FILTERS: Final[Mapping[str, type[Filters]]] = {
    _Page.MEMORIES: ListFilters,
    _Page.RESOURCES: ResourceFilters,
    _Page.USERS: UserFilters,
    _Page.SEARCHES: SearchFilters,
}
PERMISSIONS: Final[Mapping[str, str]] = {
    _Page.MEMORIES: "store.view_memory",
    _Page.RESOURCES: "resources.view_resource",
    _Page.USERS: "accounts.view_memoryuser",
    _Page.SEARCHES: "memories.view_loggedsearch",
}


def filters_of(page: str, query: Mapping[str, str]) -> Filters:
    """Return the filters of a list by the query of its address."""
    return FILTERS[page](reverse(f"console:{page}"), query)


def query_of(filters: Filters) -> str:
    """Return the query of a list without the position of its page; empty without filters."""
    return urlencode(filters.unpaged())


def views_of(request: HttpRequest) -> list[SavedView]:
    """Return the views of the operator and those shared with all, of lists that the operator may open.

    One statement for a request.
    """
    found: list[SavedView] | None = getattr(request, "saved_views", None)
    if found is None:
        pages = [page for page, permission in PERMISSIONS.items() if request.user.has_perm(permission)]
        visible = Q(operator=request.user.pk)
        if tenants.of_request(request) is None:  # names may tell of users of other tenants
            visible |= Q(is_shared=True)
        rows = SavedView.objects.filter(visible, page__in=pages).select_related("operator", "user")
        found = list(rows.order_by("name", "pk")[: MAX_OF_OPERATOR * 2])
        request.saved_views = found  # type: ignore[attr-defined]
    return found


def menu(request: HttpRequest, here: str) -> dict[str, Any]:
    """Return the views for the menu, and if a count is missing. `here` is the address of the page that shows it."""
    shown = views_of(request)[:SHOWN]
    with tenants.limited_to(tenants.of_request(request)):
        keys = {view: _key(view) for view in shown}
    counts = process_cache.get_many(keys.values()) if shown else {}
    items = [
        {"view": view, "url": url_of(view), "is_here": url_of(view) == here, "count": counts.get(keys[view])}
        for view in shown
    ]
    return {"views": items, "is_due": len(counts) < len(shown), "most": MOST, "here": here}


def url_of(view: SavedView) -> str:
    return f"{reverse(f'console:{view.page}')}?{view.query}"


def remember_count(view: SavedView, count: int, took_seconds: float) -> None:
    """Keep a count for a minute, a slow one for longer."""
    process_cache.set(_key(view), count, KEPT_SECONDS + int(took_seconds * 100))


def without_count(views: Iterable[SavedView]) -> list[SavedView]:
    views = list(views)
    known = process_cache.get_many([_key(view) for view in views])
    return [view for view in views if _key(view) not in known]


def _key(view: SavedView) -> str:
    return f"saved-view-{view.pk}-{crc32(repr((view.query, tenants.current())).encode())}"
