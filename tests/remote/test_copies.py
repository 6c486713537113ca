"""Copies of EverOS's memories are indexed here: new ones when they are stored, those of before in the background."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from core.background.tasks import Round
from operations.tasks import index_words
from store import derived
from store.models import Memory, PendingEmbedding
from store.vectors import fill
from tests.conftest import Person
from tests.memories.calls import say
from tests.remote.test_search_alone import embeddings, found, search
from tests.store.index_state import assert_consistent
from tests.stub_embeddings import StubEmbeddings
from tests.stub_upstream import Fault, StubUpstream

__all__ = ["embeddings"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def everos(settings: Any, storage: Path) -> Iterator[StubUpstream]:
    with StubUpstream() as stub:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        yield stub


def doctor(*options: str) -> str:
    out = StringIO()
    call_command("doctor", *options, stdout=out, stderr=StringIO())
    return next(line for line in out.getvalue().splitlines() if "keyword index" in line)


def test_new_copies_are_indexed_with_their_vectors(
    everos: StubUpstream, alice: Person, embeddings: StubEmbeddings
) -> None:
    fill.fill(10.0)  # measures the model
    say(alice, "chat:c1", "The shoemaker is kind")
    [copy] = Memory.objects.filter(origin="upstream")
    assert copy.is_indexed
    assert_consistent(alice.owner)
    assert PendingEmbedding.objects.filter(pk=copy.pk).exists()


def test_copies_of_before_are_indexed_in_the_background(everos: StubUpstream, alice: Person) -> None:
    for number in range(3):
        say(alice, f"chat:c{number}", f"The bicycle number {number}")
    derived.empty_keywords()  # so are copies, and messages that were sent, of versions before
    assert "The server or `--fix` adds 6 more." in doctor()
    assert next(derived.fill(batch_rows=1)) == 1  # a background task that was stopped
    assert derived.pending_count() == 5
    assert index_words(Round()) is False
    assert derived.pending_count() == 0
    assert_consistent(alice.owner)
    everos.fault("search", Fault(status=500, body={}), times=1000)
    assert len(found(search(alice))) == 3


def test_doctor_indexes_copies(everos: StubUpstream, alice: Person) -> None:
    say(alice, "chat:c1", "The bicycle is red")
    derived.empty_keywords()
    assert "2 were added" in doctor("--fix")
    assert_consistent(alice.owner)
