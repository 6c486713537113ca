"""The pages of background jobs: progress, result, selection, stop and undo; and those that plan and start an import."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from accounts.admin_base import actor_of
from accounts.audit import record
from accounts.models import MemoryUser
from console import queries
from console.access import ADD, CHANGE, DELETE, EXPORT, VIEW, page, render, require
from console.filters import MARKS, ORIGINS, TAB_LABELS, PagedFilters
from console.forms import ImportForm
from console.keyset import newest_first
from console.signed_values import read_import, sign_import
from console.views.bulk import PURGE, REREAD, undo_permission
from core import readable
from core.errors import GatewayError
from core.localization import localized
from core.persistence.files import stored_files
from core.rest import Forbidden
from operations import jobs, operator_jobs
from operations.importers import import_from, import_gateway
from operations.models import Job
from operations.reingest import run as reingest
from store import categories
from store.text.terms import written

KINDS: Final = {
    "delete": gettext_lazy("Move memories to trash"),
    "restore": gettext_lazy("Restore memories"),
    "categorize": gettext_lazy("Change category"),
    operator_jobs.PURGE: gettext_lazy("Purge memories"),
    operator_jobs.EXPORT: gettext_lazy("Export user"),
    operator_jobs.REREAD: gettext_lazy("Re-ingest sessions"),
    import_from.KIND: gettext_lazy("Import memories"),
    import_gateway.KIND: gettext_lazy("Import the original gateway"),
    reingest.KIND: gettext_lazy("Re-ingest"),
    jobs.UNDO: gettext_lazy("Undo"),
}
_RESULTS: Final = {
    "changed": gettext_lazy("Changed"),
    "purged": gettext_lazy("Purged"),
    "undone": gettext_lazy("Undone"),
    "reread": gettext_lazy("Re-ingested"),
    "failed": gettext_lazy("Failed"),
    "left": gettext_lazy("Unchanged"),
    "rows": gettext_lazy("Rows"),
    "files": gettext_lazy("Files"),
    "missing": gettext_lazy("Missing files"),
    "bytes": gettext_lazy("Bytes"),
    "sessions": pgettext_lazy("how many", "Sessions"),
    "messages": gettext_lazy("Messages ingested"),
    "made": gettext_lazy("Memories created"),
    "replaced": gettext_lazy("Memories replaced"),
    "failures": gettext_lazy("Sessions that failed"),
}
_STOP_PERMISSIONS: Final = {
    "delete": DELETE,
    "restore": DELETE,
    "categorize": CHANGE,
    operator_jobs.PURGE: PURGE,
    operator_jobs.REREAD: REREAD,
    import_from.KIND: ADD,
}


# --- the selection of a job ------------------------------------------------------------------------------------------


def _moment(milliseconds: int) -> str:
    return f"{timezone.localtime(readable.moment(milliseconds)):%Y-%m-%d %H:%M}"


def _user(pk: str) -> str:
    """Return the user id for a primary key, or the key itself if the user is erased."""
    found = queries.find_user(pk)
    return found[1] if found else pk


_HIDDEN_BY: Final = {"user": gettext_lazy("a person"), "gateway": gettext_lazy("the gateway")}
_CONDITIONS: Final[Mapping[str, tuple[Any, Callable[[Any], Any]]]] = {
    "user_pk": (gettext_lazy("User"), _user),
    "app_id": (gettext_lazy("App"), str),
    "project_id": (gettext_lazy("Project"), str),
    "tab": (gettext_lazy("Kind"), lambda tab: TAB_LABELS.get(tab, tab)),
    "categories": (gettext_lazy("Category"), lambda names: ", ".join(str(categories.label(one)) for one in names)),
    "agent_id": (gettext_lazy("Agent"), str),
    "session_id": (gettext_lazy("Session"), str),
    "tag": (gettext_lazy("Tag"), str),
    "origin": (gettext_lazy("Origin"), lambda origin: ORIGINS.get(origin, origin)),
    "importance_min": (gettext_lazy("Minimum importance"), str),
    "importance_max": (gettext_lazy("Maximum importance"), str),
    "words": (gettext_lazy("Search text"), written),
    "mark": (gettext_lazy("Mark"), lambda mark: MARKS.get(mark, mark)),
    "tenants": (gettext_lazy("Tenant"), ", ".join),
    "since_ms": (gettext_lazy("From"), _moment),
    "until_ms": (gettext_lazy("To"), _moment),
    "in_trash": (gettext_lazy("In trash"), lambda _: gettext_lazy("yes")),
    "hidden_by": (gettext_lazy("Hidden by"), lambda side: _HIDDEN_BY.get(side, side)),
    "hidden_since_ms": (gettext_lazy("Deleted from"), _moment),
    "hidden_until_ms": (gettext_lazy("Deleted until"), _moment),
}


def describe_selection(selection: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the conditions of `Selection.as_json` as labels and values. Unknown conditions keep their name."""
    found = []
    for name, value in selection.items():
        label, write = _CONDITIONS.get(name, (name, str))
        found.append((str(label), str(write(value))))
    return found


# --- pages -----------------------------------------------------------------------------------------------------------


def _users_of(params: Mapping[str, Any]) -> list[str]:
    """Return the keys of the users whom the parameters of a job name."""
    selection = params.get("target", {}).get("selection", {})
    return [selection.get("user_pk", ""), params.get("user_pk", ""), params.get("user", "")]


@page(VIEW)
def all_jobs(request: HttpRequest) -> HttpResponseBase:
    filters = PagedFilters(reverse("console:jobs"), request.GET)
    found = newest_first(Job.objects.all(), filters, time="created_at")
    context = {"title": _("Jobs"), "filters": filters, "kinds": KINDS, **found._asdict()}
    return render(request, "console/jobs.html", context)


