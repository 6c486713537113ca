"""What belongs to no single page: the way in, the language, the global search."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST
from django.views.i18n import set_language

from console import queries
from console.access import VIEW, page
from console.views.dashboard import dashboard

# In the cookie of the browser; the middleware reads it.
language = admin.site.admin_view(require_POST(set_language))


def plugin(request: HttpRequest) -> HttpResponseBase:
    """`/plugins/memory`: the dashboard for operators, for strangers the form to sign in."""
    if admin.site.has_permission(request):
        return dashboard(request)
    return admin.site.login(request, {"next": request.path})


@page(VIEW)
@require_GET
def find(request: HttpRequest) -> HttpResponseBase:
    """Straight to a user, session or memory whose id was given whole, else to a search for the words."""
    words = request.GET.get("q", "").strip().replace("\x00", "")
    if not words:
        return redirect("console:memories")
    row = queries.row_of(words)
    if row is not None:
        return redirect("console:memory", row=row)
    for parameter, is_known in (("user", queries.is_user), ("session", queries.is_session)):
        if is_known(words):
            return redirect(f"{reverse('console:memories')}?{urlencode({parameter: words})}")
    return redirect(f"{reverse('console:memories')}?{urlencode({'q': words})}")
