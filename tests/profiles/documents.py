"""Documents for tests: complete ones, and strategies for arbitrary ones."""

from __future__ import annotations

import datetime
from typing import Any

from hypothesis import strategies as st

META = {"source": "user_stated", "confidence": 0.9, "last_updated_at": "2026-06-10T10:00:00+08:00"}
WINDOW = {"weekdays": ["mon", "fri"], "start": "09:00", "end": "11:30"}
NIGHT = {"weekdays": [], "start": "22:00", "end": "06:00"}

FULL_USER: dict[str, Any] = {
    "occupation": "architect",
    "timezone": "Asia/Shanghai",
    "primary_language": "中文",
    "people": [
        {
            "name": "小林",
            "relationship": "sister",
            "role": "editor",
            "preferred_contact_channel": "phone",
            "notes": "Lives in Porto.\nCalls on Sundays.",
            "meta": META,
        }
    ],
    "places": [
        {
            "name": "Studio",
            "category": "office",
            "address": "3 Harbour Lane",
            "timezone": "Asia/Shanghai",
            "commute_minutes": 25,
            "preference": "like",
            "notes": "quiet before noon",
            "meta": {"source": "import", "confidence": 1, "last_updated_at": None},
        }
    ],
    "preferences": {
        "communication_style": "brief",
        "language_preference": ["中文", "English"],
        "location_preference": "near the river",
        "work_lifestyle": "hybrid",
        "notification_preference": ["mail", "no calls"],
    },
    "scheduling_preferences": {
        "productive_windows": [WINDOW],
        "preferred_meeting_windows": [WINDOW, NIGHT],
        "no_meeting_windows": [NIGHT],
        "deep_work_windows": [WINDOW],
        "preferred_meeting_duration_minutes": [25, 50],
        "meeting_buffer_minutes": 10,
        "max_meetings_per_day": 4,
        "notes": "never on the first of a month",
    },
    "interests": ["bridges", "茶"],
    "avoid_topics": ["football"],
    "custom_rules": ["Answer in Chinese.", "Ask before booking."],
    "recurring_routines": [
        {
            "name": "Run",
            "description": "along the river",
            "cadence": "weekly",
            "time_windows": [WINDOW],
            "importance": "high",
            "meta": META,
        }
    ],
}
FULL_WORK: dict[str, Any] = {
    "occupation": "architect",
    "expertise": ["timber", "结构"],
    "preferred_tools": ["pencil"],
    "current_projects": [
        {
            "name": "Footbridge",
            "description": "a bridge of larch",
            "status": "active",
            "priority": "high",
            "deadline": "2027-03-31",
            "collaborators": ["小林"],
            "key_milestones": [
                {"name": "Model", "due_date": "2026-12-01", "status": "late", "notes": "1:50"},
                {"name": "Permit", "due_date": None, "status": None, "notes": None},
            ],
            "notes": "the city pays",
            "meta": META,
        }
    ],
    "work_habits": {
        "available_hours": [WINDOW],
        "deep_work_blocks": [WINDOW],
        "preferred_meeting_windows": [WINDOW],
        "no_meeting_windows": [NIGHT],
        "preferred_meeting_duration_minutes": [15],
        "notification_channel": "mail",
        "notes": "no meetings on Fridays",
    },
    "team_members": [
        {
            "name": "Ana",
            "role": "engineer",
            "relationship": "peer",
            "preferred_contact_channel": "chat",
            "notes": "knows the code",
            "meta": META,
        }
    ],
    "team_context": "five people, two cities",
    "work_rules": ["Metric units only."],
}
FULL = {"user": FULL_USER, "work": FULL_WORK}

_text = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20)
_name = st.one_of(st.sampled_from(["Ana", "小林", "-->"]), _text.filter(bool))
_clock = st.times().map(lambda clock: clock.strftime("%H:%M"))
_window = st.fixed_dictionaries(
    {"start": _clock, "end": _clock},
    optional={"weekdays": st.lists(st.sampled_from(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]), max_size=7)},
)
_moment = st.datetimes(timezones=st.just(datetime.UTC)).map(datetime.datetime.isoformat)
_meta = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from(["user_stated", "agent_inferred", "operator", "import", None]),
        "confidence": st.floats(0, 1) | st.none(),
        "last_updated_at": _moment | st.none(),
    },
)
_few = 3
_texts = st.lists(_text, max_size=_few)
_windows = st.lists(_window, max_size=_few)
_minutes = st.integers(0, 1440) | st.none()
_durations = st.lists(st.integers(1, 1440), max_size=_few)
_word = _text | st.none()
_date = st.dates().map(str) | st.none()


def _object(**fields: Any) -> Any:
    return st.fixed_dictionaries({}, optional=fields)


def _entries(**fields: Any) -> Any:
    return st.lists(st.fixed_dictionaries({"name": _name}, optional=fields), max_size=_few)


users = _object(
    occupation=_word,
    timezone=_word,
    primary_language=_word,
    people=_entries(relationship=_word, role=_word, preferred_contact_channel=_word, notes=_word, meta=_meta),
    places=_entries(
        category=_word,
        address=_word,
        timezone=_word,
        commute_minutes=_minutes,
        preference=st.sampled_from(["like", "neutral", "avoid", None]),
        notes=_word,
        meta=_meta,
    ),
    preferences=_object(
        communication_style=_word,
        language_preference=_texts,
        location_preference=_word,
        work_lifestyle=_word,
        notification_preference=_texts,
    ),
    scheduling_preferences=_object(
        productive_windows=_windows,
        preferred_meeting_windows=_windows,
        no_meeting_windows=_windows,
        deep_work_windows=_windows,
        preferred_meeting_duration_minutes=_durations,
        meeting_buffer_minutes=_minutes,
        max_meetings_per_day=st.integers(0, 1000) | st.none(),
        notes=_word,
    ),
    interests=_texts,
    avoid_topics=_texts,
    custom_rules=_texts,
    recurring_routines=_entries(description=_word, cadence=_word, time_windows=_windows, importance=_word, meta=_meta),
)
works = _object(
    occupation=_word,
    expertise=_texts,
    preferred_tools=_texts,
    current_projects=_entries(
        description=_word,
        status=st.sampled_from(["planned", "active", "paused", "completed", None]),
        priority=_word,
        deadline=_date,
        collaborators=_texts,
        key_milestones=_entries(due_date=_date, status=_word, notes=_word),
        notes=_word,
        meta=_meta,
    ),
    work_habits=_object(
        available_hours=_windows,
        deep_work_blocks=_windows,
        preferred_meeting_windows=_windows,
        no_meeting_windows=_windows,
        preferred_meeting_duration_minutes=_durations,
        notification_channel=_word,
        notes=_word,
    ),
    team_members=_entries(role=_word, relationship=_word, preferred_contact_channel=_word, notes=_word, meta=_meta),
    team_context=_word,
    work_rules=_texts,
)
documents: Any = st.one_of(st.tuples(st.just("user"), users), st.tuples(st.just("work"), works))
