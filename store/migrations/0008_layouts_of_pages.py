from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0007_pending_comparison")]

    operations = [
        migrations.AddField(
            model_name="factpage",
            name="layout",
            field=models.BigIntegerField(db_default=1187811388, verbose_name="layout"),
        ),
        migrations.AddField(
            model_name="vectorpage",
            name="layout",
            field=models.BigIntegerField(db_default=2419599141, verbose_name="layout"),
        ),
    ]
