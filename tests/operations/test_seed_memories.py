"""Made-up memories are real ones: indexed, counted, found."""

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


def many(*arguments: Any, **options: Any) -> dict[str, Any]:
    out = StringIO()
    call_command("seed_memories", *arguments, stdout=out, stderr=StringIO(), json=True, **options)
    return dict(json.loads(out.getvalue()))


def test_they_are_as_many_as_asked_for_indexed_and_counted() -> None:
    assert many(120, users=3)["memories"] == 120
    assert Memory.objects.count() == browse.count(Selection()) == 120
    assert_rollups_agree()
    for user in {memory.user for memory in Memory.objects.select_related("user")}:
        assert user.user_id.startswith("many-")
        assert_consistent(Owner(user.pk, user.user_id))


def test_the_index_can_be_left_out_and_owed() -> None:
    many(60, users=2, no_index=True)
    assert Memory.objects.filter(is_indexed=False).count() == 60


def test_the_same_seed_makes_the_same_texts_and_another_others() -> None:
    texts = []
    for seed in (1, 1, 2):
        many(30, users=2, seed=seed, no_index=True)
        texts.append(sorted(Memory.objects.values_list("text", flat=True)))
        Memory.objects.all().delete()
        Session.objects.all().delete()
    assert texts[0] == texts[1] != texts[2]


def test_no_number_is_refused() -> None:
    with pytest.raises(CommandError):
        many("none")
