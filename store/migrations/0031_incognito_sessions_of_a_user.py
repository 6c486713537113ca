"""Find the incognito sessions of a user, whose texts other sessions do not find."""

from django.db import migrations, models

from core.persistence.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("store", "0030_stored_at")]

    operations = [
        AddIndexOnline(
            "session",
            models.Index(
                condition=models.Q(("incognito_until__isnull", False), models.Q(("state", "purged"), _negated=True)),
                fields=["user", "app_id", "project_id"],
                name="session_incognito_of",
            ),
        ),
    ]
