"""An index of the user alone made SQLite read all attachments of the user for those of a few sessions."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_exporting_and_erasing_users"),
        ("resources", "0002_what_operators_see"),
    ]
    operations = [
        migrations.AlterField(
            model_name="attachment",
            name="user",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="attachments",
                to="accounts.memoryuser",
            ),
        ),
    ]
