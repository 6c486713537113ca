"""One decision about many memories: a few are done at once, more are previewed first."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from accounts.admin_base import actor_of
from console.access import CHANGE, DELETE, VIEW, page
from console.selecting import target_of
from console.views.memory import next_address
from lifecycle import bulk as services
from lifecycle import jobs
from lifecycle.bulk import Target
from lifecycle.models import Job
from memory_gateway.core.errors import BadRequest
from memory_gateway.core.rest import Forbidden

_PERMISSIONS = {"delete": DELETE, "restore": DELETE, "categorise": CHANGE}


@page(VIEW)
@require_POST
def bulk(request: HttpRequest) -> HttpResponseBase:
    verb = request.POST.get("do", "")
    if verb not in _PERMISSIONS:
        raise BadRequest("This is nothing that can be done with many memories.")
    if not request.user.has_perm(_PERMISSIONS[verb]):
        raise Forbidden(f"This needs the permission {_PERMISSIONS[verb]}.")
    target = target_of(request.POST)
    if target.rows == ():
        messages.warning(request, _("Nothing was selected."))
    else:
        _tell(request, verb, _act(request, verb, target))
    return redirect(next_address(request, reverse("console:memories")))


@page(DELETE)
@require_POST
def undo(request: HttpRequest, job: str) -> HttpResponseBase:
    done = jobs.undo(job, actor=actor_of(request))
    if done.total <= services.AT_ONCE:
        done = jobs.run_now(done)
    messages.success(request, _("Undone. What was changed by others since then stays as they left it."))
    return redirect(next_address(request, reverse("console:memories")))


def _act(request: HttpRequest, verb: str, target: Target) -> Job:
    actor = actor_of(request)
    if verb == "categorise":
        return services.categorise(target, category=request.POST.get("category", ""), actor=actor)
    if verb == "restore":
        return services.restore(target, actor=actor)
    return services.delete(target, reason=request.POST.get("reason", "")[:200], actor=actor)


def _tell(request: HttpRequest, verb: str, job: Job) -> None:
    """What was done, with its undo."""
    count = job.result.get("changed", 0)
    named = {
        "delete": ngettext("%(count)s memory moved to trash.", "%(count)s memories moved to trash.", count),
        "restore": ngettext("%(count)s memory restored.", "%(count)s memories restored.", count),
        "categorise": ngettext("%(count)s memory changed.", "%(count)s memories changed.", count),
    }
    undo_url = reverse("console:job-undo", args=[job.pk]) if jobs.can_undo(job) else ""
    messages.success(request, named[verb] % {"count": f"{count:,}"}, extra_tags=undo_url)
