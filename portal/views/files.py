"""The files of a person: list, open, delete, restore."""

from typing import Final

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from core.errors import GatewayError
from portal.access import Visit, actor_of, page, render
from resources import queries, services
from resources.api.downloads import download as file_response
from resources.models import Resource
from resources.queries import Cursor, decode_cursor, encode_cursor
from store.expiry import has_ended
from store.types import KEPT, NewExpiry

ROWS: Final = 50


@page()
def files(request: Visit) -> HttpResponseBase:
    """List the files, newest first."""
    rows, cursor = queries.page_after(
        queries.live_resources(request.link.user.pk).order_by("-created_at", "-resource_id"),
        _cursor(request.GET.get("after", "")),
        ROWS,
    )
    context = {
        "title": _("My files"),
        "rows": rows,
        "states": dict(Resource.Status.choices),
        "following": reverse("portal:files", query={"after": encode_cursor(cursor)}) if cursor else "",
        "undoable": queries.deleted_resource(request.link.user.pk, request.GET.get("deleted", "")).first(),
    }
    return render(request, "files.html", context)


@page()
def download(request: Visit, resource_id: str) -> HttpResponseBase:
    """Send a file, to be saved: it never runs as a page of this site."""
    return file_response(request, queries.content_of(request.link.user.pk, resource_id))


@page("POST")
def delete(request: Visit, resource_id: str) -> HttpResponseBase:
    """Move a file to the trash, with what is known from it."""
    user = request.link.user
    services.delete_as(user.pk, user.user_id, resource_id, actor=actor_of(request))
    return redirect(reverse("portal:files", query={"deleted": resource_id}))


@page("POST")
def restore(request: Visit, resource_id: str) -> HttpResponseBase:
    """Restore a file from the trash; one that has expired lasts from now on."""
    user = request.link.user
    found = queries.deleted_resource(user.pk, resource_id).first()
    expires_at: NewExpiry = None if found and has_ended(queries.expires_at_of(found)) else KEPT
    services.restore_as(user.pk, user.user_id, resource_id, expires_at=expires_at, actor=actor_of(request))
    return redirect("portal:files")


def _cursor(text: str) -> Cursor | None:
    try:
        return decode_cursor(text) if text else None
    except GatewayError:
        return None
