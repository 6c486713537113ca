"""Memories, sessions and files are deleted, restored, edited, superseded, purged, moved and erased in any order.

A random walk is compared with a plain model of the open decisions. After each step, lists, search, counts
and the trash show what the model says, each text once; and as of a former step, what was shown then and is not gone.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.utils import timezone
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from accounts.audit import Actor
from memories.models import Tombstone
from memories.services.manual import MANUAL_SESSION, add_by_hand
from operations import erase, ledger
from operations.cleanup import purge
from resources.services import purge as purge_resource
from store import derived, derived_memories
from store.models import Memory
from tests.conftest import Person, make_person
from tests.memories.calls import NOON_MS, call
from tests.resources.forms import upload
from tests.stub_upstream import StubUpstream

ACTOR = Actor.command("tests")
MAX_SHOWN = 60  # fewer than a search returns
NAMES = itertools.count(1)
LETTERS = str.maketrans("0123456789", "abcdefghij")
CONTENTS = ("tea", "rum")
STEPS_OF_A_WALK = 50

CHATS = ("chat:c1", "chat:c2")
WEIGHTS = {
    "add": 3, "repeat": 2, "add_fact": 2, "upload": 3,
    "delete": 4, "restore": 5, "edit": 3, "undo_edit": 2, "supersede": 3, "purge": 1,
    "delete_session": 3, "restore_session": 4, "delete_file": 3, "restore_file": 4, "read_file_again": 1,
    "attach": 2, "detach": 2,
    "purge_session": 1, "purge_file": 1, "export_and_import": 1, "erase": 1, "rebuild": 1,
}  # fmt: skip
ACTIONS = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
ADDITIONS = ("add", "repeat", "upload", "read_file_again")
"""Actions whose data EverOS would get while it is attached, and answer by derived memories."""
choices = st.integers(0, 2**16)


@dataclass
class Place:
    """A session, and the file that it is of. A purged one is gone for good."""

    session_id: str
    resource_id: str = ""
    content: str = ""
    is_deleted: bool = False
    is_file_deleted: bool = False
    is_purged: bool = False

    @property
    def is_shown(self) -> bool:
        return not (self.is_deleted or self.is_file_deleted or self.is_purged)


@dataclass
class Item:
    """A memory, and the open decisions about it."""

    memory_id: str
    text: str
    place: Place
    is_fact: bool = False
    is_deleted: bool = False
    edited: str = ""
    superseded_by: str = ""
    is_purged: bool = False

    @property
    def is_left(self) -> bool:
        return not (self.is_purged or self.place.is_purged)

    @property
    def is_counted(self) -> bool:
        """Return True unless it is deleted by itself or superseded."""
        return self.is_left and not (self.is_deleted or self.superseded_by)

    @property
    def is_shown(self) -> bool:
        return self.is_counted and self.place.is_shown


class Walk(RuleBasedStateMachine):
    folder: Path
    everos: str

    def __init__(self) -> None:
        super().__init__()
        self.detach()
        self.number = itertools.count(1)
        self._begin(f"walker{next(NAMES)}")

    def _begin(self, user_id: str) -> None:
        self.person: Person = make_person(user_id)
        self.places: dict[str, Place] = {}
        self.items: dict[str, Item] = {}
        self.sent: dict[str, list[dict[str, Any]]] = {}
        self.moments: list[tuple[datetime, set[str]]] = []

    @initialize()
    def begin_with_some(self) -> None:
        """So that the first decision has something to decide about."""
        for number in range(2):
            self.add(2, number)
            self.upload(number, 0)
            self.add_fact(number, 0)

    @rule(action=st.sampled_from(ACTIONS), first=choices, second=choices)
    def act(self, action: str, first: int, second: int) -> None:
        """Hypothesis would repeat a few of many rules; so one rule draws the action."""
        if action in ADDITIONS and (len(self.items) >= MAX_SHOWN or self.is_attached):
            return
        getattr(self, action)(first, second)

    # --- helpers ----------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, *, status: int = 200, **fields: Any) -> dict[str, Any]:
        return call(self.person, method, path, status=status, **fields)

    def text(self) -> str:
        return f"a payment zq{str(next(self.number)).translate(LETTERS)}"

    def rows(self, path: str, rows: str, **query: Any) -> Iterator[dict[str, Any]]:
        query["limit"] = 100
        while True:
            page = self.call("get", path, **query)
            yield from page[rows]
            if page["next_cursor"] is None:
                return
            query["cursor"] = page["next_cursor"]

    def chosen(self, choice: int, condition: Callable[[Item], bool] = lambda _: True) -> Item | None:
        found = [item for item in self.items.values() if condition(item)]
        return found[choice % len(found)] if found else None

    def chosen_place(self, choice: int, condition: Callable[[Place], bool] = lambda _: True) -> Place | None:
        found = [place for place in self.places.values() if condition(place)]
        return found[choice % len(found)] if found else None

    def note_new(self, place: Place, *, is_fact: bool = False) -> None:
        """Add the session's memories that the model lacks."""
        for row in self.rows("/memories", "memories", session_id=place.session_id):
            if row["id"] not in self.items:
                self.items[row["id"]] = Item(row["id"], row["text"], place, is_fact)

    @property
    def is_attached(self) -> bool:
        return bool(django_settings.MEMORY_GATEWAY_BACKEND_BASE_URL)

    def attach(self, *_: int) -> None:
        """Set the address of EverOS: what is stored stays here, is shown, and can be decided about."""
        django_settings.MEMORY_GATEWAY_BACKEND_BASE_URL = self.everos

    def detach(self, *_: int) -> None:
        django_settings.MEMORY_GATEWAY_BACKEND_BASE_URL = ""

    # --- memories ---------------------------------------------------------------------------------------------------

    def add(self, first: int, second: int) -> None:
        chat, count, is_flushed = CHATS[first % 2], 1 + second % 2, first % 3 > 0
        place = self.places.setdefault(chat, Place(chat))
        texts = [self.text() for _ in range(count)]
        messages = [
            {"sender_id": self.person.user_id, "role": "user", "timestamp": NOON_MS + next(self.number), "content": one}
            for one in texts
        ]
        status = 404 if place.is_purged else 200 if place.is_shown else 409
        self.call("post", "/memories/add", status=status, session_id=chat, messages=messages)
        if status != 200:
            return
        self.sent.setdefault(chat, []).extend(messages)
        if is_flushed:
            self.call("post", "/memories/flush", session_id=chat)
        before = len(self.items)
        self.note_new(place)
        assert len(self.items) == before + count

    def repeat(self, first: int, _second: int) -> None:
        """The whole transcript again, as a client does that does not know what arrived."""
        chat = CHATS[first % 2]
        place = self.places.get(chat)
        if place and place.is_shown and self.sent.get(chat):
            self.call("post", "/memories/add", session_id=chat, messages=self.sent[chat])

    def add_fact(self, first: int, _second: int) -> None:
        place = self.places.setdefault(MANUAL_SESSION, Place(MANUAL_SESSION))
        if place.is_shown:
            origin: Any = "tool" if first % 2 else "panel"
            category = "user_memory_fact"
            add_by_hand(self.person.owner, category=category, text=self.text(), origin=origin, actor=ACTOR)
            self.note_new(place, is_fact=True)

    def delete(self, choice: int, _second: int) -> None:
        if (item := self.chosen(choice)) is not None and not item.superseded_by:
            status = 200 if item.is_left else 404
            self.call("delete", f"/memories/{item.memory_id}", status=status)
            item.is_deleted |= status == 200

    def restore(self, choice: int, _second: int) -> None:
        """Also of what no decision hides, which is refused."""
        item = self.chosen(choice, lambda one: one.is_deleted or bool(one.superseded_by)) or self.chosen(choice)
        if item is None:
            return
        is_hidden = item.is_left and (item.is_deleted or bool(item.superseded_by))
        self.call("post", f"/memories/{item.memory_id}/restore", status=200 if is_hidden else 404)
        if is_hidden:
            item.is_deleted, item.superseded_by = False, ""

    def edit(self, choice: int, _second: int) -> None:
        if (item := self.chosen(choice)) is None:
            return
        text = self.text()
        status = 404 if not item.is_left else 200 if item.is_shown else 409
        self.call("patch", f"/memories/{item.memory_id}", status=status, override_text=text)
        item.edited = text if status == 200 else item.edited

    def undo_edit(self, choice: int, _second: int) -> None:
        item = self.chosen(choice, lambda one: bool(one.edited)) or self.chosen(choice)
        if item is not None:
            status = 200 if item.edited and item.is_left else 404
            self.call("delete", f"/memories/{item.memory_id}/override", status=status)
            item.edited = "" if status == 200 else item.edited

    def supersede(self, choice: int, other: int) -> None:
        """Do what a comparison of two facts by a language model does."""
        older = self.chosen(choice, lambda one: one.is_fact and one.is_shown)
        newer = self.chosen(other, lambda one: one.is_fact and one.is_shown and one is not older)
        if older and newer:
            rows = {row.memory_id: row for row in Memory.objects.filter(user_id=self.person.user_pk)}
            row = rows[newer.memory_id]
            row.supersedes = [*row.supersedes, older.memory_id]
            row.save(update_fields=["supersedes"])
            derived_memories.supersede([rows[older.memory_id]], row, timezone.now())
            older.superseded_by = newer.memory_id

    def purge(self, choice: int, _second: int) -> None:
        if item := self.chosen(choice, lambda one: one.is_deleted and one.is_left):
            found = Tombstone.objects.filter(user_id=self.person.user_pk, memory_id=item.memory_id, undone_at=None)
            assert purge.purge_memory([found.get().pk], actor=ACTOR).memories == 1
            item.is_purged = True

    # --- sessions and files -----------------------------------------------------------------------------------------

    def delete_session(self, choice: int, _second: int) -> None:
        if place := self.chosen_place(choice):
            status = 404 if place.is_purged and not place.is_deleted else 200  # a purged deletion is still there
            self.call("delete", f"/sessions/{quote(place.session_id, safe='')}", status=status)
            place.is_deleted |= not place.is_purged

    def restore_session(self, choice: int, _second: int) -> None:
        place = self.chosen_place(choice, lambda one: one.is_deleted) or self.chosen_place(choice)
        if place is not None:
            is_open = place.is_deleted and not place.is_purged
            status = 409 if place.is_file_deleted and not place.is_purged else 200 if is_open else 404
            self.call("post", f"/sessions/{quote(place.session_id, safe='')}/restore", status=status)
            place.is_deleted &= status != 200

    def upload(self, first: int, _second: int) -> None:
        """The same bytes are one file, unless it is in the trash."""
        content = CONTENTS[first % 2]
        data = f"a payment zq{content}one.\n\n{'x' * 1500}\n\na payment zq{content}two."
        known = [place for place in self.places.values() if place.content == content and not place.is_file_deleted]
        left = [place for place in known if not place.is_purged]
        answer = upload(self.person, data.encode(), f"{content}.txt")
        if left and left[0].is_deleted:
            assert answer.status_code == 409
            return
        assert answer.json()["status"] == "extracted", answer.content
        resource_id, session_id = answer.json()["resource_id"], answer.json()["session_id"]
        if left:
            assert resource_id == left[0].resource_id
            return
        place = self.places[session_id] = Place(session_id, resource_id, content)
        self.note_new(place)

    def delete_file(self, choice: int, _second: int) -> None:
        if place := self.chosen_place(choice, lambda one: bool(one.resource_id)):
            is_there = not (place.is_purged or place.is_file_deleted)
            self.call("delete", f"/resources/{place.resource_id}", status=200 if is_there else 404)
            place.is_file_deleted |= is_there

    def restore_file(self, choice: int, _second: int) -> None:
        place = self.chosen_place(choice, lambda one: one.is_file_deleted and not one.is_purged)
        if place is not None:
            same = [one for one in self.places.values() if one.content == place.content and one is not place]
            is_held = any(not (one.is_purged or one.is_file_deleted) for one in same)
            self.call("post", f"/resources/{place.resource_id}/restore", status=409 if is_held else 200)
            place.is_file_deleted = is_held

    def read_file_again(self, choice: int, _second: int) -> None:
        if place := self.chosen_place(choice, lambda one: bool(one.resource_id) and one.is_shown):
            call_command("reingest", "--resource", place.resource_id, "--apply", stdout=StringIO(), stderr=StringIO())

    def purge_session(self, choice: int, _second: int) -> None:
        if place := self.chosen_place(choice, lambda one: one.is_deleted and not one.is_purged):
            found = Tombstone.objects.filter(
                user_id=self.person.user_pk, memory_id="", session_id=place.session_id, undone_at=None
            )
            assert purge.purge_memory([found.get().pk], actor=ACTOR).sessions == 1
            place.is_purged = True

    def purge_file(self, choice: int, _second: int) -> None:
        if place := self.chosen_place(choice, lambda one: one.is_file_deleted and not one.is_purged):
            assert purge_resource(place.resource_id, actor=ACTOR) is not None
            place.is_purged = True

    # --- users ------------------------------------------------------------------------------------------------------

    def export_and_import(self, _first: int, _second: int) -> None:
        """The archive of the user replaces their data."""
        archive = self.folder / f"{next(NAMES)}.tar"
        quiet = {"stdout": StringIO(), "stderr": StringIO()}
        call_command("export_memory", str(archive), "--user", self.person.user_id, "--with-keys", **quiet)
        call_command("import_memory", str(archive), "--on-conflict", "replace", **quiet)
        archive.unlink()

    def erase(self, _first: int, _second: int) -> None:
        """Erase the user, and create one of the same name."""
        erase.erase(self.person.user_pk, actor=ACTOR)
        self.detach()
        self._begin(self.person.user_id)
        self.begin_with_some()

    def rebuild(self, first: int, _second: int) -> None:
        """Make a derived store again, which changes nothing."""
        name = list(derived.BY_NAME)[first % len(derived.BY_NAME)]
        call_command("rebuild", name, stdout=StringIO(), stderr=StringIO())

    # --- comparison -------------------------------------------------------------------------------------------------

    @invariant()
    def agrees(self) -> None:
        self.check_texts()
        self.check_sessions()
        self.check_trash()
        self.check_former_time()
        assert list(ledger.differences()) == []

    def teardown(self) -> None:
        assert [fault for store in derived.STORES for fault in store.differences(derived.sample())] == []

    def check_texts(self) -> None:
        shown = {item.memory_id: item.edited or item.text for item in self.items.values() if item.is_shown}
        listed = [(row["id"], row["text"]) for row in self.rows("/memories", "memories")]
        assert sorted(listed) == sorted(shown.items())
        body = {"query": "payment", "scope": ["all_user_memory", "resources"], "top_k": 100}
        found = [(hit["id"], hit["text"]) for hit in self.call("post", "/memories/search", **body)["results"]]
        assert sorted(found) == sorted(item for item in shown.items() if "payment" in item[1])

    def check_former_time(self) -> None:
        """A correction holds for all times; what is superseded now may come back, what is deleted now may not."""
        time.sleep(0.002)  # times of storing are whole milliseconds
        self.moments.append((timezone.now(), {item.memory_id for item in self.items.values() if item.is_shown}))
        time.sleep(0.002)
        at, shown = self.moments[7 * next(self.number) % len(self.moments)]
        items = [self.items[memory_id] for memory_id in shown]
        left = {
            item.memory_id: item.edited or item.text
            for item in items
            if item.is_left and not item.is_deleted and item.place.is_shown
        }
        as_of = at.isoformat()
        assert {row["id"]: row["text"] for row in self.rows("/memories", "memories", as_of=as_of)} == left
        body = {"query": "payment", "scope": ["all_user_memory", "resources"], "top_k": 100, "as_of": as_of}
        found = {hit["id"]: hit["text"] for hit in self.call("post", "/memories/search", **body)["results"]}
        assert found == {memory_id: text for memory_id, text in left.items() if "payment" in text}

    def check_sessions(self) -> None:
        counts = Counter(item.place.session_id for item in self.items.values() if item.is_counted)
        for is_deleted, places in ((False, self._places(is_shown=True)), (True, self._places(is_shown=False))):
            listed = self.rows("/sessions", "sessions", deleted=str(is_deleted).lower())
            assert {row["session_id"]: row["memories"] + row["pending"] for row in listed} == {
                place.session_id: counts[place.session_id] for place in places
            }

    def _places(self, *, is_shown: bool) -> list[Place]:
        written = {item.place.session_id for item in self.items.values()}
        places = [place for place in self.places.values() if place.session_id in written]
        return [place for place in places if place.is_shown == is_shown and not place.is_purged]

    def check_trash(self) -> None:
        memories = {item.memory_id for item in self.items.values() if item.is_deleted and item.is_left}
        places = [place for place in self.places.values() if not place.is_purged]
        rows = list(self.rows("/memories/trash", "trash"))
        assert sorted(row["memory_id"] for row in rows if row["kind"] == "memory") == sorted(memories)
        in_trash = sorted(row["session_id"] for row in rows if row["kind"] == "session")
        assert in_trash == sorted(place.session_id for place in places if place.is_deleted)
        files = [row["resource_id"] for row in self.rows("/resources", "resources", deleted="true")]
        assert sorted(files) == sorted(place.resource_id for place in places if place.is_file_deleted)
        live = [row["resource_id"] for row in self.rows("/resources", "resources")]
        is_live = [place.resource_id for place in places if place.resource_id and not place.is_file_deleted]
        assert sorted(live) == sorted(is_live)


def walk(steps: int, folder: Path, settings: Any, *, shrinks: bool = False) -> None:
    """Take that many steps. To shorten a failing walk takes minutes."""
    # The fixture puts each change around the former ones, so the walk changes what this one puts there.
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = ""
    with StubUpstream() as stub:
        Walk.folder, Walk.everos = folder, stub.url
        _run(steps, shrinks=shrinks)


def _run(steps: int, *, shrinks: bool) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Walk,
        settings=hypothesis_settings(
            max_examples=-(-steps // STEPS_OF_A_WALK),
            stateful_step_count=min(steps, STEPS_OF_A_WALK),
            deadline=None,
            database=None,
            phases=[Phase.generate, *([Phase.shrink] if shrinks else [])],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.django_db(transaction=True)
def test_what_is_shown_follows_from_the_open_decisions(tmp_path: Path, storage: Path, settings: Any) -> None:
    walk(100, tmp_path, settings)


@pytest.mark.torture
@pytest.mark.django_db(transaction=True)
def test_what_is_shown_follows_from_the_decisions_on_long_walks(tmp_path: Path, storage: Path, settings: Any) -> None:
    walk(20_000, tmp_path, settings, shrinks=True)
