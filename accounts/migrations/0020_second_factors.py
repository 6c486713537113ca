"""Keep the second factors of operators."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0019_expiry_of_users"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SecondFactor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "operator",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="second_factor",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="operator",
                    ),
                ),
                ("sealed_secret", models.CharField(editable=False, max_length=255, verbose_name="sealed secret")),
                ("last_step", models.BigIntegerField(editable=False, verbose_name="last time step")),
                (
                    "recovery_digests",
                    models.JSONField(editable=False, verbose_name="digests of the recovery codes"),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
            ],
            options={
                "verbose_name": "second factor",
                "verbose_name_plural": "second factors",
                "default_permissions": ("view",),
            },
        ),
    ]
