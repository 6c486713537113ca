"""Keep with each user when the next memory or session may expire, so that every read can compare it."""

from django.db import migrations, models

from core.persistence.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("accounts", "0013_scopes_of_keys")]

    operations = [
        migrations.AddField(
            model_name="memoryuser",
            name="next_expiry_at",
            field=models.DateTimeField(
                editable=False,
                help_text="No memory or session of the user expires before.",
                null=True,
                verbose_name="next expiry at",
            ),
        ),
        AddIndexOnline(
            "memoryuser",
            models.Index(
                fields=["next_expiry_at"],
                condition=models.Q(next_expiry_at__isnull=False),
                name="user_by_next_expiry",
            ),
        ),
    ]
