"""A column with a default and an index on the largest table, as a later version could add them."""

from typing import ClassVar

from django.db import migrations, models

from core.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies: ClassVar = [("store", "0005_leases_of_pending_work")]
    operations: ClassVar = [
        migrations.AddField("memory", "mood", models.CharField(max_length=16, default="", db_default="")),
        AddIndexOnline("memory", models.Index(fields=["user", "mood"], name="memory_of_mood")),
    ]
