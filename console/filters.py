"""Forms that parse a page's filters from its address, and build addresses with other filters."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any, ClassVar, Final, Literal, NamedTuple, get_args, get_origin
from uuid import UUID

from annotated_types import Ge, Le
from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import Q
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from pydantic.fields import FieldInfo

from accounts.credential_names import shown_part
from accounts.models import AuditEvent
from console.forms import FIRST_DAY, LAST_DAY, PanelForm, TimeField, unknown_user
from core import pagination
from core.ids import MAX_USER_ID_CHARS
from core.labels import MAX_TAG_CHARS
from core.times import to_ms
from memories.api.schemas.search import SearchBody
from memories.models import LoggedSearch
from memories.services import links
from memories.services.scoped_hits import SCOPES, Scope, SearchCommand
from memories.services.search import OPTIONS
from memories.services.zones import as_of_time
from resources.models import DELETED, Resource
from store.browse import Selection
from store.categories import CATEGORIES, TABS, label
from store.ledger import EXPIRY
from store.models import Memory
from store.text.terms import ANY, terms
from store.types import MAX_TOP_K, Position, StoredMemory
from webhooks.models import WebhookDelivery

RANGES: Final = {
    "24h": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "2y": timedelta(days=730),
}
RANGE_LABELS: Final = {"24h": _("24 h"), "7d": _("7 days"), "30d": _("30 days"), "2y": _("2 years")}
ORIGINS: Final = {
    "embedded": _("conversation or file"),
    Memory.Origin.REMOTE.value: _("remote"),
    "panel": _("added manually"),
    "tool": _("agent tool"),
    "extracted": _("language model"),
}
USER_STATES: Final = {
    "inactive": _("no call for 30 days"),
    "failures": _("failed files"),
    "empty": _("no memories"),
    "expiring": _("a key or memories expire within 14 days"),
}
RESOURCE_STATES: Final = (*Resource.Status.choices, (DELETED, _("Deleted")))
ALL_TAB: Final = "all"  # includes memories without a category, such as passages of files
TAB_LABELS: Final = {
    "user": pgettext_lazy("kind of memory", "User"),
    "self": pgettext_lazy("kind of memory", "Self-improving"),
    "full": pgettext_lazy("kind of memory", "Full context"),
    ALL_TAB: _("All"),
}
OTHER_LABEL: Final = pgettext_lazy("kind of memory", "Other")
FILE_TYPES: Final = {
    "pdf": "PDF",
    "doc": _("Document"),
    "html": "HTML",
    "image": _("Image"),
    "audio": _("Audio"),
    "text": _("Text"),
}
MARKS: Final = {
    "instruction": _("Possible instruction"),
    "duplicate": _("Duplicate"),
    "edited": _("Edited"),
    "covered": _("Covered"),
    "replaced": _("Replaced by newer"),
    "expiring": _("Expires within 7 days"),
    "superseded": _("Superseded"),
    "expired": _("Expired"),
}
COLUMNS: Final = {"category": _("Category"), "user": _("User"), "importance": _("Importance")}
"""The columns of lists of memories that operators may hide."""
SORTS: Final = {
    "newest": _("newest first"),
    "oldest": _("oldest first"),
    "importance": _("most important first"),
}
USER_VIEWS: Final = ("overview", "timeline", "told", "sessions", "audit")
TIMELINE_EVENTS: Final = {
    "written": _("New facts"),
    "edited": _("Edited"),
    "superseded": _("Superseded"),
    "deleted": _("Moved to trash"),
}
NO_WORDS: Final = _("The search text contains no words. Enter at least one word.")
_ALL: Final = _("all")


_WRONG_POSITION: Final = {"invalid": _("The page position in the address is not valid. Open the list again.")}


class PositionField(forms.RegexField):
    """A position in a list of memories, in the form `<milliseconds>.<row>`."""

    def __init__(self) -> None:
        pattern = r"\A-?[0-9]{1,15}\.[0-9]{1,18}\Z"
        super().__init__(pattern, required=False, error_messages=_WRONG_POSITION)

    def clean(self, value: Any) -> Position | None:
        written = super().clean(value)
        return Position(*map(int, written.split("."))) if written else None


class Cursor(NamedTuple):
    """The time, to the microsecond, and the key of the row at the end of a page."""

    at: datetime
    key: str


class CursorField(forms.RegexField):
    """A cursor in the form `<microseconds>.<key>`."""

    def __init__(self) -> None:
        pattern = r"\A[0-9]{1,17}\.[A-Za-z0-9_.@+-]{1,64}\Z"
        super().__init__(pattern, required=False, error_messages=_WRONG_POSITION)

    def clean(self, value: Any) -> Cursor | None:
        at, _dot, key = super().clean(value).partition(".")
        return Cursor(pagination.moment(int(at)), key) if key else None


class Chip(NamedTuple):
    """An active filter as a label and a value, and the address without it."""

    label: str
    value: str
    url: str


def _text(label: Any, max_length: int = 64, *, options: str = "", placeholder: Any = _ALL) -> forms.CharField:
    """Return a text field. `options` is the id of the `datalist` with suggestions."""
    attrs = {"placeholder": placeholder, **({"list": options} if options else {})}
    return forms.CharField(label=label, max_length=max_length, required=False, widget=forms.TextInput(attrs=attrs))


def _search_field(label: Any, max_length: int, placeholder: Any = "") -> forms.CharField:
    """Return a search box."""
    widget = forms.TextInput(attrs={"type": "search", "placeholder": placeholder or label})
    return forms.CharField(label=label, max_length=max_length, required=False, widget=widget)


def _choice(label: Any, choices: Any, *, empty: Any = _ALL, initial: str = "") -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=[("", empty), *choices], initial=initial, required=False)


def _fraction(label: Any) -> forms.FloatField:
    return forms.FloatField(label=label, required=False, min_value=0, max_value=1)


class Filters(PanelForm):
    """The filters of a page. Invalid values are ignored and named in `problems`.

    `narrowing` names the fields that restrict the list and are shown as chips, `drop_down` those in the drop-down.
    """

    data: dict[str, str]
    start = forms.IntegerField(min_value=0, max_value=10**9, required=False)  # the number of rows before the page
    use_required_attribute = False
    narrowing: ClassVar[tuple[str, ...]] = ()
    drop_down: ClassVar[tuple[str, ...]] = ()
    _FIRST_PAGE: ClassVar[Mapping[str, str]] = dict.fromkeys(("after", "before", "at", "start"), "")

    def __init__(self, path: str, query: Mapping[str, str]) -> None:
        self.path = path
        # In addresses the position of the page comes last.
        in_order = sorted(self.base_fields.items(), key=lambda pair: (pair[0] in self._FIRST_PAGE, pair[0] == "start"))
        self.defaults = {self.add_prefix(name): field.initial or "" for name, field in in_order}
        super().__init__({name: query.get(name, "").strip() or default for name, default in self.defaults.items()},
                         auto_id="f-%s")  # fmt: skip
        self.problems = [f"{self.fields[name].label or name}: {error}" for name in self.errors
                         for error in self.errors[name]]  # fmt: skip
        if self.problems:
            self.data |= {self.add_prefix(name): self.defaults[self.add_prefix(name)] for name in self.errors}
            self.full_clean()

    def add_prefix(self, field_name: str) -> str:
        """Return a field's name in addresses. `from` is a keyword, so its field has another name."""
        return {"since": "from", "until": "to"}.get(field_name, field_name)

    def parameters(self, **changes: str) -> dict[str, str]:
        """Return the parameters of the address, without default values."""
        values = {**self.data, **changes}
        return {name: value for name, value in values.items() if value and value != self.defaults[name]}

    def url(self, **changes: str) -> str:
        """Return the address with some parameters changed. An empty value removes a parameter."""
        query = urlencode(self.parameters(**changes))
        return f"{self.path}?{query}" if query else self.path

    def links(self, name: str, choices: Iterable[tuple[str, Any]], **changes: str) -> list[dict[str, Any]]:
        """Return the tabs of a page: a link for each choice of a field."""
        return [
            {"name": value, "label": label, "url": self.first_page(**{name: value, **changes}),
             "is_on": value == self.data[name]}
            for value, label in choices
        ]  # fmt: skip

    def first_page(self, **changes: str) -> str:
        return self.url(**{**self._FIRST_PAGE, **changes})

    def unpaged(self) -> dict[str, str]:
        """Return the parameters of the address without the position of the page."""
        return self.parameters(**self._FIRST_PAGE)

    @property
    def rows_before(self) -> int | None:
        """Return the number of rows before the page, None if it is unknown: after a jump to a day."""
        is_first = not any(self.data.get(name) for name in ("after", "before", "at"))
        found: int | None = 0 if is_first else self.cleaned_data["start"]
        return found

    def further_page(self, rows: int, **cursor: str) -> str:
        """Return the address of the page after (or with a negative number before) so many rows."""
        before = self.rows_before
        return self.first_page(start="" if before is None else str(max(0, before + rows)), **cursor)

    def clear(self) -> str:
        """Return the address without filters."""
        return self.path

    def chips(self) -> list[Chip]:
        found = []
        for name in self.narrowing:
            field = self[name]
            if value := self.data[field.html_name]:
                text = str(dict(getattr(field.field, "choices", ())).get(value, value))
                if isinstance(field.field, TimeField):
                    text = text.replace("T", " ")
                found.append(Chip(str(field.label), text, self.first_page(**{field.html_name: ""})))
        return found

    def drop_down_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.drop_down]

    def drop_down_count(self) -> int:
        """Return the number of active filters in the drop-down."""
        return sum(bool(self.data[field.html_name]) for field in self.drop_down_fields() if field.name != "sort")


