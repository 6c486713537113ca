"""What stands in the navigation, for whoever may see it. A new page adds its line here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console import queries

_VIEW, _FILES = "store.view_memory", "resources.view_resource"


@dataclass(frozen=True, slots=True)
class Item:
    """`name` is the page's URL name. It is lit up by pages of that name, of `also`, and of names that begin so
    (`console:memory-edit`)."""

    name: str
    label: Promise
    icon: str
    permission: str
    also: tuple[str, ...] = ()


# What there is · where it came from · how it all does.
SECTIONS: Final[tuple[tuple[Promise | str, tuple[Item, ...]], ...]] = (
    (
        "",
        (
            Item("console:dashboard", _("Dashboard"), "home", _VIEW),
            Item("console:memories", _("Memories"), "list", _VIEW, ("console:memory", "console:add")),
            Item("console:lab", _("Search lab"), "lab", _VIEW),
            Item("console:trash", _("Trash"), "trash", _VIEW),
        ),
    ),
    (
        _("Sources"),
        (
            Item("console:resources", _("Resources"), "file", _FILES, ("console:resource",)),
            Item("console:users", _("Users"), "users", "accounts.view_memoryuser", ("console:user",)),
        ),
    ),
    (
        _("System"),
        (
            Item("console:jobs", _("Jobs"), "clock", _VIEW, ("console:job",)),
            Item("console:audit", _("Audit trail"), "audit", "accounts.view_auditevent"),
            Item("console:health", _("Health"), "health", _VIEW),
            Item("admin:index", _("Django admin"), "settings", ""),
        ),
    ),
)


def sections(request: HttpRequest) -> list[dict[str, Any]]:
    """The sections with the items that the operator may open; empty sections are left out."""
    here = request.resolver_match.view_name if request.resolver_match else ""
    shown = [
        {"label": label, "items": [_shown(item, here) for item in items if _may_open(request, item)]}
        for label, items in SECTIONS
    ]
    return [section for section in shown if section["items"]]


def _may_open(request: HttpRequest, item: Item) -> bool:
    return not item.permission or request.user.has_perm(item.permission)


def _shown(item: Item, here: str) -> dict[str, Any]:
    is_here = any(here == name or here.startswith(f"{name}-") for name in (item.name, *item.also))
    # The one number of the navigation: what fails until somebody looks at it.
    count = queries.failures_waiting() if item.name == "console:resources" else 0
    return {"label": item.label, "icon": item.icon, "url": reverse(item.name), "is_here": is_here, "count": count}
