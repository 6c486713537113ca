"""Index the memories and sessions that expire."""

from django.db import migrations, models

from core.persistence.migration_operations import AddIndexOnline

_EXPIRES = models.Q(expires_at__isnull=False)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("store", "0025_attributes")]

    operations = [
        AddIndexOnline("memory", models.Index(fields=["expires_at"], condition=_EXPIRES, name="memory_expiring")),
        AddIndexOnline("session", models.Index(fields=["expires_at"], condition=_EXPIRES, name="session_expiring")),
    ]
