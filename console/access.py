"""Common parts of all panel pages: permissions, error pages, and the audit of reads."""

import functools
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any, Final, Literal

from django.contrib import admin, messages
from django.contrib.auth.models import Permission
from django.contrib.messages.storage.cookie import CookieStorage
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render as render_template
from django.urls import get_script_prefix, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts import tenants
from accounts.admin_base import actor_of
from accounts.audit import record
from accounts.models import MemoryUser
from console import queries
from console.filters import Filters
from core.errors import GatewayError, NotFound, existing
from core.logs import request_id
from core.persistence import replica
from core.persistence.database_errors import database_errors
from core.persistence.sql import fail_fast_writes
from core.rest import Forbidden, problem_headers
from memories.models import LoggedSearch
from operations.models import Job
from resources.models import Resource
from store.models import Memory
from store.types import StoredMemory
from webhooks.models import Webhook

View = Callable[..., HttpResponseBase]
VIEW, ADD, CHANGE, DELETE = (f"store.{verb}_memory" for verb in ("view", "add", "change", "delete"))
EXPORT = "accounts.export_memoryuser"
MAX_WAIT_SECONDS: Final = 4.0
"""A page waits so long for a locked database, then it says so."""


Reach = Literal["", "lists", "user", "memory", "resource", "search", "webhook", "job"]
SUBJECTS: Final[Mapping[str, tuple[type[Model], str, str]]] = {
    "user": (MemoryUser, "pk", ""),
    "memory": (Memory, "row", "user"),
    "resource": (Resource, "resource_id", "user"),
    "search": (LoggedSearch, "pk", "user"),
    "webhook": (Webhook, "pk", "user"),
}
"""The model of each kind of page, the part of its address that is the key, and the path to the user."""


def page(permission: str, *methods: str, reach: Reach = "") -> Callable[[View], View]:
    """Decorate a view of the panel. It accepts only GET unless `methods` are given. "" is a page of every operator.

    `reach` opens it to operators who are limited to tenants: `lists` shows only what `accounts.tenants` lets them see,
    the others are pages of one object, which is absent for them if its user is. Without it they are refused.

    Without a session, the sign-in page is shown; without the permission, a page that names it. A `GatewayError` of the
    view becomes an error page with its status.
    """

    def decorate(view: View) -> View:
        allowed = require_http_methods(methods or ("GET",))(view)

        @functools.wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if permission and not request.user.has_perm(permission):
                context = {
                    "title": _("Permission denied"),
                    "permission": _permission_label(permission),
                    "code": permission,
                    "back": _own_referer(request)
                    or (reverse("console:dashboard") if request.user.has_perm(VIEW) else ""),
                }
                return render(request, "console/refused.html", context, status=403)
            limit = tenants.of_request(request)
            try:
                with database_errors(), _short_wait(request), tenants.limited_to(limit):
                    if limit is not None:
                        _require_reachable(request, reach, kwargs)
                    response = _answer(request, partial(allowed, request, *args, **kwargs))
            except GatewayError as error:
                return _error_page(request, error)
            if response.status_code != 405:
                return response
            # Operators who had to sign in again to send a form come to its address by GET.
            context = {"title": _("No changes made")}
            explanation = render(request, "console/form_only.html", context, status=405)
            explanation["Allow"] = response["Allow"]
            return explanation

        view_of_panel = _with_notice_of_lost_form(admin.site.admin_view(guarded))
        view_of_panel.reach = reach  # type: ignore[attr-defined]
        return view_of_panel

    return decorate


