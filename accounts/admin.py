from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import services
from accounts.admin_base import BaseAdmin, ReadOnlyAdmin, ServiceFormAdmin, actor_of, attempt
from accounts.admin_tokens import RpcTokenAdmin
from accounts.audit import record
from accounts.forms import (
    CreateUserForm,
    IssueKeyForm,
    OperatorSignInForm,
    RevokeForm,
    RotateKeyForm,
    expiry_of,
)
from accounts.models import AuditEvent, MemoryUser, RpcToken, SignInThrottle, UserKey
from accounts.services import IssuedKey

if TYPE_CHECKING:
    KeyInlineBase = admin.TabularInline[UserKey, MemoryUser]
    OperatorBase = UserAdmin[User]
else:
    KeyInlineBase = admin.TabularInline
    OperatorBase = UserAdmin

admin.site.login_form = OperatorSignInForm
admin.site.site_title = admin.site.site_header = "Memory Gateway"
admin.site.index_title = "Operations"


class KeyShowingAdmin(ServiceFormAdmin):
    def show_key(self, request: HttpRequest, issued: IssuedKey) -> HttpResponse:
        return self.show_once(request, issued, template="admin/accounts/key_once.html", title=_("New key"))


@admin.register(MemoryUser)
class MemoryUserAdmin(KeyShowingAdmin):
    list_display = ("user_id", "live_keys", "created_at")
    list_filter = ("created_at",)
    search_fields = ("user_id__startswith",)
    search_help_text = gettext_lazy("The beginning of a user id.")
    fields = ("user_id", "id", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryUser]:
        return services.with_live_keys(MemoryUser.objects.all())

    def get_inlines(self, request: HttpRequest, obj: Any) -> list[type[Any]]:
        return [KeyInline]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.add_memoryuser")

    @admin.display(description=gettext_lazy("live keys"), ordering="live_key_count")
    def live_keys(self, user: MemoryUser) -> int:
        count: int = vars(user)["live_key_count"]
        return count

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = CreateUserForm(request.POST or None)
        if form.is_valid():
            user_id = form.cleaned_data["user_id"]
            issued = attempt(form, lambda: services.create_new_user(user_id, actor=actor_of(request)))
            if issued:
                return self.show_key(request, issued)
        return self.form_page(request, form, _("Add memory user"), action=_("Create user and key"))


