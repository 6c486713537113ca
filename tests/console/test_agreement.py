"""The panel's search and the agents' search agree on what exists, and every excerpt shows the match.

A gateway of this project's own pages: each sentence is a memory of one of three users, each page also a file.
"""

from __future__ import annotations

import random
import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.test import Client

from accounts.models import MemoryUser
from console.text import mark
from core.ids import new_resource_id, resource_session_id
from memories.services.scoped_hits import SearchCommand
from memories.services.search import search
from resources.models import Resource
from store.models import Memory
from store.text.terms import terms
from store.types import Owner
from tests.conftest import Person
from tests.console.people import remember
from tests.forked import PROJECT

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PAGES = sorted([*PROJECT.glob("docs/use/*.md"), *PROJECT.glob("docs/zh/*.md"), PROJECT / "README.zh-CN.md"])
SENTENCES, QUERIES = 290, 200  # of each user fewer than an answer may hold
_ROW = re.compile(r'<tr role="row" data-row>(.*?)</tr>', re.DOTALL)
_SENTENCE = re.compile(r"[^.!?。！？\n|`#]{20,400}[.!?。！？]")
_WORD = re.compile(r"[A-Za-z]{3,}|[\u4e00-\u9fff]{2}")


def seed(people: list[Person], chance: random.Random) -> tuple[list[str], list[str]]:
    """Store sentences as memories and pages as files; return words of the sentences and the names of the files."""
    sentences = [(page, text) for page in PAGES for text in _SENTENCE.findall(page.read_text(encoding="utf-8"))]
    for number, (page, text) in enumerate(chance.sample(sentences, min(SENTENCES, len(sentences)))):
        owner = people[number % len(people)].owner
        if number % 4:
            remember(owner, text.strip(), session_id=f"chat:{page.stem}")
        else:
            _passage(owner, page, text.strip(), number)
    words = sorted({word for _page, text in sentences for word in _WORD.findall(text)})
    return words, sorted(set(Resource.objects.values_list("filename", flat=True)))


def _passage(owner: Owner, page: Path, text: str, number: int) -> None:
    file = Resource.objects.filter(user_id=owner.user_pk, filename=page.name).first()
    if file is None:
        resource_id = new_resource_id()
        file = Resource.objects.create(
            resource_id=resource_id, user_id=owner.user_pk, session_id=resource_session_id(owner.user_id, resource_id),
            status="extracted", filename=page.name, content_type="text", mime_type="text/markdown",
        )  # fmt: skip
    payload = {"filename": page.name, "heading": page.stem.title(), "mime_type": "text/markdown"}
    remember(owner, text, session_id=file.session_id, chunk_index=number, payload=payload, category="")


def listed(client: Client, query: str, *, match: str = "") -> tuple[set[int], list[str]]:
    """Return the rows of all pages of the panel's list, and the rows that show no match."""
    address, rows, unmarked = f"/admin/memory/list/?{urlencode({'tab': 'all', 'q': query, 'match': match})}", [], []
    while address:
        answer = client.get(address)
        assert answer.status_code == 200
        page = answer.content.decode()
        for row in _ROW.findall(page):
            rows.append(int(re.findall(r'name="id" value="(\d+)"', row)[0]))
            unmarked += [row] if "<mark>" not in row else []
        following = re.search(r'href="([^"]+)" rel="next"', page)
        address = unescape(following[1]) if following else ""
    assert len(rows) == len(set(rows)), query
    return set(rows), unmarked


def found_by_agents(person: Person, query: str) -> set[int]:
    command = SearchCommand(
        query=query, scopes=frozenset({"all_user_memory"}), top_k=100, min_relevance=0, fold=False, history=True,
        include_profile=False,
    )  # fmt: skip
    ids = [item.hit.memory_id for item in search(person.owner, command).results]
    return set(Memory.objects.filter(user_id=person.user_pk, memory_id__in=ids).values_list("pk", flat=True))


def has_match(rows: set[int], query: str) -> list[str]:
    """Return the texts of those rows that hold a word of the query."""
    texts = Memory.objects.filter(pk__in=rows).values_list("text", flat=True)
    return [text for text in texts if any(piece.kind == "mark" for piece in mark(text, terms(query)))]


def test_what_the_panel_finds_agents_find_and_each_excerpt_shows_the_match(
    admin_client: Client, alice: Person, bob: Person, charlie: Person
) -> None:
    people, chance = [alice, bob, charlie], random.Random(37)
    words, files = seed(people, chance)
    queries = [*files, *(one.user_id for one in people)]
    # A word that only asks, such as "when", finds what tells a time.
    named = [word for word in words if any(not term.startswith("w:") for term in terms(word))]
    queries += chance.sample(named, QUERIES - len(queries))
    differing, without_match, shown = [], [], 0
    for query in queries:
        rows, unmarked = listed(admin_client, query)
        shown += len(rows)
        without_match += [(query, row) for row in unmarked]
        rows = rows if len(terms(query)) == 1 else listed(admin_client, query, match="any")[0]
        for one in people:
            own = set(Memory.objects.filter(pk__in=rows, user_id=one.user_pk).values_list("pk", flat=True))
            found = found_by_agents(one, query)
            # Agents find words alike and in other languages too: those memories hold none of these words.
            if own - found or has_match(found - own, query):
                differing.append((query, one.user_id, own - found, found - own))
    assert differing == []
    assert without_match == []
    assert shown > QUERIES


def test_users_and_files_are_found_by_any_part_of_their_names(admin_client: Client, alice: Person) -> None:
    name = "rental-agreement.pdf"
    MemoryUser.objects.filter(pk=alice.user_pk).update(name=name)
    Resource.objects.create(user_id=alice.user_pk, session_id="resource:1", filename=name, content_type="pdf")
    for part in (name, "tal-agr", "ement.pdf"):
        for address in ("users/", "resources/", "find/"):
            page = admin_client.get(f"/admin/memory/{address}", {"q": part}).content.decode()
            assert page.count(str(alice.user_pk) if address == "users/" else name) >= 1, (address, part)
    assert len(admin_client.get("/admin/memory/resources/", {"q": "lic"}).context["rows"]) == 1


def test_beginnings_of_words_match_no_signs_of_the_index(admin_client: Client, alice: Person) -> None:
    remember(alice.owner, "My home is in Oslo since May.")
    found = remember(alice.owner, "The sagas of Snorri.")
    for query in ("slot", "said", "mo", "sa*"):
        rows, _unmarked = listed(admin_client, query)
        assert rows == ({found.row} if query == "sa*" else set()), query
