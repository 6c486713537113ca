"""Keep with a user the tenant, the organization or team that the person belongs to."""

from django.db import migrations, models

from core.persistence.migration_operations import AddColumn, AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("accounts", "0020_second_factors")]

    operations = [
        AddColumn(
            model_name="memoryuser",
            name="tenant",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The organization or team that the person belongs to.",
                max_length=64,
                verbose_name="tenant",
            ),
        ),
        AddIndexOnline(
            "memoryuser",
            models.Index(
                fields=["tenant"], condition=models.Q(("tenant", ""), _negated=True), name="user_of_tenant"
            ),
        ),
    ]
