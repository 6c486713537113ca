"""The state of a resource, as its open tombstone says; see `store.states`."""

from collections.abc import Sequence
from typing import Any, Final

from django.db.models import Q

from store.models import State
from store.states import Columns, Target


def columns_of_resource(row: Any, tombstones: Sequence[Any]) -> Columns:
    """Return the columns of a resource."""
    if row.state == State.PURGED:
        return {"state": State.PURGED}
    if not tombstones:
        return {"state": State.LIVE, "state_since": None}
    return {"state": State.TRASHED, "state_since": tombstones[0].created_at}


RESOURCES: Final = Target(
    "resource_id",
    ~Q(resource_id=""),
    columns_of_resource,
    ("state", "state_since"),
)
