"""The pages of files: list, failures, one file with its extracted text, upload, retry and deletion."""

from contextlib import suppress
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import tenants
from accounts.admin_base import actor_of
from accounts.audit import record
from console import cases, queries
from console.access import VIEW, next_address, page, record_list, render
from console.filters import FILE_TYPES, RESOURCE_STATES, PositionField, RefusedFilters, ResourceFilters
from console.forms import UploadForm, indented
from console.keyset import ROWS, newest_first
from console.signed_values import undo_address
from console.templatetags.panel import state_badge
from console.text import parts
from console.views.memories import write_position
from core.errors import GatewayError, NotFound, existing
from core.localization import localized
from operations import operator_jobs
from operations.cleanup import purge
from resources import services
from resources.api.downloads import download
from resources.models import DELETED, RefusedUpload, Resource
from resources.queries import EXPIRES_AT, READ_IN_PART
from resources.services import IncomingFile, Upload
from resources.services.refused import KEPT
from store import browse
from store.browse import Selection
from store.models import Session, State
from store.types import METADATA, TAGS

PASSAGES: Final = 50
VIEW_FILES, ADD_FILES, CHANGE_FILES, DELETE_FILES = (
    f"resources.{verb}_resource" for verb in ("view", "add", "change", "delete")
)


@page(VIEW_FILES, reach="lists")
def resources(request: HttpRequest) -> HttpResponseBase:
    filters = ResourceFilters(reverse("console:resources"), request.GET)
    values, rows = filters.cleaned_data, narrowed(filters)
    by_state = queries.resources_by_status(rows)
    found = newest_first(of_state(filters, rows), filters, time="created_at")
    owners = (row.user.user_id for row in found.rows)
    record_list(request, "resource.list", filters, owners)
    live = sum(number for name, number in by_state.items() if name != DELETED)
    states = [("", _("All")), *RESOURCE_STATES]
    counts = {name: by_state.get(name, 0) for name, _label in states} | {"": live}
    causes = [] if values["q"] or values["user"] else queries.failure_causes()
    are_more = len(causes) == queries.MAX_CAUSES
    rarer = queries.failures_waiting() - sum(cause["count"] for cause in causes) if are_more else 0
    context: dict[str, Any] = {
        "title": _("Resources"),
        "filters": filters,
        "memories": _memory_counts(found.rows),
        "states": [{**link, "count": counts[link["name"]]} for link in filters.links("state", states, cause="")],
        "types": FILE_TYPES,
        "causes": causes,
        "retryable": rarer + sum(cause["count"] for cause in causes if cause["can_retry"]),
        "rarer": rarer,
        "total": by_state.get(values["state"], 0) if values["state"] else sum(by_state.values()),
        **found._asdict(),
    }
    return render(request, "console/resources.html", context)


def narrowed(filters: ResourceFilters) -> QuerySet[Resource]:
    """Return the resources that all filters leave except that of the state, so that the states can be counted."""
    values = filters.cleaned_data
    rows = queries.failed_with_cause(values["cause"]) if values["cause"] else tenants.reachable(Resource.objects.all())
    rows = queries.narrowed(rows.select_related("user"), user__user_id=values["user"], content_type=values["type"])
    if values["q"]:
        rows = rows.filter(
            Q(filename__icontains=values["q"]) | Q(pk=values["q"]) | Q(user__user_id__icontains=values["q"])
        )
    if values["reading"]:
        rows = rows.filter(READ_IN_PART)
    return queries.narrowed(rows, created_at__gte=values["since"], created_at__lt=values["until"])


def of_state(filters: ResourceFilters, rows: QuerySet[Resource]) -> QuerySet[Resource]:
    """Return the rows in the state of the filters."""
    state = filters.cleaned_data["state"]
    if state == DELETED:
        return rows.exclude(state=State.LIVE)
    return queries.narrowed(rows, state=State.LIVE, status=state)


@page(VIEW_FILES, reach="lists")
def refused(request: HttpRequest) -> HttpResponseBase:
    """List the uploads that were refused. No file is stored of them."""
    filters = RefusedFilters(reverse("console:resource-refused"), request.GET)
    values = filters.cleaned_data
    rows = queries.narrowed(
        tenants.reachable(RefusedUpload.objects.select_related("user")),
        user__user_id=values["user"],
        status=values["status"],
        at__gte=values["since"],
        at__lt=values["until"],
    )
    found = newest_first(rows, filters, time="at")
    record_list(request, "resource.refused", filters, (row.user.user_id for row in found.rows))
    context = {"title": _("Refused uploads"), "filters": filters, "days": KEPT.days, **found._asdict()}
    return render(request, "console/refused_uploads.html", context)


