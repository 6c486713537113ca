"""Tell updates by an application from corrections. Revisions that exist already count as corrections."""

from django.db import migrations, models

from core.persistence.migration_operations import AddColumn


class Migration(migrations.Migration):
    dependencies = [("memories", "0009_returned_memories")]

    operations = [
        AddColumn(
            "OverrideRevision",
            "is_update",
            models.BooleanField(
                db_default=False,
                default=False,
                help_text="The former text was right at its time; otherwise it was corrected.",
                verbose_name="is update",
            ),
        ),
    ]
