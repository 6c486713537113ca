"""Store what an API key may do, and the application and the agent to which it is bound. Empty: as before."""

from django.db import migrations, models

from core.persistence.migration_operations import AddColumn


class Migration(migrations.Migration):
    dependencies = [("accounts", "0012_longer_user_ids")]

    operations = [
        AddColumn(
            model_name="userkey",
            name="scopes",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="Granted permissions, separated by spaces. Empty: all.",
                max_length=100,
                verbose_name="scopes",
            ),
        ),
        *(
            AddColumn(
                model_name="userkey",
                name=name,
                field=models.CharField(
                    blank=True,
                    db_default="",
                    default="",
                    editable=False,
                    help_text=help_text,
                    max_length=64,
                    verbose_name=label,
                ),
            )
            for name, label, help_text in (
                ("app_id", "application", "The only application whose data the key reads and writes. Empty: all."),
                ("agent_id", "agent", "The only agent as which the key reads and writes. Empty: all."),
            )
        ),
    ]
