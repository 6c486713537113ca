"""Leave out the indexes that no page needs, and keep those of types and origins for the rare ones."""

from django.db import migrations, models
from django.db.models import Q

from core.persistence.migration_operations import AddIndexOnline

_LIVE = Q(state="live")
_ADDED = (
    models.Index(fields=["user", "created_at_ms", "id"], name="memory_of_user"),
    models.Index(fields=["origin", "created_at_ms", "id"], condition=_LIVE & ~Q(origin="embedded"), name="memory_of_origin"),
    models.Index(fields=["memory_type", "created_at_ms", "id"], condition=_LIVE & ~Q(memory_type="episode"), name="memory_of_type"),
)
_REMOVED = (
    "memory_by_time",
    "memory_browsed_user",
    "memory_browsed_user_category",
    "memory_browsed_session",
    "memory_browsed_origin",
    "memory_browsed_type",
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("store", "0018_counts_by_day"),
    ]

    operations = [
        *(AddIndexOnline("memory", index) for index in _ADDED),
        *(migrations.RemoveIndex("memory", name) for name in _REMOVED),
    ]
