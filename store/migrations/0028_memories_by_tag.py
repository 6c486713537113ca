"""Find the memories of all users that have a tag, for the panel's list."""

from django.db import migrations, models

from core.persistence.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("store", "0027_longer_sender_ids")]

    operations = [
        AddIndexOnline(
            "attribute",
            models.Index(fields=["value", "memory"], condition=models.Q(name="tags"), name="attribute_by_tag"),
        )
    ]
