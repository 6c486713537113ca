from django.db import migrations, models
from django.db.models import Q

from core.persistence.migration_operations import AddIndexOnline

_LIVE = Q(state="live")
_BROWSED_BY = {
    "time": [],
    "category": ["category"],
    "user": ["user"],
    "user_category": ["user", "category"],
    "agent": ["agent_id"],
    "agent_category": ["agent_id", "category"],
    "session": ["session"],
    "origin": ["origin"],
    "type": ["memory_type"],
    "turn": ["batch_id"],
}


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("store", "0014_state_alone"),
    ]

    operations = [
        *(
            AddIndexOnline("memory", models.Index(fields=[*fields, "created_at_ms", "id"], condition=_LIVE, name=f"memory_browsed_{name}"))
            for name, fields in _BROWSED_BY.items()
        ),
        AddIndexOnline("memory", models.Index(fields=["category", "created_at_ms", "id", "importance"], condition=_LIVE & Q(importance__isnull=False), name="memory_browsed_importance")),
        AddIndexOnline("memory", models.Index(fields=["created_at_ms", "id"], condition=~_LIVE, name="memory_in_trash")),
        AddIndexOnline("memory", models.Index(fields=["user", "app_id", "project_id"], condition=Q(is_indexed=True) & (~_LIVE | Q(memory_type="unprocessed_message") | Q(memory_type="profile")), name="memory_set_apart")),
        AddIndexOnline("session", models.Index(fields=["user", "app_id", "project_id"], condition=~_LIVE, name="session_closed")),
    ]
