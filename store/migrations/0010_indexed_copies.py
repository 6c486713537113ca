from django.db import migrations, models

from core.persistence.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    """Let copies of a remote's memories wait for the keyword index too."""

    atomic = False
    dependencies = [("store", "0009_covered")]

    operations = [
        migrations.RemoveIndex("memory", name="memory_not_indexed"),
        AddIndexOnline(
            "memory",
            models.Index(
                condition=models.Q(
                    ("is_indexed", False),
                    models.Q(models.Q(("origin", "upstream"), _negated=True), ("memory_type", "episode"), _connector="OR"),
                ),
                fields=["id"],
                name="memory_not_indexed",
            ),
        ),
        AddIndexOnline(
            "memory",
            models.Index(condition=models.Q(("is_covered", True)), fields=["user", "session"], name="memory_covered"),
        ),
    ]
