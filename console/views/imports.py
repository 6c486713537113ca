"""The pages to import a file of another store: upload, plan, and start of the job."""

from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin_base import actor_of
from console.access import ADD, page, render
from console.forms import ImportForm
from console.signed_values import read_import, sign_import
from core.errors import GatewayError
from core.localization import localized
from core.persistence.files import stored_files
from operations.importers import import_from
from store import browse
from store.browse import Selection

_REASONS: Final = {
    "not a memory": gettext_lazy("not a memory"),
    "without text": gettext_lazy("without text"),
    "too long": gettext_lazy("too long"),
    "of another user": gettext_lazy("of another user"),
    "not a Markdown file of at most 16 MiB": gettext_lazy("not a Markdown file of at most 16 MiB"),
    "a damaged marker": gettext_lazy("a damaged marker"),
    "not an episode": gettext_lazy("not an episode"),
    "a profile": gettext_lazy("a profile"),
    "derived from episodes": gettext_lazy("derived from episodes"),
    "superseded": gettext_lazy("superseded"),
}


@page(ADD, "GET", "POST")
def upload(request: HttpRequest) -> HttpResponseBase:
    """Receive a file and show what its import would do."""
    if request.method != "POST":
        return _form(request, ImportForm(initial={"user": request.GET.get("user", "")}))
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return _form(request, form, status=422)
    values, key = form.cleaned_data, ""
    try:
        is_archive = values["source"] != "mem0"
        key = import_from.keep_upload(form.user_pk, values["file"].chunks(), is_archive=is_archive)
        wanted = import_from.Request(
            source=values["source"],
            key=key,
            owner=form.owner,
            of_user=values["of_user"] or None,
            category=values["category"],
        )
        planned = import_from.plan(wanted)
    except GatewayError as error:
        if key:
            stored_files().remove(key)
        form.add_error("file", localized(error.detail))
        return _form(request, form, status=error.status)
    total = planned.new + planned.duplicates
    context: dict[str, Any] = {
        "title": _("Import plan"),
        "user": values["user"],
        "file": values["file"].name,
        "planned": planned,
        "left": [(_REASONS.get(reason, reason), count) for reason, count in planned.left.most_common()],
        "sealed": sign_import(wanted, total),
    }
    return render(request, "console/import_plan.html", context)


@page(ADD, "POST")
def run(request: HttpRequest) -> HttpResponseBase:
    """Start the job of a plan."""
    wanted, total = read_import(request.POST.get("plan", ""))
    job = import_from.submit(wanted, total=total, actor=actor_of(request))
    return redirect("console:job", job=job.pk)


def _form(request: HttpRequest, form: ImportForm, *, status: int = 200) -> HttpResponseBase:
    context = {
        "title": _("Import memories"),
        "form": form,
        "options": browse.facets(Selection(), limit=100),
        "max_bytes": settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES,
    }
    return render(request, "console/import.html", context, status=status)
