from django.db import migrations, models

from core.persistence.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    """Find withheld entries by an index."""

    atomic = False
    dependencies = [("remote", "0002_entries_of_messages")]

    operations = [
        AddIndexOnline(
            "outboxentry",
            models.Index(condition=models.Q(("state", "withheld")), fields=["base_url"], name="outbox_withheld"),
        ),
    ]
