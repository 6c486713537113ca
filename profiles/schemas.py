"""Schemas of a user's two documents: personal facts (`user`) and working style (`work`).

Every field has a default, so `UserMemoryContent()` is the document of an unknown user. Unknown fields are refused by
name. Valid content is stored as written: dates and times are checked, never rewritten.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from core.ids import has_surrogates
from core.rest import WHOLE, Body

MAX_NAME_CHARS = 200
MAX_WORDS_CHARS = 1000
MAX_NOTES_CHARS = 100_000
MAX_ENTRIES = 500
MINUTES_A_DAY = 1440

_DATE_TIME = re.compile(
    r"\A([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}):([0-9]{2})(?:\.[0-9]{1,12})?([Zz]|[+-][0-9]{2}:[0-9]{2})\Z"
)

Kind = Literal["user", "work"]
MemorySource = Literal["user_stated", "agent_inferred", "operator", "import"]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Preference = Literal["like", "neutral", "avoid"]
ProjectStatus = Literal["planned", "active", "paused", "completed"]


def _storable(text: str) -> str:
    """Check that any database and any UTF-8 response can carry the text."""
    if "\x00" in text or has_surrogates(text):
        raise ValueError("must hold neither NUL characters nor halves of characters")
    return text


def _a_date(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError:
        raise ValueError("must be a date such as 2026-06-30") from None
    return text


def _a_date_time(text: str) -> str:
    """Check for RFC 3339, which allows leap seconds; Python does not."""
    try:
        day, clock, second, offset = _DATE_TIME.findall(text)[0]
        datetime.fromisoformat(f"{day}T{clock}:{'59' if second == '60' else second}{offset.upper()}")
    except (ValueError, IndexError):
        raise ValueError("must be a time such as 2026-06-10T10:00:00+00:00") from None
    return text


_STORABLE = AfterValidator(_storable)
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS), _STORABLE]
Words = Annotated[str, Field(max_length=MAX_WORDS_CHARS), _STORABLE]
Notes = Annotated[str, Field(max_length=MAX_NOTES_CHARS), _STORABLE]
_Few = Field(max_length=MAX_ENTRIES)
WordList = Annotated[list[Words], _Few]
Clock = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", description="`HH:MM`, 00:00 to 23:59.")]
Date = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
    AfterValidator(_a_date),
    Field(json_schema_extra={"format": "date"}),
]
DateTime = Annotated[str, AfterValidator(_a_date_time), Field(json_schema_extra={"format": "date-time"})]
Minutes = Annotated[int, Field(ge=0, le=MINUTES_A_DAY), WHOLE]
Durations = Annotated[
    list[Annotated[int, Field(ge=1, le=MINUTES_A_DAY), WHOLE]],
    Field(max_length=20, description="Minutes."),
]


class EntryMeta(Body):
    """Provenance of an entry. The gateway fills it in for an entry written without it."""

    source: MemorySource | None = None
    confidence: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    last_updated_at: DateTime | None = None


class TimeWindow(Body):
    """From `start` to `end` on these weekdays (none named: every day); overnight if it ends before it starts."""

    weekdays: Annotated[list[Weekday], Field(max_length=7)] = []
    start: Clock
    end: Clock


Windows = Annotated[list[TimeWindow], _Few]


class Entry(Body):
    """An entry identified by its name within its list."""

    name: Name


class Person(Entry):
    relationship: Words | None = None
    role: Words | None = None
    preferred_contact_channel: Words | None = None
    notes: Notes | None = None
    meta: EntryMeta = EntryMeta()


class Place(Entry):
    category: Words | None = None
    address: Words | None = None
    timezone: Words | None = None
    commute_minutes: Minutes | None = None
    preference: Preference | None = None
    notes: Notes | None = None
    meta: EntryMeta = EntryMeta()


class Preferences(Body):
    communication_style: Words | None = None
    language_preference: WordList = []
    location_preference: Words | None = None
    work_lifestyle: Words | None = None
    notification_preference: WordList = []


class SchedulingPreferences(Body):
    productive_windows: Windows = []
    preferred_meeting_windows: Windows = []
    no_meeting_windows: Windows = []
    deep_work_windows: Windows = []
    preferred_meeting_duration_minutes: Durations = [30, 60]
    meeting_buffer_minutes: Minutes | None = None
    max_meetings_per_day: Annotated[int, Field(ge=0, le=1000), WHOLE] | None = None
    notes: Notes | None = None


class Routine(Entry):
    description: Notes | None = None
    cadence: Words | None = None
    time_windows: Windows = []
    importance: Words | None = None
    meta: EntryMeta = EntryMeta()


class UserMemoryContent(Body):
    """Personal facts about the user, for the router agent, which interprets requests."""

    occupation: Words | None = None
    timezone: Words | None = None
    primary_language: Words | None = None
    people: Annotated[list[Person], _Few] = []
    places: Annotated[list[Place], _Few] = []
    preferences: Preferences = Preferences()
    scheduling_preferences: SchedulingPreferences = SchedulingPreferences()
    interests: WordList = []
    avoid_topics: WordList = []
    custom_rules: WordList = []
    recurring_routines: Annotated[list[Routine], _Few] = []


class Milestone(Entry):
    due_date: Date | None = None
    status: Words | None = None
    notes: Notes | None = None


class Project(Entry):
    description: Notes | None = None
    status: ProjectStatus | None = None
    priority: Words | None = None
    deadline: Date | None = None
    collaborators: WordList = []
    key_milestones: Annotated[list[Milestone], _Few] = []
    notes: Notes | None = None
    meta: EntryMeta = EntryMeta()


class WorkHabits(Body):
    available_hours: Windows = []
    deep_work_blocks: Windows = []
    preferred_meeting_windows: Windows = []
    no_meeting_windows: Windows = []
    preferred_meeting_duration_minutes: Durations = [30, 60]
    notification_channel: Words | None = None
    notes: Notes | None = None


class TeamMember(Entry):
    role: Words | None = None
    relationship: Words | None = None
    preferred_contact_channel: Words | None = None
    notes: Notes | None = None
    meta: EntryMeta = EntryMeta()


class WorkProfileContent(Body):
    """Working style of the user, for the worker agent, which carries out requests."""

    occupation: Words | None = None
    expertise: WordList = []
    preferred_tools: WordList = []
    current_projects: Annotated[list[Project], _Few] = []
    work_habits: WorkHabits = WorkHabits()
    team_members: Annotated[list[TeamMember], _Few] = []
    team_context: Notes | None = None
    work_rules: WordList = []


Content = UserMemoryContent | WorkProfileContent
MODELS: dict[Kind, type[UserMemoryContent] | type[WorkProfileContent]] = {
    "user": UserMemoryContent,
    "work": WorkProfileContent,
}


def json_schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a document."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **MODELS[kind].model_json_schema()}