def _answer(request: HttpRequest, view: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    """Return the view's answer, of a page that is only looked at from a replica of the database if there is one."""
    if request.method != "GET":
        return view()
    return replica.read(replica.operator_of(request.user.pk), view)


def _require_reachable(request: HttpRequest, reach: Reach, kwargs: Mapping[str, Any]) -> None:
    """Check that an operator who is limited to tenants may open a page. Raises: `Forbidden`, `NotFound`."""
    if not reach:
        raise Forbidden(_("This page shows all tenants, and your account is limited to some."))
    found: QuerySet[Any]
    if reach == "job":
        with suppress(ValidationError):
            found = Job.objects.filter(pk=kwargs["job"], actor_kind="operator", actor=request.user.get_username())
            if found.exists():
                return
        raise NotFound(_("There is no such job."))
    if reach in SUBJECTS:
        model, name, path = SUBJECTS[reach]
        found = model._default_manager.filter(pk__in=queries.without_nul([str(kwargs[name])]))  # noqa: SLF001
        existing(tenants.reachable(found, path), _("There is no such page."))


def is_open_to(request: HttpRequest, url_name: str) -> bool:
    """Return False for a page that refuses the operator because of a limit to tenants."""
    if tenants.of_request(request) is None:
        return True
    view = resolve(reverse(url_name)).func
    return bool(getattr(view, "reach", ""))


def _short_wait(request: HttpRequest) -> AbstractContextManager[None]:
    """Let a page that is only looked at wait no longer than `MAX_WAIT_SECONDS` for a locked database."""
    return fail_fast_writes(MAX_WAIT_SECONDS) if request.method == "GET" else nullcontext()


def address_of_gateway(request: HttpRequest) -> str:
    """Return the address of the gateway as the browser names it, without a slash at the end."""
    return request.build_absolute_uri(get_script_prefix()).rstrip("/")


def _with_notice_of_lost_form(view: View) -> View:
    """Decorate a view: report a form that is sent without a session as not saved, because the sign-in drops it."""

    @functools.wraps(view)
    def noticed(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # Once only: many notices would outgrow their cookie and be stored in a session.
        is_noticed = CookieStorage.cookie_name in request.COOKIES
        if request.method == "POST" and not is_noticed and not admin.site.has_permission(request):
            messages.warning(
                request, _("Nothing was saved, because you had to sign in. Go back in the browser to copy your text.")
            )
        return view(request, *args, **kwargs)

    return noticed


def _permission_label(permission: str) -> str:
    """Return the name of a permission as administrators see it, in the operator's language if it has one there."""
    app_label, codename = permission.split(".")
    found = Permission.objects.filter(content_type__app_label=app_label, codename=codename).first()
    return found.name if found else permission


def _own_referer(request: HttpRequest) -> str:
    """Return the page of this site from which a request came, or an empty string."""
    referer = request.headers.get("Referer", "")
    is_own = url_has_allowed_host_and_scheme(referer, allowed_hosts={request.get_host()})
    return referer if is_own and referer != request.build_absolute_uri() else ""


def require(request: HttpRequest, permission: str) -> None:
    if not request.user.has_perm(permission):
        raise Forbidden(_("You need the permission %(permission)s.") % {"permission": permission})


def render(
    request: HttpRequest, template: str, context: dict[str, Any] | None = None, *, status: int = 200
) -> HttpResponse:
    """Render a page with the context that every page of the panel needs."""
    common = {
        "site_title": admin.site.site_title,
        "site_header": admin.site.site_header,
        "has_permission": True,
        "is_nav_sidebar_enabled": True,  # the template block that holds the panel's navigation
        "here": request.get_full_path(),
    }
    return render_template(request, template, {**common, **(context or {})}, status=status)


def next_address(request: HttpRequest, default: str) -> str:
    """Return the address in the field `next` of the form or address if it is within this site, else the default."""
    target = request.POST.get("next") or request.GET.get("next", "")
    return target if url_has_allowed_host_and_scheme(target, allowed_hosts=None) else default


def record_list(
    request: HttpRequest, action: str, filters: Filters, user_ids: Iterable[str] = (), *, subject_type: str = ""
) -> None:
    """Audit the read of a list: its filters, and the users whom it shows or was asked for.

    Of a search query only the length is recorded.
    """
    users = set(user_ids)
    parameters = filters.parameters()
    query = parameters.pop("q", "")
    detail: dict[str, Any] = {"filter": parameters}
    if query:
        detail["q_chars"] = len(query)
    if (named := parameters.get("user", "")) and named not in users and queries.user_pk(named) is not None:
        users.add(named)
    record(actor_of(request), action, subject_type=subject_type, users=users, detail=detail)


def record_view(request: HttpRequest, memory: StoredMemory, detail: Mapping[str, Any] | None = None) -> None:
    """Audit the read of a memory."""
    record(actor_of(request), "memory.view", memory.memory_id, user_id=memory.owner.user_id, detail=detail)


def _error_page(request: HttpRequest, error: GatewayError) -> HttpResponse:
    is_get = request.method == "GET"
    context = {
        "title": _("Not found") if error.status == 404 and is_get else _("Request failed"),
        "error": error,
        "request_id": request_id.get(),
        "back": request.get_full_path() if is_get else next_address(request, _own_referer(request)),
    }
    page = render(request, "console/error.html", context, status=error.status)
    for name, value in problem_headers(error).items():
        page[name] = value
    return page
