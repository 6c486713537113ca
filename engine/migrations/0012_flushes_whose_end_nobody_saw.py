from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("engine", "0011_sessions_by_their_ends")]
    operations = [
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(searchable_at__isnull=True, flushed_at__isnull=False),
                fields=["flushed_at"],
                name="session_flush_open",
            ),
        ),
    ]
