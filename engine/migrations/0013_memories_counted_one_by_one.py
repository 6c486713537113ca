from typing import Any

from django.db import migrations

from engine import rollup_triggers


def replace(apps: Any, schema_editor: Any) -> None:
    """On SQLite triggers that take one memory's cells as they are, without grouping them."""
    if schema_editor.connection.vendor == "sqlite":
        rollup_triggers.remove(schema_editor)
        rollup_triggers.install(schema_editor)


class Migration(migrations.Migration):
    dependencies = [("engine", "0012_flushes_whose_end_nobody_saw")]
    operations = [migrations.RunPython(replace, migrations.RunPython.noop)]
