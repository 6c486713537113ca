from django.db import migrations, models

import resources.models
from core.persistence.migration_operations import AddColumn


class Migration(migrations.Migration):
    dependencies = [
        ("resources", "0007_indexes_by_state"),
    ]

    operations = [
        AddColumn("resource", "reading", models.JSONField(default=None, editable=False, help_text="The report on the reading of the file; empty if an older version or a remote read it.", null=True, validators=[resources.models.check_reading], verbose_name="reading")),
    ]
