"""What a PATCH makes of a document, by examples; the examples of `docs/profiles.md` among them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from core.errors import Conflict, InvalidInput
from profiles.merge import merge
from profiles.schemas import MAX_ENTRIES, MODELS, Kind

DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "profiles.md"


def merged(kind: Kind, before: dict[str, Any], patch: Any, *, merge_lists: bool = False) -> dict[str, Any]:
    """The document after the patch, as far as it says something."""
    current = MODELS[kind].model_validate(before).model_dump()
    after = merge(MODELS[kind], current, patch, merge_lists=merge_lists, path="content")
    return MODELS[kind].model_validate(after).model_dump(exclude_defaults=True)


ANA, LI = {"name": "Ana", "role": "engineer"}, {"name": "Li", "notes": "left-handed"}


def test_a_field_changes_and_the_others_stay() -> None:
    before = {"occupation": "architect", "preferences": {"communication_style": "brief", "work_lifestyle": "hybrid"}}
    patch = {"timezone": "UTC", "preferences": {"communication_style": "warm"}}
    assert merged("user", before, patch) == {
        "occupation": "architect",
        "timezone": "UTC",
        "preferences": {"communication_style": "warm", "work_lifestyle": "hybrid"},
    }


def test_null_takes_a_field_back_to_its_default() -> None:
    before = {"occupation": "architect", "interests": ["tea"], "preferences": {"work_lifestyle": "hybrid"}}
    assert merged("user", before, {"occupation": None, "interests": None, "preferences": None}) == {}
    scheduling = {"scheduling_preferences": {"preferred_meeting_duration_minutes": [45]}}
    assert merged("user", scheduling, {"scheduling_preferences": {"preferred_meeting_duration_minutes": None}}) == {}


def test_a_list_takes_the_place_of_the_present_one() -> None:
    assert merged("user", {"people": [ANA]}, {"people": [LI]}) == {"people": [LI]}
    assert merged("user", {"interests": ["tea"]}, {"interests": []}) == {}


def test_entries_are_changed_added_and_removed_by_name() -> None:
    patch = {"people": [{"name": "Ana", "relationship": "friend"}, {"name": "Bo"}, {"name": "Li", "$remove": True}]}
    assert merged("user", {"people": [ANA, LI]}, patch, merge_lists=True) == {
        "people": [{**ANA, "relationship": "friend"}, {"name": "Bo"}]
    }


def test_null_within_an_entry_takes_back_that_field_alone() -> None:
    assert merged("user", {"people": [ANA]}, {"people": [{"name": "Ana", "role": None}]}, merge_lists=True) == {
        "people": [{"name": "Ana"}]
    }


def test_null_in_a_new_entry_is_the_default_whether_lists_are_merged_or_not() -> None:
    person = {"name": "Ana", "role": None, "meta": None}
    window = {"start": "09:00", "end": "10:00", "weekdays": None}
    patch = {"people": [person], "scheduling_preferences": {"deep_work_windows": [window]}}
    for merge_lists in (False, True):
        after = merged("user", {}, patch, merge_lists=merge_lists)
        assert after["people"] == [{"name": "Ana"}]
        assert after["scheduling_preferences"]["deep_work_windows"] == [{"start": "09:00", "end": "10:00"}]


def test_removing_who_is_not_there_changes_nothing() -> None:
    patch = {"people": [{"name": "Nobody", "$remove": True}]}
    assert merged("user", {"people": [ANA]}, patch, merge_lists=True) == {"people": [ANA]}


def test_milestones_are_merged_within_their_project() -> None:
    project = {"name": "Bridge", "key_milestones": [{"name": "Model"}, {"name": "Permit", "status": "open"}]}
    patch = {"name": "Bridge", "key_milestones": [{"name": "Permit", "due_date": "2027-01-01"}, {"name": "Opening"}]}
    assert merged("work", {"current_projects": [project]}, {"current_projects": [patch]}, merge_lists=True) == {
        "current_projects": [
            {
                "name": "Bridge",
                "key_milestones": [
                    {"name": "Model"},
                    {"name": "Permit", "due_date": "2027-01-01", "status": "open"},
                    {"name": "Opening"},
                ],
            }
        ]
    }


def test_lists_without_names_take_the_place_of_the_present_ones_all_the_same() -> None:
    patch = {"interests": ["tea"], "people": [LI]}
    assert merged("user", {"interests": ["bridges"], "people": [ANA]}, patch, merge_lists=True) == {
        "interests": ["tea"],
        "people": [ANA, LI],
    }


def test_an_entry_that_changes_without_provenance_loses_the_old_one() -> None:
    person = {**ANA, "meta": {"source": "import"}}
    changed = merged("user", {"people": [person]}, {"people": [{"name": "Ana", "role": "chief"}]}, merge_lists=True)
    same = merged("user", {"people": [person]}, {"people": [ANA]}, merge_lists=True)
    told = {"name": "Ana", "role": "chief", "meta": {"confidence": 0.5}}
    assert "meta" not in changed["people"][0]
    assert same["people"] == [person]
    assert merged("user", {"people": [person]}, {"people": [told]}, merge_lists=True)["people"] == [
        {**told, "meta": {"source": "import", "confidence": 0.5}}
    ]


@pytest.mark.parametrize(
    ("patch", "merge_lists", "field"),
    [
        ([], False, "content"),
        ({"shoe_size": None}, False, "content.shoe_size"),
        ({"preferences": {"colour": "red"}}, False, "content.preferences.colour"),
        ({"preferences": "warm"}, False, "content.preferences"),
        ({"people": [{"name": "Ana", "$remove": True}]}, False, "content.people.0.$remove"),
        ({"people": ["Ana"]}, False, "content.people.0"),
        ({"people": ["Ana"]}, True, "content.people.0.name"),
        ({"people": [{"role": "x"}]}, True, "content.people.0.name"),
        ({"people": [{"name": "Ana", "age": 3}]}, True, "content.people.0.age"),
        ({"people": [{"name": "Ana", "$remove": "yes"}]}, True, "content.people.0.$remove"),
        ({"people": [{"name": "Ana"}] * (MAX_ENTRIES + 1)}, True, "content.people"),
    ],
)
def test_what_cannot_be_merged_is_refused_by_name(patch: Any, merge_lists: bool, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        merged("user", {"people": [ANA]}, patch, merge_lists=merge_lists)
    assert [error.field for error in refused.value.errors] == [field]


def test_nobody_is_changed_where_two_have_the_name() -> None:
    with pytest.raises(Conflict):
        merged("user", {"people": [ANA, ANA]}, {"people": [{"name": "Ana", "role": "x"}]}, merge_lists=True)
    both_gone = {"people": [{"name": "Ana", "$remove": True}]}
    assert merged("user", {"people": [ANA, ANA]}, both_gone, merge_lists=True) == {}


def test_the_examples_of_the_documentation_hold() -> None:
    """Each is three JSON blocks: before, the body, after."""
    blocks = [
        json.loads(block) for block in re.findall(r"```json\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    ]
    examples = [blocks[place : place + 3] for place in range(0, len(blocks), 3)]
    assert len(examples) >= 4
    for before, body, after in examples:
        kind: Kind = "work" if "current_projects" in before else "user"
        assert merged(kind, before, body["content"], merge_lists=body.get("merge_lists", False)) == after, body
