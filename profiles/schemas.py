"""Schemas of a user's two documents: personal facts (`user`) and working style (`work`).

Every field has a default: `UserMemoryContent()` is the document of a new user. Unknown fields are refused by name.
Dates and times are checked but stored as written.
"""

import re
from datetime import date, datetime
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StringConstraints

from core.messages import Translatable as _
from core.rest import WHOLE, Body
from core.storable import check_text

MAX_NAME_CHARS = 200
MAX_SHORT_TEXT_CHARS = 1000
MAX_NOTES_CHARS = 100_000
MAX_ENTRIES = 500
MINUTES_A_DAY = 1440

_DATE_TIME = re.compile(
    r"\A([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}):([0-9]{2})(?:\.[0-9]{1,12})?([Zz]|[+-][0-9]{2}:[0-9]{2})\Z"
)

Kind = Literal["user", "work"]
MemorySource = Literal["user_stated", "agent_inferred", "operator", "import"]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_WEEKDAYS: Final = {
    word: day
    for day, words in {
        "mon": "1 monday montag mo lundi lunes 周一 星期一 礼拜一",
        "tue": "2 tuesday tues dienstag di mardi martes 周二 星期二 礼拜二",
        "wed": "3 wednesday weds mittwoch mi mercredi miércoles 周三 星期三 礼拜三",
        "thu": "4 thursday thur thurs donnerstag do jeudi jueves 周四 星期四 礼拜四",
        "fri": "5 friday freitag fr vendredi viernes 周五 星期五 礼拜五",
        "sat": "6 saturday samstag sonnabend sa samedi sábado 周六 星期六 礼拜六",
        "sun": "0 7 sunday sonntag so dimanche domingo 周日 周天 星期日 星期天 礼拜日 礼拜天",
    }.items()
    for word in words.split()
}
Preference = Literal["like", "neutral", "avoid"]
ProjectStatus = Literal["planned", "active", "paused", "completed"]


