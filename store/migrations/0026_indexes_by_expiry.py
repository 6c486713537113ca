"""Find what of a user expires next."""

from django.db import migrations, models

from core.persistence.migration_operations import AddIndexOnline


def _index(name):
    return models.Index(
        fields=["user", "state", "expires_at"], condition=models.Q(expires_at__isnull=False), name=name
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("store", "0025_attributes"), ("accounts", "0014_next_expiry")]

    operations = [
        AddIndexOnline("memory", _index("memory_by_expiry")),
        AddIndexOnline("session", _index("session_by_expiry")),
    ]
