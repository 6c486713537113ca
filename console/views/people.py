"""The list of users with search, filters and order, also as a CSV file, and the form of a person's name and notes."""

import csv
from collections.abc import Iterator, Sequence
from datetime import timedelta
from io import StringIO
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.db.models import Case, Exists, Max, OuterRef, Q, QuerySet, When
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import services, tenants
from accounts.admin_base import actor_of
from accounts.audit import record
from accounts.models import MemoryUser, UserKey
from console import queries
from console.access import CHANGE, EXPORT, page, record_list, render
from console.filters import UserFilters
from console.forms import PersonForm
from console.keyset import ROWS
from core.errors import existing
from resources.models import Resource
from store.models import Memory, State

VIEW_USERS: Final = "accounts.view_memoryuser"
INACTIVE: Final = timedelta(days=30)
EXPIRING: Final = timedelta(days=14)
_COLUMNS: Final = (
    "user_id", *services.PERSON, "memories", "files", "active_keys", "last_call", "created_at"
)  # fmt: skip
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@page(VIEW_USERS, reach="lists")
def users(request: HttpRequest) -> HttpResponseBase:
    filters = UserFilters(reverse("console:users"), request.GET)
    found = narrowed(filters)
    total, start = found.count(), filters.rows_before
    rows = _rows_of(_ordered(filters, found, slice(start, start + ROWS)))
    context: dict[str, Any] = {
        "title": _("Users"),
        "filters": filters,
        "rows": rows,
        "has_names": any(row["user"].name for row in rows),
        "total": total,
        "orders": {name: filters.first_page(sort=name) for name in ("", "name", "memories", "used", "created")},
        "previous": filters.first_page(start=str(max(0, start - ROWS) or "")) if start else "",
        "following": filters.first_page(start=str(start + ROWS)) if total > start + ROWS else "",
        "csv": UserFilters(reverse("console:users-csv"), filters.unpaged()).url(),
    }
    record_list(request, "user.list", filters, (row["user"].user_id for row in rows))
    return render(request, "console/users.html", context)


@page(EXPORT, reach="lists")
def users_csv(request: HttpRequest) -> HttpResponseBase:
    """Send the users of a list as a CSV file."""
    filters = UserFilters(reverse("console:users-csv"), request.GET)
    found = _ordered(filters, narrowed(filters), slice(None))
    record_list(request, "user.list", filters, (user.user_id for user in found))
    response = StreamingHttpResponse(_lines(found), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="users.csv"'
    return response


@page(CHANGE, "GET", "POST", reach="user")
def describe(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Show and save the form of what operators know of a person."""
    found = existing(services.active_users().filter(pk=pk), _("There is no such user."))
    values = {name: getattr(found, name) for name in services.PERSON}
    form = PersonForm(request.POST) if request.method == "POST" else PersonForm(initial=values)
    if tenants.current() is not None:
        del form.fields["tenant"]  # else the user could leave the operator's reach
    if form.is_valid():
        services.describe_user(pk, form.cleaned_data, actor=actor_of(request))
        messages.success(request, _("Saved."))
        return redirect("console:user", pk=pk)
    record(actor_of(request), "user.view", str(pk), user_id=found.user_id, detail={"view": "edit"})
    context = {"title": _("Edit person"), "person": found, "form": form}
    return render(request, "console/person_edit.html", context, status=422 if form.errors else 200)


def narrowed(filters: UserFilters) -> QuerySet[MemoryUser]:
    """Return the users that the filters leave, each with the number of live keys."""
    values, now = filters.cleaned_data, timezone.now()
    keys, of_user = UserKey.objects.filter(user=OuterRef("pk")), {"user": OuterRef("pk"), "state": State.LIVE}
    ends = keys.filter(services.live_key_condition(), expires_at__lt=now + EXPIRING)
    conditions = {
        "inactive": ~Exists(keys.filter(last_used_at__gte=now - INACTIVE)) & Q(created_at__lt=now - INACTIVE),
        "failures": Q(Exists(Resource.objects.filter(**of_user, status=Resource.Status.FAILED))),
        "empty": Q(~Exists(Memory.objects.filter(**of_user))),
        "expiring": Q(Exists(ends)) | Q(next_expiry_at__lt=now + EXPIRING),
    }
    found = services.with_live_keys(services.active_users()).filter(conditions.get(values["state"], Q()))
    return found.filter(services.person_condition(values["q"])) if values["q"] else found


def _ordered(filters: UserFilters, found: QuerySet[MemoryUser], part: slice) -> list[MemoryUser]:
    """Return a part of the users in the order of the list; those without memories or calls come last."""
    sort = filters.data["sort"]
    if sort in {"memories", "used"}:
        top = queries.users_with_most_memories() if sort == "memories" else queries.latest_users()
        wanted = dict.fromkeys(found.order_by("user_id").values_list("pk", flat=True))
        pks = _first(top, wanted)[part]
        by_pk = found.in_bulk(pks)
        return [by_pk[pk] for pk in pks if pk in by_pk]
    is_named = Case(When(name="", then=1), default=0)
    orders = {"name": (is_named, "name", "user_id"), "created": ("-created_at", "user_id")}
    return list(found.order_by(*orders.get(sort, ("user_id",)))[part])


def _first(top: Sequence[UUID], wanted: dict[UUID, None]) -> list[UUID]:
    """Return the wanted users, those of `top` first."""
    first = [pk for pk in top if pk in wanted]
    others = set(first)
    return [*first, *(pk for pk in wanted if pk not in others)]


def _rows_of(found: Sequence[MemoryUser]) -> list[dict[str, Any]]:
    """Return users with their counts: four statements."""
    pks = [user.pk for user in found]
    memories = queries.memories_of_users(pks)
    files = queries.counts_by("user", Resource.objects.filter(user__in=pks, state=State.LIVE))
    keys = UserKey.objects.filter(user__in=pks).order_by().values_list("user")
    used = dict(keys.annotate(last=Max("last_used_at")))
    imitated = queries.imitations(user.user_id for user in found)
    return [
        {
            "user": user,
            "keys": vars(user)["live_key_count"],
            "memories": memories.get(user.pk, 0),
            "files": files.get(user.pk, 0),
            "used": used.get(user.pk),
            "imitated": imitated.get(user.user_id),
        }
        for user in found
    ]


def _lines(found: Sequence[MemoryUser]) -> Iterator[str]:
    """Yield the lines of the CSV file. An apostrophe precedes what a spreadsheet would take for a formula."""
    yield _line(_COLUMNS)
    for first in range(0, len(found), ROWS):
        for row in _rows_of(found[first : first + ROWS]):
            user = row["user"]
            times = [at.isoformat() if at else "" for at in (row["used"], user.created_at)]
            person = [user.user_id, *(getattr(user, name) for name in services.PERSON)]
            yield _line([*person, row["memories"], row["files"], row["keys"], *times])


def _line(values: Sequence[object]) -> str:
    written = StringIO()
    plain = (f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value for value in values)
    csv.writer(written).writerow(plain)
    return written.getvalue()
