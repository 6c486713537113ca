"""Merging of patches into documents, with the examples of `docs/use/profiles.md`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from core.errors import Conflict, InvalidInput
from profiles.merge import merge
from profiles.schemas import MAX_ENTRIES, MODELS, Kind

DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "use" / "profiles.md"


def merged(kind: Kind, before: dict[str, Any], patch: Any, *, merge_lists: bool = False) -> dict[str, Any]:
    """Return the document after the patch, without default values."""
    current = MODELS[kind].model_validate(before).model_dump()
    after = merge(MODELS[kind], current, patch, merge_lists=merge_lists, path="content")
    return MODELS[kind].model_validate(after).model_dump(exclude_defaults=True)


ANA, LI = {"name": "Ana", "role": "engineer"}, {"name": "Li", "notes": "left-handed"}


def test_fields_that_are_not_in_the_patch_are_kept() -> None:
    before = {"occupation": "architect", "preferences": {"communication_style": "brief", "work_lifestyle": "hybrid"}}
    patch = {"timezone": "UTC", "preferences": {"communication_style": "warm"}}
    assert merged("user", before, patch) == {
        "occupation": "architect",
        "timezone": "UTC",
        "preferences": {"communication_style": "warm", "work_lifestyle": "hybrid"},
    }


def test_null_resets_a_field_to_its_default() -> None:
    before = {"occupation": "architect", "interests": ["tea"], "preferences": {"work_lifestyle": "hybrid"}}
    assert merged("user", before, {"occupation": None, "interests": None, "preferences": None}) == {}
    scheduling = {"scheduling_preferences": {"preferred_meeting_duration_minutes": [45]}}
    assert merged("user", scheduling, {"scheduling_preferences": {"preferred_meeting_duration_minutes": None}}) == {}


def test_a_list_replaces_the_current_one() -> None:
    assert merged("user", {"people": [ANA]}, {"people": [LI]}) == {"people": [LI]}
    assert merged("user", {"interests": ["tea"]}, {"interests": []}) == {}


def test_merge_lists_changes_adds_and_removes_entries_by_name() -> None:
    patch = {"people": [{"name": "Ana", "relationship": "friend"}, {"name": "Bo"}, {"name": "Li", "$remove": True}]}
    assert merged("user", {"people": [ANA, LI]}, patch, merge_lists=True) == {
        "people": [{**ANA, "relationship": "friend"}, {"name": "Bo"}]
    }


def test_null_in_an_entry_resets_only_that_field() -> None:
    assert merged("user", {"people": [ANA]}, {"people": [{"name": "Ana", "role": None}]}, merge_lists=True) == {
        "people": [{"name": "Ana"}]
    }


def test_null_in_a_new_entry_is_the_default() -> None:
    person = {"name": "Ana", "role": None, "meta": None}
    window = {"start": "09:00", "end": "10:00", "weekdays": None}
    patch = {"people": [person], "scheduling_preferences": {"deep_work_windows": [window]}}
    for merge_lists in (False, True):
        after = merged("user", {}, patch, merge_lists=merge_lists)
        assert after["people"] == [{"name": "Ana"}]
        assert after["scheduling_preferences"]["deep_work_windows"] == [{"start": "09:00", "end": "10:00"}]


def test_removing_an_unknown_entry_changes_nothing() -> None:
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


def test_merge_lists_replaces_lists_without_names() -> None:
    patch = {"interests": ["tea"], "people": [LI]}
    assert merged("user", {"interests": ["bridges"], "people": [ANA]}, patch, merge_lists=True) == {
        "interests": ["tea"],
        "people": [ANA, LI],
    }


def test_a_changed_entry_loses_its_old_provenance() -> None:
    person = {**ANA, "meta": {"source": "import"}}
    changed = merged("user", {"people": [person]}, {"people": [{"name": "Ana", "role": "chief"}]}, merge_lists=True)
    unchanged = merged("user", {"people": [person]}, {"people": [ANA]}, merge_lists=True)
    with_meta = {"name": "Ana", "role": "chief", "meta": {"confidence": 0.5}}
    assert "meta" not in changed["people"][0]
    assert unchanged["people"] == [person]
    assert merged("user", {"people": [person]}, {"people": [with_meta]}, merge_lists=True)["people"] == [
        {**with_meta, "meta": {"source": "import", "confidence": 0.5}}
    ]


@pytest.mark.parametrize(
    ("patch", "merge_lists", "field"),
    [
        ([], False, "content"),
        ({"shoe_size": None}, False, "content.shoe_size"),
        ({"preferences": {"color": "red"}}, False, "content.preferences.color"),
        ({"preferences": "warm"}, False, "content.preferences"),
        ({"people": [{"name": "Ana", "$remove": True}]}, False, "content.people.0.$remove"),
        ({"people": ["Ana"]}, False, "content.people.0"),
        ({"people": ["Ana"]}, True, "content.people.0.name"),
        ({"people": [{"role": "x"}]}, True, "content.people.0.name"),
        ({"people": [{"name": "Ana", "age": 3}]}, True, "content.people.0.age"),
        ({"people": [{"name": "Ana", "$remove": "yes"}]}, True, "content.people.0.$remove"),
        ({"people": [{"name": "Ana", "$remove": True, "age": 5}]}, True, "content.people.0.age"),
        ({"people": [{"name": "Ana"}] * (MAX_ENTRIES + 1)}, True, "content.people"),
    ],
)
def test_invalid_patches_are_refused_by_field(patch: Any, merge_lists: bool, field: str) -> None:
    with pytest.raises(InvalidInput) as error_info:
        merged("user", {"people": [ANA]}, patch, merge_lists=merge_lists)
    assert [error.field for error in error_info.value.errors] == [field]


def test_an_ambiguous_name_is_a_conflict() -> None:
    with pytest.raises(Conflict):
        merged("user", {"people": [ANA, ANA]}, {"people": [{"name": "Ana", "role": "x"}]}, merge_lists=True)
    removal = {"people": [{"name": "Ana", "$remove": True}]}
    assert merged("user", {"people": [ANA, ANA]}, removal, merge_lists=True) == {}


def test_the_examples_of_the_documentation_are_correct() -> None:
    """Each is three JSON blocks: before, the body, after."""
    blocks = [
        json.loads(block) for block in re.findall(r"```json\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    ]
    examples = [blocks[place : place + 3] for place in range(0, len(blocks), 3)]
    assert len(examples) >= 4
    for before, body, after in examples:
        kind: Kind = "work" if "current_projects" in before else "user"
        assert merged(kind, before, body["content"], merge_lists=body.get("merge_lists", False)) == after, body
