from django.db import migrations

from store import rollups
from store.index import schema


def install_triggers(apps, schema_editor):
    """Create the triggers that read the state, and count, because nothing was counted meanwhile."""
    rollups.install(schema_editor)
    schema.install_word_triggers(schema_editor)
    rollups.recount()


def remove_triggers(apps, schema_editor):
    rollups.remove(schema_editor)
    schema.remove_word_triggers(schema_editor)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("store", "0015_indexes_by_state"),
    ]

    operations = [
        migrations.RunPython(install_triggers, remove_triggers),
    ]
