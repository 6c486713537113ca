"""Actions of the page header: the language and the global search."""

import re
from contextlib import suppress

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

from console import queries
from console.access import VIEW, page, render
from console.filters import ALL_TAB
from console.views.resources import VIEW_FILES
from console.views.users import VIEW_USERS
from operations.models import Job
from resources.models import Resource
from store.models import Memory, Session
from store.table import visible

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

# Django stores the language in a cookie, which its middleware reads.
language = admin.site.admin_view(require_POST(set_language))


@page(VIEW)
def find(request: HttpRequest) -> HttpResponseBase:
    """Redirect to the page of the object with this id, or else to a search for this text."""
    query = request.GET.get("q", "").strip().replace("\x00", "")
    if not query:
        return redirect("console:memories")
    page_url = _page_of_id(request, query)
    search_url = _list(tab=ALL_TAB, q=query)
    if page_url is None and _UUID.fullmatch(query):
        context = {"title": gettext("ID not found"), "query": query, "search_url": search_url}
        return render(request, "console/unknown_id.html", context)
    return redirect(page_url or search_url)


def _page_of_id(request: HttpRequest, query: str) -> str | None:
    """Return the address of the memory, user, session, file or job with this id."""
    memories = visible(Memory.objects.filter(memory_id=query)).order_by("-pk")
    if (row := memories.values_list("pk", flat=True).first()) is not None:
        return reverse("console:memory", args=[row])
    if (user := queries.find_user(query)) is not None:
        pk, user_id = user
        may_open = request.user.has_perm(VIEW_USERS)
        return reverse("console:user", args=[pk]) if may_open else _list(tab=ALL_TAB, user=user_id)
    for session_id in (query, f"chat:{query}"):  # conversation ids are accepted without their prefix
        if Session.objects.filter(session_id=session_id, deleted_at__isnull=True).exists():
            return _list(tab=ALL_TAB, session=session_id)
    if request.user.has_perm(VIEW_FILES) and Resource.objects.filter(pk=query).exists():
        return reverse("console:resource", args=[query])
    with suppress(ValidationError):  # not a UUID
        if (job := Job.objects.filter(pk=query).values_list("pk", flat=True).first()) is not None:
            return reverse("console:job", args=[job])
    return None


def _list(**parameters: str) -> str:
    return f"{reverse('console:memories')}?{urlencode(parameters)}"
