"""A gateway to which tests attach a stub of EverOS, and from which they detach it."""

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
from core.persistence.files import root
from engines.registry import attached_remote, get_engine
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from memories.services.scoped_hits import SearchCommand
from memories.services.search import search
from operations import tables
from operations.reingest import sending
from operations.reingest.plan import Into, Target, plan
from operations.reingest.run import Outcome, run
from store.models import Memory, Session
from store.types import Owner
from tests.conftest import Person
from tests.everos import EverOS
from tests.remote.conftest import NOON, message_of
from tests.stub_upstream import StubUpstream

ACTOR = Actor.command("tests")


@dataclass
class SwitchedGateway:
    """A gateway with one user. `attach` and `detach` change the setting, as an operator does."""

    settings: Any
    stub: StubUpstream | EverOS
    person: Person

    @property
    def owner(self) -> Owner:
        return self.person.owner

    def attach(self) -> None:
        self.settings.MEMORY_GATEWAY_BACKEND_BASE_URL = self.stub.url

    def detach(self) -> None:
        self.settings.MEMORY_GATEWAY_BACKEND_BASE_URL = ""

    def add_and_flush(self, session_id: str, *texts: str, at: int = NOON, **values: Any) -> None:
        """Add messages a millisecond apart to the current engine, and flush them."""
        messages = [message_of(self.owner, text, at + number, **values) for number, text in enumerate(texts)]
        get_engine().add(self.owner, session_id, messages)
        get_engine().flush(self.owner, session_id)

    def ingest(self, into: Into | None = None, **values: Any) -> Outcome:
        return run(plan(Target(), into), actor=ACTOR, **{"workers": 2, **values})

    def search_texts(self, query: str) -> list[str]:
        """Return the texts of all hits in the user's memories."""
        command = SearchCommand(query=query, scopes=frozenset({"all_user_memory"}), method="keyword", top_k=100)
        return [item.hit.text for item in search(self.owner, command).results]

    def find_memory(self, text: str) -> Memory:
        """Return the only memory, live or deleted, that contains the text.

        Messages do not count while they are unprocessed or covered, nor do new copies that are not shown yet.
        """
        rows = Memory.objects.filter(user_id=self.person.user_pk, text__contains=text, is_covered=False)
        return rows.exclude(memory_type="unprocessed_message").get()

    def delete(self, text: str) -> None:
        decisions.delete(self.person.user_pk, MemoryRef(self.find_memory(text).memory_id), actor=ACTOR)

    def override(self, text: str, new: str | None = None, **values: Any) -> None:
        ref = MemoryRef(self.find_memory(text).memory_id)
        decisions.override(self.person.user_pk, ref, OverrideValues(text=new, **values), actor=ACTOR)

    def export_and_import(self, archive: Path) -> None:
        """Export the user, remove all data, and import the archive."""
        call_command("export_memory", str(archive), "--all", stdout=StringIO(), stderr=StringIO())
        user = MemoryUser.objects.get(pk=self.person.user_pk)
        tables.remove_rows(user)
        tables.remove_user(user)
        shutil.rmtree(root(), ignore_errors=True)
        call_command("import_memory", str(archive), stdout=StringIO(), stderr=StringIO())


def begin(gateway: SwitchedGateway) -> None:
    """Send the only session again, without its flush."""
    assert sending.begin(gateway.owner, Session.objects.get().session_id, again=True)
    remote = attached_remote()
    assert remote is not None
    remote.send(gateway.owner, Session.objects.get())


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        yield running


@pytest.fixture
def gateway(settings: Any, stub: StubUpstream, alice: Person, storage: Any) -> SwitchedGateway:
    gateway = SwitchedGateway(settings, stub, alice)
    gateway.attach()
    return gateway
