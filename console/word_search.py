"""The search of the lists of memories: all words first, and what is nearest to them if no memory has all."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from django.db.models import Q

from accounts import tenants
from console.filters import ListFilters
from store import browse
from store.browse import Match, Selection
from store.index.keyword import prefix_of
from store.models import IndexStatistics
from store.text.terms import ANY, beginnings, of_user, terms
from store.text.tokens import required_tokens
from store.types import Owner

MAX_NAMING: Final = 8
"""So many words of a search may name a user."""
_WRITTEN = re.compile(r'[^\s"“”„«»「」『』]+')


class WordSearch(NamedTuple):
    """The result of a search in all tabs.

    `kind` is all, starts (words that begin like them), any or any_starts. `matches` are ranked; None if too many hold
    the words. `users` are the ids of users whom words name.
    """

    selection: Selection
    kind: str
    matches: list[Match] | None
    users: tuple[str, ...]

    def of_tab(self, selection: Selection) -> Selection:
        """Return the selection of a tab and category with the words that were searched."""
        return replace(selection, words=self.selection.words)


def search(text: str, selection: Selection) -> WordSearch:
    """Search for the words of a selection, which are those of a text; then for words alike, and for some of them."""
    everywhere = replace(selection, tab=None, categories=())
    users: tuple[str, ...] = ()
    if selection.user_pk is None and len(text.split()) > 1 and ANY not in selection.words:
        words, users = _with_users(text, selection.words)
        everywhere = replace(everywhere, words=words)
    found = _search(everywhere, "any" if ANY in selection.words else "all", text)
    for kind, words in _nearest(text, selection.words):
        if found.matches != []:
            break
        found = _search(replace(everywhere, words=words), kind, text)
    return found._replace(users=users)


def search_of(filters: ListFilters, selection: Selection) -> WordSearch | None:
    """Return the search of a list, None for one without words."""
    return search(filters.data["q"], selection) if selection.words else None


def _search(selection: Selection, kind: str, text: str) -> WordSearch:
    found = browse.matches(selection, text)
    if found is None and not browse.page(selection, limit=1).memories:
        found = []
    return WordSearch(selection, kind, found, ())


def _nearest(text: str, words: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what to search for in turn if no memory has all words."""
    starts = beginnings(text)
    if starts and ANY not in words:
        yield "starts", starts
    if len(words) > 1 and ANY not in words:
        yield "any", (ANY, *words)
    if starts:
        yield "any_starts", (ANY, *starts)


def _with_users(text: str, words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the terms, with those for memories of users whom words name, and the ids of these users."""
    written = _WRITTEN.findall(text)[:MAX_NAMING]
    if not written:
        return words, ()
    ids = {name for word in written for name in (word, word.lower())}
    named_so = reduce(or_, (Q(user__name__iexact=word) | Q(user__name__istartswith=f"{word} ") for word in written))
    known = tenants.reachable(
        IndexStatistics.objects.filter(Q(user__user_id__in=ids) | named_so).select_related("user")
    )
    users: list[str] = []
    for row in known.select_related("user").order_by("user__user_id")[:MAX_NAMING]:
        user_id, parts = row.user.user_id, row.user.name.lower().split()
        owner = Owner(row.user_id, user_id, row.app_id, row.project_id)
        naming = [word for word in written if word.lower() in {user_id.lower(), *parts}]
        named = {token for word in naming for token in required_tokens(word)}
        more = of_user(terms(text), [prefix_of(owner)], named)
        if len(more) > len(terms(text)):
            words = (*words, *more[len(terms(text)) :])
            users.append(user_id)
    return words, tuple(dict.fromkeys(users))