class MemoryFilters(Filters):
    """The filters that the dashboard and the lists of memories share."""

    range = _choice(_("Time range"), [*RANGE_LABELS.items(), ("all", _("Any time"))])
    since = TimeField(label=_("From"))
    until = TimeField(label=_("To"), is_end=True)
    user = _text(_("User"), MAX_USER_ID_CHARS, options="d-user")
    agent = _text(_("Agent"), options="d-agent")
    session = _text(_("Session"), 128, options="d-session")
    app = _text(_("App"))
    project = _text(_("Project"))
    narrowing: ClassVar[tuple[str, ...]] = ("since", "until", "user", "agent", "session", "app", "project")
    drop_down = narrowing
    ends_now: ClassVar = False

    @property
    def has_times(self) -> bool:
        return bool(self.data["from"] or self.data["to"])

    def span(self, now: datetime) -> tuple[datetime | None, datetime | None]:
        """Return start and end; None for no bound. Explicit times take precedence over a range."""
        values = self.cleaned_data
        if self.has_times:
            return values["since"], values["until"]
        return (now - RANGES[values["range"]], None) if values["range"] in RANGES else (None, None)

    def conflicts(self, now: datetime, user_pk: UUID | None) -> list[str]:
        """Return the reasons why these filters cannot match anything."""
        found = []
        since, until = self.span(now)
        if until is None and self.ends_now:
            until = now
        if self.data["user"] and user_pk is None:
            found.append(unknown_user(self.data["user"]))
        if since is not None and until is not None and to_ms(since) >= to_ms(until):
            found.append(gettext("The start time must be before the end time."))
        return found

    def ranges(self) -> list[dict[str, Any]]:
        """Return the ranges as links."""
        return [
            {
                "label": label,
                "url": self.first_page(**{"range": name, "from": "", "to": ""}),
                "is_on": self.data["range"] == name and not self.has_times,
            }
            for name, label in RANGE_LABELS.items()
        ]

    def selection(self, now: datetime, user_pk: UUID | None) -> Selection:
        since, until = self.span(now)
        values = self.cleaned_data
        return Selection(
            user_pk=user_pk,
            app_id=values["app"] or None,
            project_id=values["project"] or None,
            agent_id=values["agent"] or None,
            session_id=values["session"] or None,
            since_ms=None if since is None else to_ms(since),
            until_ms=None if until is None else to_ms(until),
        )


