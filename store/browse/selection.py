"""Which memories are meant: what a list shows, a dashboard counts and a bulk action takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal
from uuid import UUID

from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from store.categories import TABS
from store.derived_memories import HIDDEN_AS
from store.models import Memory
from store.table import visible
from store.types import MemoryType

_SET_ASIDE: Final = Q(origin=Memory.Origin.EXTRACTED, payload__has_key=HIDDEN_AS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions that all hold; None and an empty tuple are no condition. Times are Unix milliseconds:
    `since_ms` ≤ time < `until_ms`; importance lies between both ends, which belong to it.

    For operators: without `user_pk` it spans all users. `in_trash` selects among the memories that are hidden one by
    one instead of among the living: of them those that a person deleted (`hidden_by` user), or those that the gateway
    set aside itself, as superseded or with their source.
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
    since_ms: int | None = None
    until_ms: int | None = None
    in_trash: bool = False
    hidden_by: Literal["user", "gateway"] | None = None

    def wanted_categories(self) -> tuple[str, ...] | None:
        """The categories that tab and choice leave; None for any."""
        if self.tab is None:
            return self.categories or None
        of_tab = TABS.get(self.tab, ())
        return tuple(category for category in of_tab if not self.categories or category in self.categories)

    def as_json(self) -> dict[str, Any]:
        """The conditions that are set, as plain JSON data."""
        given = {name: value for name, value in asdict(self).items() if value not in {None, (), False}}
        return {name: _plain(value) for name, value in given.items()}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Selection:
        """The selection of which `as_json` spoke."""
        fields = dict(given)
        if "user_pk" in fields:
            fields["user_pk"] = UUID(fields["user_pk"])
        return cls(**fields | {"categories": tuple(fields.get("categories", ()))})


def rows_of(selection: Selection) -> QuerySet[Memory]:
    """The selected memories, neither deleted nor mere records, in no order.

    Where a session is named, its index is the one to use.
    """
    if selection.session_id is not None:
        return of_turns(selection).filter(
            **_given(
                session__session_id=selection.session_id,
                session__user_id=selection.user_pk,
                session__app_id=selection.app_id,
                session__project_id=selection.project_id,
            )
        )
    return _shown(selection).filter(
        **_given(
            user_id=selection.user_pk,
            app_id=selection.app_id,
            project_id=selection.project_id,
            category__in=selection.wanted_categories(),
            memory_type=selection.memory_type,
            agent_id=selection.agent_id,
            origin=selection.origin,
        )
    )


def of_turns(selection: Selection) -> QuerySet[Memory]:
    """Of memories whose turn or session is settled otherwise, and with it whose they are, those that are selected.

    No index serves these conditions, so that a database does not take the wrong one.
    """
    names = ("category", "memory_type", "agent_id", "origin")
    plain = {f"plain_{name}": Coalesce(F(name), Value("")) for name in names}
    return (
        _shown(selection)
        .alias(**plain)
        .filter(
            **_given(
                plain_category__in=selection.wanted_categories(),
                plain_memory_type=selection.memory_type,
                plain_agent_id=selection.agent_id,
                plain_origin=selection.origin,
            )
        )
    )


def _shown(selection: Selection) -> QuerySet[Memory]:
    state = {"hidden_at__isnull": not selection.in_trash, "session__hidden_at__isnull": True}
    bounds = _given(
        importance__gte=selection.importance_min,
        importance__lte=selection.importance_max,
        created_at_ms__gte=selection.since_ms,
        created_at_ms__lt=selection.until_ms,
    )
    by = {"user": ~_SET_ASIDE, "gateway": _SET_ASIDE, None: Q()}[selection.hidden_by]
    return visible(Memory.objects.filter(by, **state, **bounds)).order_by()


def _given(**conditions: Any) -> dict[str, Any]:
    return {name: value for name, value in conditions.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
