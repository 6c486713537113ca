"""Saved views: lists with filters under a name, own or shared with all operators, in the menu with their counts."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast
from urllib.parse import parse_qsl

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.admin_base import actor_of
from accounts.audit import record
from accounts.models import MemoryUser, SavedView
from console import queries, saved_views
from console.access import CHANGE, next_address, page, render
from console.filters import ListFilters, ResourceFilters, SearchFilters, UserFilters
from console.forms import SavedViewForm
from console.views import people, resources, search
from console.views.memories import count_of
from core.errors import Conflict, InvalidInput, existing
from core.rest import Forbidden

BUDGET_SECONDS: Final = 1.0
"""The time after which the other counts wait for the next page."""


def _bounded(rows: QuerySet[Any]) -> int:
    return rows.order_by()[: saved_views.MOST].count()


def _of_memories(filters: ListFilters) -> int:
    return count_of(filters, timezone.now(), saved_views.MOST)


def _of_resources(filters: ResourceFilters) -> int:
    return _bounded(resources.of_state(filters, resources.narrowed(filters)))


def _of_users(filters: UserFilters) -> int:
    return _bounded(people.narrowed(filters))


def _of_searches(filters: SearchFilters) -> int:
    return _bounded(search.narrowed(filters))


_COUNTS: Final[Mapping[str, Callable[[Any], int]]] = {
    SavedView.Page.MEMORIES: _of_memories,
    SavedView.Page.RESOURCES: _of_resources,
    SavedView.Page.USERS: _of_users,
    SavedView.Page.SEARCHES: _of_searches,
}


@page("", reach="lists")
def views(request: HttpRequest) -> HttpResponseBase:
    """List the views with the filters of each."""
    found = saved_views.views_of(request)
    listed = [
        {
            "view": view,
            "url": saved_views.url_of(view),
            "chips": saved_views.filters_of(view.page, dict(parse_qsl(view.query))).chips(),
            "may_delete": _may_delete(request, view),
        }
        for view in found
    ]
    users = {view.user.user_id for view in found if view.user}
    record(actor_of(request), "view.list", subject_type="view", users=users)
    return render(request, "console/saved_views.html", {"title": _("Saved views"), "listed": listed})


@page("", reach="lists")
def counts(request: HttpRequest) -> HttpResponseBase:
    """Count what the menu lacks, and send its list of views."""
    started_at = time.monotonic()
    for view in saved_views.without_count(saved_views.views_of(request)[: saved_views.SHOWN]):
        begun_at = time.monotonic()
        if begun_at - started_at > BUDGET_SECONDS:
            break
        number = _COUNTS[view.page](saved_views.filters_of(view.page, dict(parse_qsl(view.query))))
        saved_views.remember_count(view, number, time.monotonic() - begun_at)
    here = next_address(request, "")
    return render(request, "console/parts/views.html", {**saved_views.menu(request, here), "is_due": False})


@page("", "POST", reach="lists")
def save(request: HttpRequest) -> HttpResponseBase:
    """Save the list from which the form was sent, in the place of the operator's view of that name."""
    form = SavedViewForm(request.POST)
    back = next_address(request, reverse("console:views"))
    if not form.is_valid():
        raise InvalidInput(" ".join(str(error) for errors in form.errors.values() for error in errors))
    values = form.cleaned_data
    if not request.user.has_perm(saved_views.PERMISSIONS[values["page"]]):
        raise Forbidden(_("You may not open this list."))
    is_shared = values["is_shared"] and request.user.has_perm(CHANGE)
    filters = saved_views.filters_of(values["page"], dict(parse_qsl(values["query"])))
    query = saved_views.query_of(filters)
    if filters.problems or not query:
        raise InvalidInput(_("Choose a filter first."))
    operator = cast("User", request.user)
    own = SavedView.objects.filter(operator=operator)
    if own.exclude(name=values["name"]).count() >= saved_views.MAX_OF_OPERATOR:
        raise Conflict(_("You have too many views. Delete one first."))
    user_pk = queries.user_pk(filters.data.get("user", ""))
    named = MemoryUser.objects.filter(pk=user_pk).first() if user_pk else None
    view, _is_new = SavedView.objects.update_or_create(
        operator=operator,
        name=values["name"],
        defaults={"page": values["page"], "query": query, "is_shared": is_shared, "user": named},
    )
    detail = {"page": view.page, "is_shared": is_shared}
    record(actor_of(request), "view.save", str(view.pk), user_id=named.user_id if named else "", detail=detail)
    messages.success(request, _("View saved. It is in the menu."))
    return redirect(back)


@page("", "POST", reach="lists")
def delete(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Delete a view: one's own, superusers any."""
    known = saved_views.views_of(request)
    view = existing(
        SavedView.objects.filter(pk__in=[one.pk for one in known if one.pk == pk]), _("There is no such view.")
    )
    if not _may_delete(request, view):
        raise Forbidden(_("Only the operator who saved this view may delete it."))
    view.delete()
    record(actor_of(request), "view.delete", str(pk))
    messages.success(request, _("View deleted."))
    return redirect(next_address(request, reverse("console:views")))


def _may_delete(request: HttpRequest, view: SavedView) -> bool:
    return view.operator_id == request.user.pk or request.user.is_superuser
