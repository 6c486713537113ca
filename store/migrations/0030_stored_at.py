"""Keep when memories were stored. Of those that are stored already, the time that they are about counts."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0029_incognito_sessions")]

    operations = [
        # Nullable and without a default of the database, so that no row is written.
        migrations.AddField(
            "memory",
            "stored_at_ms",
            models.BigIntegerField(blank=True, default=None, editable=False, null=True, verbose_name="stored at ms"),
        ),
    ]
