"""Every message that is added wrote each of these indexes, and none was needed: another begins with the same column.

Plain statements: Django would remake the tables on SQLite, which triggers speak of.
"""

import django.db.models.deletion
from django.db import migrations, models

_INDEXES = {
    "engine_session_user_id_a3550137": "engine_session (user_id)",
    "engine_memory_user_id_47058a34": "engine_memory (user_id)",
    "engine_memory_session_id_3cd1f0fd": "engine_memory (session_id)",
}


class Migration(migrations.Migration):
    dependencies = [("engine", "0013_memories_counted_one_by_one")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(f"DROP INDEX IF EXISTS {name}", f"CREATE INDEX {name} ON {columns}")
                for name, columns in _INDEXES.items()
            ],
            state_operations=[
                migrations.AlterField(
                    "session",
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to="accounts.memoryuser",
                    ),
                ),
                migrations.AlterField(
                    "memory",
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memories",
                        to="accounts.memoryuser",
                    ),
                ),
                migrations.AlterField(
                    "memory",
                    "session",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memories",
                        to="engine.session",
                    ),
                ),
            ],
        )
    ]
