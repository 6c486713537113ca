"""Migrations of the stores that are derived from memories."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from engines.embedded.engine import EmbeddedEngine
from store.models import IndexStatistics
from tests.conftest import Person
from tests.store.conftest import remember


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("of_alice", "of_bob", "of_all"), [("3", "3", "3"), ("3", "3…", ""), ("2", "3", ""), ("3…", "3…", "3…")]
)
def test_the_version_before_knows_one_tokenizer_or_rebuilds_the_index(
    engine: EmbeddedEngine, alice: Person, bob: Person, of_alice: str, of_bob: str, of_all: str
) -> None:
    for person, tokenizer in ((alice, of_alice), (bob, of_bob)):
        remember(engine, person.owner, "green tea")
        IndexStatistics.objects.filter(user=person.user_pk).update(tokenizer=tokenizer)
    last = MigrationExecutor(connection).loader.graph.leaf_nodes("store")
    try:
        before = MigrationExecutor(connection).migrate([("store", "0021_statistics_of_agents")])
        known = [one.tokenizer for one in before.apps.get_model("store", "IndexVersion").objects.all()]
    finally:
        MigrationExecutor(connection).migrate(last)
    assert known == [of_all]
    assert set(IndexStatistics.objects.values_list("tokenizer", flat=True)) == {of_all}
