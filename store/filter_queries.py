"""Apply conditions of filters to a list of memories, as a condition of a query."""

from typing import Any, Final

from django.db import connection
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, When
from django.db.models.functions import Collate, Substr

from core.ids import resource_session_id
from store import attributes, filters
from store.filters import Condition, Filter, Group, Not
from store.index.fact_pages import ROLES
from store.models import Session, owned_by
from store.search.records import RECORD_TYPE
from store.types import Owner

_NOTHING: Final = Q(pk__in=[])
_COLUMNS: Final = {
    "timestamp": "created_at_ms",
    "sender_id": "sender_id",
    "agent_id": "agent_id",
    "category": "category",
    "importance": "importance",
}


def query_of(owner: Owner, tree: Any) -> Q:
    """Return the condition of the owner's memories that meet the filters. Raises: `InvalidInput`."""
    return _query(owner, filters.parse(tree))


def _query(owner: Owner, condition: Filter) -> Q:
    if isinstance(condition, Not):
        return ~_query(owner, condition.part)
    if isinstance(condition, Group):
        found = Q() if condition.must is all else _NOTHING
        for part in condition.parts:
            query = _query(owner, part)
            found = found & query if condition.must is all else found | query
        return found
    if not isinstance(condition, Condition):
        raise TypeError(condition)
    return _of_condition(owner, condition)


def _of_condition(owner: Owner, condition: Condition) -> Q:
    field = condition.field
    if field in filters.OF_SESSIONS:
        return Q(Exists(_sessions(owner, condition).filter(pk=OuterRef("session_id"))))
    if field == "type":
        return Q() if condition.compares(RECORD_TYPE) else _NOTHING
    if field == "role":
        roles = [role for role in ROLES if condition.compares(role)]
        return Q(payload__role__isnull=False, payload__role__in=roles)  # the first also for a negation
    if field in _COLUMNS:
        return _compared(_COLUMNS[field], condition)
    return Q(Exists(attributes.matching(owner, condition).filter(memory=OuterRef("pk"))))


def _compared(column: str, condition: Condition) -> Q:
    if condition.operator == "ne":
        return ~Q(**{column: condition.value})
    lookup = {"eq": "exact"}.get(condition.operator, condition.operator)
    value = sorted(condition.value) if condition.operator == "in" else condition.value
    return Q(**{f"{column}__{lookup}": value})


def _sessions(owner: Owner, condition: Condition) -> QuerySet[Session]:
    """Return the owner's sessions that a condition on the session or the parent of a memory allows."""
    found = Session.objects.filter(owned_by(owner))
    is_resource = Q(kind=Session.Kind.RESOURCE)
    if condition.field == "parent_type":
        resources = is_resource if condition.compares("resource") else _NOTHING
        return found.filter(resources | ~is_resource if condition.compares("session") else resources)
    name: Any = F("session_id")
    if condition.field == "parent_id":
        rest = Substr("session_id", len(resource_session_id(owner.user_id, "")) + 1)
        name = Case(When(is_resource, then=rest), default=name)
    # By code points, as searches compare.
    by_code = "C" if connection.vendor == "postgresql" else "BINARY"
    return found.alias(compared=Collate(name, by_code)).filter(_compared("compared", condition))
