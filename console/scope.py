"""The filter that a job was given, in words: its form of JSON is for the gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.utils import timezone
from django.utils.translation import gettext_lazy

from console import queries
from console.filters import ORIGINS, TAB_LABELS
from core.times import from_ms
from store import categories

_LABELS: Final = {
    "user_pk": gettext_lazy("User"),
    "app_id": gettext_lazy("App"),
    "project_id": gettext_lazy("Project"),
    "tab": gettext_lazy("Kind"),
    "categories": gettext_lazy("Category"),
    "agent_id": gettext_lazy("Agent"),
    "session_id": gettext_lazy("Session"),
    "origin": gettext_lazy("Origin"),
    "importance_min": gettext_lazy("Importance at least"),
    "importance_max": gettext_lazy("Importance at most"),
    "since_ms": gettext_lazy("From"),
    "until_ms": gettext_lazy("To"),
    "in_trash": gettext_lazy("In trash"),
    "hidden_by": gettext_lazy("Put there by"),
}
_HIDERS: Final = {"user": gettext_lazy("people"), "gateway": gettext_lazy("the gateway")}


def in_words(selection: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each condition of `Selection.as_json` with its value; what is unknown is shown as it is."""
    return [(str(_LABELS.get(name, name)), _value(name, value)) for name, value in selection.items()]


def _value(name: str, value: Any) -> str:
    write = _WRITERS.get(name)
    return str(value if write is None else write(value))


def _moment(milliseconds: int) -> str:
    return f"{timezone.localtime(from_ms(milliseconds)):%Y-%m-%d %H:%M}"


def _user(pk: str) -> str:
    """The id of a user; their key once they are erased."""
    named = queries.user_named(pk)
    return named[1] if named else pk


_WRITERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "user_pk": _user,
    "tab": lambda tab: TAB_LABELS.get(tab, tab),
    "categories": lambda chosen: ", ".join(str(categories.label(one)) for one in chosen),
    "origin": lambda origin: ORIGINS.get(origin, origin),
    "since_ms": _moment,
    "until_ms": _moment,
    "in_trash": lambda _: gettext_lazy("yes"),
    "hidden_by": lambda who: _HIDERS.get(who, who),
}
