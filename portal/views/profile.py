"""The two documents of a person's profile, as forms."""

from collections.abc import Sequence
from typing import Any, Final

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from core.errors import FieldError, GatewayError, NotFound, PreconditionFailed
from core.localization import localized
from portal.access import Visit, actor_of, page, render
from profiles import document_form, services
from profiles.diff import differences
from profiles.documents import Document
from profiles.labels import Language
from profiles.schemas import MODELS, Kind

_TITLES: Final = {"user": gettext_lazy("About me"), "work": gettext_lazy("About my work")}


@page()
def profiles(request: Visit) -> HttpResponseBase:
    """Show what both documents say."""
    language = _language()
    documents = [
        (document, _TITLES[document.kind], differences(MODELS[document.kind](), document.content, language))
        for document in services.read_both(request.link.user.pk).values()
    ]
    return render(request, "profiles.html", {"title": _("My profile"), "documents": documents})


@page("GET", "POST")
def edit(request: Visit, kind: str) -> HttpResponseBase:
    """Show a document as a form and save it. Buttons that add and remove entries return the form unsaved."""
    checked = _kind(kind)
    user_pk, model = request.link.user.pk, MODELS[checked]
    document = services.read(user_pk, checked)
    if request.method != "POST":
        return _form(request, document, document.content.model_dump(), done=request.GET.get("done", ""))
    etag = request.POST.get("etag", "")
    values = document_form.read(model, request.POST)
    if action := request.POST.get("do"):
        return _form(request, document, document_form.apply(model, values, action), etag=etag, is_unsaved=True)
    values = document_form.without_blanks(values)
    try:
        services.write(user_pk, checked, values, actor=actor_of(request), if_match={etag})
    except PreconditionFailed:
        refused = _("The document has changed since you opened it. Save again to overwrite it.")
        return _form(request, document, values, refused=refused, status=412)
    except GatewayError as error:
        refused = _("Please correct the errors below.") if error.errors else localized(error.detail)
        return _form(request, document, values, etag=etag, errors=error.errors, refused=refused, status=error.status)
    return redirect(reverse("portal:profile-edit", args=[kind], query={"done": "saved"}))


def _form(
    request: Visit,
    document: Document,
    values: dict[str, Any],
    *,
    etag: str | None = None,
    errors: Sequence[FieldError] = (),
    status: int = 200,
    **context: Any,
) -> HttpResponseBase:
    builder = document_form.Builder(_language(), errors, document.content.model_dump())
    context |= {
        "title": _TITLES[document.kind],
        "document": document,
        "etag": etag or document.etag,
        "nodes": builder.nodes(MODELS[document.kind], values),
    }
    return render(request, "profile.html", context, status=status)


def _kind(kind: str) -> Kind:
    found: dict[str, Kind] = {name: name for name in MODELS}
    if kind not in found:
        raise NotFound(_("There is nothing at this address. Check the path."))
    return found[kind]


def _language() -> Language:
    return "zh" if (get_language() or "").startswith("zh") else "en"
