"""A column with a default and an index on the largest table, as a later version could add them."""

from pathlib import Path
from typing import ClassVar

from django.db import migrations, models

from core.persistence.migration_operations import AddIndexOnline
from store import migrations as current

LAST = max(path.stem for path in Path(current.__path__[0]).glob("0*.py"))


class Migration(migrations.Migration):
    atomic = False
    dependencies: ClassVar = [("store", LAST)]
    operations: ClassVar = [
        migrations.AddField("memory", "mood", models.CharField(max_length=16, default="", db_default="")),
        AddIndexOnline("memory", models.Index(fields=["user", "mood"], name="memory_of_mood")),
    ]
