"""Let the ids of senders be as long as user ids."""

from django.db import migrations, models

from core.persistence.migration_operations import WidenText


class Migration(migrations.Migration):
    dependencies = [("store", "0026_indexes_by_expiry")]

    operations = [
        WidenText(
            model_name="memory",
            name="sender_id",
            field=models.CharField(blank=True, max_length=255, verbose_name="sender ID"),
        ),
    ]
