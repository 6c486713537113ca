from django.db import migrations, models

from core.persistence.migration_operations import AddColumn


class Migration(migrations.Migration):

    dependencies = [
        ("webhooks", "0003_leases"),
    ]

    operations = [
        AddColumn(
            model_name="webhook",
            name="lease_holder",
            field=models.CharField(blank=True, db_default="", default="", max_length=128, verbose_name="lease holder"),
        ),
        AddColumn(
            model_name="webhook",
            name="leased_until",
            field=models.DateTimeField(blank=True, null=True, verbose_name="leased until"),
        ),
    ]
