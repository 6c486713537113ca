from django.db import migrations, models

from core.persistence.migration_operations import AddColumn, AddIndexOnline


class Migration(migrations.Migration):
    """Let messages be replaced by edited memories of a remote."""

    atomic = False
    dependencies = [("store", "0011_state")]

    operations = [
        AddColumn("memory", "is_replaced", models.BooleanField(db_default=False, default=False, help_text="A user edited that memory, so it is shown without the remote too.", verbose_name="is replaced")),
        AddIndexOnline(
            "memory",
            models.Index(condition=models.Q(("is_replaced", True)), fields=["session"], name="memory_replaced"),
        ),
        migrations.AlterField(
            "memory",
            "hidden_reason",
            models.CharField(blank=True, choices=[("superseded", "Superseded"), ("with_source", "Source deleted"), ("reworded", "Source edited"), ("with_derived", "Derived memory deleted")], help_text="Empty if not hidden, or if deleted by a user.", max_length=12, verbose_name="hidden reason"),
        ),
    ]
