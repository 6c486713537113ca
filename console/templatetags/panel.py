"""Template tags and filters of the panel: icons, numbers, times and labels."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django import template
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Model
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext, gettext_lazy, ngettext, pgettext_lazy

from accounts import oidc
from accounts.credential_names import credential_names
from accounts.models import SecondFactor
from console import navigation, queries, saved_views
from console.audit_labels import ACTIONS
from console.filters import Filters
from console.text import MemoryItem, Piece, language_of, mark, parts
from core import readable
from core.localization import localized
from core.lookalikes import mixes_scripts
from core.messages import MANAGE
from documents import rendering
from operations.models import Job
from resources.models import Resource
from store import categories
from store.models import State
from store.types import StoredMemory
from webhooks.models import WebhookDelivery

ICONS: Final = {
    "add": "M12 5v14M5 12h14",
    "audit": "M5 4h14v16H5zM9 9h6M9 13h6M9 17h3",
    "check": "M5 12.5 10 17.5 19 7",
    "chevron": "M9 6l6 6-6 6",
    "clip": "M20 11l-8.5 8.500a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.700L9.5 17a1.7 1.7 0 0 1-2.4-2.400L14.5 7",
    "close": "M6 6l12 12M18 6 6 18",
    "clock": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 7v5l3.5 2",
    "down": "M6 9l6 6 6-6",
    "download": "M12 4v11M7 11l5 5 5-5M5 20h14",
    "edit": "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
    "error": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 7.500v5.500M12 16.500h.01",
    "eye": "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12Z"
    "M12 14.800a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.600Z",
    "file": "M14 3H7a1 1 0 0 0-1 1v16a1 1 0 0 0 1 1h10a1 1 0 0 0 1-1V7zM14 3v4h4",
    "filter": "M4 6h16M7 12h10M10 18h4",
    "health": "M13 3 5 14h6l-1 7 8-11h-6z",
    "hidden": "M4 4l16 16M9.5 6A10 10 0 0 1 12 5.500c6 0 9.5 6.5 9.5 6.500a16 16 0 0 1-3 3.700M6 8a16 16 0 0 0-3.5 4"
    "S6 18.5 12 18.500c1.3 0 2.5-.3 3.6-.8",
    "home": "M4 11 12 4l8 7M6 9.5V20h12V9.5",
    "info": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 11v5.500M12 7.600h.01",
    "lab": "M10 3v6L4.5 18.5A1.7 1.7 0 0 0 6 21h12a1.7 1.7 0 0 0 1.5-2.5L14 9V3M8.5 3h7M7.5 14.5h9",
    "list": "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
    "lock": "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
    "menu": "M4 7h16M4 12h16M4 17h16",
    "message": "M4 5h16v11H10l-4 4v-4H4z",
    "moon": "M20 14.500A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.500Z",
    "page": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 3v18M12 7h4.500M12 11h7M12 15h6",
    "pin": "M12 21v-6M7 15h10l-2-4V4H9v7z",
    "plug": "M9 3v6M15 3v6M6 9h12v2.500a6 6 0 0 1-12 0zM12 17.500V21",
    "remote": "M7 18.5a4.5 4.5 0 0 1-.6-9 6 6 0 0 1 11.500 1.600 3.7 3.700 0 0 1-.4 7.400z",
    "retry": "M20 11a8 8 0 1 0-2.3 6.200M20 5v6h-6",
    "search": "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM20 20l-4-4",
    "send": "M4 12 20 4l-5 16-3.5-6.5zM11.5 13.500 20 4",
    "settings": "M12 15.200a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.400ZM12 3v3M12 18v3M3 12h3M18 12h3"
    "M5.6 5.600l2.2 2.200M16.2 16.200l2.2 2.200M18.4 5.600l-2.2 2.200M7.8 16.200l-2.2 2.2",
    "sun": "M12 16.500a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM12 2.500v2M12 19.500v2M2.5 12h2M19.5 12h2"
    "M5.3 5.300l1.4 1.400M17.3 17.300l1.4 1.400M18.7 5.300l-1.4 1.400M6.7 17.300l-1.4 1.4",
    "trash": "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
    "undo": "M8 5 4 9l4 4M4 9h10a5.5 5.5 0 0 1 0 11H9",
    "up": "M6 15l6-6 6 6",
    "upload": "M12 20V8M7 12l5-5 5 5M5 4h14",
    "users": "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20c.4-3.6 3-5.5 6.5-5.5s6.1 1.9 6.5 5.5M16 4.3"
    "a3.5 3.5 0 0 1 0 6.4M18 15c2 .8 3.2 2.5 3.5 5",
    "warn": "M12 4 2.8 20h18.4zM12 10v4.500M12 17.5h.01",
}


register = template.Library()

_SUBJECTS: Final = {
    "memory": gettext_lazy("memory"),
    "session": gettext_lazy("session"),
    "user": gettext_lazy("user"),
    "resource": gettext_lazy("resource"),
    "profile": gettext_lazy("profile"),
    "job": gettext_lazy("job"),
    "search": gettext_lazy("search"),
    "webhook": gettext_lazy("webhook"),
    "audit": gettext_lazy("audit trail"),
    "page": pgettext_lazy("line of the audit trail", "page"),
    "connection": gettext_lazy("connection"),
    "archive": pgettext_lazy("line of the audit trail", "archive"),
    "key": pgettext_lazy("line of the audit trail", "key"),
    "token": pgettext_lazy("line of the audit trail", "token"),
    "operator": gettext_lazy("operator"),
    "network": gettext_lazy("network"),
    "portal_link": gettext_lazy("link"),
    "view": pgettext_lazy("line of the audit trail", "view"),
    "address": pgettext_lazy("line of the audit trail", "address"),
}


# The look and icon of each state.
_STATE_LOOKS: Final[dict[type[Model], dict[str, tuple[str, str]]]] = {
    Resource: {
        "pending": ("line", "clock"),
        "ingesting": ("info", "retry"),
        "extracted": ("ok", "check"),
        "empty": ("plain", "hidden"),
        "failed": ("bad", "error"),
    },
    Job: {
        "queued": ("info", "clock"),
        "running": ("info", "retry"),
        "done": ("ok", "check"),
        "stopped": ("warn", "warn"),
        "failed": ("bad", "error"),
    },
    WebhookDelivery: {"pending": ("info", "clock"), "delivered": ("ok", "check"), "failed": ("bad", "error")},
}


@register.simple_tag(takes_context=True)
def sections(context: template.RequestContext) -> list[dict[str, Any]]:
    """Return the navigation of the operator who asks for the page."""
    return navigation.sections(context["request"])


@register.inclusion_tag("console/parts/views_section.html", takes_context=True)
def saved_views_menu(context: template.RequestContext) -> dict[str, Any]:
    """Write the menu's section of saved views, if there are any."""
    request = context["request"]
    return saved_views.menu(request, request.get_full_path())


