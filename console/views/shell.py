"""What belongs to no single page: the way in, the language, the global search."""

from __future__ import annotations

import re

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST
from django.views.i18n import set_language

from console import queries
from console.access import VIEW, page, render
from console.filters import ALL_TAB
from console.views.dashboard import dashboard
from console.views.resources import VIEW_FILES
from console.views.users import VIEW_USERS

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

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
    """Straight to what has this whole id, else to a search for the words; parts of an id are none."""
    words = request.GET.get("q", "").strip().replace("\x00", "")
    if not words:
        return redirect("console:memories")
    found = (address(request, words) for address in (_memory, _user, _session, _file, _job))
    known = next((address for address in found if address), None)
    as_words = _list(tab=ALL_TAB, q=words)
    if known is None and _UUID.fullmatch(words):
        context = {"title": gettext("Nothing has this id"), "words": words, "as_words": as_words}
        return render(request, "console/unknown_id.html", context)
    return redirect(known or as_words)


def _memory(_: HttpRequest, words: str) -> str | None:
    row = queries.row_of(words)
    return None if row is None else reverse("console:memory", args=[row])


def _user(request: HttpRequest, words: str) -> str | None:
    """Their page; who may not open that is led to their memories."""
    found = queries.user_named(words)
    if found is None:
        return None
    pk, user_id = found
    return reverse("console:user", args=[pk]) if request.user.has_perm(VIEW_USERS) else _list(tab=ALL_TAB, user=user_id)


def _session(_: HttpRequest, words: str) -> str | None:
    """Its memories; a conversation is known by its own id too."""
    found = next((name for name in (words, f"chat:{words}") if queries.is_session(name)), None)
    return found and _list(tab=ALL_TAB, session=found)


def _file(request: HttpRequest, words: str) -> str | None:
    is_shown = request.user.has_perm(VIEW_FILES) and queries.is_resource(words)
    return reverse("console:resource", args=[words]) if is_shown else None


def _job(_: HttpRequest, words: str) -> str | None:
    pk = queries.job_pk(words)
    return None if pk is None else reverse("console:job", args=[pk])


def _list(**parameters: str) -> str:
    return f"{reverse('console:memories')}?{urlencode(parameters)}"