@page(VIEW_FILES, reach="resource")
def resource(request: HttpRequest, resource_id: str) -> HttpResponseBase:
    found = _get(resource_id)
    if request.GET.get("part") == "1":
        return _state(found)
    try:
        after = PositionField().clean(request.GET.get("after"))
    except ValidationError:
        after = None
    passages = None
    if request.user.has_perm(VIEW):
        session = Selection(
            user_pk=found.user_id, app_id=found.app_id, project_id=found.project_id, session_id=found.session_id
        )
        passages = browse.page(session, after=after, limit=PASSAGES, oldest_first=True)
    _record(request, "resource.view", found)
    context: dict[str, Any] = {
        **cases.context(request, "resource", found.pk),
        "title": found.filename or found.resource_id,
        "resource": found,
        "type": FILE_TYPES.get(found.content_type, found.content_type),
        "passages": [(memory, list(parts(memory.text))) for memory in passages.memories] if passages else [],
        "more": write_position(passages.newer) if passages and passages.newer else "",
        "is_start": after is None,
        "metadata": indented((found.labels or {}).get(METADATA)),
        "attachments": list(found.attachments.order_by("pk")[:50]),
        "count": _memory_counts([found])[found.pk],
        "can_download": bool(found.storage_path) and found.state == State.LIVE,
        "needs_other_file": found.public_status == "failed" and found.error_message in queries.LASTING_CAUSES,
    }
    return render(request, "console/resource.html", context)


def _state(found: Resource) -> HttpResponse:
    """Return the state of a file for the page that waits for it, which reloads when the file is ingested."""
    response = HttpResponse(state_badge(found))
    if not found.is_pending:
        response["HX-Refresh"] = "true"
    return response


@page(VIEW_FILES, reach="resource")
def content(request: HttpRequest, resource_id: str) -> HttpResponseBase:
    """Send the original file as a download. Browsers never render it on this site."""
    found = _get(resource_id)
    stored = services.content_of(found.user_id, resource_id)
    _record(request, "resource.download", found)
    return download(request, stored)


@page(ADD_FILES, "GET", "POST", reach="lists")
def upload(request: HttpRequest) -> HttpResponseBase:
    """Upload files for a user. The script sends one file in a request and takes JSON."""
    if request.method != "POST":
        values = {name: request.GET.get(name, "") for name in ("user", "app", "project")}
        return _upload_form(request, UploadForm(initial=values))
    form = UploadForm(request.POST, request.FILES)
    uploaded, status = [], 422
    for file in form.cleaned_data["file"] if form.is_valid() else ():
        try:
            uploaded.append(_store_upload(request, form, file))
        except GatewayError as error:
            reason = "; ".join(localized(item.message) for item in error.errors) or localized(error.detail)
            form.add_error("file", f"{file.name}: {reason}")
            status = error.status
    is_json = request.headers.get("Accept") == "application/json"
    if uploaded and (not is_json or request.POST.get("leave")):  # the notice is shown on the next page
        count = len(uploaded)
        message = ngettext(
            "%(count)s file uploaded. Ingestion has started.", "%(count)s files uploaded. Ingestion has started.", count
        )
        messages.success(request, message % {"count": count})
    if is_json:
        urls = [reverse("console:resource", args=[one.pk]) for one in uploaded]
        return JsonResponse({"urls": urls, "errors": form.errors}, status=status if form.errors else 200)
    if form.errors:
        return _upload_form(request, form, status=status)
    if len(uploaded) == 1:
        return redirect("console:resource", resource_id=uploaded[0].pk)
    return redirect(reverse("console:resources", query={"user": form.cleaned_data["user"]}))


@page(CHANGE_FILES, "POST", reach="lists")
def retry(request: HttpRequest) -> HttpResponseBase:
    """Retry failed files: the ticked ones, those with one cause, or all. Other ticked files are re-ingested."""
    chosen = queries.without_nul(request.POST.getlist("id")[:ROWS])
    cause = request.POST.get("cause", "")
    if chosen:
        failed: QuerySet[Resource] = tenants.reachable(Resource.objects.filter(pk__in=chosen))
    else:
        failed = (
            queries.waiting().exclude(error_message__in=queries.LASTING_CAUSES)
            if cause == "all"
            else queries.failed_with_cause(cause)
        )
    count = services.retry(failed, actor=actor_of(request))
    job = _start_reingestion(request, chosen)
    if count or not job:
        message = ngettext("Retrying %(count)s file.", "Retrying %(count)s files.", count)
        messages.success(request, message % {"count": f"{count:,}"})
    return redirect("console:job", job=job) if job else redirect(next_address(request, reverse("console:resources")))