def _checked_date(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError:
        raise ValueError(_("must be a date such as 2026-06-30")) from None
    return text


def _checked_date_time(text: str) -> str:
    """Return the time. Raises: ValueError unless it is RFC 3339, which allows leap seconds, unlike Python."""
    try:
        day, clock, second, offset = _DATE_TIME.findall(text)[0]
        datetime.fromisoformat(f"{day}T{clock}:{'59' if second == '60' else second}{offset.upper()}")
    except (ValueError, IndexError):
        raise ValueError(_("must be a time such as 2026-06-10T10:00:00+00:00")) from None
    return text


def _as_weekday(value: object) -> object:
    """Return a weekday by its name in some languages, or its number: 1 is Monday, 0 and 7 are Sunday."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        return value
    word = str(value).strip().rstrip(".").lower()
    return _WEEKDAYS.get(word, word)


_CHECKED_TEXT = AfterValidator(check_text)
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS), _CHECKED_TEXT]
ShortText = Annotated[str, Field(max_length=MAX_SHORT_TEXT_CHARS), _CHECKED_TEXT]
Source = Annotated[str, Field(max_length=MAX_NAME_CHARS), _CHECKED_TEXT]
Notes = Annotated[str, Field(max_length=MAX_NOTES_CHARS), _CHECKED_TEXT]
_MaxEntries = Field(max_length=MAX_ENTRIES)
ShortTexts = Annotated[list[ShortText], _MaxEntries]
Clock = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", description="A time of the day, `HH:MM`.")]
Date = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
    AfterValidator(_checked_date),
    Field(json_schema_extra={"format": "date"}),
]
DateTime = Annotated[str, AfterValidator(_checked_date_time), Field(json_schema_extra={"format": "date-time"})]
Minutes = Annotated[int, Field(ge=0, le=MINUTES_A_DAY), WHOLE]
Durations = Annotated[
    list[Annotated[int, Field(ge=1, le=MINUTES_A_DAY), WHOLE]],
    Field(max_length=20, description="Preferred lengths of meetings in minutes."),
]


class EntryMeta(Body):
    """The provenance of an entry. The gateway fills it in for an entry written without it."""

    source: Source | None = Field(
        None,
        description="Who stated the entry: `user_stated`, `agent_inferred`, `operator`, `import`, or a word of your "
        "own; null if unknown.",
        examples=["user_stated"],
    )
    confidence: float | None = Field(
        None, ge=0, le=1, allow_inf_nan=False, description="How certain it is, 1 for certain; null if unknown."
    )
    last_updated_at: DateTime | None = Field(None, description="When the entry last changed; null if unknown.")


class TimeWindow(Body):
    """A time of the day on some weekdays. It ends on the next day if `end` is before `start`."""

    weekdays: Annotated[
        list[Annotated[Weekday, BeforeValidator(_as_weekday)]],
        Field(max_length=7, description="The weekdays; empty for every day. Names such as `Monday` are read too."),
    ] = []
    start: Clock
    end: Clock


Windows = Annotated[list[TimeWindow], _MaxEntries]
_MORNINGS = [[{"weekdays": ["mon", "tue"], "start": "09:00", "end": "12:00"}]]
_Meta = Annotated[EntryMeta, Field(description="Where the entry comes from and how certain it is.")]
_Other = Annotated[Notes | None, Field(description="Anything else worth knowing.")]
_Channel = Annotated[ShortText | None, Field(description="How to contact the person, such as `e-mail`.")]
_Occupation = Annotated[
    ShortText | None, Field(description="What the user works as; null if unknown.", examples=["architect"])
]
_MeetingWindows = Annotated[Windows, Field(description="When the user prefers meetings.")]
_NoMeetingWindows = Annotated[Windows, Field(description="When the user accepts no meetings.")]


class Entry(Body):
    """An entry identified by its name within its list."""

    name: Name = Field(description="The name, unique within its list.", examples=["Ana"])


class Person(Entry):
    """A person in the user's life."""

    relationship: ShortText | None = Field(None, description="The person's relation to the user.", examples=["sister"])
    role: ShortText | None = Field(None, description="What the person does.")
    preferred_contact_channel: _Channel = None
    notes: _Other = None
    meta: _Meta = EntryMeta()


class Place(Entry):
    """A place in the user's life."""

    name: Name = Field(description="The name, unique within its list.", examples=["office"])
    category: ShortText | None = Field(None, description="The kind of place, such as `gym`.")
    address: ShortText | None = Field(None, description="The postal address.")
    timezone: ShortText | None = Field(None, description="The time zone, such as `Europe/Berlin`.")
    commute_minutes: Minutes | None = Field(None, description="Minutes to get there.", examples=[25])
    preference: Preference | None = Field(None, description="How the user feels about the place.")
    notes: _Other = None
    meta: _Meta = EntryMeta()


class Preferences(Body):
    """The ways in which the user wants to be treated."""

    communication_style: ShortText | None = Field(
        None, description="How to write to the user.", examples=["short, with sources"]
    )
    language_preference: ShortTexts = Field([], description="Preferred languages, the best first.")
    location_preference: ShortText | None = Field(None, description="Where the user prefers to work or meet.")
    work_lifestyle: ShortText | None = Field(None, description="How the user works, such as `hybrid`.")
    notification_preference: ShortTexts = Field([], description="Preferred ways of notification.")


class SchedulingPreferences(Body):
    """When the user works and meets."""

    productive_windows: Windows = Field(
        [],
        description="When the user works best.",
        examples=_MORNINGS,
    )
    preferred_meeting_windows: _MeetingWindows = []
    no_meeting_windows: _NoMeetingWindows = []
    deep_work_windows: Windows = Field([], description="When the user works without interruption.")
    preferred_meeting_duration_minutes: Durations = [30, 60]
    meeting_buffer_minutes: Minutes | None = Field(None, description="Minutes to leave between meetings.")
    max_meetings_per_day: Annotated[int, Field(ge=0, le=1000), WHOLE] | None = Field(
        None, description="The maximum number of meetings per day."
    )
    notes: _Other = None


class Routine(Entry):
    """A recurring activity of the user."""

    name: Name = Field(description="The name, unique within its list.", examples=["run"])
    description: Notes | None = Field(None, description="What the user does.")
    cadence: ShortText | None = Field(None, description="How often, such as `weekly`.", examples=["weekly"])
    time_windows: Windows = Field([], description="When it takes place.")
    importance: ShortText | None = Field(None, description="How important it is.")
    meta: _Meta = EntryMeta()


class UserMemoryContent(Body):
    """Personal facts about the user, for the router agent, which interprets requests."""

    occupation: _Occupation = None
    timezone: ShortText | None = Field(
        None, description="The user's time zone, as in the IANA database.", examples=["Europe/Berlin"]
    )
    primary_language: ShortText | None = Field(None, description="The language to answer in.", examples=["English"])
    people: Annotated[list[Person], _MaxEntries] = Field([], description="People in the user's life.")
    places: Annotated[list[Place], _MaxEntries] = Field([], description="Places in the user's life.")
    preferences: Preferences = Field(Preferences(), description="Preferences in communication and work.")
    scheduling_preferences: SchedulingPreferences = Field(
        SchedulingPreferences(), description="Preferences for the calendar."
    )
    interests: ShortTexts = Field([], description="What the user is interested in.", examples=[["jazz"]])
    avoid_topics: ShortTexts = Field([], description="What not to talk about.")
    custom_rules: ShortTexts = Field([], description="Rules of the user for the agent.")
    recurring_routines: Annotated[list[Routine], _MaxEntries] = Field(
        [], description="The user's recurring activities."
    )


class Milestone(Entry):
    """A milestone of a project."""

    name: Name = Field(description="The name, unique within its list.", examples=["permit"])
    due_date: Date | None = Field(None, description="When it is due.", examples=["2026-09-30"])
    status: ShortText | None = Field(None, description="How far it is.")
    notes: _Other = None


class Project(Entry):
    """A project of the user."""

    name: Name = Field(description="The name, unique within its list.", examples=["library"])
    description: Notes | None = Field(None, description="What the project is about.")
    status: ProjectStatus | None = Field(None, description="The state of the project.", examples=["active"])
    priority: ShortText | None = Field(None, description="How urgent it is.")
    deadline: Date | None = Field(None, description="When it must be finished.")
    collaborators: ShortTexts = Field([], description="Who works on it.")
    key_milestones: Annotated[list[Milestone], _MaxEntries] = Field([], description="Its milestones.")
    notes: _Other = None
    meta: _Meta = EntryMeta()


class WorkHabits(Body):
    """The ways and times in which the user works."""

    available_hours: Windows = Field([], description="When the user is available.")
    deep_work_blocks: Windows = Field(
        [],
        description="When the user works without interruption.",
        examples=_MORNINGS,
    )
    preferred_meeting_windows: _MeetingWindows = []
    no_meeting_windows: _NoMeetingWindows = []
    preferred_meeting_duration_minutes: Durations = [30, 60]
    notification_channel: ShortText | None = Field(None, description="How to notify the user.", examples=["e-mail"])
    notes: _Other = None


class TeamMember(Entry):
    """A member of the user's team."""

    role: ShortText | None = Field(None, description="What the person does.", examples=["engineer"])
    relationship: ShortText | None = Field(None, description="The person's relation to the user.")
    preferred_contact_channel: _Channel = None
    notes: _Other = None
    meta: _Meta = EntryMeta()


class WorkProfileContent(Body):
    """Working style of the user, for the worker agent, which carries out requests."""

    occupation: _Occupation = None
    expertise: ShortTexts = Field([], description="What the user is good at.", examples=[["timber construction"]])
    preferred_tools: ShortTexts = Field([], description="Tools that the user works with.")
    current_projects: Annotated[list[Project], _MaxEntries] = Field([], description="The user's projects.")
    work_habits: WorkHabits = Field(WorkHabits(), description="Working hours, meetings and notifications.")
    team_members: Annotated[list[TeamMember], _MaxEntries] = Field([], description="The members of the user's team.")
    team_context: Notes | None = Field(None, description="What to know about the team.")
    work_rules: ShortTexts = Field([], description="Rules of the user for work.")


Content = UserMemoryContent | WorkProfileContent
MODELS: dict[Kind, type[UserMemoryContent] | type[WorkProfileContent]] = {
    "user": UserMemoryContent,
    "work": WorkProfileContent,
}


def json_schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a document."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **MODELS[kind].model_json_schema()}


def inner_type(annotation: Any) -> Any:
    """Return the annotation without `Annotated` and `| None`."""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation = get_args(annotation)[0]
    return annotation


def item_of(annotation: Any) -> Any:
    """Return the item type of a list; None for other types."""
    plain = inner_type(annotation)
    return inner_type(get_args(plain)[0]) if get_origin(plain) is list else None


def model_of(annotation: Any) -> type[BaseModel] | None:
    plain = inner_type(annotation)
    return plain if isinstance(plain, type) and issubclass(plain, BaseModel) else None


def choices(annotation: Any) -> tuple[str, ...]:
    """Return the values allowed for a field; empty if any is allowed."""
    plain = inner_type(annotation)
    return get_args(plain) if get_origin(plain) is Literal else ()
