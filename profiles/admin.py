from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from accounts import tenants
from accounts.admin_base import PersonalAdmin, actor_of
from accounts.models import MemoryUser
from core.errors import FieldError, GatewayError, PreconditionFailed
from core.localization import localized
from profiles import document_form, services
from profiles.diff import differences
from profiles.documents import Document, Status
from profiles.labels import Language, label
from profiles.models import ProfileMemory, ProfileRevision
from profiles.schemas import MODELS, Content, Kind

CHANGES_SHOWN = 50


@admin.register(ProfileMemory)
class ProfileMemoryAdmin(PersonalAdmin):
    """Profile documents. A document is edited, compared and restored on pages addressed by user and kind.

    They also work for a document that has no row yet.
    """

    list_display = ("id", "owner", "memory_type", "status", "version", "updated_at")
    list_filter = ("memory_type", "status", "updated_at")
    list_select_related = ("owner",)
    search_fields = ("owner__user_id__exact",)

    def get_urls(self) -> list[URLPattern]:
        wrap, name, base = self.admin_site.admin_view, "profiles_profilememory", "of/<uuid:user_pk>/<str:kind>/"
        return [
            path(base, wrap(self.edit_view), name=f"{name}_edit"),
            path(f"{base}status/", wrap(self.status_view), name=f"{name}_status"),
            path(f"{base}versions/", wrap(self.versions_view), name=f"{name}_versions"),
            path(f"{base}versions/<int:version>/", wrap(self.version_view), name=f"{name}_version"),
            *super().get_urls(),
        ]

    def edit_view(self, request: HttpRequest, user_pk: UUID, kind: str) -> HttpResponseBase:
        """Show the document as a form, read-only without the permission to change it; save what the form sends."""
        user, checked_kind = self._subject(request, user_pk, kind)
        if request.method != "POST":
            document = services.read(user.pk, checked_kind)
            return self._form(request, user, document, document.content.model_dump())
        self._require(request, "change")
        model, etag = MODELS[checked_kind], request.POST.get("etag", "")
        values = document_form.read(model, request.POST)
        if action := request.POST.get("do"):
            values = document_form.apply(model, values, action)
            return self._form(request, user, services.read(user.pk, checked_kind), values, etag=etag, is_unsaved=True)
        values = document_form.without_blanks(values)
        try:
            services.write(user.pk, checked_kind, values, actor=actor_of(request), if_match={etag})
        except PreconditionFailed:
            # The form shows the other changes and gets the new ETag: saving again overwrites them.
            opened = etag.strip('"').rpartition("-")[2]
            before = _content(user, checked_kind, int(opened) if opened.isdecimal() and len(opened) < 10 else 0)
            document = services.read(user.pk, checked_kind)
            others = differences(before, document.content, _language())
            message = _("The document has changed since you opened it. Save again to overwrite it.")
            return self._form(request, user, document, values, refused=message, others=others)
        except GatewayError as error:
            document = services.read(user.pk, checked_kind)
            message = _("Please correct the errors below.") if error.errors else localized(error.detail)
            return self._form(request, user, document, values, etag=etag, errors=error.errors, refused=message)
        messages.success(request, _("Document saved."))
        return redirect("admin:profiles_profilememory_edit", user.pk, checked_kind)

    def _form(
        self,
        request: HttpRequest,
        user: MemoryUser,
        document: Document,
        values: dict[str, Any],
        *,
        etag: str | None = None,
        errors: Sequence[FieldError] = (),
        **context: Any,
    ) -> HttpResponse:
        builder = document_form.Builder(_language(), errors, document.content.model_dump())
        return self._page(
            request,
            "edit",
            user,
            document.kind,
            document=document,
            etag=etag or document.etag,
            nodes=builder.nodes(MODELS[document.kind], values),
            may_change=request.user.has_perm("profiles.change_profilememory") and not document.is_disabled,
            may_disable=request.user.has_perm("profiles.disable_profilememory"),
            **context,
        )

    def status_view(self, request: HttpRequest, user_pk: UUID, kind: str) -> HttpResponseBase:
        user, checked_kind = self._subject(request, user_pk, kind)
        self._require(request, "disable")
        if request.method == "POST":
            is_disabled = request.POST.get("status") == Status.DISABLED
            services.set_disabled(user.pk, checked_kind, is_disabled, actor=actor_of(request))
            message = (
                _("Document disabled. Agents and applications now read it as empty.")
                if is_disabled
                else _("Document enabled.")
            )
            messages.success(request, message)
        return redirect("admin:profiles_profilememory_edit", user.pk, checked_kind)

    def versions_view(self, request: HttpRequest, user_pk: UUID, kind: str) -> HttpResponseBase:
        user, checked_kind = self._subject(request, user_pk, kind)
        before = request.GET.get("before", "")
        changes = services.history(
            user.pk, checked_kind, before=int(before) if before.isdecimal() else None, limit=CHANGES_SHOWN + 1
        )
        older = changes[CHANGES_SHOWN - 1].version if len(changes) > CHANGES_SHOWN else None
        return self._page(request, "versions", user, checked_kind, changes=changes[:CHANGES_SHOWN], older=older)

    def version_view(self, request: HttpRequest, user_pk: UUID, kind: str, version: int) -> HttpResponseBase:
        """Show the changes of a version, and the changes that restoring it would make."""
        user, checked_kind = self._subject(request, user_pk, kind)
        try:
            if request.method == "POST":
                self._require(request, "restore")
                services.restore(
                    user.pk, checked_kind, version, actor=actor_of(request), if_match={request.POST.get("etag", "")}
                )
                messages.success(request, _("Version %s restored.") % version)
                return redirect("admin:profiles_profilememory_edit", user.pk, checked_kind)
            revision = services.revision(user.pk, checked_kind, version)
        except GatewayError as error:
            messages.error(request, localized(error.detail))
            return redirect("admin:profiles_profilememory_versions", user.pk, checked_kind)
        document, language = services.read(user.pk, checked_kind), _language()
        return self._page(
            request,
            "version",
            user,
            checked_kind,
            document=document,
            change=revision.change,
            changed=differences(_content(user, checked_kind, version - 1), revision.content, language),
            restoring=differences(document.content, revision.content, language),
            may_restore=request.user.has_perm("profiles.restore_profilememory") and not document.is_disabled,
        )

    def _subject(self, request: HttpRequest, user_pk: UUID, kind: str) -> tuple[MemoryUser, Kind]:
        self._require(request, "view")
        if kind not in MODELS:
            raise Http404
        return get_object_or_404(tenants.reachable(MemoryUser.objects.all(), ""), pk=user_pk), kind

    def _require(self, request: HttpRequest, verb: str) -> None:
        if not request.user.has_perm(f"profiles.{verb}_profilememory"):
            raise PermissionDenied

    def _page(self, request: HttpRequest, page: str, user: MemoryUser, kind: Kind, **context: Any) -> HttpResponse:
        self._record(request, "view", users=[user.user_id], subject_id=kind, detail={"page": page})
        name = label(kind, _language())
        context = {"title": f"{user.user_id}: {name}", "document_label": name, "owner": user, "kind": kind, **context}
        return TemplateResponse(
            request, f"admin/profiles/{page}.html", {**self.admin_site.each_context(request), **context}
        )


@admin.register(ProfileRevision)
class ProfileRevisionAdmin(PersonalAdmin):
    list_display = ("id", "owner", "memory_type", "version", "action", "actor_kind", "created_at")
    list_filter = ("action", "actor_kind", "created_at")
    list_select_related = ("profile__owner",)
    search_fields = ("profile__owner__user_id__exact",)

    @admin.display(description=gettext_lazy("user"))
    def owner(self, row: ProfileRevision) -> str:
        return row.profile.owner.user_id

    @admin.display(description=gettext_lazy("document type"))
    def memory_type(self, row: ProfileRevision) -> str:
        return row.profile.memory_type


def _content(user: MemoryUser, kind: Kind, version: int) -> Content:
    """Return the document in that version; the default document if the version is not stored or does not exist."""
    try:
        return services.revision(user.pk, kind, version).content
    except GatewayError:
        return MODELS[kind]()


def _language() -> Language:
    return "zh" if (get_language() or "").startswith("zh") else "en"
