"""Keep with a user the name, e-mail address, labels and notes by which operators know the person."""

from django.db import migrations, models

from core.persistence.migration_operations import AddColumn


class Migration(migrations.Migration):
    dependencies = [("accounts", "0015_portal_links")]

    operations = [
        AddColumn(
            model_name="memoryuser",
            name=name,
            field=field,
        )
        for name, field in (
            ("name", models.CharField(blank=True, db_default="", default="", max_length=200, verbose_name="name")),
            ("email", models.CharField(blank=True, db_default="", default="", max_length=254, verbose_name="e-mail")),
            (
                "labels",
                models.CharField(
                    blank=True,
                    db_default="",
                    default="",
                    help_text="Separated by commas.",
                    max_length=500,
                    verbose_name="labels",
                ),
            ),
            ("notes", models.TextField(blank=True, db_default="", default="", verbose_name="notes")),
        )
    ]
