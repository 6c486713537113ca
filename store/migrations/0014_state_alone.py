"""Let the state alone say whether a memory or session is deleted, and remove the columns that said so too."""

from django.db import migrations, models
from django.db.models import F
from django.db.models.functions import Coalesce

from core.persistence.migration_operations import require_stopped
from store import rollups
from store.index import schema

_INDEXES = (
    *(
        f"memory_browsed_{name}"
        for name in (
            "time", "category", "user", "user_category", "agent", "agent_category", "session", "origin", "type",
            "turn", "importance",
        )
    ),
    "memory_set_apart",
    "memory_in_trash",
)


def complete_states(apps, schema_editor):
    """Let the state say what only another column says. The time of a deleted session is when it was first hidden."""
    database = schema_editor.connection.alias
    memories, sessions = (apps.get_model("store", name).objects.using(database) for name in ("Memory", "Session"))
    memories.filter(delivery_state="purged").exclude(state="purged").update(state="purged")
    memories.filter(hidden_at__isnull=False, state="live").update(state="trashed")
    purged = sessions.filter(deleted_at__isnull=False)
    purged.update(state="purged", hidden_at=Coalesce(F("hidden_at"), F("deleted_at")))
    sessions.filter(hidden_at__isnull=False, state="live").update(state="trashed")


def remove_triggers(apps, schema_editor):
    """Remove what reads these columns. A later migration creates the triggers again, and counts."""
    rollups.remove(schema_editor)
    schema.remove_word_triggers(schema_editor)


class Migration(migrations.Migration):

    dependencies = [
        ("store", "0013_meanings_of_columns"),
        ("memories", "0007_sources_of_remote_memories"),
        ("operations", "0002_roles"),
        ("remote", "0004_sessions_sent_again"),
    ]

    operations = [
        migrations.RunPython(require_stopped, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(remove_triggers, migrations.RunPython.noop),
        migrations.RunPython(complete_states, migrations.RunPython.noop, elidable=True),
        *(migrations.RemoveIndex("memory", name) for name in _INDEXES),
        migrations.RemoveIndex("session", "session_closed"),
        *(migrations.RenameField(model, "hidden_at", "state_since") for model in ("memory", "session")),
        *(
            migrations.AlterField(
                model,
                "state_since",
                models.DateTimeField(blank=True, editable=False, help_text="When the row got its state; null while it is live.", null=True, verbose_name="state since"),
            )
            for model in ("memory", "session")
        ),
        migrations.RemoveField("session", "deleted_at"),
        *(migrations.RemoveField("memory", name) for name in ("hidden_reason", "superseded_by", "delivery_state")),
    ]
