from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("engine", "0010_memories_by_their_id_alone")]
    operations = [
        migrations.AddIndex(
            model_name="sessioncount",
            index=models.Index(
                fields=["of_agent", "agent_id", "last_ms", "first_ms", "delta"], name="session_count_ends"
            ),
        ),
    ]