@page(VIEW, reach="job")
def job(request: HttpRequest, job: str) -> HttpResponseBase:
    """Show a job. With `part=1`, return only its progress, or after its end a header that reloads the page."""
    found = jobs.get(job)
    permission = "" if found.is_over else _stop_permission(found)
    seconds_left = None  # unknown before the first item is done
    if found.started_at and 0 < found.done < found.total:
        passed = (timezone.now() - found.started_at).total_seconds()
        seconds_left = max(1, round(passed * (found.total - found.done) / found.done))
    context: dict[str, Any] = {
        "title": KINDS.get(found.kind, found.kind),
        "job": found,
        "seconds_left": seconds_left,
        "can_stop": bool(permission) and request.user.has_perm(permission) and not found.stop_asked_at,
    }
    is_part = request.GET.get("part") == "1"
    if is_part and not found.is_over:
        return render(request, "console/parts/progress.html", context)
    target = found.params.get("target", {})
    if users := queries.users_by_key(_users_of(found.params)):
        record(actor_of(request), "job.view", str(found.pk), users=users)
    context |= {
        "results": [(label, found.result[name]) for name, label in _RESULTS.items() if found.result.get(name)],
        "filter": describe_selection(target.get("selection", {})),
        "ticked": len(target["rows"]) if "rows" in target else None,
        "can_undo": jobs.can_undo(found) and request.user.has_perm(undo_permission(found.kind)),
        "has_archive": found.kind == operator_jobs.EXPORT
        and found.status == Job.Status.DONE
        and request.user.has_perm(EXPORT),
    }
    back = request.GET.get("next", "")
    context["back"] = back if url_has_allowed_host_and_scheme(back, allowed_hosts=None) else ""
    response = render(request, "console/job.html", context)
    if is_part:
        response["HX-Refresh"] = "true"
    return response


@page(VIEW, "POST", reach="job")
def stop(request: HttpRequest, job: str) -> HttpResponseBase:
    found = jobs.get(job)
    permission = _stop_permission(found)
    if not permission:
        raise Forbidden(_("This job cannot be stopped."))
    require(request, permission)
    jobs.stop(job)
    record(actor_of(request), "job.stop", str(found.pk))
    messages.info(request, _("The job stops after the current step. Completed steps are kept."))
    return redirect("console:job", job=found.pk)


@page(EXPORT, reach="job")
def download(request: HttpRequest, job: str) -> HttpResponseBase:
    """Send the archive of an export."""
    found = jobs.get(job)
    archive = operator_jobs.open_archive(found)
    user_id = MemoryUser.objects.filter(pk=found.params["user_pk"]).values_list("user_id", flat=True).first() or ""
    record(actor_of(request), "archive.download", str(found.pk), subject_type="job", user_id=user_id)
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store"}
    return FileResponse(
        archive,
        as_attachment=True,
        filename=f"export-{user_id or found.pk}.tar",
        content_type="application/x-tar",
        headers=headers,
    )


def _stop_permission(found: Job) -> str:
    """Return the permission to stop a job, which is the permission to start it; empty if it cannot be stopped."""
    return (
        undo_permission(jobs.get(found.params["job"]).kind)
        if found.kind == jobs.UNDO
        else _STOP_PERMISSIONS.get(found.kind, "")
    )


_IMPORT_REASONS: Final = {
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
    "an id that is neither text nor a number": gettext_lazy("an id that is neither text nor a number"),
    "nested too deeply": gettext_lazy("nested too deeply"),
    "not valid JSON": gettext_lazy("not valid JSON"),
    "not valid JSON, or of more than four million characters": gettext_lazy(
        "not valid JSON, or of more than four million characters"
    ),
}


@page(ADD, "GET", "POST")
def upload_import(request: HttpRequest) -> HttpResponseBase:
    """Receive a file and show what its import would do."""
    if request.method != "POST":
        return _import_form(request, ImportForm(initial={"user": request.GET.get("user", "")}))
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return _import_form(request, form, status=422)
    values, key = form.cleaned_data, None
    try:
        is_archive = values["source"] in {"markdown", "everos-markdown"}
        key = import_from.keep_upload(form.user_pk, values["file"].chunks(), is_archive=is_archive)
        wanted = import_from.Request(
            source=values["source"],
            key=key,
            owner=form.owner,
            of_user=values["of_user"] or None,
            category=values["category"],
        )
        planned = import_from.plan(wanted)
    except BaseException as error:
        if key:
            stored_files().remove(key)
        if not isinstance(error, GatewayError):
            raise
        form.add_error("file", localized(error.detail))
        return _import_form(request, form, status=error.status)
    record(actor_of(request), "user.view", str(form.user_pk), user_id=values["user"], detail={"view": "import"})
    total = planned.new + planned.duplicates
    context: dict[str, Any] = {
        "title": _("Import plan"),
        "user": values["user"],
        "file": values["file"].name,
        "planned": planned,
        "left": [
            (_IMPORT_REASONS.get(reason, localized(reason)), count, ", ".join(planned.places[reason]))
            for reason, count in planned.left.most_common()
        ],
        "sealed": sign_import(wanted, total),
    }
    return render(request, "console/import_plan.html", context)


@page(ADD, "POST")
def start_import(request: HttpRequest) -> HttpResponseBase:
    """Start the job of a plan."""
    wanted, total = read_import(request.POST.get("plan", ""))
    submitted = import_from.submit(wanted, total=total, actor=actor_of(request))
    return redirect("console:job", job=submitted.pk)


def _import_form(request: HttpRequest, form: ImportForm, *, status: int = 200) -> HttpResponseBase:
    context = {
        "title": _("Import memories"),
        "form": form,
        "max_bytes": settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES,
    }
    return render(request, "console/import.html", context, status=status)
