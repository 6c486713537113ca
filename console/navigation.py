"""The items of the navigation. Add a line here for a new page."""

from typing import Any, Final, NamedTuple

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from accounts import tenants
from console import access, cases, queries
from remote.queries import is_used

# Pages of the Django admin in the panel's frame.
_PERSON = (
    "console:user",
    "console:user-edit",
    "console:transcript",
    "admin:accounts_memoryuser_add",
    *(f"admin:accounts_userkey_{verb}" for verb in ("add", "rotate", "revoke")),
    *(f"admin:profiles_profilememory_{page}" for page in ("edit", "version", "versions")),
)
_VIEW, _FILES = "store.view_memory", "resources.view_resource"


class Item(NamedTuple):
    """A link to a page by its URL name. It is highlighted on this page, on those in `also`, and on `<name>-…` pages."""

    name: str
    label: Promise
    icon: str
    permission: str
    also: tuple[str, ...] = ()


SECTIONS: Final[tuple[tuple[Promise | str, tuple[Item, ...]], ...]] = (
    (
        "",
        (
            Item("console:dashboard", _("Dashboard"), "home", _VIEW),
            Item("console:memories", _("Memories"), "list", _VIEW, ("console:memory", "console:add")),
            Item("console:lab", _("Search lab"), "lab", _VIEW),
            Item("console:searches", _("Search log"), "search", "memories.view_loggedsearch"),
            Item("console:queues", _("Queues"), "filter", _VIEW),
            Item("console:trash", _("Trash"), "trash", _VIEW),
        ),
    ),
    (
        _("Data"),
        (
            Item("console:resources", _("Resources"), "file", _FILES, ("console:resource",)),
            Item("console:users", _("Users"), "users", "accounts.view_memoryuser", _PERSON),
            Item("console:connect", _("Connect"), "plug", "accounts.view_memoryuser"),
        ),
    ),
    (
        _("System"),
        (
            Item("console:jobs", _("Jobs"), "clock", _VIEW, ("console:job", "console:import")),
            Item("console:remote", _("Remote"), "remote", _VIEW),
            Item("console:webhooks", _("Webhooks"), "send", "webhooks.view_webhook", ("console:webhook",)),
            Item("console:audit", _("Audit trail"), "audit", "accounts.view_auditevent"),
            Item("console:operators", _("Operators"), "lock", "auth.view_user", ("console:operator",)),
            Item("console:health", _("Health"), "health", _VIEW),
            Item("admin:index", _("Django admin"), "settings", ""),
        ),
    ),
)


def sections(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the sections with the items that the operator may open. Empty sections are omitted."""
    current = request.resolver_match.view_name if request.resolver_match else ""
    found = []
    for label, items in SECTIONS:
        visible = [
            {
                "label": item.label,
                "icon": item.icon,
                "url": reverse(item.name),
                "is_here": any(current == name or current.startswith(f"{name}-") for name in (item.name, *item.also)),
                **_count(request, item.name),
            }
            for item in items
            if (not item.permission or request.user.has_perm(item.permission)) and _is_shown(request, item)
        ]
        if visible:
            found.append({"label": label, "items": visible})
    return found


def _count(request: HttpRequest, name: str) -> dict[str, Any]:
    """Return the number beside an item, and its words for screen readers."""
    if name == "console:resources":
        with tenants.limited_to(tenants.of_request(request)):
            return {"count": queries.failures_waiting(), "counted": _("unresolved failures")}
    if name == "console:queues":
        return {"count": cases.waiting_for(request), "counted": _("open cases of yours")}
    return {"count": 0}


def _is_shown(request: HttpRequest, item: Item) -> bool:
    """Return False for a page that is closed to the operator, and for that of the remote where none was attached."""
    if not access.is_open_to(request, item.name):
        return False
    if item.name == "admin:index":
        return request.user.is_superuser
    return item.name != "console:remote" or is_used()
