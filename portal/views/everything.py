"""All data of a person: download, and erasure with a receipt."""

from datetime import datetime
from typing import Any, Final

import orjson
from django import forms
from django.core import signing
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from accounts.audit import record
from core.errors import BadRequest
from core.ids import user_id_form
from operations import erase as erasure
from operations import person_export
from portal.access import Visit, actor_of, cookie_name, error_page, page, render, with_headers

_RECEIPT_SALT: Final = "portal.receipt"
_LABELS: Final = (
    ("memories", gettext_lazy("Memories")),
    ("resources", gettext_lazy("Files")),
    ("profiles", gettext_lazy("Profiles")),
    ("tombstones", gettext_lazy("Deletions")),
    ("overrides", gettext_lazy("Corrections")),
    ("keys", gettext_lazy("Keys of applications")),
    ("audit", gettext_lazy("Events")),
)


class EraseForm(forms.Form):
    """The confirmation of an erasure: the person types their user id."""

    confirm = forms.CharField(
        max_length=255,
        widget=forms.TextInput(attrs={"class": "mg-input", "autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, user_id: str) -> None:
        super().__init__(*args)
        self._user_id = user_id
        self.fields["confirm"].label = _("Type %(user_id)s to confirm") % {"user_id": user_id}

    def clean_confirm(self) -> str:
        typed: str = self.cleaned_data["confirm"]
        if user_id_form(typed) != self._user_id:
            raise forms.ValidationError(_("This is not the name above."))
        return typed


@page()
def everything(request: Visit) -> HttpResponseBase:
    """Offer the download and the erasure of all data."""
    return render(request, "everything.html", {"title": _("All my data")})


@page("POST")
def download(request: Visit) -> HttpResponseBase:
    """Send everything that is stored of the person: readable pages, data and files in one archive."""
    user = request.link.user
    record(actor_of(request), "user.export", user.user_id, user_id=user.user_id)
    parts = person_export.export(user, person_export.Words.now(user.user_id))
    headers = {"Content-Disposition": 'attachment; filename="my-memories.zip"'}
    return StreamingHttpResponse(parts, content_type="application/zip", headers=headers)


@page("GET", "POST")
def erase(request: Visit) -> HttpResponseBase:
    """Preview the erasure; when the person has typed their user id, erase everything and show the receipt once."""
    user = request.link.user
    form = EraseForm(request.POST if request.method == "POST" else None, user_id=user.user_id)
    if not form.is_valid():
        planned = erasure.plan(user.pk)
        context = {
            "title": _("Delete everything?"),
            "form": form,
            "planned": [(label, planned[name]) for name, label in _LABELS if planned.get(name)],
        }
        return render(request, "erase.html", context, status=422 if form.errors else 200)
    receipt = erasure.erase(user.pk, actor=actor_of(request))
    context = {
        "title": _("Everything is deleted"),
        "receipt": receipt,
        "erased_at": datetime.fromisoformat(receipt["erased_at"]),
        "removed": [(label, receipt["removed"][name]) for name, label in _LABELS if receipt["removed"].get(name)],
        "signed": signing.dumps(receipt, salt=_RECEIPT_SALT, compress=True),
        "navigation": (),
    }
    response = render(request, "erased.html", context)
    response.delete_cookie(cookie_name(request))
    return response


@csrf_exempt
@require_POST
def receipt(request: HttpRequest) -> HttpResponseBase:
    """Send the receipt, which the gateway does not keep, as a file. The session has ended with the person's data."""
    try:
        found = signing.loads(request.POST.get("receipt", ""), salt=_RECEIPT_SALT)
    except signing.BadSignature:
        error = BadRequest(_("The receipt is not valid."))
        return with_headers(error_page(request, error))
    headers = {"Content-Disposition": f'attachment; filename="deleted-{found["receipt_id"]}.json"'}
    written = orjson.dumps(found, option=orjson.OPT_INDENT_2)
    return with_headers(HttpResponse(written, content_type="application/json", headers=headers))