@register.inclusion_tag("console/parts/save_view.html", takes_context=True)
def save_view(context: template.RequestContext, page: str, filters: Filters) -> dict[str, Any]:
    """Write the form that saves a list with its filters, or the name of the view that it is."""
    request, query = context["request"], saved_views.query_of(filters)
    same = [view for view in saved_views.views_of(request) if (view.page, view.query) == (page, query)]
    common = {name: context.get(name) for name in ("perms", "csrf_token", "here")}
    return {**common, "page": page, "query": query, "view": next(iter(same), None)}


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """Return an icon, hidden from screen readers because a text is next to it."""
    svg = '<svg class="mg-i {}" viewBox="0 0 24 24" aria-hidden="true"><path d="{}"/></svg>'
    return format_html(svg, extra, ICONS[name])


@register.simple_tag
def address(page: str, *args: object, **query: object) -> str:
    """Return the address of a page with a query, without empty values."""
    return reverse(page, args=args, query={name: value for name, value in query.items() if value})


@register.simple_block_tag
def card(content: str, name: str, title: str) -> SafeString:
    """Write a part of a page under a heading. `name` makes the id of the heading."""
    return format_html(
        '<section class="mg-card" aria-labelledby="h-{0}"><div class="mg-card-h"><h2 id="h-{0}">{1}</h2></div>'
        '<div class="mg-card-b">{2}</div></section>',
        name,
        title,
        content,
    )


