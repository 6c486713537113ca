"""Actions of the page header: the language and the global search."""

import re
from contextlib import suppress
from textwrap import shorten
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

from accounts import services, tenants
from accounts.admin_base import actor_of
from accounts.audit import record, record_opening
from accounts.credential_names import shown_part
from accounts.models import UserKey
from console import navigation, queries
from console.access import ADD, VIEW, is_open_to, page, render
from console.filters import ALL_TAB
from console.signed_values import read_choice, sign_choice
from console.text import memory_item
from console.views.jobs import KINDS
from console.views.people import VIEW_USERS
from console.views.resources import ADD_FILES, VIEW_FILES
from console.views.users import ADD_USERS, AUDIT
from console.word_search import WordSearch, search
from operations.models import Job
from resources.models import Resource
from store import browse
from store.browse import Selection
from store.models import IS_PURGED, NOT_INCOGNITO, Memory, Session, State
from store.table import visible
from store.text.terms import terms
from store.types import StoredMemory

RESULTS: Final = 6
_JOB_START: Final = re.compile("[0-9a-f-]{4,36}", re.IGNORECASE)
# The label, page and permission of each action.
_ACTIONS: Final = (
    (gettext_lazy("Add memory"), "console:add", ADD),
    (gettext_lazy("Upload files"), "console:resource-upload", ADD_FILES),
    (gettext_lazy("Import memories"), "console:import", ADD),
    (gettext_lazy("Add user"), "admin:accounts_memoryuser_add", ADD_USERS),
    (gettext_lazy("Create API key"), "admin:accounts_userkey_add", "accounts.add_userkey"),
    (gettext_lazy("Export audit trail"), "console:audit-export", AUDIT),
    (gettext_lazy("Change password"), "admin:password_change", ""),
)
_OPENING: Final = re.compile("[a-z0-9]{8,32}")
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class _Result(NamedTuple):
    """A link to a page. `user_id` is the user to whom the object belongs."""

    url: str
    label: str
    user_id: str = ""

    @property
    def signed(self) -> str:
        return sign_choice(self.url, self.user_id)


class _Group(NamedTuple):
    """Results of one kind. `more_url` is the list that filters by the same text, empty for none."""

    label: str
    icon: str
    results: list[_Result]
    more_url: str = ""


# Django stores the language in a cookie, which its middleware reads. The sign-in page has the button too.
language = require_POST(set_language)


@page(VIEW, reach="lists")
def find(request: HttpRequest) -> HttpResponseBase:
    """Redirect to the page of the object with this id; else show what has a name like it; else search for the text.

    With `part=1`, return only the results, for the palette. Without a query, these are all pages and actions.
    """
    # A pasted key must not stand in the page and in further addresses.
    query = shown_part(request.GET.get("q", "").strip().replace("\x00", ""))
    is_part = request.GET.get("part") == "1"
    if not (query or is_part):
        return redirect("console:memories")
    page_of_id = _page_of_id(request, query) if query else None
    search_url = _list(tab=ALL_TAB, q=query)
    context: dict[str, Any] = {"query": query, "search_url": search_url}
    if page_of_id is not None and not is_part:
        return redirect(page_of_id.url)
    if page_of_id is not None:
        groups = [_Group(gettext("ID"), "page", [page_of_id])]
    elif _UUID.fullmatch(query) and not is_part:
        return render(request, "console/unknown_id.html", {"title": gettext("ID not found"), **context})
    else:
        groups = _similar(request, query)
    if not (groups or is_part):
        return redirect(search_url)
    memories = _memories(query) if query else None
    groups += [memories] if memories and memories.results else []
    _record_found(request, {result.user_id for group in groups for result in group.results} - {""}, query)
    template = "console/parts/results.html" if is_part else "console/find.html"
    return render(request, template, {"title": gettext("Find"), "groups": groups, **context})


def _record_found(request: HttpRequest, users: set[str], query: str) -> None:
    """Audit what Find lists; what the palette lists while it is open is one event."""
    opening = request.GET.get("opening", "")
    if users and _OPENING.fullmatch(opening):
        detail = {"opening": opening}
        record_opening(actor_of(request), "panel.find", opening, users, subject_type="user", detail=detail)
    elif users:
        record(actor_of(request), "panel.find", subject_type="user", users=users, detail={"q_chars": len(query)})


