"""Let the deletion of a user or session refuse while it has memories, instead of deleting them: no statement."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0010_authority"), ("store", "0022_tokenizers_of_owners")]

    operations = [
        migrations.AlterField(
            model_name="memory",
            name="session",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="memories",
                to="store.session",
                verbose_name="session",
            ),
        ),
        migrations.AlterField(
            model_name="memory",
            name="user",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="memories",
                to="accounts.memoryuser",
                verbose_name="user",
            ),
        ),
    ]
