"""What the panel's templates say in one word: icons, numbers, times, kinds of memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.icons import ICONS
from console.text import parts
from core import sentences
from core.times import from_ms
from store import categories

register = template.Library()

_SUBJECTS: Final = {
    "memory": gettext_lazy("memory"),
    "session": gettext_lazy("session"),
    "user": gettext_lazy("user"),
    "resource": gettext_lazy("resource"),
    "profile": gettext_lazy("profile"),
    "job": gettext_lazy("job"),
    "archive": pgettext_lazy("line of the audit trail", "archive"),
    "key": pgettext_lazy("line of the audit trail", "key"),
    "token": pgettext_lazy("line of the audit trail", "token"),
    "operator": gettext_lazy("operator"),
    "network": gettext_lazy("network"),
    "address": pgettext_lazy("line of the audit trail", "address"),
}


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """A decoration beside words: screen readers pass it by."""
    svg = '<svg class="mg-i {}" viewBox="0 0 24 24" aria-hidden="true"><path d="{}"/></svg>'
    return format_html(svg, extra, ICONS[name])


@register.filter
def number(value: float | None) -> str:
    """With separators of thousands, the same in both languages."""
    return "" if value is None else f"{value:,}"


@register.filter
def two(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


@register.filter
def percent(value: float | None) -> str:
    """A share of 1 as an SVG length."""
    return f"{100 * (value or 0):.2f}%"


@register.filter
def share(value: float) -> str:
    """A share of 1 in words."""
    return f"{100 * value:.1f}%"


@register.filter
def moment(value: int | datetime | None) -> str:
    """Unix milliseconds or a time, to the minute; the second and the zone on hover."""
    if value is None:
        return ""
    when = timezone.localtime(value if isinstance(value, datetime) else from_ms(value))
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        when.isoformat(timespec="seconds"),
        f"{when:%Y-%m-%d %H:%M:%S} {when.tzname()}",
        f"{when:%Y-%m-%d %H:%M}",
    )


@register.filter
def clock(value: int) -> SafeString:
    """Unix milliseconds as the time of day, to the second."""
    when = timezone.localtime(from_ms(value))
    return format_html('<time datetime="{}">{}</time>', when.isoformat(timespec="seconds"), f"{when:%H:%M:%S}")


@register.filter
def category(value: str) -> str:
    """The label of a category; one that the document does not know is shown as it is."""
    return str(categories.label(value)) if categories.tab_of(value) else value


@register.filter
def short_category(value: str) -> str:
    """The label as it is called inside its tab: without the tab's name before it."""
    return category(value).rpartition(" · ")[2]


@register.filter
def kind(value: str) -> str:
    """The colour of a category: its tab."""
    return categories.tab_of(value)


@register.simple_tag
def bar(share: float | None, fill: str = "brand") -> SafeString:
    """A small bar, 0 to 1. The number stands beside it."""
    width = f"{100 * min(max(share or 0.0, 0.0), 1.0):.1f}%"
    return format_html(
        '<svg aria-hidden="true"><rect class="mg-f-track" width="100%" height="100%"/>'
        '<rect class="mg-f-{}" width="{}" height="100%"/></svg>',
        fill,
        width,
    )


@register.filter
def is_findable(subject_type: str) -> bool:
    """Whether the global search leads from a subject's id to its page."""
    return subject_type in {"memory", "session", "resource", "user", "job"}


@register.filter
def subject(subject_type: str) -> str:
    """What a line of the audit trail is about; a kind that we do not know is shown as it is."""
    return str(_SUBJECTS.get(subject_type, subject_type))


@register.filter
def plain(value: object) -> str:
    """A value of JSON for people: what a mapping or a list holds, without its marks."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={plain(part)}" for name, part in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(map(plain, value)) or "–"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


@register.filter
def breakable(name: str) -> SafeString:
    """A name of several words that may be broken between them, not within."""
    return format_html_join(SafeString("_<wbr>"), "{}", ((word,) for word in name.split("_")))


@register.filter
def told(sentence: str | None) -> str:
    """A sentence of a service in the language of the page."""
    return sentences.told(sentence) if sentence else ""


@register.filter
def own_words(text: str) -> str:
    """A text without what an agent had recalled before it; whole where it is nothing else."""
    return " ".join(part.text for part in parts(text) if not part.kind) or text


@register.filter
def lang(text: str) -> str:
    """The language that a text seems to be in, so that it is spoken and drawn as such; empty where that is unknown."""
    beginning = text[:400]
    if any("\u4e00" <= char <= "\u9fff" for char in beginning):
        return "" if any("\u3040" <= char <= "\u30ff" for char in beginning) else "zh"
    return "en" if all(char < "\u0370" or not char.isalpha() for char in beginning) else ""
