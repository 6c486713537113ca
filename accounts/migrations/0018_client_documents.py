"""Keep the address of the document that describes an OAuth client, and when it was read."""

from django.db import migrations, models

from core.persistence.migration_operations import AddColumn


class Migration(migrations.Migration):
    dependencies = [("accounts", "0017_controls")]

    operations = [
        AddColumn(
            model_name="oauthclient",
            name="address",
            field=models.TextField(blank=True, db_default="", default="", verbose_name="address of its document"),
        ),
        AddColumn(
            model_name="oauthclient",
            name="read_at",
            field=models.DateTimeField(null=True, verbose_name="document read at"),
        ),
    ]