@page(VIEW, "POST", reach="lists")
def choose(request: HttpRequest) -> HttpResponseBase:
    """Audit which result of Find the operator opens. The browser sends it beside opening the page."""
    url, user_id = read_choice(request.POST.get("chosen", ""))
    opening = request.POST.get("opening", "")
    detail = {"opening": opening} if _OPENING.fullmatch(opening) else {}
    record(actor_of(request), "panel.choose", url, subject_type="page", users=[user_id], detail=detail)
    return HttpResponse(status=204)


def _page_of_id(request: HttpRequest, query: str) -> _Result | None:
    """Return the page of the memory, user, session, file, job or key with this id."""
    memories = tenants.reachable(visible(Memory.objects.filter(NOT_INCOGNITO, memory_id=query))).order_by("-pk")
    if (found := memories.values_list("pk", "user__user_id").first()) is not None:
        return _Result(reverse("console:memory", args=found[:1]), query, found[1])
    if (user := queries.find_user(query)) is not None:
        pk, user_id = user
        may_open = request.user.has_perm(VIEW_USERS)
        url = reverse("console:user", args=[pk]) if may_open else _list(tab=ALL_TAB, user=user_id)
        return _Result(url, query, user_id)
    for session_id in (query, f"chat:{query}"):  # conversation ids are accepted without their prefix
        sessions = tenants.reachable(Session.objects.filter(~IS_PURGED, session_id=session_id, incognito_until=None))
        if owners := list(sessions.values_list("user__user_id", flat=True)[:2]):
            return _Result(_list(tab=ALL_TAB, session=session_id), query, owners[0] if len(owners) == 1 else "")
    resource = (
        tenants.reachable(Resource.objects.filter(pk=query))
        if request.user.has_perm(VIEW_FILES)
        else Resource.objects.none()
    )
    if (owner := resource.values_list("user__user_id", flat=True).first()) is not None:
        return _Result(reverse("console:resource", args=[query]), query, owner)
    return _page_of_uuid(request, query)


def _page_of_uuid(request: HttpRequest, query: str) -> _Result | None:
    """Return the page of the job with this id, or of the user of the API key with it."""
    with suppress(ValidationError):  # not a UUID
        if (job := _jobs_of(request).filter(pk=query).values_list("pk", flat=True).first()) is not None:
            return _Result(reverse("console:job", args=[job]), query)
        key = tenants.reachable(UserKey.objects.filter(pk=query)).values_list("user", "user__user_id").first()
        if key is not None and request.user.has_perms((VIEW_USERS, "accounts.view_userkey")):
            return _Result(reverse("console:user", args=key[:1]), query, key[1])
    return None


def _similar(request: HttpRequest, query: str) -> list[_Group]:
    """Return what has a name like the query and may be opened by the operator."""
    may = request.user.has_perm
    groups = [_pages(request, query), _actions(request, query)]
    if not query:
        return groups
    if may(VIEW_USERS):
        groups.append(_users(query))
        if may("accounts.view_userkey") and query.startswith("uk_"):
            groups.append(_keys(query, may_view_trail=may(AUDIT) and tenants.current() is None))
    groups.append(_sessions(query))
    if may(VIEW_FILES):
        groups.append(_files(query))
    groups.append(_jobs(request, query))
    return [group for group in groups if group.results]


def _pages(request: HttpRequest, query: str) -> _Group:
    items = [item for section in navigation.sections(request) for item in section["items"]]
    named = [item for item in items if _has_word(item["label"], query)]
    return _Group(gettext("Pages"), "page", [_Result(item["url"], item["label"]) for item in named])


def _actions(request: HttpRequest, query: str) -> _Group:
    named = [(page, str(label)) for label, page, permission in _ACTIONS
             if _has_word(label, query) and (not permission or request.user.has_perm(permission))
             and is_open_to(request, page)]  # fmt: skip
    return _Group(gettext("Actions"), "add", [_Result(reverse(page), label) for page, label in named])


