from django.db import migrations, models

_ADD = "ALTER TABLE store_memory ADD COLUMN is_covered bool NOT NULL DEFAULT false"
_DROP = "ALTER TABLE store_memory DROP COLUMN is_covered"


class Migration(migrations.Migration):
    """Add the column in place: Django rebuilds the table on SQLite, which the views of the rollups do not allow."""

    dependencies = [("store", "0008_layouts_of_pages")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(_ADD, _DROP)],
            state_operations=[
                migrations.AddField(
                    "memory",
                    "is_covered",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="A derived memory of the remote is shown in its place.",
                        verbose_name="is covered",
                    ),
                )
            ],
        )
    ]
