from django.db import migrations, transaction

from memories.migrations._former_ledger import MEMORIES, RESOURCES, SESSIONS, Tables, fill


def fill_ledger(apps, schema_editor):
    """Add tombstones for what other columns recorded, then set these from all tombstones of a row."""
    database = schema_editor.connection.alias
    models = (
        ("memories", "Tombstone"), ("memories", "Override"), ("store", "Memory"), ("store", "Session"),
        ("resources", "Resource"),
    )
    tables = Tables(*(apps.get_model(*name)._default_manager.using(database).all() for name in models))
    fill(tables)
    targets = ((MEMORIES, tables.memories), (SESSIONS, tables.sessions), (RESOURCES, tables.resources))
    for target, rows in targets:
        for part in target.suspects(rows, tables.tombstones):
            with transaction.atomic(using=database):
                target.refresh(part, tables.tombstones)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("memories", "0005_ledger"),
        ("resources", "0005_state"),
        ("store", "0011_state"),
    ]

    operations = [
        migrations.RunPython(fill_ledger, migrations.RunPython.noop, elidable=True),
    ]
