"""A logged search as it was, beside the same search now; and the same as a question of `manage.py evaluate`."""

from collections import Counter
from dataclasses import replace
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from django import forms
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from pydantic import ValidationError

from accounts.admin_base import actor_of
from accounts.audit import record
from console import cases, queries
from console.access import VIEW, page, render, require
from console.filters import LabFilters
from console.hidden import Reason, reasons_of
from core.errors import GatewayError, InvalidInput, existing
from core.localization import localized
from memories.models import LoggedSearch, ReturnedMemory
from memories.queries import edits_of, version_at
from memories.services.search import search
from operations.evaluation import Question
from store import browse
from store.models import Session
from store.types import MAX_TOP_K, Owner, StoredMemory

VIEW_SEARCHES: Final = "memories.view_loggedsearch"
MAX_USES, _MAX_REACHED = 20, 1_000


class Line(NamedTuple):
    """A memory that a search returned. `change` says what happened to it since; its text is shown only without one.

    `is_deleted`: a person deleted it. `place` is its rank in the same search now.
    """

    returned: ReturnedMemory
    memory: StoredMemory | None
    change: Promise | str = ""
    is_deleted: bool = False
    place: int | None = None


@page(VIEW_SEARCHES, reach="search")
def logged_search(request: HttpRequest, pk: int) -> HttpResponseBase:
    logged = _found(pk)
    record(actor_of(request), "search.view", str(pk), user_id=logged.user.user_id)
    has_words = request.user.has_perm(VIEW)
    lab, now = (lab_address(logged), _now(logged)) if has_words else ("", {})
    places = {hit["row"]: hit["rank"] for hit in now.get("hits", ()) if hit["row"] is not None}
    before = [line._replace(place=places.get(line.returned.row)) for line in _lines(logged)]
    ranks = {line.returned.row: line.returned.rank for line in before}
    for hit in now.get("hits", ()):
        hit["before"] = ranks.get(hit["row"]) if hit["row"] is not None else None
    context = {
        **cases.context(request, "search", pk),
        "title": _("Logged search"),
        "logged": logged,
        "has_words": has_words,
        "lab": lab,
        "lines": before,
        "now": now,
        "is_askable": has_words and logged.query_chars == len(logged.query) > 0,
    }
    return render(request, "console/logged_search.html", context)


class QuestionForm(forms.Form):
    expected = forms.TypedMultipleChoiceField(coerce=int, required=False)
    text = forms.CharField(max_length=2000, required=False)


