"""Base classes of the admin pages: rows that belong to services are read-only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib import admin
from django.db.models import ForeignKey, Model, Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _

from accounts.audit import Actor, record
from accounts.models import MemoryUser

if TYPE_CHECKING:
    BaseAdmin = admin.ModelAdmin[Any]
else:
    BaseAdmin = admin.ModelAdmin

_KEY: Final = re.compile("[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAMES_AT_ONCE: Final = 500


class ReadOnlyAdmin(BaseAdmin):
    """A read-only page. The audit trail records each view that shows users: those to whom the rows refer."""

    actions = None
    list_per_page = 50
    list_max_show_all = 200
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def users_of(self, rows: Sequence[Any]) -> set[str]:
        """Return the ids of the users whom a page with these rows shows. At most one statement."""
        model = type(rows[0]) if rows else self.model
        paths = _paths(model)
        if not rows or not paths:
            return set()
        shown = model._default_manager.filter(pk__in=[row.pk for row in rows])  # noqa: SLF001
        return {name for names in shown.order_by().values_list(*paths) for name in names if name}

    def users_of_row(self, row: Any) -> set[str]:
        """Return the ids of the users whom the page of a row shows, with all its fields."""
        return self.users_of([row])

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response = super().changelist_view(request, extra_context)
        if isinstance(response, TemplateResponse) and response.context_data and "cl" in response.context_data:
            self._record(request, "list", users=self.users_of(list(response.context_data["cl"].result_list)))
        return response

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response = super().change_view(request, object_id, form_url, extra_context)
        self._record_original(request, response, "original")
        return response

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response = super().history_view(request, object_id, extra_context)
        self._record_original(request, response, "object")
        return response

    def _record_original(self, request: HttpRequest, response: HttpResponse, name: str) -> None:
        if isinstance(response, TemplateResponse) and response.context_data:
            shown = response.context_data[name]
            self._record(request, "view", subject_id=str(shown.pk), users=self.users_of_row(shown))

    def _record(self, request: HttpRequest, verb: str, *, users: Collection[str], **subject: Any) -> None:
        if users:
            record(actor_of(request), f"{self.opts.model_name}.{verb}", users=users, **subject)


class PersonalAdmin(ReadOnlyAdmin):
    """A read-only page of rows with a `user` and this user's text or files.

    Search compares whole identifiers only: these pages are not for searching users' text.
    """

    search_help_text = _("Exact user ID or other ID.")


def _paths(model: type[Model], depth: int = 3) -> list[str]:
    """Return the look-ups of the user ids that rows of a model show: its own, and those of rows that it refers to.

    A reference is followed through three tables: a page shows the rows that it refers to by their names.
    """
    if model is MemoryUser:
        return ["user_id"]
    found = []
    for field in model._meta.concrete_fields:  # noqa: SLF001
        if isinstance(field, ForeignKey) and depth:
            found += [f"{field.name}__{path}" for path in _paths(field.related_model, depth - 1)]
    return found


def users_named(names: Iterable[str]) -> set[str]:
    """Return the ids of the users that have one of the names as their id or key; not of erased ones."""
    found: set[str] = set()
    texts = sorted(set(names))
    for start in range(0, len(texts), _NAMES_AT_ONCE):
        batch = texts[start : start + _NAMES_AT_ONCE]
        keys = [UUID(text) for text in batch if _KEY.fullmatch(text)]
        users = MemoryUser.objects.filter(Q(user_id__in=batch) | Q(pk__in=keys))
        found.update(users.values_list("user_id", flat=True))
    return found


def actor_of(request: HttpRequest) -> Actor:
    """Return the signed-in operator."""
    return Actor.operator(request.user.get_username())