class KeyInline(KeyInlineBase):
    model = UserKey
    fields = readonly_fields = ("prefix", "label", "created_at", "expires_at", "revoked_at", "last_used_at")
    show_change_link = True
    can_delete = False
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class StateFilter(admin.SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("live", _("live")),
            ("expired", _("expired")),
            ("revoked", _("revoked")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[UserKey]) -> QuerySet[UserKey]:
        conditions = {
            "live": services.is_live_key(),
            "expired": Q(revoked_at__isnull=True, expires_at__lte=timezone.now()),
            "revoked": Q(revoked_at__isnull=False),
        }
        return queryset.filter(conditions.get(self.value() or "", Q()))


@admin.register(UserKey)
class UserKeyAdmin(KeyShowingAdmin):
    list_display = ("prefix", "user", "label", "is_live", "created_at", "expires_at", "revoked_at", "last_used_at")
    list_filter = (StateFilter, "created_at")
    list_select_related = ("user",)
    search_fields = ("user__user_id__startswith", "prefix__startswith", "label__startswith")
    search_help_text = gettext_lazy("The beginning of a user id, a key or a label.")
    fields = ("user", "prefix", "label", "created_at", "expires_at", "revoked_at", "last_used_at")
    change_form_template = "admin/accounts/userkey/change_form.html"

    @admin.display(boolean=True, description=gettext_lazy("live"))
    def is_live(self, key: UserKey) -> bool:
        return services.is_live(key)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<path:object_id>/rotate/", wrap(self.rotate_view), name="accounts_userkey_rotate"),
            path("<path:object_id>/revoke/", wrap(self.revoke_view), name="accounts_userkey_revoke"),
            *super().get_urls(),
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.add_userkey")

    def has_rotate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.rotate_userkey")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.revoke_userkey")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        may = {"may_rotate": self.has_rotate_permission(request), "may_revoke": self.has_revoke_permission(request)}
        return super().change_view(request, object_id, form_url, {**may, **(extra_context or {})})

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = IssueKeyForm(request.POST or None, initial={"user_id": request.GET.get("user_id", "")})
        if form.is_valid():
            issued = attempt(form, lambda: self._issue(request, form))
            if issued:
                return self.show_key(request, issued)
        return self.form_page(request, form, _("Add key"), action=_("Make key"))

    def rotate_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        if not self.has_rotate_permission(request):
            raise PermissionDenied
        key = self.get_object(request, unquote(object_id))
        if key is None:
            return redirect("admin:accounts_userkey_changelist")
        form = RotateKeyForm(request.POST or None)
        if form.is_valid():
            grace = timedelta(hours=form.cleaned_data["grace_hours"])
            issued = attempt(
                form, lambda: services.rotate_key(key.user_id, key.pk, grace=grace, actor=actor_of(request)).new
            )
            if issued:
                return self.show_key(request, issued)
        return self.form_page(request, form, _("Rotate key"), original=key, action=_("Rotate key"))

    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        key = self.get_object(request, unquote(object_id))
        if key is None:
            return redirect("admin:accounts_userkey_changelist")
        if request.method == "POST":
            services.revoke_key(key.user_id, key.pk, actor=actor_of(request), may_be_last=True)
            messages.success(request, _("The key is revoked: it works no more."))
            return redirect("admin:accounts_userkey_change", key.pk)
        return self.form_page(request, RevokeForm(), _("Revoke key"), original=key, action=_("Revoke key now"))

    def _issue(self, request: HttpRequest, form: IssueKeyForm) -> IssuedKey:
        user = services.find_user(form.cleaned_data["user_id"])
        label, expires_at = form.cleaned_data["label"], expiry_of(form)
        return services.issue_key(user.pk, label=label, expires_at=expires_at, actor=actor_of(request))


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor_kind", "actor", "action", "user_id", "subject_type", "subject_id", "request_id")
    list_filter = ("actor_kind", "at")
    search_fields = ("user_id__exact", "actor__exact", "action__startswith", "subject_id__exact", "request_id__exact")
    search_help_text = gettext_lazy("A user id, actor, subject or request id, whole, or the beginning of an action.")


@admin.register(SignInThrottle)
class SignInThrottleAdmin(ReadOnlyAdmin):
    """Sign-in limits of networks. Deleting a row lets the network try again."""

    list_display = ("network", "failures", "counted_since", "locked_until")
    list_filter = ("locked_until",)
    search_fields = ("network__startswith",)
    fields = ("network", "failures", "counted_since", "locked_until")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("accounts.delete_signinthrottle")

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for row in queryset:
            record(actor_of(request), "operator.unlock", subject_type="network", subject_id=row.network)
        return super().log_deletions(request, queryset)


class _AuditedAdmin(BaseAdmin):
    """An admin page that records each change in the audit trail, because its rows grant permissions."""

    show_full_result_count = False

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        self._record(request, "create", obj)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        self._record(request, "change", obj)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for obj in queryset:
            self._record(request, "delete", obj)
        return super().log_deletions(request, queryset)

    def _record(self, request: HttpRequest, verb: str, obj: Model) -> None:
        kind = "operator" if isinstance(obj, User) else "operator_group"
        record(actor_of(request), f"{kind}.{verb}", subject_type=kind, subject_id=str(obj))


class OperatorAdmin(_AuditedAdmin, OperatorBase):
    """The panel's accounts. Memory users do not sign in here."""


class OperatorGroupAdmin(_AuditedAdmin, GroupAdmin):
    pass


admin.site.register(RpcToken, RpcTokenAdmin)
admin.site.unregister([User, Group])
admin.site.register(User, OperatorAdmin)
admin.site.register(Group, OperatorGroupAdmin)