class DashboardFilters(MemoryFilters):
    """The filters of the dashboard: by default the last thirty days."""

    range = _choice(_("Time range"), [*RANGE_LABELS.items(), ("all", _("Any time"))], initial="30d")
    ends_now = True


class ListFilters(MemoryFilters):
    """The tab, filters, order and page position of a list of memories."""

    tab = _choice("", TAB_LABELS.items(), initial=ALL_TAB)
    q = _search_field(_("Search text"), 2000, _("Search memories, e.g. delivery address"))
    match = _choice(_("Words"), [("any", _("any of the words"))], empty=_("all words"))
    category = _choice(_("Category"), [(one, label(one)) for one in CATEGORIES])
    tag = _text(_("Tag"), MAX_TAG_CHARS)
    origin = _choice(_("Origin"), ORIGINS.items())
    importance_min = _fraction(_("Minimum importance"))
    importance_max = _fraction(_("Maximum importance"))
    mark = _choice(_("Mark"), MARKS.items())
    hide = forms.RegexField(rf"\A({'|'.join(COLUMNS)})(\.({'|'.join(COLUMNS)}))*\Z", required=False)
    sort = _choice(_("Sort order"), SORTS.items(), empty=_("best match or newest first"))
    after = PositionField()
    before = PositionField()
    at = forms.DateField(
        label=_("Jump to"),
        required=False,
        validators=[MinValueValidator(FIRST_DAY), MaxValueValidator(LAST_DAY)],
        widget=forms.TextInput(attrs={"type": "date"}),
    )
    narrowing = (
        "q",
        "match",
        "category",
        "tag",
        "origin",
        "mark",
        "importance_min",
        "importance_max",
        *MemoryFilters.narrowing,
    )
    drop_down = (
        "user", "agent", "session", "category", "tag", "mark", "importance_min", "importance_max", "origin", "since",
        "until", "app", "project", "match", "sort",
    )  # fmt: skip

    def __init__(self, path: str, query: Mapping[str, str]) -> None:
        super().__init__(path, query)
        self._replaced: dict[UUID, dict[int, StoredMemory]] = {}
        self.fields["category"].widget.choices = [("", _("all")), *self.categories()]

    @property
    def hidden_columns(self) -> list[str]:
        return [name for name in COLUMNS if name in self.data["hide"].split(".")]

    def columns(self) -> list[dict[str, Any]]:
        """Return the columns that can be hidden, as links that hide or show each."""
        hidden = self.hidden_columns
        return [
            {
                "label": label,
                "is_on": name not in hidden,
                "url": self.url(hide=".".join(one for one in COLUMNS if (one in hidden) != (one == name))),
            }
            for name, label in COLUMNS.items()
        ]

    def count_categories(self, counts: Mapping[str, int]) -> None:
        """Show beside each category how many memories of it the other filters leave."""
        chosen = [(name, f"{text} ({counts.get(name, 0):,})") for name, text in self.categories()]
        self.fields["category"].widget.choices = [("", _("all")), *chosen]

    def categories(self) -> list[tuple[str, Any]]:
        """Return the categories of the tab with their labels."""
        return [(one, label(one)) for one in TABS.get(self.data["tab"], CATEGORIES)]

    def ranges(self) -> list[dict[str, Any]]:
        is_on = self.data["range"] not in RANGES and not self.has_times
        url = self.first_page(**{"range": "", "from": "", "to": ""})
        return [{"label": gettext("Any time"), "url": url, "is_on": is_on}, *super().ranges()]

    @property
    def are_counts_exact(self) -> bool:
        """Return True if the counts by category can apply all active filters."""
        return self.parameters().keys() <= {"tab", "user", "agent", "app", "project", "sort", "hide"}

    @property
    def words(self) -> tuple[str, ...]:
        """Return the terms of the words that memories must contain."""
        return terms(self.data["q"])

    @property
    def order(self) -> str:
        """Return the order: newest, oldest, relevance or importance. Only matches of words have the last two."""
        by_match = self.data["sort"] or "relevance"
        is_by_time = by_match in {"newest", "oldest"}
        return by_match if is_by_time or self.data["q"] else "newest"

    @property
    def is_ranked(self) -> bool:
        return self.order in {"relevance", "importance"}

    @property
    def rows_before(self) -> int | None:
        found: int | None = (self.cleaned_data["start"] or 0) if self.is_ranked else super().rows_before
        return found

    def conflicts(self, now: datetime, user_pk: UUID | None) -> list[str]:
        found = super().conflicts(now, user_pk)
        if self.data["mark"] in {"duplicate", "replaced"} and not self.data["user"]:
            found.append(gettext("Memories with this mark are listed for one user. Choose a user."))
        if self.data["q"] and not self.words:
            found.append(str(NO_WORDS))
        return found

    @property
    def oldest_first(self) -> bool:
        return self.order == "oldest"

    def clear(self) -> str:
        return type(self)(self.path, {"tab": self.data["tab"]}).url()

    def selection(self, now: datetime, user_pk: UUID | None) -> Selection:
        values = self.cleaned_data
        return replace(
            super().selection(now, user_pk),
            rows=tuple(self.replaced(user_pk)) if values["mark"] == "replaced" and user_pk else (),
            tab=None if values["tab"] == ALL_TAB else values["tab"],
            categories=(values["category"],) if values["category"] else (),
            tag=values["tag"] or None,
            origin=values["origin"] or None,
            importance_min=values["importance_min"],
            importance_max=values["importance_max"],
            words=(ANY, *self.words) if values["match"] else self.words,
            mark=values["mark"] or None,
        )

    def replaced(self, user_pk: UUID) -> dict[int, StoredMemory]:
        """Return `links.replaced_of` the user, read once."""
        if user_pk not in self._replaced:
            self._replaced[user_pk] = links.replaced_of(user_pk)
        return self._replaced[user_pk]

    def bounds(self) -> tuple[Position | None, Position | None]:
        """Return the position after which the page is and that before which it is, also for a day to jump to."""
        values = self.cleaned_data
        if values["at"] is None:
            return values["after"], values["before"]
        start = timezone.make_aware(datetime.combine(values["at"], time()))
        return Position(to_ms(start if self.oldest_first else start + timedelta(days=1)), 0), None


