"""Find the users that a page shows: those whose id, or a piece of whose data, is in its visible text.

Run with `python -m tests.console.shown` in a gateway's environment. Prints the marks of all users as JSON.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser

import django

_HIDDEN = {"script", "style", "datalist", "template", "head"}  # suggestions of a field are no data of a page
_VOID = {"input", "img", "br", "hr", "link", "meta", "col", "wbr", "path", "rect", "source"}
_MARK_CHARS = 60


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN and self._hidden > 0

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def visible_text(html: str) -> str:
    parser = _Text()
    parser.feed(html)
    return " ".join(" ".join(parser.parts).split())


def users_shown(text: str, marks: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the users whose id, or a piece of whose data, is in the text."""
    text = " ".join(text.split())
    return {user for user, of_user in marks.items() if _has_id(text, user) or any(mark in text for mark in of_user)}


def _has_id(text: str, user_id: str) -> bool:
    return bool(re.search(rf"(?<![\w.@+:/-]){re.escape(' '.join(user_id.split()))}(?![\w@+:/-])", text))


def marks() -> dict[str, list[str]]:
    """Return pieces of texts and file names by user, without those that two users have."""
    from accounts.models import MemoryUser  # noqa: PLC0415 -- after django.setup()
    from resources.models import Resource  # noqa: PLC0415
    from store.models import Memory  # noqa: PLC0415

    found: dict[str, list[str]] = {name: [] for name in MemoryUser.objects.values_list("user_id", flat=True)}
    for user, text in [
        *Memory.objects.values_list("user__user_id", "text"),
        *Resource.objects.values_list("user__user_id", "filename"),
    ]:
        mark = " ".join(text.split())[:_MARK_CHARS].strip()
        found[user] += [mark] if len(mark) > 12 else []
    # Hostile texts are the names of users, operators, sessions and files at once: they tell nothing.
    found = {user: of_user for user, of_user in found.items() if re.fullmatch(r"[\w.@+-]+", user)}
    owners = Counter(mark for of_user in found.values() for mark in set(of_user))
    return {user: [mark for mark in of_user if owners[mark] == 1] for user, of_user in found.items()}


if __name__ == "__main__":
    django.setup()
    sys.stdout.write(json.dumps(marks()))