@page(VIEW_SEARCHES, "POST", reach="search")
def question(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Send the search as a question: the ticked memories are expected, those that people deleted since forbidden."""
    logged = _found(pk)
    require(request, VIEW)
    if logged.query_chars != len(logged.query):
        raise InvalidInput(_("The words of this search are not stored."))
    lines = [line for line in _lines(logged) if line.memory]
    form = QuestionForm(request.POST)
    form.fields["expected"].choices = [(line.returned.row, "") for line in lines]  # type: ignore[attr-defined]
    if not form.is_valid():
        raise InvalidInput(_("A ticked memory is not among the results of this search."))
    chosen = set(form.cleaned_data["expected"])
    named = {line.returned.row: line.memory.memory_id for line in lines if line.memory}
    deleted = [line.returned.row for line in lines if line.is_deleted and line.returned.row not in chosen]
    try:
        made = Question(
            user=logged.user.user_id,
            query=logged.query,
            expected=tuple(named[row] for row in named if row in chosen),
            texts=(form.cleaned_data["text"],) if form.cleaned_data["text"] else (),
            forbidden=tuple(named[row] for row in deleted),
            label="search log",
            app_id=logged.app_id,
            project_id=logged.project_id,
        )
    except ValidationError as error:
        raise InvalidInput(_("Tick a memory that must be found, or write a part of its text.")) from error
    record(actor_of(request), "search.question", str(pk), user_id=logged.user.user_id)
    answer = HttpResponse(f"{made.model_dump_json(exclude_defaults=True)}\n", content_type="application/x-ndjson")
    answer["Content-Disposition"] = f'attachment; filename="question-{pk}.jsonl"'
    return answer


def uses_of(memory: StoredMemory) -> dict[str, Any]:
    """Return the latest logged searches that returned a memory, and whom it reached by them. At most three statements.

    `callers` and `sessions` are counted over the latest `_MAX_REACHED` uses; `is_cut` if there are more.
    """
    uses = ReturnedMemory.objects.filter(row=memory.row, search__user=memory.owner.user_pk).order_by("-search_id")
    latest = list(uses.select_related("search")[:MAX_USES])
    if not latest:
        return {}
    columns = "search__interface", "search__agent_id", "search__conversation_id"
    reached = list(uses.values_list(*columns)[: _MAX_REACHED + 1])
    callers = Counter((interface, agent_id) for interface, agent_id, _ in reached[:_MAX_REACHED])
    sessions = Counter(f"chat:{name}" for *_, name in reached[:_MAX_REACHED] if name)
    owner = memory.owner
    known = Session.objects.filter(
        user=owner.user_pk, app_id=owner.app_id, project_id=owner.project_id, session_id__in=sessions
    )
    labels = dict(LoggedSearch.Interface.choices)
    open_ones = set(known.values_list("session_id", flat=True))
    return {
        "latest": latest,
        "total": min(len(reached), _MAX_REACHED),
        "is_cut": len(reached) > _MAX_REACHED,
        "callers": [
            (labels.get(one, one), agent_id, count) for (one, agent_id), count in callers.most_common(MAX_USES)
        ],
        "sessions": [(name, name in open_ones, count) for name, count in sessions.most_common(MAX_USES)],
    }


def lab_address(one: LoggedSearch) -> str:
    """Return the address of the same search in the lab; empty if not all of it is known."""
    if one.has_filters or one.query_chars != len(one.query) or one.top_k > MAX_TOP_K:
        return ""
    agent = "agent" if one.interface == LoggedSearch.Interface.REST else "reader"
    values: dict[str, Any] = {
        "q": one.query,
        "user": one.user.user_id,
        "conversation": one.conversation_id,
        agent: one.agent_id,
        "method": one.method,
        "top_k": one.top_k,
        **one.options,
        "app": one.app_id,
        "project": one.project_id,
        **dict.fromkeys(one.scopes.split(), "1"),
    }
    return reverse("console:lab", query={name: value for name, value in values.items() if value != ""})


def _found(pk: int) -> LoggedSearch:
    return existing(LoggedSearch.objects.select_related("user").filter(pk=pk), _("There is no such search in the log."))


def _lines(logged: LoggedSearch) -> list[Line]:
    """Return what a search returned, in its order, with what happened to each memory since."""
    returned = list(logged.returned.order_by("rank"))
    rows = [one.row for one in returned if one.row is not None]
    memories = {one.row: one for one in browse.get_many(rows) if one.owner.user_pk == logged.user_id}
    reasons, edits, now = reasons_of(list(memories.values())), edits_of(rows), timezone.now()
    lines = []
    for one in returned:
        memory = memories.get(one.row or 0)
        reason = reasons.get(one.row or 0)
        if memory is None:
            change = _("Purged since") if one.row is not None else _("Only the remote holds it")
            lines.append(Line(one, None, change))
        elif memory.is_incognito:
            lines.append(Line(one, None, _("Of an incognito session")))
        elif reason is not None:
            lines.append(Line(one, memory, reason.label, _is_of_person(reason)))
        elif version_at(now, edits.get(memory.row, ())) != one.version:
            lines.append(Line(one, memory, _("Edited since")))
        else:
            lines.append(Line(one, memory))
    return lines


def _is_of_person(reason: Reason) -> bool:
    return not (reason.is_of_gateway or (reason.tombstone is not None and reason.tombstone.is_expiry))


def _now(logged: LoggedSearch) -> dict[str, Any]:
    """Return the results of the same search now, or why it failed; nothing if not all of it is known."""
    address = lab_address(logged)
    if not address:
        return {}
    filters = LabFilters(reverse("console:lab"), dict(parse_qsl(urlsplit(address).query)))
    owner = Owner(logged.user_id, logged.user.user_id, logged.app_id, logged.project_id)
    try:
        command = filters.command(owner.user_pk)
        # A page that is only looked at calls no language model.
        answer = search(owner, replace(command, method="hybrid") if command.method == "agentic" else command)
    except GatewayError as error:
        return {"problem": localized(error.detail)}
    memories = queries.stored_of((owner, found.hit.memory_id) for found in answer.results)
    hits = []
    for rank, found in enumerate(answer.results, 1):
        memory = memories.get((owner, found.hit.memory_id))
        hits.append({"rank": rank, "row": memory.row if memory else None, "found": found})
    return {"hits": hits, "is_done": True}
