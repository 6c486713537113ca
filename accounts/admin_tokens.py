"""Admin pages of tokens for OpenClaw clients."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import services, tokens
from accounts.admin_base import ServiceFormAdmin, actor_of, attempt
from accounts.forms import IssueTokenForm, RevokeForm, expiry_of
from accounts.models import RpcToken
from accounts.tokens import IssuedToken


class RpcTokenAdmin(ServiceFormAdmin):
    list_display = ("prefix", "label", "holder", "scopes", "created_at", "expires_at", "revoked_at", "last_used_at")
    list_filter = ("created_at", "revoked_at")
    list_select_related = ("operator", "user")
    search_fields = ("user__user_id__startswith", "prefix__startswith", "label__startswith")
    search_help_text = gettext_lazy("The beginning of a user id, a token or a label.")
    fields = (
        "label",
        "operator",
        "user",
        "scopes",
        "prefix",
        "created_at",
        "expires_at",
        "revoked_at",
        "last_used_at",
    )
    change_form_template = "admin/accounts/rpctoken/change_form.html"

    @admin.display(description=gettext_lazy("belongs to"))
    def holder(self, token: RpcToken) -> str:
        return token.holder

    def get_urls(self) -> list[URLPattern]:
        revoke = self.admin_site.admin_view(self.revoke_view)
        return [path("<path:object_id>/revoke/", revoke, name="accounts_rpctoken_revoke"), *super().get_urls()]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.add_rpctoken")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.revoke_rpctoken")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        may = {"may_revoke": self.has_revoke_permission(request)}
        return super().change_view(request, object_id, form_url, {**may, **(extra_context or {})})

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = IssueTokenForm(request.POST or None)
        if form.is_valid():
            issued = attempt(form, lambda: _issue(request, form))
            if issued:
                return self.show_once(
                    request, issued, template="admin/accounts/token_once.html", title=_("New RPC token")
                )
        return self.form_page(request, form, _("Add RPC token"), action=_("Make token"))

    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        token = self.get_object(request, unquote(object_id))
        if token is None:
            return redirect("admin:accounts_rpctoken_changelist")
        if request.method == "POST":
            tokens.revoke(token.pk, actor=actor_of(request))
            messages.success(request, _("The token is revoked: who is connected with it is sent away within a minute."))
            return redirect("admin:accounts_rpctoken_change", token.pk)
        return self.form_page(request, RevokeForm(), _("Revoke token"), original=token, action=_("Revoke token now"))


def _issue(request: HttpRequest, form: IssueTokenForm) -> IssuedToken:
    data = form.cleaned_data
    return tokens.issue(
        data["label"],
        operator=data["operator"],
        user=services.find_user(data["user_id"]) if data["user_id"] else None,
        scopes=data["scopes"],
        expires_at=expiry_of(form),
        actor=actor_of(request),
    )