class PagedFilters(Filters):
    """The position in a list, whose rows are sorted by time and key."""

    after: forms.Field = CursorField()
    before: forms.Field = CursorField()


OPTION_LABELS: Final = {"method": _("Method"), "radius": _("Minimum similarity (0–1)")}


def option_field(name: str, parameter: FieldInfo) -> forms.Field:
    """Return the form field of a parameter of the API: a choice, a switch or a number."""
    label, kinds = OPTION_LABELS.get(name, name), {parameter.annotation, *get_args(parameter.annotation)}
    initial = "" if parameter.default is None else str(parameter.default)
    if get_origin(parameter.annotation) is Literal:
        values = get_args(parameter.annotation)
        return forms.ChoiceField(label=label, choices=[(one, one) for one in values], initial=initial)
    if bool in kinds:
        choices, is_true = [("", initial.lower()), ("true", "true"), ("false", "false")], "true".__eq__
        return forms.TypedChoiceField(label=label, choices=choices, required=False, coerce=is_true, empty_value=None)
    limits: dict[str, Any] = {}
    for one in parameter.metadata:
        limits |= {"min_value": one.ge} if isinstance(one, Ge) else {"max_value": one.le} if isinstance(one, Le) else {}
    number = forms.IntegerField if int in kinds else forms.FloatField
    return number(label=label, required=False, initial=initial, **limits)


