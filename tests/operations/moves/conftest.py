"""A gateway whose engine a test can switch, over a stand-in for EverOS."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from accounts.audit import Actor
from accounts.models import MemoryUser
from engines.port import Engine
from engines.registry import get_engine
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from memories.services.search import SearchCommand, search
from operations import reingest, row_removal
from operations.moves.plan import EngineName
from operations.reingest import Outcome, Target
from resources import storage
from store.models import Memory
from store.types import Owner
from tests.conftest import Person
from tests.engines.everos.conftest import NOON, told
from tests.everos import EverOS
from tests.stub_upstream import StubUpstream

ACTOR = Actor.command("tests")


@dataclass
class World:
    """`engine("upstream")` switches as an operator does: by the setting."""

    settings: Any
    stub: StubUpstream | EverOS
    person: Person

    @property
    def owner(self) -> Owner:
        return self.person.owner

    def engine(self, name: EngineName) -> Engine:
        self.settings.MEMORY_GATEWAY_BACKEND_BASE_URL = self.stub.url if name == "upstream" else ""
        return get_engine()

    def say(self, session_id: str, *texts: str, at: int = NOON, **values: Any) -> None:
        """Said and flushed, to the engine of now."""
        messages = [told(self.owner, text, at + number, **values) for number, text in enumerate(texts)]
        get_engine().add(self.owner, session_id, messages)
        get_engine().flush(self.owner, session_id)

    def move(self, into: EngineName | None, **values: Any) -> Outcome:
        return reingest.run(reingest.plan(Target(), into), actor=ACTOR, **{"workers": 2, **values})

    def found(self, query: str) -> list[str]:
        """The texts of all hits, over the whole of the user's memory."""
        command = SearchCommand(query=query, scopes=frozenset({"all_user_memory"}), method="keyword", top_k=100)
        return [item.hit.text for item in search(self.owner, command).results]

    def memory(self, text: str) -> Memory:
        """The one live or deleted memory, records not among it, that says this."""
        rows = Memory.objects.filter(user_id=self.person.user_pk, text__contains=text)
        return rows.exclude(memory_type="unprocessed_message").get()

    def delete(self, text: str) -> None:
        decisions.delete(self.person.user_pk, MemoryRef(self.memory(text).memory_id), actor=ACTOR)

    def correct(self, text: str, new: str | None = None, **values: Any) -> None:
        which = MemoryRef(self.memory(text).memory_id)
        decisions.override(self.person.user_pk, which, OverrideValues(text=new, **values), actor=ACTOR)

    def carry(self, archive: Path) -> None:
        """All out of this gateway and into it again, by an archive."""
        call_command("export_memory", str(archive), "--all", stdout=StringIO(), stderr=StringIO())
        user = MemoryUser.objects.get(pk=self.person.user_pk)
        row_removal.remove_rows(user)
        row_removal.remove_user(user)
        shutil.rmtree(storage.root(), ignore_errors=True)
        call_command("import_memory", str(archive), stdout=StringIO(), stderr=StringIO())


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        yield running


@pytest.fixture
def world(settings: Any, stub: StubUpstream, alice: Person, storage: Any) -> World:
    world = World(settings, stub, alice)
    world.engine("upstream")
    return world
