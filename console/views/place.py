"""The place of a passage: the page of its file as an image, with the passage marked."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from accounts.admin_base import actor_of
from accounts.audit import record
from console.access import VIEW, page, record_view, render, require
from console.views.resources import VIEW_FILES
from core import files
from core.errors import NotFound
from documents import rendering
from resources.models import Resource
from store import browse
from store.types import StoredMemory

_HEADERS: Final = {
    # Made from an uploaded file: it must never run as a page of this site, nor be kept by the browser.
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
    "Content-Disposition": 'attachment; filename="page.jpg"',
}


@page(VIEW)
def place(request: HttpRequest, row: int) -> HttpResponseBase:
    found, resource = _found(request, row)
    record_view(request, found)
    context = {"title": resource.filename or resource.pk, "memory": found, "resource": resource}
    return render(request, "console/place.html", context)


@page(VIEW)
def image(request: HttpRequest, row: int) -> HttpResponseBase:
    """Send the page as an image. A document that cannot be drawn has none."""
    found, resource = _found(request, row)
    number = found.payload.get("page") or 1
    detail = {"page": number}
    record(actor_of(request), "resource.page", resource.pk, user_id=found.owner.user_id, detail=detail)
    with files.local_copy(files.path_of(resource.storage_path)) as path:
        drawn = rendering.draw_page(
            path,
            resource.mime_type or "",
            number,
            box=found.payload.get("box"),
            text=found.original_text or found.text,
            user=request.user.pk,
        )
    return HttpResponse(drawn, content_type="image/jpeg", headers=_HEADERS)


def _found(request: HttpRequest, row: int) -> tuple[StoredMemory, Resource]:
    """Return a memory and its file.

    Raises: `NotFound`, also for a file that is deleted or cannot be drawn, `Forbidden` for operators who may not view
    files.
    """
    found = browse.get(row)
    live = Resource.objects.select_related("user").filter(user_id=found.owner.user_pk, deleted_at__isnull=True)
    resource = live.filter(pk=found.payload.get("resource_id"), session_id=found.session_id).first()
    if resource is None or not resource.storage_path or found.is_session_hidden:
        raise NotFound(_("There is no stored file of this memory."))
    require(request, VIEW_FILES)
    if not rendering.can_draw(resource.mime_type, found.payload.get("page")):
        raise NotFound(_("Pages of this file cannot be shown."))
    return found, resource
