from typing import Any

from django.db import migrations, models

from engine import rollup_triggers


def remove(apps: Any, schema_editor: Any) -> None:
    rollup_triggers.remove(schema_editor)


def install(apps: Any, schema_editor: Any) -> None:
    rollup_triggers.install(schema_editor)


class Migration(migrations.Migration):
    """The index that keeps ids unique begins with the id, so that it also finds one whose owner is not known.

    SQLite copies the table twice: half a minute for each million memories.
    """

    dependencies = [("engine", "0009_top_lists_by_hours")]
    operations = [
        migrations.RunPython(remove, install),
        migrations.RemoveConstraint(model_name="memory", name="memory_of_one_user"),
        migrations.AddConstraint(
            model_name="memory",
            constraint=models.UniqueConstraint(
                fields=["memory_id", "user", "app_id", "project_id"], name="memory_of_one_user"
            ),
        ),
        migrations.RunPython(install, remove),
    ]
