from typing import Any

from django.db import migrations, models

from engine import rollup_triggers


def replace(apps: Any, schema_editor: Any) -> None:
    """Triggers that leave a flush of ours alone. Numbers of changes that are not added up yet must not come again."""
    if schema_editor.connection.vendor == "sqlite":
        rollup_triggers.remove(schema_editor)
        rollup_triggers.install(schema_editor)
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM engine_delta")
        [number] = cursor.fetchone()
        rollup_triggers.remove(schema_editor)
        rollup_triggers.install(schema_editor)
        cursor.execute("SELECT setval('engine_delta', %s)", [number])


class Migration(migrations.Migration):
    dependencies = [("engine", "0014_no_index_twice")]
    operations = [
        migrations.RemoveIndex(model_name="hourcount", name="hour_count_empty"),
        migrations.RemoveIndex(model_name="sessioncount", name="session_count_empty"),
        migrations.AddIndex(
            model_name="hourcount",
            index=models.Index(condition=models.Q(("memories__lte", 0)), fields=["id"], name="hour_count_empty"),
        ),
        migrations.AddIndex(
            model_name="sessioncount",
            index=models.Index(condition=models.Q(("memories__lte", 0)), fields=["id"], name="session_count_empty"),
        ),
        migrations.RunPython(replace, migrations.RunPython.noop),
    ]