class LabFilters(Filters):
    """The parameters of a search. Without a ticked scope, all scopes are searched."""

    q = _search_field(_("Query"), 2000, _("Enter a question"))
    user = _text(_("User"), MAX_USER_ID_CHARS, options="d-user", placeholder="")
    conversation = _text(_("Conversation ID"), 123, placeholder="")
    agent = _text(_("Agent"), options="d-agent", placeholder="")
    reader = _text(_("Searching agent"), options="d-agent", placeholder=_("none"))
    as_of = _text(_("As of"), 64, placeholder=_("2026-06-30 or last week"))
    top_k = forms.IntegerField(label="top_k", min_value=1, max_value=MAX_TOP_K, initial="8", required=False)
    app = _text(_("App"), placeholder="default")
    project = _text(_("Project"), placeholder="default")
    current_chat = forms.BooleanField(required=False)
    resources = forms.BooleanField(required=False)
    all_user_memory = forms.BooleanField(required=False)
    drop_down = ("conversation", "agent", "reader", "as_of", *OPTIONS, "app", "project")

    @property
    def has_options(self) -> bool:
        """Return True if a value differs from its default, besides those of the query and the user."""
        others = self.parameters(q="", user="", **dict.fromkeys(SCOPES, ""))
        return bool(others) or self.scopes() != list(SCOPES)

    def complain_about_user(self, problem: str) -> None:
        """Report a problem and put the focus into the field of the user."""
        self.problems.append(problem)
        self.fields["user"].widget.attrs |= {"aria-invalid": "true", "autofocus": True}

    def scopes(self) -> list[Scope]:
        return [scope for scope in SCOPES if self.cleaned_data[scope]] or list(SCOPES)

    def given(self) -> dict[str, Any]:
        """Return the parameters of the API that have a value, without the search scopes."""
        values = self.cleaned_data
        named = {"query": values["q"], "conversation_id": values["conversation"], "agent_id": values["agent"]}
        named |= {name: values[name] for name in ("as_of", *OPTIONS)}
        return {name: value for name, value in named.items() if name == "query" or value not in {"", None}}

    def command(self, user_pk: UUID) -> SearchCommand:
        """Return the search. Raises: `InvalidInput` for `as_of`."""
        values = self.cleaned_data
        given = self.given() | {"as_of": as_of_time(values["as_of"], user_pk) if values["as_of"] else None}
        return SearchCommand(scopes=frozenset(self.scopes()), reader=values["reader"] or None, **given)


