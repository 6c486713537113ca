"""Migrations of searches in the log."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from memories.models import LoggedSearch
from tests.conftest import Person
from tests.console.test_searches import logged


@pytest.mark.django_db(transaction=True)
def test_the_minimum_similarity_of_a_search_moves_into_its_options_and_back(alice: Person) -> None:
    logged(alice, options={"radius": 0.25})
    logged(alice)
    before = MigrationExecutor(connection).migrate([("memories", "0007_sources_of_remote_memories")])
    former = before.apps.get_model("memories", "LoggedSearch").objects.order_by("pk")
    assert list(former.values_list("radius", flat=True)) == [0.25, None]
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    assert list(LoggedSearch.objects.order_by("pk").values_list("options", flat=True)) == [{"radius": 0.25}, {}]
