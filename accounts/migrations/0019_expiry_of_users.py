"""Keep with a user after how many days new memories of a category or tag expire."""

from django.db import migrations, models

from core.persistence.migration_operations import AddColumn


class Migration(migrations.Migration):
    dependencies = [("accounts", "0018_client_documents")]

    operations = [
        AddColumn(
            model_name="memoryuser",
            name="expiry_days",
            field=models.JSONField(
                default=None,
                editable=False,
                help_text="By category or tag, for memories that are stored from then on.",
                null=True,
                verbose_name="days until memories expire",
            ),
        ),
    ]
