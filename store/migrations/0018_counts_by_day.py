"""Count memories by day, instead of by hours and spans of days."""

from django.db import migrations, models

from core.persistence.migration_operations import require_stopped
from store import rollups


def remove_triggers(apps, schema_editor):
    rollups.remove(schema_editor)


def count(apps, schema_editor):
    rollups.install(schema_editor)
    rollups.recount()


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("store", "0017_residue"),
    ]

    operations = [
        migrations.RunPython(require_stopped, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(remove_triggers, migrations.RunPython.noop),
        migrations.CreateModel(
            name="DayCount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("owner", models.CharField(max_length=32, verbose_name="owner")),
                ("day", models.IntegerField(verbose_name="day")),
                ("agent_id", models.CharField(max_length=64, verbose_name="agent ID")),
                ("category", models.CharField(max_length=40, verbose_name="category")),
                ("origin", models.CharField(max_length=10, verbose_name="origin")),
                ("app_id", models.CharField(max_length=64, verbose_name="app ID")),
                ("project_id", models.CharField(max_length=64, verbose_name="project ID")),
                ("delta", models.BigIntegerField(default=0, verbose_name="delta")),
                ("memories", models.BigIntegerField(verbose_name="memories")),
                ("low", models.BigIntegerField(help_text="Memories with importance below 0.34.", verbose_name="low")),
                ("mid", models.BigIntegerField(verbose_name="mid")),
                ("high", models.BigIntegerField(help_text="Memories with importance of 0.67 or more.", verbose_name="high")),
                ("weight", models.BigIntegerField(help_text="Sum of importance, in millionths.", verbose_name="weight")),
            ],
            options={
                "verbose_name": "day count",
                "verbose_name_plural": "day counts",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["day"], name="day_count_of_all_users"),
                    models.Index(condition=models.Q(("memories__lte", 0)), fields=["id"], name="day_count_empty"),
                    models.Index(condition=models.Q(("delta", 0), _negated=True), fields=["id"], name="day_count_unsettled"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "day", "agent_id", "category", "origin", "app_id", "project_id", "delta"),
                        name="day_count_once",
                    ),
                ],
            },
        ),
        migrations.RunPython(count, remove_triggers),
        migrations.DeleteModel(name="HourCount"),
    ]
