"""Tell PostgreSQL which categories occur with which agents: it reads all memories where it expects a pair that is not there."""

from django.db import migrations


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("CREATE STATISTICS store_memory_agent_category (mcv) ON agent_id, category FROM store_memory")
        schema_editor.execute("ANALYZE store_memory")


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP STATISTICS store_memory_agent_category")


class Migration(migrations.Migration):

    dependencies = [
        ("store", "0020_words_of_keywords"),
    ]

    operations = [
        migrations.RunPython(create, remove),
    ]