@page(DELETE_FILES, "GET", "POST", reach="resource")
def remove(request: HttpRequest, resource_id: str) -> HttpResponseBase:
    """Move a file to the trash, after confirmation."""
    found = _get(resource_id)
    if found.state != State.LIVE:
        raise NotFound(_("The resource is already deleted."))
    if request.method == "POST":
        deleted = services.delete_as(found.user_id, found.user.user_id, resource_id, actor=actor_of(request))
        undo = undo_address("delete_resource", [services.deletion_of(deleted)])
        messages.success(request, _("The resource and its memories were moved to the trash."), extra_tags=undo)
        return redirect("console:resources")
    _record(request, "resource.view", found)
    context = {
        "title": _("Move this resource to the trash?"),
        "days": retention.days if (retention := purge.retention()) else None,
        "resource": found,
        "count": _memory_counts([found])[found.pk],
    }
    return render(request, "console/resource_delete.html", context)


@page(DELETE_FILES, "POST", reach="lists")
def remove_many(request: HttpRequest) -> HttpResponseBase:
    """Move the ticked files to the trash. Those that are deleted already are skipped."""
    chosen = queries.without_nul(request.POST.getlist("id")[:ROWS])
    moved = 0
    live = tenants.reachable(Resource.objects.select_related("user").filter(pk__in=chosen, state=State.LIVE))
    for found in live:
        with suppress(NotFound):  # another request deleted it at this moment
            services.delete_as(found.user_id, found.user.user_id, found.pk, actor=actor_of(request))
            moved += 1
    message = ngettext("%(count)s resource moved to trash.", "%(count)s resources moved to trash.", moved)
    if chosen:
        messages.success(request, message % {"count": moved})
    else:
        messages.warning(request, _("No rows are selected. Select at least one."))
    return redirect(next_address(request, reverse("console:resources")))


def _memory_counts(rows: list[Resource]) -> dict[str, int]:
    """Return the numbers of live memories by resource id."""
    session_keys = {(row.user_id, row.app_id, row.project_id, row.session_id): row.pk for row in rows}
    sessions = queries.session_rows(session_keys)
    numbers = queries.memories_of_sessions(sessions.values())
    return {row.pk: numbers.get(sessions.get(row.pk, 0), 0) for row in rows}


def _get(resource_id: str) -> Resource:
    found = Resource.objects.select_related("user").annotate(expires_at=EXPIRES_AT)
    return existing(found.filter(pk__in=queries.without_nul([resource_id])), _("There is no such resource."))


def _record(request: HttpRequest, action: str, found: Resource) -> None:
    record(actor_of(request), action, found.pk, user_id=found.user.user_id)


def _store_upload(request: HttpRequest, form: UploadForm, file: Any) -> Resource:
    refused = services.Incoming()
    refused.filename, refused.size_bytes = file.name, file.size
    with services.recorded_refusals(form.owner, refused):
        return _stored(request, form, file)


def _stored(request: HttpRequest, form: UploadForm, file: Any) -> Resource:
    values = form.cleaned_data
    incoming = IncomingFile(file.name, file.content_type or "", file.size)
    try:
        for chunk in file.chunks():
            incoming.write(chunk)
        incoming.finish()
        metadata = Upload(
            title=values["title"] or None,
            description=values["description"] or None,
            labels={TAGS: values["tags"], METADATA: values["metadata"]},
            wait_seconds=0.0,
        )
        return services.upload(form.owner, incoming, metadata, actor=actor_of(request))
    finally:
        incoming.close()


def _upload_form(request: HttpRequest, form: UploadForm, *, status: int = 200) -> HttpResponseBase:
    context = {
        "title": _("Upload files"),
        "form": form,
        "max_bytes": settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES,
        "types": settings.MEMORY_GATEWAY_ALLOWED_MIME_TYPES,
    }
    return render(request, "console/upload.html", context, status=status)


def _start_reingestion(request: HttpRequest, chosen: list[str]) -> Any:
    """Start a job that re-ingests those chosen files that were ingested, and return its id. None if there are none."""
    read = (Resource.Status.EXTRACTED, Resource.Status.EMPTY)
    ingested = tenants.reachable(Resource.objects.filter(pk__in=chosen, state=State.LIVE, status__in=read))
    pairs = set(ingested.values_list("user_id", "session_id")) if chosen else set()
    if not pairs:
        return None
    sessions = Session.objects.filter(session_id__in=[session_id for _user, session_id in pairs])
    rows = [pk for pk, user, session_id in sessions.values_list("pk", "user_id", "session_id")
            if (user, session_id) in pairs]  # fmt: skip
    return operator_jobs.reread_sessions(rows, actor=actor_of(request)).pk if rows else None