def _has_word(label: object, query: str) -> bool:
    """Return True if the label, or a word in it, begins with the query."""
    return f" {query}".casefold() in f" {label}".casefold()


def _users(query: str) -> _Group:
    found = services.active_users().filter(services.person_condition(query)).order_by("user_id")
    results = [
        _Result(reverse("console:user", args=[pk]), f"{name} · {user_id}" if name else user_id, user_id)
        for pk, user_id, name in found.values_list("pk", "user_id", "name")[:RESULTS]
    ]
    return _Group(gettext("Users"), "users", results, reverse("console:users", query={"q": query}))


def _keys(query: str, *, may_view_trail: bool) -> _Group:
    """Return the keys that begin as the query does, and the trail of these; only the first characters are known."""
    keys = tenants.reachable(UserKey.objects.filter(prefix__startswith=query)).order_by("-created_at")
    rows = keys.values_list("prefix", "user", "user__user_id")[:RESULTS]
    results = [_Result(reverse("console:user", args=[pk]), f"{prefix}…", user_id) for prefix, pk, user_id in rows]
    trail = reverse("console:audit", query={"tab": "all", "actor": query}) if may_view_trail and results else ""
    return _Group(gettext("API keys"), "lock", results, trail)


def _sessions(query: str) -> _Group:
    found = tenants.reachable(
        Session.objects.filter(session_id__icontains=query, state=State.LIVE, incognito_until=None)
    )
    sessions = found.order_by("-pk")
    rows = sessions.values_list("session_id", "user__user_id")[:RESULTS]
    results = [_Result(_list(tab=ALL_TAB, user=user, session=name), name, user) for name, user in rows]
    return _Group(gettext("Sessions"), "message", results)


def _files(query: str) -> _Group:
    files = tenants.reachable(Resource.objects.filter(filename__icontains=query, state=State.LIVE)).order_by(
        "-created_at"
    )
    rows = files.values_list("pk", "filename", "user__user_id")[:RESULTS]
    results = [_Result(reverse("console:resource", args=[pk]), name, user) for pk, name, user in rows]
    return _Group(gettext("Resources"), "file", results, reverse("console:resources", query={"q": query}))


def _jobs_of(request: HttpRequest) -> QuerySet[Job]:
    """Return the jobs that the operator may open: with a limit to tenants only their own."""
    own = {} if tenants.current() is None else {"actor_kind": "operator", "actor": request.user.get_username()}
    return Job.objects.filter(**own)


def _jobs(request: HttpRequest, query: str) -> _Group:
    """Return the last jobs of kinds with such a name, or with an id that begins like this."""
    conditions = Q(kind__in=[kind for kind, label in KINDS.items() if _has_word(label, query)])
    if _JOB_START.fullmatch(query):
        digits = query.replace("-", "")
        conditions |= Q(pk__range=(UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))))
    jobs = _jobs_of(request).filter(conditions).order_by("-created_at")[:RESULTS]
    results = [
        _Result(reverse("console:job", args=[job.pk]), f"{KINDS.get(job.kind, job.kind)} · {str(job.pk)[:8]}")
        for job in jobs
    ]
    return _Group(gettext("Jobs"), "clock", results, reverse("console:jobs"))


def _memories(query: str) -> _Group:
    """Return the memories of all users that match the words best."""
    searched = search(query, Selection(words=words)) if (words := terms(query)) else None
    if searched is None:
        found = []
    elif searched.matches is None:
        found = list(browse.page(searched.selection, limit=RESULTS).memories)
    else:
        found = browse.get_many([match.row for match in searched.matches[:RESULTS]])
    results = [
        _Result(reverse("console:memory", args=[one.row]), _excerpt(one, searched), one.owner.user_id) for one in found
    ]
    return _Group(gettext("Memories"), "message", results, _list(tab=ALL_TAB, q=query))


def _excerpt(memory: StoredMemory, searched: WordSearch | None) -> str:
    """Return the place of a memory's text that has the words."""
    item = memory_item(memory, words=searched.selection.words if searched else ())
    return shorten(" ".join(part.text for part in item.parts), 120, placeholder="…")


def _list(**parameters: str) -> str:
    return reverse("console:memories", query=parameters)
