"""Keep until when a session is incognito."""

from django.db import migrations, models

from core.persistence.migration_operations import AddColumn, AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("store", "0028_memories_by_tag")]

    operations = [
        AddColumn(
            "session",
            "incognito_until",
            models.DateTimeField(
                blank=True,
                default=None,
                help_text="When an incognito session ends; null for other sessions.",
                null=True,
                verbose_name="incognito until",
            ),
        ),
        AddIndexOnline(
            "session",
            models.Index(
                fields=["incognito_until"],
                condition=models.Q(incognito_until__isnull=False),
                name="session_incognito",
            ),
        ),
    ]
