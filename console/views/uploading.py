"""A file that an operator uploads for a user."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.admin_base import actor_of
from console import queries
from console.access import page, render
from console.upload_form import UploadForm
from core.errors import GatewayError
from core.sentences import told
from resources import services
from resources.models import Resource
from resources.services import IncomingFile, Upload
from store import browse
from store.browse import Selection
from store.types import Owner

ADD_FILES: Final = "resources.add_resource"


@page(ADD_FILES)
@require_http_methods(["GET", "POST"])
def upload(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        given = {name: request.GET.get(name, "") for name in ("user", "app", "project")}
        return _form(request, UploadForm(initial=given))
    form = UploadForm(request.POST, request.FILES)
    owner = _owner(form) if form.is_valid() else None
    if owner is None:
        return _form(request, form, status=422)
    try:
        taken = _take(request, form, owner)
    except GatewayError as error:
        form.add_error("file", "; ".join(told(item.message) for item in error.errors) or told(error.detail))
        return _form(request, form, status=error.status)
    messages.success(request, _("Uploaded. It is being read now."))
    return redirect("console:resource", resource_id=taken.pk)


def _owner(form: UploadForm) -> Owner | None:
    """Whose file it becomes; the form says it where there is no such user."""
    given = form.cleaned_data
    pk = queries.user_pk(given["user"])
    if pk is None:
        form.add_error("user", _("There is no user %(user)s.") % {"user": given["user"]})
        return None
    return Owner(pk, given["user"], given["app"], given["project"])


def _take(request: HttpRequest, form: UploadForm, owner: Owner) -> Resource:
    given = form.cleaned_data
    file = given["file"]
    incoming = IncomingFile(file.name, file.content_type or "", file.size)
    try:
        for chunk in file.chunks():
            incoming.write(chunk)
        incoming.finish()
        said = Upload(
            app_id=owner.app_id,
            project_id=owner.project_id,
            title=given["title"] or None,
            description=given["description"] or None,
            wait_seconds=0.0,
        )
        return services.upload_as(owner, incoming, said, actor=actor_of(request))
    finally:
        incoming.close()


def _form(request: HttpRequest, form: UploadForm, *, status: int = 200) -> HttpResponseBase:
    context = {"title": _("Upload for a user"), "form": form, "options": browse.facets(Selection(), limit=100)}
    return render(request, "console/upload.html", context, status=status)
