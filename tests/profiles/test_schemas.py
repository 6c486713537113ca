"""The documents have the fields of the specification."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from profiles.labels import _LABELS, label
from profiles.schemas import MODELS, Kind, json_schema
from tests.conftest import SHARED
from tests.profiles.documents import FULL, FULL_USER, FULL_WORK

TEXT, TEXTS, WINDOWS, NUMBERS = "string | null", "[string]", "[window]", "[integer]"
META = {"source": "string | null", "confidence": "number 0..1 | null"}
META |= {"last_updated_at": "string date-time | null"}
CONTACT = {"relationship": TEXT, "role": TEXT, "preferred_contact_channel": TEXT, "notes": TEXT}


def entries(field: str, **fields: str) -> dict[str, str]:
    return {f"{field}[].{name}": kind for name, kind in {"name": "string", **fields}.items()}


def with_meta(field: str, **fields: str) -> dict[str, str]:
    return entries(field, **fields) | {f"{field}[].meta.{name}": kind for name, kind in META.items()}


def under(field: str, **fields: str) -> dict[str, str]:
    return {f"{field}.{name}": kind for name, kind in fields.items()}


EXPECTED_FIELDS: dict[Kind, dict[str, str]] = {
    "user": {
        "occupation": TEXT,
        "timezone": TEXT,
        "primary_language": TEXT,
        **with_meta("people", **CONTACT),
        **with_meta(
            "places",
            category=TEXT,
            address=TEXT,
            timezone=TEXT,
            commute_minutes="integer | null",
            preference="like|neutral|avoid | null",
            notes=TEXT,
        ),
        **under(
            "preferences",
            communication_style=TEXT,
            language_preference=TEXTS,
            location_preference=TEXT,
            work_lifestyle=TEXT,
            notification_preference=TEXTS,
        ),
        **under(
            "scheduling_preferences",
            productive_windows=WINDOWS,
            preferred_meeting_windows=WINDOWS,
            no_meeting_windows=WINDOWS,
            deep_work_windows=WINDOWS,
            preferred_meeting_duration_minutes=NUMBERS,
            meeting_buffer_minutes="integer | null",
            max_meetings_per_day="integer | null",
            notes=TEXT,
        ),
        "interests": TEXTS,
        "avoid_topics": TEXTS,
        "custom_rules": TEXTS,
        **with_meta("recurring_routines", description=TEXT, cadence=TEXT, time_windows=WINDOWS, importance=TEXT),
    },
    "work": {
        "occupation": TEXT,
        "expertise": TEXTS,
        "preferred_tools": TEXTS,
        **with_meta(
            "current_projects",
            description=TEXT,
            status="planned|active|paused|completed | null",
            priority=TEXT,
            deadline="string date | null",
            collaborators=TEXTS,
            notes=TEXT,
        ),
        **entries("current_projects[].key_milestones", due_date="string date | null", status=TEXT, notes=TEXT),
        **under(
            "work_habits",
            available_hours=WINDOWS,
            deep_work_blocks=WINDOWS,
            preferred_meeting_windows=WINDOWS,
            no_meeting_windows=WINDOWS,
            preferred_meeting_duration_minutes=NUMBERS,
            notification_channel=TEXT,
            notes=TEXT,
        ),
        **with_meta("team_members", **CONTACT),
        "team_context": TEXT,
        "work_rules": TEXTS,
    },
}


def flattened(schema: dict[str, Any], definitions: dict[str, Any], path: str = "") -> dict[str, str]:
    """Return the leaves of a JSON Schema with their types, in the form of `EXPECTED_FIELDS`."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if schema.get("title") == "TimeWindow":
        assert set(schema["properties"]) == {"weekdays", "start", "end"}
        return {path: "window"}
    if "properties" in schema:
        assert schema["additionalProperties"] is False
        found: dict[str, str] = {}
        for name, field in schema["properties"].items():
            found |= flattened(field, definitions, f"{path}.{name}".lstrip("."))
        return found
    if schema.get("type") == "array":
        item = flattened(schema["items"], definitions, f"{path}[]")
        return {path: f"[{item[f'{path}[]']}]"} if set(item) == {f"{path}[]"} else item
    if "anyOf" in schema:
        return {path: " | ".join(flattened(item, definitions, path)[path] for item in schema["anyOf"])}
    limits = f"{schema['minimum']}..{schema['maximum']}" if schema.get("type") == "number" else ""
    words = "|".join(schema.get("enum", ()))
    return {path: words or " ".join(filter(None, (schema["type"], schema.get("format", ""), limits)))}


@pytest.mark.parametrize("kind", MODELS)
def test_the_schema_has_the_expected_fields(kind: Kind) -> None:
    schema = json_schema(kind)
    assert flattened(schema, schema["$defs"]) == EXPECTED_FIELDS[kind]


def test_the_expected_fields_are_those_of_the_specification() -> None:
    page = SHARED / "spec" / "profile-memory.zh.md"
    if not page.exists():
        pytest.skip("../shared is missing")
    text = page.read_text(encoding="utf-8").partition("UserMemoryContent\n{")[2].partition("数据库存储")[0]
    for kind, part in zip(EXPECTED_FIELDS, text.split("WorkProfileContent\n{"), strict=True):
        named = set(re.findall(r'"(\w+)":', part)) - {"weekdays", "start", "end"}
        names = {word.removesuffix("[]") for path in EXPECTED_FIELDS[kind] for word in path.split(".")}
        if kind == "work":
            named |= {"source", "confidence", "last_updated_at"}  # abbreviated there
        assert names == named


