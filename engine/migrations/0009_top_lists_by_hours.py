from typing import Any

from django.db import migrations

from engine import rollup_triggers

_ADDED = "span = 1 AND slice IN (3, 4, 5)"


def count_hours(apps: Any, schema_editor: Any) -> None:
    """Triggers that count agents and users by single hours too, and the cells of what is there already."""
    rollup_triggers.remove(schema_editor)
    rollup_triggers.install(schema_editor)
    schema_editor.execute(f"DELETE FROM engine_hourcount WHERE {_ADDED}", params=None)
    schema_editor.execute(rollup_triggers.ADD_HOURS.format(delta=0, sign=1, where=_ADDED), params=None)


class Migration(migrations.Migration):
    dependencies = [("engine", "0008_what_a_model_has_to_read")]
    operations = [migrations.RunPython(count_hours, migrations.RunPython.noop)]
