"""Admin pages of memory users, their API keys, and tokens for OpenClaw clients."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import services, tenants, tokens
from accounts.admin_base import ReadOnlyAdmin, actor_of
from accounts.forms import CreateUserForm, IssueKeyForm, IssueTokenForm, RotateKeyForm, expiry_of
from accounts.models import AuditEvent, MemoryUser, RpcToken, UserKey
from accounts.services import IssuedKey
from accounts.tokens import IssuedToken
from core.errors import GatewayError, InvalidInput
from core.localization import localized

ActorKind = AuditEvent.ActorKind
MAX_ACTIONS = 20

if TYPE_CHECKING:
    KeyInlineBase = admin.TabularInline[UserKey, MemoryUser]
else:
    KeyInlineBase = admin.TabularInline


def _activity_of(key: UserKey) -> dict[str, int]:
    """Return how often each action of the audit trail was done with a key, the most frequent first."""
    done = AuditEvent.objects.filter(subjects__user_id=key.user.user_id, actor_kind=ActorKind.KEY, actor=str(key.pk))
    counts = done.order_by().values_list("action").annotate(times=Sum("count")).order_by("-times", "action")
    return dict(counts[:MAX_ACTIONS])


class CredentialAdmin(ReadOnlyAdmin):
    """A page of rows that services create and change. Each of `verbs` has a permission and a page."""

    verbs: ClassVar[tuple[str, ...]] = ()
    once_template = "admin/accounts/key_once.html"
    once_title = gettext_lazy("New API key")

    def home(self, row: Any) -> tuple[str, Any]:
        """Return the address and name of the page that the forms return to: the key's user, or the list of users."""
        return (
            (reverse("console:user", args=[row.user_id]), row.user) if row else (reverse("console:users"), _("Users"))
        )

    def may(self, request: HttpRequest, verb: str) -> bool:
        return request.user.has_perm(f"accounts.{verb}_{self.opts.model_name}")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may(request, "add")

    def get_urls(self) -> list[URLPattern]:
        name, wrap = f"accounts_{self.opts.model_name}", self.admin_site.admin_view
        pages = [
            path(f"<path:object_id>/{verb}/", wrap(getattr(self, f"{verb}_view")), name=f"{name}_{verb}")
            for verb in self.verbs
        ]
        return [*pages, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        may = {f"may_{verb}": self.may(request, verb) for verb in self.verbs}
        return super().change_view(request, object_id, form_url, {**may, **(extra_context or {})})

    def require(self, request: HttpRequest, verb: str) -> None:
        if not self.may(request, verb):
            raise PermissionDenied

    def issue_page(
        self,
        request: HttpRequest,
        form: forms.Form,
        issue: Callable[[], IssuedKey | IssuedToken],
        title: str,
        **context: Any,
    ) -> HttpResponse:
        """Show a form or the issued secret. Only this response holds the secret: no address, cookie or message does."""
        if form.is_valid():
            try:
                issued = issue()
            except GatewayError as error:
                form.add_error(None, localized(error.detail))
            else:
                row = issued.key if isinstance(issued, IssuedKey) else issued.token
                return self.page(request, self.once_template, self.once_title, row, issued=issued)
        response = self.page(request, "admin/accounts/form.html", title, context.get("original"), form=form, **context)
        response.status_code = 422 if form.is_bound else 200
        return response

    def revoke_page(
        self, request: HttpRequest, object_id: str, revoke: Callable[[Any], object], *, success: str, **context: str
    ) -> HttpResponseBase:
        """Ask for confirmation, then revoke the row."""
        self.require(request, "revoke")
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return redirect(f"admin:accounts_{self.opts.model_name}_changelist")
        if request.method == "POST":
            revoke(row)
            messages.success(request, success)
            return redirect(self.home(row)[0])
        hint = _("Requests with it fail at once. This cannot be undone.")
        return self.page(request, "admin/accounts/form.html", row=row, form=forms.Form(), original=row, hint=hint,
                         is_dangerous=True, **context)  # fmt: skip

    def page(self, request: HttpRequest, template: str, title: Any, row: Any = None, **context: Any) -> HttpResponse:
        """Render a page in the panel's frame."""
        if shown := context.get("original"):  # the event of issuing a key names the user of the others
            self._record(request, "view", subject_id=str(shown.pk), users=self.users_of_row(shown))
        address, label = self.home(row)
        frame = {**self.admin_site.each_context(request), "title": title, "home": address, "home_label": label}
        return TemplateResponse(request, template, {**frame, **context})


@admin.register(MemoryUser)
class MemoryUserAdmin(CredentialAdmin):
    list_display = ("user_id", "live_keys", "created_at")
    list_filter = ("created_at",)
    search_fields = ("user_id__startswith",)
    search_help_text = gettext_lazy("Start of a user ID.")
    fields = ("user_id", "id", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryUser]:
        return services.with_live_keys(MemoryUser.objects.all())

    def get_inlines(self, request: HttpRequest, obj: Any) -> list[type[Any]]:
        return [KeyInline]

    @admin.display(description=gettext_lazy("active keys"), ordering="live_key_count")
    def live_keys(self, user: MemoryUser) -> int:
        count: int = vars(user)["live_key_count"]
        return count

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self.require(request, "add")
        form = CreateUserForm(request.POST or None)

        def create() -> IssuedKey:
            return services.create_user(form.cleaned_data["user_id"], actor=actor_of(request), must_be_new=True)

        return self.issue_page(request, form, create, _("Add memory user"), action=_("Create user and API key"))


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
            ("live", _("active")),
            ("expired", _("expired")),
            ("revoked", _("revoked")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[UserKey]) -> QuerySet[UserKey]:
        conditions = {
            "live": services.live_key_condition(),
            "expired": Q(revoked_at__isnull=True, expires_at__lte=timezone.now()),
            "revoked": Q(revoked_at__isnull=False),
        }
        return queryset.filter(conditions.get(self.value() or "", Q()))


@admin.register(UserKey)
class UserKeyAdmin(CredentialAdmin):
    verbs = ("rotate", "revoke")
    list_display = ("prefix", "user", "label", "is_live", "created_at", "expires_at", "revoked_at", "last_used_at")
    list_filter = (StateFilter, "created_at")
    list_select_related = ("user",)
    search_fields = ("user__user_id__startswith", "prefix__startswith", "label__startswith")
    search_help_text = gettext_lazy("Start of a user ID, key or label.")
    fields = (
        *("user", "prefix", "label", "scopes", "app_id", "agent_id"),
        *("created_at", "expires_at", "revoked_at", "last_used_at"),
    )
    change_form_template = "admin/accounts/userkey/change_form.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[UserKey]:
        return tenants.reachable(super().get_queryset(request))

    @admin.display(boolean=True, description=gettext_lazy("active"))
    def is_live(self, key: UserKey) -> bool:
        return services.is_live(key)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self.require(request, "add")
        form = IssueKeyForm(request.POST or None, initial={"user_id": request.GET.get("user_id", "")})

        def issue() -> IssuedKey:
            user = services.find_user(form.cleaned_data["user_id"])
            data = form.cleaned_data
            return services.issue_key(
                user.pk,
                label=data["label"],
                expires_at=expiry_of(form),
                granted=data["scopes"] or None,
                app_id=data["app_id"],
                agent_id=data["agent_id"],
                actor=actor_of(request),
            )

        return self.issue_page(request, form, issue, _("Create API key"), action=_("Create API key"))

    def rotate_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        self.require(request, "rotate")
        key = self.get_object(request, unquote(object_id))
        if key is None:
            return redirect("admin:accounts_userkey_changelist")
        form = RotateKeyForm(request.POST or None)

        def rotate() -> IssuedKey:
            grace = timedelta(hours=form.cleaned_data["grace_hours"])
            return services.rotate_key(key.user_id, key.pk, grace=grace, actor=actor_of(request)).new

        return self.issue_page(
            request, form, rotate, _("Rotate key"), original=key, action=_("Rotate key"), activity=_activity_of(key)
        )

    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return self.revoke_page(
            request,
            object_id,
            lambda key: services.revoke_key(key.user_id, key.pk, actor=actor_of(request), may_be_last=True),
            success=_("Key revoked. Requests with it now fail."),
            title=_("Revoke key"),
            action=_("Revoke key"),
        )


@admin.register(RpcToken)
class RpcTokenAdmin(CredentialAdmin):
    verbs = ("revoke",)
    once_template = "admin/accounts/token_once.html"
    once_title = gettext_lazy("New RPC token")
    list_display = ("prefix", "label", "holder", "scopes", "created_at", "expires_at", "revoked_at", "last_used_at")
    list_filter = ("created_at", "revoked_at")
    list_select_related = ("operator", "user")
    search_fields = ("user__user_id__startswith", "prefix__startswith", "label__startswith")
    search_help_text = gettext_lazy("Start of a user ID, token or label.")
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

    def home(self, row: Any) -> tuple[str, Any]:
        return reverse("admin:accounts_rpctoken_changelist"), _("RPC tokens")

    @admin.display(description=gettext_lazy("holder"))
    def holder(self, token: RpcToken) -> str:
        return token.holder

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self.require(request, "add")
        form = IssueTokenForm(request.POST or None)

        def issue() -> IssuedToken:
            data = form.cleaned_data
            operator = data["operator"]
            if operator and not request.user.has_perms(operator.get_all_permissions()):
                raise InvalidInput.of_field("operator", _("has permissions that you lack"))
            return tokens.issue(
                data["label"],
                operator=operator,
                user=services.find_user(data["user_id"]) if data["user_id"] else None,
                scopes=data["scopes"],
                expires_at=expiry_of(form),
                actor=actor_of(request),
            )

        return self.issue_page(request, form, issue, _("Create RPC token"), action=_("Create RPC token"))

    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return self.revoke_page(
            request,
            object_id,
            lambda token: tokens.revoke(token.pk, actor=actor_of(request)),
            success=_("Token revoked. Its connections close within a minute."),
            title=_("Revoke token"),
            action=_("Revoke token"),
        )