_ADDED: Final = [name for name in OPTIONS if name not in LabFilters.base_fields]
LabFilters.base_fields.update({name: option_field(name, SearchBody.model_fields[name]) for name in _ADDED})


class ResourceFilters(PagedFilters):
    state = _choice(_("State"), RESOURCE_STATES)
    q = _search_field(_("File name, user or ID"), 255)
    user = _text(_("User"), MAX_USER_ID_CHARS, placeholder=_("User"))
    type = _choice(pgettext_lazy("of a file", "Type"), FILE_TYPES.items(), empty=_("All types"))
    reading = _choice(_("Reading"), [("part", _("Read in part"))], empty=_("Any reading"))
    cause = forms.RegexField(r"\A[0-9a-f]{16}\Z", required=False)
    since = TimeField(label=_("From"))
    until = TimeField(label=_("To"), is_end=True)
    narrowing = ("q", "user", "type", "reading", "since", "until")
    drop_down = ("since", "until")


class RefusedFilters(PagedFilters):
    """The filters of the uploads that were refused."""

    user = _search_field(_("User"), MAX_USER_ID_CHARS)
    status = _choice(
        _("Reason"), [("413", _("too large")), ("415", _("type not accepted")), ("422", _("wrong fields"))]
    )
    since = TimeField(label=_("From"))
    until = TimeField(label=_("To"), is_end=True)
    narrowing = ("user", "status", "since", "until")
    drop_down = ("status", "since", "until")


class UserFilters(Filters):
    """The filters of the list of users, for the page and for the CSV file. Pages are numbered by rows."""

    q = _search_field(_("User ID, name, e-mail, label or note"), 255)
    state = _choice(_("State"), USER_STATES.items())
    sort = _choice("", [(name, name) for name in ("name", "memories", "used", "created")])
    narrowing = ("q", "state")
    drop_down = ("state",)

    @property
    def rows_before(self) -> int:
        return self.cleaned_data["start"] or 0


class ConnectFilters(Filters):
    """The user for whom the page of clients shows the settings."""

    user = forms.CharField(
        label=_("User"), max_length=MAX_USER_ID_CHARS, required=False,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("User"), "list": "d-user"}),
    )  # fmt: skip


class UserPageFilters(PagedFilters):
    """The tab of a user's page, and the filters of the timeline."""

    view = _choice("", [(view, view) for view in USER_VIEWS], initial="overview")
    what = _choice(_("Event"), TIMELINE_EVENTS.items())
    since = TimeField(label=_("From"))
    until = TimeField(label=_("To"), is_end=True)
    narrowing = ("what", "since", "until")
    drop_down = ("what", "since", "until")

    def clear(self) -> str:
        return type(self)(self.path, {"view": self.data["view"]}).url()


class TranscriptFilters(Filters):
    """The session of a transcript and the position of the page."""

    session = _text("", 128)
    app = _text("")
    project = _text("")
    after = PositionField()
    before = PositionField()

    def __init__(self, path: str, query: Mapping[str, str]) -> None:
        super().__init__(path, {"app": "default", "project": "default", **{name: query[name] for name in query}})


