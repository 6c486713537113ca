"""Let user ids have 255 characters, as identity providers give them."""

from django.db import migrations, models

from core.persistence.migration_operations import WidenText


class Migration(migrations.Migration):
    dependencies = [("accounts", "0011_remote_in_erasures")]

    operations = [
        WidenText(
            model_name="memoryuser",
            name="user_id",
            field=models.CharField(
                help_text="Chosen by the application.", max_length=255, unique=True, verbose_name="user ID"
            ),
        ),
        WidenText(
            model_name="auditevent",
            name="user_id",
            field=models.CharField(blank=True, max_length=255, verbose_name="user ID"),
        ),
        WidenText(
            model_name="auditsubject",
            name="user_id",
            field=models.CharField(max_length=255, verbose_name="user ID"),
        ),
    ]
