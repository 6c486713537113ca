"""Find what expires soonest of all users, for the queue of what expires and its list."""

from django.db import migrations, models

from core.persistence.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("store", "0031_incognito_sessions_of_a_user")]

    operations = [
        AddIndexOnline(
            "memory",
            models.Index(
                fields=["expires_at"], condition=models.Q(expires_at__isnull=False), name="memory_by_time_of_expiry"
            ),
        ),
    ]
