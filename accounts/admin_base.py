"""Base classes of the admin pages: rows that belong to services are read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _

from accounts.audit import Actor, record

if TYPE_CHECKING:
    BaseAdmin = admin.ModelAdmin[Any]
else:
    BaseAdmin = admin.ModelAdmin


class ReadOnlyAdmin(BaseAdmin):
    """A read-only page."""

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


class PersonalAdmin(ReadOnlyAdmin):
    """A read-only page of rows with a `user` and this user's text or files. The audit trail records each view.

    Search compares whole identifiers only: these pages are not for searching users' text.
    """

    search_help_text = _("Exact user ID or other ID.")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response = super().changelist_view(request, extra_context)
        if isinstance(response, TemplateResponse) and response.context_data:
            users = sorted({row.user.user_id for row in response.context_data["cl"].result_list})
            if users:
                only_user = users[0] if len(users) == 1 else ""
                self._record(request, "list", subject_id="", user_id=only_user, detail={"users": users})
        return response

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response = super().change_view(request, object_id, form_url, extra_context)
        if isinstance(response, TemplateResponse) and response.context_data:
            shown = response.context_data["original"]
            self._record(request, "view", subject_id=str(shown.pk), user_id=shown.user.user_id)
        return response

    def _record(self, request: HttpRequest, verb: str, **subject: Any) -> None:
        name = str(self.opts.model_name)
        record(actor_of(request), f"{name}.{verb}", **subject)


def actor_of(request: HttpRequest) -> Actor:
    """Return the signed-in operator."""
    return Actor.operator(request.user.get_username())