@register.simple_tag
def pair(label: str, value: object) -> SafeString:
    """Return a label and its value in a list of details."""
    return format_html("<dt>{}</dt><dd>{}</dd>", label, value)


@register.simple_block_tag
def table_head(content: str, caption: str) -> SafeString:
    """Write the head of a table with the `columns` in it. The caption is for screen readers only."""
    head = '<caption class="mg-vh">{}</caption><thead role="rowgroup"><tr role="row">{}</tr></thead>'
    return format_html(head, caption, content)


@register.simple_tag
def columns(*labels: str, look: str = "", hidden: bool = False) -> SafeString:
    """Return the header cells of a table. Hidden labels are for screen readers only."""
    attributes = format_html(' class="{}"', look) if look else ""
    shown = '<span class="mg-vh">{}</span>' if hidden else "{}"
    cell = f'<th role="columnheader" scope="col"{{}}>{shown}</th>'
    return format_html_join("", cell, ((attributes, label) for label in labels))


@register.simple_tag
def badge(look: str, icon_name: str, label: str, title: str = "") -> SafeString:
    """Return a label with an icon. `look` is ok, info, warn, bad, line or plain; `title` explains the label."""
    titled = format_html(' title="{}"', title) if title else ""
    return format_html('<span class="mg-badge is-{}"{}>{}{}</span>', look, titled, icon(icon_name), label)


@register.simple_tag
def id_badge(user_id: str, imitated: str | None = None) -> SafeString:
    """Return a warning about a user id that looks like another one or mixes scripts; nothing for most."""
    if imitated:
        return badge("warn", "warn", gettext("Looks like another user ID"), imitated)
    return badge("warn", "warn", gettext("Mixes scripts")) if mixes_scripts(user_id) else SafeString("")


@register.filter
def state_badge(row: Resource | Job | WebhookDelivery) -> SafeString:
    """Return the state of a file, a job or a delivery."""
    if isinstance(row, Resource) and row.state != State.LIVE:
        return badge("plain", "trash", gettext("In trash") if row.state == State.TRASHED else gettext("Deleted"))
    return badge(*_STATE_LOOKS[type(row)][row.status], row.get_status_display())


@register.filter
def category_badge(category: str) -> SafeString:
    """Return the label of a category in the color of its tab; empty without a category."""
    span = '<span class="mg-badge is-{}">{}</span>'
    return format_html(span, categories.tab_of(category), category_label(category)) if category else SafeString("")


_LOOKS_OF_LEVELS: Final = {"success": "ok", "warning": "warn", "error": "bad"}
_NOTICE_ICONS: Final = {"ok": "check", "info": "info", "warn": "warn", "bad": "error"}


@register.inclusion_tag("console/parts/notice.html")
def notice(kind: str, text: str, detail: str = "", **options: object) -> dict[str, Any]:
    """Show a notice. `kind` is ok, info, warn, bad or a message level of Django; `detail` is a second line.

    Options: `alert` for an error of the current request; `closable`; `undo`, the address to which Undo posts, and
    `here`, the page to which it returns.
    """
    look = _LOOKS_OF_LEVELS.get(kind, kind)
    return {"look": look, "icon_name": _NOTICE_ICONS[look], "text": text, "detail": detail, **options}


@register.inclusion_tag("console/parts/post_button.html")
def post_button(
    page: str, *args: object, label: str, icon_name: str = "", look: str = "", **fields: object
) -> dict[str, Any]:
    """Show a button that posts the fields to a page. `look` are its classes, such as is-main or is-small."""
    return {"url": reverse(page, args=args), "label": label, "icon_name": icon_name, "look": look, "fields": fields}


@register.inclusion_tag("console/parts/empty.html")
def empty_state(icon_name: str, heading: str, text: str = "", **options: object) -> dict[str, Any]:
    """Show that there is nothing: a heading and an explanation.

    Options: `url` and `act`, a link to the next step and its label; `main` if nothing else is on the page; `chips`,
    filters to remove one by one.
    """
    return {"icon_name": icon_name, "heading": heading, "text": text, **options}


