"""Base classes of the admin pages: rows that belong to services are read-only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from django import forms
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _

from accounts.audit import Actor, record
from core.errors import GatewayError
from core.sentences import told

if TYPE_CHECKING:
    BaseAdmin = admin.ModelAdmin[Any]
else:
    BaseAdmin = admin.ModelAdmin


_Result = TypeVar("_Result")


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


class ServiceFormAdmin(ReadOnlyAdmin):
    """A read-only page with actions. Each action is a form that calls one service."""

    def form_page(self, request: HttpRequest, form: forms.Form, title: str, **context: Any) -> HttpResponse:
        page = {**self.admin_site.each_context(request), "opts": self.opts, "title": title, "form": form, **context}
        return TemplateResponse(request, "admin/accounts/form.html", page)

    def show_once(self, request: HttpRequest, issued: Any, *, template: str, title: str) -> HttpResponse:
        """Return the secret in the response to the POST: no address, cookie or message holds it."""
        page = {**self.admin_site.each_context(request), "opts": self.opts, "title": title, "issued": issued}
        return TemplateResponse(request, template, page)


class PersonalAdmin(ReadOnlyAdmin):
    """Rows with users' text or files, each with a `user`; every view is recorded in the audit trail.

    Search compares whole identifiers only: these pages are not for searching users' text.
    """

    search_help_text = _("A user id or another id, whole.")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response = super().changelist_view(request, extra_context)
        if isinstance(response, TemplateResponse) and response.context_data:
            self._record_list(request, response.context_data["cl"].result_list)
        return response

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response = super().change_view(request, object_id, form_url, extra_context)
        if isinstance(response, TemplateResponse) and response.context_data:
            shown = response.context_data["original"]
            self._record(request, "view", subject_id=str(shown.pk), user_id=shown.user.user_id)
        return response

    def _record_list(self, request: HttpRequest, rows: Iterable[Any]) -> None:
        users = sorted({row.user.user_id for row in rows})
        if users:
            detail = {"users": users}
            self._record(request, "list", subject_id="", user_id=users[0] if len(users) == 1 else "", detail=detail)

    def _record(self, request: HttpRequest, verb: str, **subject: Any) -> None:
        name = str(self.opts.model_name)
        record(actor_of(request), f"{name}.{verb}", subject_type=name, **subject)


def actor_of(request: HttpRequest) -> Actor:
    """Return the signed-in operator."""
    return Actor.operator(request.user.get_username())


def attempt(form: forms.Form, operation: Callable[[], _Result]) -> _Result | None:
    """Call a service and return its result; if it refuses, add the reason to the form and return None."""
    try:
        return operation()
    except GatewayError as error:
        form.add_error(None, told(error.detail))
        return None
