"""`manage.py seed_memories` creates indexed and counted memories."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from store import browse
from store.browse import Selection
from store.models import Memory, Session
from store.types import Owner
from tests.store.index_state import assert_consistent
from tests.store.rollup_state import assert_rollups_agree

pytestmark = pytest.mark.django_db


def run_command(*arguments: Any, **options: Any) -> dict[str, Any]:
    out = StringIO()
    call_command("seed_memories", *arguments, stdout=out, stderr=StringIO(), json=True, **options)
    return dict(json.loads(out.getvalue()))


def test_the_requested_number_is_created_indexed_and_counted() -> None:
    assert run_command(120, users=3)["memories"] == 120
    assert Memory.objects.count() == browse.count(Selection()) == 120
    assert_rollups_agree()
    for user in {memory.user for memory in Memory.objects.select_related("user")}:
        assert user.user_id.startswith("many-")
        assert_consistent(Owner(user.pk, user.user_id))


def test_indexing_can_be_left_pending() -> None:
    run_command(60, users=2, no_index=True)
    assert Memory.objects.filter(is_indexed=False).count() == 60


def test_equal_seeds_create_equal_texts() -> None:
    texts = []
    for seed in (1, 1, 2):
        run_command(30, users=2, seed=seed, no_index=True)
        texts.append(sorted(Memory.objects.values_list("text", flat=True)))
        Memory.objects.all().delete()
        Session.objects.all().delete()
    assert texts[0] == texts[1] != texts[2]


def test_an_invalid_number_is_rejected() -> None:
    with pytest.raises(CommandError):
        run_command("none")
