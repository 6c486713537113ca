"""The state of a resource, and the former columns, as its open tombstone says; see `store.states`."""

from collections.abc import Sequence
from typing import Any, Final

from django.db.models import Q

from resources.models import Resource
from store.models import State
from store.states import Columns, Target

_Status = Resource.Status


def columns_of_resource(row: Any, tombstones: Sequence[Any]) -> Columns:
    """Return the columns of a resource. An ingestion that the deletion interrupted is pending again."""
    is_deleted = row.status == _Status.DELETED
    if is_deleted and not row.former_status:
        return {"state": State.PURGED}
    if not tombstones:
        return {
            "state": State.LIVE,
            "deleted_at": None,
            "status": row.former_status if is_deleted else row.status,
            "former_status": "",
        }
    interrupted = row.status == _Status.INGESTING
    return {
        "state": State.TRASHED,
        "deleted_at": tombstones[0].created_at,
        "status": _Status.DELETED,
        "former_status": row.former_status if is_deleted else _Status.PENDING if interrupted else row.status,
    }


RESOURCES: Final = Target(
    "resource_id",
    ~Q(resource_id=""),
    columns_of_resource,
    ("status", "former_status", "deleted_at", "state"),
    Q(status=_Status.DELETED) | Q(deleted_at__isnull=False) | ~Q(former_status=""),
)
