"""The selection of memories that a list shows, a dashboard counts and a bulk action changes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal, Self
from uuid import UUID

from django.db import connection
from django.db.models import Count, F, Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts import tenants
from accounts.models import MemoryUser
from accounts.tenants import Tenants
from core.times import from_ms
from store import attributes, cover
from store.browse import word_condition
from store.categories import TABS
from store.ledger import Override
from store.models import IN_LIVE_SESSION, NOT_INCOGNITO, Memory, State
from store.states import IS_IN_TRASH
from store.table import visible
from store.text.instructions import PATTERN, WORDS
from store.types import MemoryType

Mark = Literal["edited", "covered", "expiring", "instruction", "duplicate", "superseded", "expired", "replaced"]
EXPIRES_SOON: Final = timedelta(days=7)
_STATES: Final = {"superseded": State.SUPERSEDED, "expired": State.EXPIRED}
_HIDDEN_BY: Final = {"user": Q(IS_IN_TRASH), "gateway": ~Q(IS_IN_TRASH), None: Q()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions that memories must all meet; None and () are none.

    Times are Unix milliseconds: `since_ms` ≤ time < `until_ms`; bounds of importance are inclusive. `in_trash` selects
    hidden memories of sessions that are not hidden: those that a user deleted (`hidden_by` user), or that the gateway
    hid. `words` are terms (`store.text.terms`); a memory must contain all of
    them. `hidden_since_ms` ≤ time of hiding < `hidden_until_ms`. `is_shown` excludes what `store.cover` hides.
    `tenants`: by default those to which the operator is limited.
    `mark`: see `_MARKS`; `duplicate` is a text that the user of the selection has twice, `replaced` one of `rows`.
    """

    user_pk: UUID | None = None
    app_id: str | None = None
    project_id: str | None = None
    tab: str | None = None
    categories: tuple[str, ...] = ()
    memory_type: MemoryType | None = None
    agent_id: str | None = None
    session_id: str | None = None
    origin: str | None = None
    importance_min: float | None = None
    importance_max: float | None = None
    tag: str | None = None
    words: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    in_trash: bool = False
    hidden_by: Literal["user", "gateway"] | None = None
    hidden_since_ms: int | None = None
    hidden_until_ms: int | None = None
    is_shown: bool = False
    mark: Mark | None = None
    rows: tuple[int, ...] = ()
    tenants: Tenants = field(default_factory=tenants.current)

    @property
    def is_of_live(self) -> bool:
        """Return True if the memories are live, so that a change can include them."""
        return not self.in_trash and self.mark not in _STATES

    def wanted_categories(self) -> tuple[str, ...] | None:
        """Return the categories that both `tab` and `categories` allow; None for any."""
        if self.tab is None:
            return self.categories or None
        of_tab = TABS.get(self.tab, ())
        return tuple(category for category in of_tab if not self.categories or category in self.categories)

    def as_json(self) -> dict[str, Any]:
        """Return the conditions that are set, as plain JSON data."""
        given = {name: value for name, value in asdict(self).items() if value not in {None, (), False}}
        return {name: _as_json_value(value) for name, value in given.items()}

    def as_record(self) -> dict[str, Any]:
        """Return the conditions for the audit trail: of words, rows and a tag only their number."""
        counted = {"words": len(self.words), "rows": len(self.rows), "tag": int(self.tag is not None)}
        return self.as_json() | {name: number for name, number in counted.items() if number}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Return the selection from the data that `as_json` returned."""
        fields = dict(given)
        if "user_pk" in fields:
            fields["user_pk"] = UUID(fields["user_pk"])
        lists = {name: tuple(fields.get(name, ())) for name in ("categories", "words", "rows")}
        if "tenants" in fields:
            lists["tenants"] = tuple(fields["tenants"])
        return cls(**fields | lists)


def rows_of(selection: Selection, *, begins_with_words: bool | None = None) -> QuerySet[Memory]:
    """Return the selected memories, unordered, without deleted ones and settled journal entries.

    If a session is named, the index of sessions is used; if `begins_with_words`, that of words (None: as for a page).
    """
    if begins_with_words is None:
        begins_with_words = word_condition.come_first(selection.words)
    of = {"user_id": selection.user_pk, "app_id": selection.app_id, "project_id": selection.project_id}
    if selection.session_id is not None:
        of_session = {f"session__{name}": value for name, value in of.items()}
        return unindexed_rows_of(selection).filter(
            **_without_none(session__session_id=selection.session_id, **of_session)
        )
    if begins_with_words:
        return unindexed_rows_of(selection, begins_with_words=True).filter(**_without_none(**of))
    return _shown(selection).filter(
        *conditions_of_rare(selection),
        **_without_none(
            category__in=selection.wanted_categories(),
            memory_type=selection.memory_type,
            agent_id=selection.agent_id,
            origin=selection.origin,
            **of,
        ),
    )


def conditions_of_rare(selection: Selection) -> list[Q]:
    """Return conditions that follow from others, by which the database knows that it may use an index of rare rows."""
    common = {"memory_type": Memory.Type.EPISODE, "origin": Memory.Origin.EMBEDDED}
    return [~Q(**{name: value}) for name, value in common.items() if getattr(selection, name) not in {None, value}]


def unindexed_rows_of(selection: Selection, *, begins_with_words: bool = False) -> QuerySet[Memory]:
    """Return the selected memories with conditions that use no index.

    For a caller that restricts them to turns or a session, whose index the database should use.
    """
    names = ("category", "memory_type", "agent_id", "origin")
    unindexed = {f"unindexed_{name}": Coalesce(F(name), Value("")) for name in names}
    return (
        _shown(selection, begins_with_words=begins_with_words)
        .alias(**unindexed)
        .filter(
            **_without_none(
                unindexed_category__in=selection.wanted_categories(),
                unindexed_memory_type=selection.memory_type,
                unindexed_agent_id=selection.agent_id,
                unindexed_origin=selection.origin,
            )
        )
    )


def _shown(selection: Selection, *, begins_with_words: bool = False) -> QuerySet[Memory]:
    is_live = Q(state=_STATES.get(selection.mark or "", State.LIVE))
    state = IN_LIVE_SESSION & NOT_INCOGNITO & (~is_live if selection.in_trash else is_live)
    if selection.mark is not None:
        state &= _MARKS[selection.mark](selection)
    bounds = _without_none(
        importance__gte=selection.importance_min,
        importance__lte=selection.importance_max,
        created_at_ms__gte=selection.since_ms,
        created_at_ms__lt=selection.until_ms,
        state_since__gte=None if selection.hidden_since_ms is None else from_ms(selection.hidden_since_ms),
        state_since__lt=None if selection.hidden_until_ms is None else from_ms(selection.hidden_until_ms),
    )
    shown = visible(Memory.objects.filter(state, _HIDDEN_BY[selection.hidden_by], **bounds)).order_by()
    if selection.tenants is not None:
        shown = shown.filter(user__in=MemoryUser.objects.filter(tenant__in=selection.tenants))
    if selection.tag is not None:
        shown = shown.filter(pk__in=attributes.holding_tag(selection.tag))
    if selection.is_shown:
        shown = shown.exclude(cover.is_left_out())
    if selection.words:
        shown = shown.filter(
            word_condition.in_texts(selection.words),
            word_condition.condition(selection.words, comes_first=begins_with_words),
        )
    return shown


def _is_expiring(_selection: Selection) -> Q:
    soon = Memory.objects.filter(state=State.LIVE, expires_at__lt=timezone.now() + EXPIRES_SOON)
    return Q(pk__in=soon.values("pk"))


def _is_instruction(_selection: Selection) -> Q:
    # In PostgreSQL, \b is another character.
    pattern = PATTERN.replace(r"\b", r"\y") if connection.vendor == "postgresql" else PATTERN
    written = Memory.objects.filter(pk__in=word_condition.holding_any(WORDS), text__iregex=pattern)
    return Q(pk__in=written.values("pk"))


def _is_duplicate(selection: Selection) -> Q:
    of_user = Memory.objects.filter(user=selection.user_pk, state=State.LIVE).exclude(text="")
    texts = of_user.order_by().values("text").annotate(copies=Count("pk")).filter(copies__gt=1)
    return Q(text__in=texts.values("text"))


def _is_edited(_selection: Selection) -> Q:
    return Q(pk__in=Override.objects.filter(undone_at__isnull=True).values("row_id"))


# Look-ups by key make the database begin with the rare rows, and states tell it that it may use the index of the trash.
_MARKS: Final[Mapping[str, Callable[[Selection], Q]]] = {
    "superseded": lambda _: ~Q(state=State.LIVE),
    "expired": lambda _: ~Q(state=State.LIVE),
    "covered": lambda _: Q(is_covered=True),
    "expiring": _is_expiring,
    "instruction": _is_instruction,
    "duplicate": _is_duplicate,
    "edited": _is_edited,
    "replaced": lambda selection: Q(pk__in=selection.rows),
}


def _without_none(**conditions: Any) -> dict[str, Any]:
    return {name: value for name, value in conditions.items() if value is not None}


def _as_json_value(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