@register.inclusion_tag("console/parts/actor.html", takes_context=True)
def actor(context: template.RequestContext, kind: str, name: str) -> dict[str, Any]:
    """Show the actor of an event. A key or token has its short name, and a link to what it did."""
    prefix = credential_names([name]).get(name, "") if kind in queries.CREDENTIALS else ""
    common = {"perms": context.get("perms"), "is_own": kind == "person" and "visit" in context}
    return {"kind": kind, "name": name, "prefix": prefix, **common}


@register.filter
def lang(text: str) -> SafeString:
    """Return the attributes of an element that holds a text of a user, whose language is not known."""
    return format_html('lang="{}" dir="auto"', language_of(text))


@register.simple_tag
def memory_link(memory: StoredMemory, chars: int) -> SafeString:
    """Return a link to a memory with the beginning of its text."""
    text = Truncator(memory.text).chars(chars)
    return format_html('<a href="{}" {}>{}</a>', address("console:memory", memory.row), lang(memory.text), text)


@register.filter
def pieces(parts: Iterable[Piece]) -> SafeString:
    """Write a text whose pieces are marked, inserted, deleted or the same."""
    written = {"same": "{}", "mark": "<mark>{}</mark>", "ins": "<ins>{}</ins>", "del": "<del>{}</del>"}
    return format_html_join("", "{}", ((format_html(written[part.kind], part.text),) for part in parts))


@register.filter
def marked(text: str, words: Collection[str]) -> SafeString:
    """Write a text with the words of a search marked."""
    return pieces(mark(text, words))


@register.filter
def plain_text(parts: Iterable[Piece]) -> str:
    """Return the text without the memories that an agent recalled."""
    return " ".join(part.text for part in parts if not part.kind)


@register.filter
def listed(item: MemoryItem) -> SafeString | str:
    """Write what a list shows of a memory: its text, with the words of a search marked."""
    return marked(plain_text(item.parts), item.words) if item.parts else gettext("No text")


@register.filter
def number(value: float | None) -> str:
    """Return a number with thousands separators, the same in both languages."""
    return "" if value is None else f"{value:,}"


@register.filter
def memories(count: int) -> str:
    """Return a number of memories with its unit."""
    return ngettext("%(count)s memory", "%(count)s memories", count) % {"count": number(count)}


@register.simple_tag
def row_range(filters: Filters, rows: Sequence[object], total: int | str) -> str:
    """Return which rows of a list the page shows, of how many."""
    values = {"here": f"{len(rows):,}", "total": f"{total:,}" if isinstance(total, int) else total}
    before = filters.rows_before
    if before is None:
        return gettext("%(here)s of %(total)s on this page") % values
    return gettext("%(first)s–%(last)s of %(total)s") % {
        **values, "first": f"{before + 1:,}", "last": f"{before + len(rows):,}"
    }  # fmt: skip


@register.filter
def percent(value: float | None) -> str:
    """Return a share from 0 to 1 as an SVG length."""
    return f"{100 * (value or 0):.2f}%"


@register.filter
def share(value: float) -> str:
    """Return a share from 0 to 1 as text, with one decimal."""
    return f"{100 * value:.1f}%"


@register.filter
def moment(value: int | datetime | None) -> str:
    """Return a time, or Unix milliseconds, to the minute; second and time zone are in its tooltip."""
    if value is None:
        return ""
    when = timezone.localtime(readable.moment(value))
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        when.isoformat(timespec="seconds"),
        f"{when:%Y-%m-%d %H:%M:%S} {when.tzname()}",
        f"{when:%Y-%m-%d %H:%M}",
    )


@register.filter
def clock(value: int | datetime) -> SafeString:
    """Return a time, or Unix milliseconds, as the time of day, to the second."""
    when = timezone.localtime(readable.moment(value))
    return format_html('<time datetime="{}">{}</time>', when.isoformat(timespec="seconds"), f"{when:%H:%M:%S}")