@pytest.mark.parametrize("kind", MODELS)
def test_the_default_document_is_valid(kind: Kind) -> None:
    empty = MODELS[kind]().model_dump()
    assert MODELS[kind].model_validate(empty).model_dump() == empty
    assert empty.keys() == FULL[kind].keys()
    leaves = [value for value in empty.values() if not isinstance(value, dict)]
    assert all(value in (None, []) for value in leaves)


@pytest.mark.parametrize("kind", MODELS)
def test_every_field_and_value_has_a_label(kind: Kind) -> None:
    words = {word.removesuffix("[]") for path in EXPECTED_FIELDS[kind] for word in path.split(".")}
    assert words <= _LABELS.keys()
    assert all(label(word, "en") and label(word, "zh") for word in words)


@pytest.mark.parametrize(
    ("kind", "content", "field"),
    [
        ("user", {"shoe_size": 43}, "shoe_size"),
        ("user", {"people": [{"name": "Ana", "age": 4}]}, "people.0.age"),
        ("user", {"people": [{"role": "x"}]}, "people.0.name"),
        ("user", {"people": [{"name": ""}]}, "people.0.name"),
        ("user", {"people": [{"name": "Ana", "meta": {"confidence": 1.01}}]}, "people.0.meta.confidence"),
        ("user", {"people": [{"name": "Ana", "meta": {"confidence": float("nan")}}]}, "people.0.meta.confidence"),
        ("user", {"people": [{"name": "Ana", "meta": {"source": "x" * 201}}]}, "people.0.meta.source"),
        (
            "user",
            {"people": [{"name": "Ana", "meta": {"last_updated_at": "2026-06-10"}}]},
            "people.0.meta.last_updated_at",
        ),
        ("user", {"places": [{"name": "P", "preference": "love"}]}, "places.0.preference"),
        ("user", {"places": [{"name": "P", "commute_minutes": -1}]}, "places.0.commute_minutes"),
        ("user", {"places": [{"name": "P", "commute_minutes": "5"}]}, "places.0.commute_minutes"),
        ("user", {"occupation": 7}, "occupation"),
        ("user", {"occupation": "a\x00b"}, "occupation"),
        ("user", {"occupation": "\ud800"}, "occupation"),
        ("user", {"interests": None}, "interests"),
        ("work", {"current_projects": [{"name": "P", "status": "done"}]}, "current_projects.0.status"),
        ("work", {"current_projects": [{"name": "P", "deadline": "2026-02-30"}]}, "current_projects.0.deadline"),
        ("work", {"current_projects": [{"name": "P", "deadline": "20260203"}]}, "current_projects.0.deadline"),
        (
            "work",
            {"work_habits": {"available_hours": [{"start": "9:00", "end": "10:00"}]}},
            "work_habits.available_hours.0.start",
        ),
        (
            "work",
            {"work_habits": {"available_hours": [{"start": "09:00", "end": "24:00"}]}},
            "work_habits.available_hours.0.end",
        ),
        ("work", {"work_habits": {"available_hours": [{"start": "09:00"}]}}, "work_habits.available_hours.0.end"),
        (
            "work",
            {"work_habits": {"available_hours": [{"start": "09:00", "end": "10:00", "weekdays": ["someday"]}]}},
            "work_habits.available_hours.0.weekdays.0",
        ),
    ],
)
def test_invalid_documents_are_refused_by_field(kind: Kind, content: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as error_info:
        MODELS[kind].model_validate(content)
    assert [".".join(map(str, error["loc"])) for error in error_info.value.errors()] == [field]


@pytest.mark.parametrize(
    ("given", "day"),
    [
        ("monday", "mon"), ("Mon.", "mon"), (1, "mon"), ("1", "mon"), ("周一", "mon"), ("星期三", "wed"),
        ("THURS", "thu"), ("Freitag", "fri"), (7, "sun"), (0, "sun"), ("礼拜天", "sun"), ("sat", "sat"),
        (" Sábado ", "sat"),
    ],
)  # fmt: skip
def test_weekdays_are_read_in_other_words(given: Any, day: str) -> None:
    content = {"work_habits": {"available_hours": [{"start": "09:00", "end": "10:00", "weekdays": [given]}]}}
    assert MODELS["work"].model_validate(content).model_dump()["work_habits"]["available_hours"][0]["weekdays"] == [day]


@pytest.mark.parametrize("given", [8, True, 1.0, "", "mo tu", None])
def test_other_weekdays_are_refused(given: Any) -> None:
    content = {"work_habits": {"available_hours": [{"start": "09:00", "end": "10:00", "weekdays": [given]}]}}
    with pytest.raises(ValidationError):
        MODELS["work"].model_validate(content)


def test_a_source_of_the_callers_own_is_kept() -> None:
    content = {"people": [{"name": "Ana", "meta": {"source": "user"}}]}
    assert MODELS["user"].model_validate(content).model_dump()["people"][0]["meta"]["source"] == "user"


@pytest.mark.parametrize("moment", ["2026-06-10T10:00:00Z", "2016-12-31t23:59:60.5-23:59", "0001-01-01T00:00:00+00:00"])
def test_rfc_3339_times_are_stored_as_written(moment: str) -> None:
    content = {"people": [{"name": "Ana", "meta": {"last_updated_at": moment}}]}
    assert MODELS["user"].model_validate(content).model_dump()["people"][0]["meta"]["last_updated_at"] == moment


def test_complete_documents_are_stored_as_written() -> None:
    assert MODELS["user"].model_validate(FULL_USER).model_dump() == FULL_USER
    assert MODELS["work"].model_validate(FULL_WORK).model_dump() == FULL_WORK
