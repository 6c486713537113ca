from django.db import migrations, models
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, JSONObject

from core.persistence.migration_operations import AddColumn, require_stopped


def move_into_options(apps, schema_editor):
    searches = apps.get_model("memories", "LoggedSearch").objects.using(schema_editor.connection.alias)
    searches.filter(radius__isnull=False).update(options=JSONObject(radius="radius"))


def move_back(apps, schema_editor):
    searches = apps.get_model("memories", "LoggedSearch").objects.using(schema_editor.connection.alias)
    searches.filter(options__has_key="radius").update(
        radius=Cast(KeyTextTransform("radius", "options"), models.FloatField())
    )


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0007_sources_of_remote_memories"),
        ("operations", "0002_roles"),
    ]

    operations = [
        migrations.RunPython(require_stopped, migrations.RunPython.noop, elidable=True),
        AddColumn(
            "LoggedSearch",
            "options",
            models.JSONField(blank=True, db_default={}, default=dict, verbose_name="options"),
        ),
        migrations.RunPython(move_into_options, move_back),
        migrations.RemoveField("LoggedSearch", "radius"),
    ]