@register.filter
def place(payload: Mapping[str, Any]) -> str:
    """Return where a passage stands in its file: its page, its time in a recording, its heading."""
    parts = []
    if payload.get("page"):
        parts.append(gettext("page %(page)s") % {"page": payload["page"]})
    if isinstance(second := payload.get("second"), int | float):
        minutes, rest = divmod(int(second), 60)
        time = f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
        parts.append(gettext("at %(time)s") % {"time": time})
    if payload.get("heading"):
        parts.append(str(payload["heading"]))
    return " · ".join(parts)


@register.filter
def has_place(memory: StoredMemory) -> bool:
    """Return True if the page or picture that a passage comes from can be shown."""
    payload = memory.payload
    return bool(payload.get("resource_id")) and rendering.can_draw(payload.get("mime_type"), payload.get("page"))


def category_label(category: str) -> str:
    """Return the label of a category, or an unknown category itself."""
    return str(categories.label(category)) if categories.tab_of(category) else category


@register.filter
def short_category(category: str) -> str:
    """Return the label without the name of its tab."""
    return category_label(category).rpartition(" · ")[2]


@register.simple_tag
def bar(share: float | None, fill: str = "brand") -> SafeString:
    """Return a small bar for a share from 0 to 1."""
    width = f"{100 * min(max(share or 0.0, 0.0), 1.0):.1f}%"
    return format_html(
        '<svg aria-hidden="true"><rect class="mg-f-track" width="100%" height="100%"/>'
        '<rect class="mg-f-{}" width="{}" height="100%"/></svg>',
        fill,
        width,
    )


@register.filter
def is_findable(subject_type: str) -> bool:
    """Return True if the global search finds subjects of this type by id."""
    return subject_type in {"memory", "session", "resource", "user", "job"}


@register.filter
def action_label(action: str) -> str:
    """Return the label of an action. Reads in the Django admin are named after the model."""
    name, _dot, verb = action.rpartition(".")
    if action not in ACTIONS and verb in {"list", "view"} and (model := _model_label(name)):
        return gettext("Viewed %(name)s") % {"name": model}
    return str(ACTIONS.get(action, action))


@register.filter
def subject(subject_type: str) -> str:
    """Return the label of a type of subject, or an unknown type itself."""
    return str(_SUBJECTS.get(subject_type, "")) or _model_label(subject_type) or subject_type


def _model_label(name: str) -> str:
    """Return the label of the model with this name, empty if there is none."""
    labels = (model._meta.verbose_name for model in apps.get_models() if model._meta.model_name == name)  # noqa: SLF001
    return str(next(labels, ""))


@register.filter
def plain(value: object) -> str:
    """Return a JSON value as text without braces and quotes."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={plain(part)}" for name, part in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(map(plain, value)) or "–"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


@register.filter
def breakable(name: str) -> SafeString:
    """Return a name with line break opportunities after its underscores."""
    return format_html_join(SafeString("_<wbr>"), "{}", ((word,) for word in name.split("_")))


@register.filter(name="localized")
def localized_or_empty(message: str | None) -> str:
    """Return a service's message in the active language; empty for None."""
    return localized(message) if message else ""


@register.filter
def without_recalled(text: str) -> str:
    """Return a text without the memories that an agent recalled; the whole text if nothing else is left."""
    return plain_text(parts(text)) or text


@register.filter
def value_of(mapping: Mapping[Any, Any], key: Any) -> Any:
    """Return the value of the key, or the key itself if the mapping lacks it."""
    return mapping.get(key, key)


_SUGGESTED_USERS: Final = 100


@register.simple_tag
def suggested_users() -> list[str]:
    """Return the first user ids, sorted. To find those with most memories takes 0.3 s with 50,000 users."""
    users = queries.reachable_users().order_by("user_id")
    return list(users.values_list("user_id", flat=True)[:_SUGGESTED_USERS])


@register.simple_tag
def manage(command: str) -> str:
    """Return the command line of a management command."""
    return f"{MANAGE} {command}"


@register.simple_tag
def sign_in_methods() -> dict[str, bool]:
    return {
        "oidc": oidc.is_on(),
        "password": settings.MEMORY_GATEWAY_PASSWORD_SIGN_IN,
        "has_operators": User.objects.filter(is_staff=True).exists(),
        "has_codes": SecondFactor.objects.exists(),
    }