class TrashTabFilters(Filters):
    """The filters of a tab of the trash. The times are those of the deletion."""

    kind = _choice("", [])
    q = _search_field(_("Search text"), 2000)
    user = _text(_("User"), MAX_USER_ID_CHARS)
    since = TimeField(label=_("From"))
    until = TimeField(label=_("To"), is_end=True)
    after: forms.Field = PositionField()
    before: forms.Field = PositionField()
    narrowing: ClassVar[tuple[str, ...]] = ("q", "user", "since", "until")
    drop_down: ClassVar[tuple[str, ...]] = ("user", "since", "until")

    def clear(self) -> str:
        return type(self)(self.path, {"kind": self.data["kind"]}).url()

    @property
    def is_empty(self) -> bool:
        return not self.parameters(kind="")

    def selection(self, user_pk: UUID | None) -> Selection:
        since, until = self.cleaned_data["since"], self.cleaned_data["until"]
        return Selection(
            user_pk=user_pk,
            words=terms(self.data["q"]),
            in_trash=True,
            hidden_by="gateway" if self.data["kind"] else "user",
            hidden_since_ms=None if since is None else to_ms(since),
            hidden_until_ms=None if until is None else to_ms(until),
        )


class TrashFilters(TrashTabFilters):
    """The filters of memories that people deleted."""

    actor = _text(_("Deleted by"), 150)
    cause = _choice(_("Cause"), [("expired", _("Expired")), ("deleted", _("Deleted"))])
    narrowing = ("q", "user", "actor", "cause", "since", "until")
    drop_down = ("user", "actor", "cause", "since", "until")

    def deletions(self) -> Q:
        """Return the condition on the tombstones, an empty one for all."""
        values = self.cleaned_data
        by_actor = Q(actor=values["actor"]) if values["actor"] else Q()
        expired = Q(actor_kind=EXPIRY.kind, actor=EXPIRY.name)
        return by_actor & {"expired": expired, "deleted": ~expired}.get(values["cause"], Q())


class AutoHiddenFilters(TrashTabFilters):
    """The filters of memories that the gateway hid."""

    kind = _choice("", [("auto-hidden", "auto-hidden")])


class SessionTrashFilters(PagedFilters, TrashFilters):
    """The filters of deleted sessions."""

    kind = _choice("", [("sessions", "sessions")])
    q = _search_field(_("Session ID"), 128)


class ResourceTrashFilters(PagedFilters, TrashTabFilters):
    """The filters of deleted resources."""

    kind = _choice("", [("resources", "resources")])
    q = _search_field(_("File name"), 255)


class SearchFilters(PagedFilters):
    """The filters of the log of searches."""

    user = _search_field(_("User"), MAX_USER_ID_CHARS)
    agent = _text(_("Agent"))
    interface = _choice(_("Interface"), LoggedSearch.Interface.choices)
    hits = _choice(_("Hits"), [("none", _("no hits"))])
    since = TimeField(label=_("From"))
    until = TimeField(label=_("To"), is_end=True)
    narrowing = ("user", "agent", "interface", "hits", "since", "until")
    drop_down = ("agent", "interface", "hits", "since", "until")


class WebhookFilters(PagedFilters):
    user = _search_field(_("User"), MAX_USER_ID_CHARS)
    state = _choice(_("Deliveries"), [("failed", _("failed"))])
    narrowing = ("user", "state")
    drop_down = ("state",)


class RemoteFilters(PagedFilters):
    """The list of the page of the remote: refused messages, or sessions that wait."""

    list = _choice("", [("waiting", "waiting")])


class DeliveryFilters(PagedFilters):
    """The filters of the deliveries of a webhook."""

    state = _choice(_("State"), WebhookDelivery.Status.choices)


class AuditFilters(PagedFilters):
    """The filters of the audit trail. The actor may be the name that pages show of an API key: `uk_abcd…`."""

    tab = _choice("", [*AuditEvent.Kind.choices, ("all", _("All"))])
    user = _text(_("User"), MAX_USER_ID_CHARS)
    kind = _choice(_("Actor type"), AuditEvent.ActorKind.choices)
    actor = _text(_("Actor"), 150)
    action = _search_field(_("Action"), 64, _("Start of an action, e.g. memory."))
    subject = _text(_("Subject ID"), 256)
    since = TimeField(label=_("From"))
    until = TimeField(label=_("To"), is_end=True)
    narrowing = ("user", "kind", "actor", "action", "subject", "since", "until")
    drop_down = ("user", "kind", "actor", "subject", "since", "until")

    def __init__(self, path: str, query: Mapping[str, str]) -> None:
        super().__init__(path, {**{name: query[name] for name in query}, "actor": shown_part(query.get("actor", ""))})
