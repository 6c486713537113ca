"""The search lab: the real search as one user, with every number that it made on the way."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from console import queries, reads
from console.access import VIEW, page, render
from console.hidden import whys
from console.state import MAX_WORDS_CHARS, Cleaner, State, one_of, share, text
from console.text import Change
from core.errors import GatewayError
from core.sentences import told
from engines.registry import get_engine
from memories.services.hidden_hits import HiddenHit, find_hidden_hits
from memories.services.search import SCOPES, Found, Scope, ScopeReport, SearchCommand, search
from store import browse
from store.browse import Selection
from store.text.tokens import query_tokens
from store.types import MAX_TOP_K, Hit, Method, Owner

_SHOWN_CHARS: Final = 600
_LEG_LABELS: Final = {
    "keyword": gettext_lazy("keyword"),
    "vector": gettext_lazy("vector"),
    "fused": gettext_lazy("fused"),
    "upstream": gettext_lazy("EverOS"),
}
_PART_LABELS: Final = {
    "terms": gettext_lazy("terms"),
    "around": gettext_lazy("terms in and around it"),
    "neighbours": gettext_lazy("turns beside it"),
    "speaker": gettext_lazy("speaker named"),
}


def _top_k(value: str) -> str:
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= MAX_TOP_K:
        raise ValueError(_("must be a whole number from 1 to %(most)s") % {"most": MAX_TOP_K})
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class LabState(State):
    """All that a search takes; the scopes are boxes, and none ticked means all."""

    q: str = ""
    user: str = ""
    conversation: str = ""
    agent: str = ""
    method: str = "hybrid"
    top_k: str = "8"
    radius: str = ""
    app: str = ""
    project: str = ""
    current_chat: str = ""
    resources: str = ""
    all_user_memory: str = ""

    @classmethod
    def defaults(cls) -> Mapping[str, str]:
        return {"method": "hybrid", "top_k": "8"}

    @classmethod
    def cleaners(cls) -> Mapping[str, Cleaner]:
        return {
            "q": text(MAX_WORDS_CHARS),
            "user": text(64),
            "conversation": text(123),
            "agent": text(64),
            "method": one_of(*get_args(Method)),
            "top_k": _top_k,
            "radius": share,
            "app": text(64),
            "project": text(64),
            **dict.fromkeys(SCOPES, one_of("1")),
        }

    @property
    def scopes(self) -> frozenset[Scope]:
        ticked = frozenset(scope for scope in SCOPES if getattr(self, scope))
        return ticked or frozenset(SCOPES)

    def command(self) -> SearchCommand:
        return SearchCommand(
            query=self.q,
            scopes=self.scopes,
            conversation_id=self.conversation or None,
            agent_id=self.agent or None,
            method=cast("Method", self.method),
            top_k=int(self.top_k),
            radius=float(self.radius) if self.radius else None,
        )


@page(VIEW)
@require_GET
def lab(request: HttpRequest) -> HttpResponseBase:
    state = LabState.read(reverse("console:lab"), request.GET)
    context: dict[str, Any] = {
        "title": _("Search lab"),
        "state": state,
        "problems": list(state.problems),
        "methods": get_args(Method),
        "scopes": [(scope, scope in state.scopes) for scope in SCOPES],
        "options": browse.facets(Selection(), limit=100),
    }
    status = 200
    if state.q and state.user:
        pk = queries.user_pk(state.user)
        if pk is None:
            context["problems"].append(_("There is no user %(user)s.") % {"user": state.user})
        else:
            owner = Owner(pk, state.user, state.app or "default", state.project or "default")
            reads.listed(request, "memory.lab", state, [state.user])
            status = _run(context, state, owner)
    elif state.q:
        context["problems"].append(_("Choose the user whose memories are searched."))
    return render(request, "console/lab.html", context, status=status)


def _run(context: dict[str, Any], state: LabState, owner: Owner) -> int:
    """The search and all that is to be said of it; the status of the page."""
    began = time.perf_counter()
    try:
        answer = search(owner, state.command())
        took_ms = round((time.perf_counter() - began) * 1000, 1)
        missing = find_hidden_hits(owner, state.command())
    except GatewayError as error:
        context["problems"].append(told(error.detail))
        return error.status
    hits, hidden = _hits(owner, answer.results), _missing(missing)
    _measure([*hits, *hidden])
    context |= {
        "answer": answer,
        "took_ms": took_ms,
        "engine": get_engine().label,
        "hits": hits,
        "missing": hidden,
        "reports": [
            (scope, answer.scopes[scope], _hidden_in(scope, answer.scopes[scope], missing))
            for scope in SCOPES
            if scope in answer.scopes
        ],
        "degraded": sorted({told(report.degraded) for report in answer.scopes.values() if report.degraded}),
        "tokens": query_tokens(state.q),
        "curl": _curl(state),
    }
    return 200


def _hidden_in(scope: Scope, report: ScopeReport, missing: Sequence[HiddenHit]) -> int:
    """An engine that has the decisions in its own table leaves out what is hidden before it counts."""
    return max(report.hidden, sum(one.scope == scope for one in missing))


def _hits(owner: Owner, results: Sequence[Found]) -> list[dict[str, Any]]:
    rows = queries.stored_of((owner, found.hit.memory_id) for found in results)
    before = queries.originals(found.override_id for found in results if found.override_id)
    return [
        {
            **_explained(found.hit),
            "found": found,
            "memory": rows.get((owner, found.hit.memory_id)),
            "before": before.get(found.override_id or ""),
        }
        for found in results
    ]


def _missing(hidden: Sequence[HiddenHit]) -> list[dict[str, Any]]:
    why = whys([one.memory for one in hidden if one.memory])
    return [
        {**_explained(one.hit), "hidden": one, "memory": one.memory, "why": one.memory and why.get(one.memory.row)}
        for one in hidden
    ]


def _measure(rows: Sequence[dict[str, Any]]) -> None:
    """Gives each score its share of the best of its kind on the page, so that the bars of one kind compare."""
    best: dict[str, float] = {}
    scored = [(str(one["label"]), one) for row in rows for one in (*row["legs"], row)]
    for label, one in scored:
        best[label] = max(best.get(label, 0.0), one["score"] or 0.0)
    for label, one in scored:
        one["share"] = (one["score"] or 0.0) / (best[label] or 1.0)


def _explained(hit: Hit) -> dict[str, Any]:
    """Its words with those of the question marked, and what each leg gave."""
    legs = [_leg(name, leg) for name, leg in hit.legs.items() if isinstance(leg, Mapping)]
    matched = [str(term) for leg in legs for term in leg["matched"]]
    return {
        "label": "",
        "score": hit.score,
        "text": mark(_beginning(hit), matched),
        "legs": legs,
        "matched": list(dict.fromkeys(matched)),
    }


def _beginning(hit: Hit) -> str:
    return hit.text if len(hit.text) <= _SHOWN_CHARS else f"{hit.text[:_SHOWN_CHARS]}…"


def _leg(name: str, leg: Mapping[str, Any]) -> dict[str, Any]:
    score = leg.get("score")
    raw_parts = leg.get("parts")
    parts = raw_parts if isinstance(raw_parts, Mapping) else {}
    return {
        "label": _LEG_LABELS.get(name, name),
        "score": score if isinstance(score, int | float) else None,
        "rank": leg.get("rank"),
        "matched": leg.get("matched") or (),
        "parts": [(_PART_LABELS.get(part, part), value) for part, value in parts.items() if value],
    }


def mark(whole: str, terms: Iterable[str]) -> list[Change]:
    """The text in pieces, marked where a term of the question stands. Terms are stems: a word's end is free."""
    wanted = [_pattern(term) for term in sorted(set(terms), key=len, reverse=True) if ":" not in term]
    if not wanted:
        return [Change("same", whole)]
    pieces, end = [], 0
    for hit in re.finditer("|".join(wanted), whole, re.IGNORECASE):
        if hit.start() > end:
            pieces.append(Change("same", whole[end : hit.start()]))
        pieces.append(Change("mark", hit[0]))
        end = hit.end()
    return [*pieces, Change("same", whole[end:])] if end < len(whole) else pieces


def _pattern(term: str) -> str:
    return rf"\b{re.escape(term)}\w*" if term.isascii() else re.escape(term)


def _curl(state: LabState) -> str:
    """The same search through the API."""
    body: dict[str, Any] = {"query": state.q, "scope": [scope for scope in SCOPES if scope in state.scopes]}
    given = {
        "conversation_id": state.conversation,
        "agent_id": state.agent,
        "app_id": state.app,
        "project_id": state.project,
    }
    body |= {name: value for name, value in given.items() if value}
    body |= {"method": state.method, "top_k": int(state.top_k), "explain": True}
    if state.radius:
        body["radius"] = float(state.radius)
    written = json.dumps(body, ensure_ascii=False).replace("'", "\\u0027")
    return (
        "curl -sS http://127.0.0.1:8010/memories/search -H 'Content-Type: application/json' "
        f"-H \"Authorization: Bearer $USER_KEY\" -d '{written}'"
    )
