"""Keep the words of all users in the keyword index."""

from django.db import migrations, models
from django.db.models import Q

from core.persistence.migration_operations import AddIndexOnline
from store.index import schema


def unite(apps, schema_editor):
    schema.unite_words(schema_editor)


def part(apps, schema_editor):
    schema.part_words(schema_editor)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("store", "0019_fewer_indexes"),
    ]

    operations = [
        migrations.RunPython(unite, part),
        migrations.RemoveIndex("memory", "memory_not_indexed"),
        AddIndexOnline("memory", models.Index(fields=["id"], condition=Q(is_indexed=False) & ~Q(state="purged"), name="memory_not_indexed")),
    ]
