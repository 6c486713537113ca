"""The page on which a person pauses and resumes remembering, by source, and sees who changed it."""

from typing import Final

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import controls
from accounts.models import Pause
from console import queries
from core.errors import NotFound
from portal.access import Visit, actor_of, page, render
from portal.views import never

CHANGES: Final = 30
ALL: Final = "all"
_ABOUT: Final[dict[str, Promise]] = {
    "chats": gettext_lazy("What you and your agents say to each other."),
    "files": gettext_lazy("Files that you send, also in conversations."),
    "agents": gettext_lazy("Facts that agents and applications store about you."),
}


@page()
def remembering(request: Visit) -> HttpResponseBase:
    """Show what is paused since when and by whom, and the latest changes."""
    user, pauses = request.link.user, controls.pauses_of(request.link.user.pk)
    changes = list(queries.trail_of(user.user_id).filter(action__startswith="controls.").order_by("-pk")[:CHANGES])
    queries.name_actors(changes)
    labels = dict(Pause.Source.choices)
    context = {
        "title": _("Remembering"),
        "sources": [(one, labels[one], _ABOUT[one], pauses.get(one)) for one in controls.SOURCES],
        "is_all_paused": len(pauses) == len(controls.SOURCES),
        "is_any_paused": bool(pauses),
        "may_loosen": controls.may_loosen(request.link),
        "changes": [
            (one, [*(labels.get(name, name) for name in one.detail.get("sources", ())), *never.numbers_in(one.detail)])
            for one in changes
        ],
        "done": request.GET.get("done", ""),
        **never.context_of(request),
    }
    return render(request, "remembering.html", context)


@page("POST")
def pause(request: Visit, source: str) -> HttpResponseBase:
    """Pause a source, or all."""
    paused = {*controls.pauses_of(request.link.user.pk), *_sources(source)}
    controls.set_paused(request.link.user.pk, paused, actor=actor_of(request))
    return redirect(reverse("portal:remembering", query={"done": "paused"}))


@page("POST")
def resume(request: Visit, source: str) -> HttpResponseBase:
    """Resume a source, or all. Raises: `LooseningRefused` in the session of a key."""
    paused = set(controls.pauses_of(request.link.user.pk)) - _sources(source)
    controls.set_paused(
        request.link.user.pk,
        paused,
        is_loosening_allowed=controls.may_loosen(request.link),
        actor=actor_of(request),
    )
    return redirect(reverse("portal:remembering", query={"done": "resumed"}))


def _sources(name: str) -> set[str]:
    if name != ALL and name not in controls.SOURCES:
        raise NotFound(_("There is nothing at this address. Check the path."))
    return set(controls.SOURCES) if name == ALL else {name}
