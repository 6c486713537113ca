"""Admin pages of operators and their audit trail; importing `admin_keys` registers those of users and credentials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy, gettext_noop

from accounts import admin_keys, operators  # noqa: F401 - `admin_keys` registers pages
from accounts.admin_base import BaseAdmin, ReadOnlyAdmin, actor_of
from accounts.audit import record
from accounts.forms import OperatorSignInForm
from accounts.models import (
    AuditBatch,
    AuditDigest,
    AuditEvent,
    AuditSubject,
    Case,
    Controls,
    IdempotencyKey,
    OAuthClient,
    OAuthConnection,
    OAuthToken,
    OperatorIdentity,
    OperatorTenant,
    Pause,
    PortalLink,
    QueueLevel,
    RefusedMessage,
    SavedView,
    SecondFactor,
    SignInThrottle,
)

if TYPE_CHECKING:
    OperatorBase = UserAdmin[User]
else:
    OperatorBase = UserAdmin

admin.site.login_form = OperatorSignInForm
admin.site.site_title = admin.site.site_header = "Memory Gateway"
# Hidden labels of Django's pages that its own catalogs lack.
_LABELS = (gettext_noop("Model name"), gettext_noop("Add link"), gettext_noop("Change or view list link"))


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor_kind", "actor", "action", "user_id", "subject_type", "subject_id", "request_id")
    list_filter = ("actor_kind", "at")
    search_fields = (
        "subjects__user_id__exact", "actor__exact", "action__startswith", "subject_id__exact", "request_id__exact",
    )  # fmt: skip
    search_help_text = gettext_lazy("Exact user ID, actor, subject or request ID, or the start of an action.")

    def users_of(self, rows: Sequence[Any]) -> set[str]:
        return {row.user_id for row in rows} - {""}


@admin.register(AuditSubject)
class AuditSubjectAdmin(ReadOnlyAdmin):
    """The users of each event."""

    list_display = ("user_id", "event")
    list_filter = ("event__kind",)
    list_select_related = ("event",)
    search_fields = ("user_id__exact",)
    raw_id_fields = ("event",)

    def users_of(self, rows: Sequence[Any]) -> set[str]:
        return {row.user_id for row in rows}


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
            record(actor_of(request), "operator.unlock", row.network, subject_type="network")
        return super().log_deletions(request, queryset)


@admin.register(OperatorIdentity)
class OperatorIdentityAdmin(ReadOnlyAdmin):
    """Accounts of operators at the OpenID Connect provider."""

    list_display = ("operator", "issuer", "subject", "created_at")
    list_filter = ("created_at",)
    list_select_related = ("operator",)
    search_fields = ("operator__username__exact", "subject__exact")


@admin.register(OperatorTenant)
class OperatorTenantAdmin(ReadOnlyAdmin):
    """The tenants to which operators are limited."""

    list_display = ("operator", "tenant")
    list_filter = ("tenant",)
    list_select_related = ("operator",)
    search_fields = ("operator__username__exact", "tenant__exact")


@admin.register(AuditBatch)
class AuditBatchAdmin(ReadOnlyAdmin):
    """The chain over the audit trail."""

    list_display = ("id", "sealed_at", "count", "last_event", "root", "is_dropped")
    list_filter = ("sealed_at", "is_dropped")
    search_fields = ("root__exact",)


@admin.register(AuditDigest)
class AuditDigestAdmin(ReadOnlyAdmin):
    list_display = ("event_id", "batch", "value", "is_released")
    list_filter = ("is_released",)
    list_select_related = ("batch",)
    search_fields = ("event_id__exact",)


@admin.register(Case)
class CaseAdmin(ReadOnlyAdmin):
    """Notes of operators about a subject, with an assignee."""

    list_display = ("subject_type", "subject_id", "user", "assignee", "is_closed", "updated_at")
    list_filter = ("subject_type", "is_closed")
    list_select_related = ("user", "assignee")
    search_fields = ("user__user_id__exact", "subject_id__exact")


@admin.register(QueueLevel)
class QueueLevelAdmin(ReadOnlyAdmin):
    """The levels of queues for which alerts were sent."""

    list_display = ("name", "level")
    list_filter = ("level",)
    search_fields = ("name__exact",)


@admin.register(SavedView)
class SavedViewAdmin(ReadOnlyAdmin):
    """Lists with filters that operators saved."""

    list_display = ("name", "page", "operator", "user", "is_shared", "created_at")
    list_filter = ("page", "is_shared")
    list_select_related = ("operator", "user")
    search_fields = ("operator__username__exact", "name__exact")


@admin.register(SecondFactor)
class SecondFactorAdmin(ReadOnlyAdmin):
    """Operators with a second factor. Nothing of it is shown."""

    list_display = ("operator", "created_at")
    list_filter = ("created_at",)
    list_select_related = ("operator",)
    search_fields = ("operator__username__exact",)
    fields = ("operator", "created_at")


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnlyAdmin):
    """Keys of the last 24 hours."""

    list_display = ("user", "status", "created_at", "leased_until")
    list_filter = ("status", "created_at")
    list_select_related = ("user",)
    search_fields = ("user__user_id__exact",)


@admin.register(OAuthClient)
class OAuthClientAdmin(ReadOnlyAdmin):
    """Applications that registered or described themselves."""

    list_display = ("name", "address", "created_at", "expires_at")
    list_filter = ("created_at",)
    search_fields = ("name__startswith", "id__exact")


@admin.register(OAuthConnection)
class OAuthConnectionAdmin(ReadOnlyAdmin):
    list_display = ("client", "user", "host", "scopes", "created_at", "last_used_at")
    list_filter = ("created_at",)
    list_select_related = ("client", "user")
    search_fields = ("user__user_id__exact", "client__name__startswith")
    exclude = ("code_challenge",)


@admin.register(OAuthToken)
class OAuthTokenAdmin(ReadOnlyAdmin):
    list_display = ("connection", "kind", "scopes", "expires_at", "used_at")
    list_filter = ("kind", "expires_at")
    list_select_related = ("connection__client",)
    search_fields = ("connection__user__user_id__exact",)
    exclude = ("digest",)


@admin.register(PortalLink)
class PortalLinkAdmin(ReadOnlyAdmin):
    list_display = ("id", "user", "key", "frame_origin", "created_at", "opened_at", "expires_at")
    list_filter = ("created_at",)
    list_select_related = ("user", "key")
    search_fields = ("user__user_id__exact",)
    exclude = ("digest",)


@admin.register(Controls)
class ControlsAdmin(ReadOnlyAdmin):
    list_display = ("user",)
    list_filter = ("user__created_at",)
    list_select_related = ("user",)
    search_fields = ("user__user_id__exact",)
    exclude = ("salt",)


@admin.register(Pause)
class PauseAdmin(ReadOnlyAdmin):
    list_display = ("user", "source", "began_at", "ended_at", "actor_kind", "actor")
    list_filter = ("source", "began_at")
    list_select_related = ("user",)
    search_fields = ("user__user_id__exact",)


@admin.register(RefusedMessage)
class RefusedMessageAdmin(ReadOnlyAdmin):
    list_display = ("id", "user", "refused_at")
    list_filter = ("refused_at",)
    list_select_related = ("user",)
    search_fields = ("user__user_id__exact",)
    exclude = ("digest",)


class _AuditedAdmin(BaseAdmin):
    """An admin page of rows that grant permissions.

    It records each change in the audit trail, and ends the sessions and tokens that exceed what is left.
    """

    show_full_result_count = False

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        with self._changing_permissions(request):
            return super().changeform_view(request, object_id, form_url, extra_context)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        with self._changing_permissions(request):
            return super().delete_view(request, object_id, extra_context)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        with self._changing_permissions(request):
            return super().changelist_view(request, extra_context)

    @contextmanager
    def _changing_permissions(self, request: HttpRequest) -> Iterator[None]:
        if request.method != "POST":
            yield
            return
        with operators.changing_permissions(User.objects.filter(is_staff=True), actor=actor_of(request)):
            yield
        session = request.session
        if session.session_key and not session.exists(session.session_key):
            session.flush()  # the own one: saving it would fail

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
        record(actor_of(request), f"{kind}.{verb}", str(obj))


class OperatorAdmin(_AuditedAdmin, OperatorBase):
    """The panel's accounts. Memory users do not sign in here. Only superusers grant permissions beyond roles."""

    filter_horizontal = ()

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_change_permission(request, obj) and not self._is_superior(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not self._is_superior(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what is deleted with operators. Their tokens and identities need no further permission."""
        found, counts, _needed, protected = super().get_deleted_objects(objs, request)
        return found, counts, set(), protected

    def _is_superior(self, request: HttpRequest, obj: Model | None) -> bool:
        """Return True for a superuser, unless a superuser asks."""
        return isinstance(obj, User) and obj.is_superuser and not request.user.is_superuser

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002 - Django's name
        operator = self.get_object(request, unquote(id))
        if request.method == "POST" and operator is not None and hasattr(operator, "identity"):
            raise PermissionDenied
        with self._changing_permissions(request):
            return super().user_change_password(request, id, form_url)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        fields = (*super().get_readonly_fields(request, obj), "last_login", "date_joined")
        return fields if request.user.is_superuser else (*fields, "is_superuser", "user_permissions")


class OperatorGroupAdmin(_AuditedAdmin, GroupAdmin):
    filter_horizontal = ()  # its script labels what screen readers do not read


admin.site.unregister([User, Group])
admin.site.register(User, OperatorAdmin)
admin.site.register(Group, OperatorGroupAdmin)
