"""Keep tags and metadata of memories for filters, and the digests of ids that applications gave."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0024_token_vectors"), ("accounts", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Attribute",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("owner", models.CharField(max_length=16, verbose_name="owner")),
                ("name", models.CharField(max_length=320, verbose_name="name")),
                ("value", models.BinaryField(verbose_name="value")),
                (
                    "memory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="store.memory",
                        verbose_name="memory",
                    ),
                ),
            ],
            options={
                "verbose_name": "attribute",
                "verbose_name_plural": "attributes",
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name", "value", "memory"), name="attribute_of_one_memory")
                ],
            },
        ),
        migrations.CreateModel(
            name="ExternalId",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("app_id", models.CharField(max_length=64, verbose_name="app ID")),
                ("project_id", models.CharField(max_length=64, verbose_name="project ID")),
                ("application", models.CharField(blank=True, max_length=64, verbose_name="application")),
                ("digest", models.CharField(max_length=64, verbose_name="digest")),
                ("memory_id", models.CharField(max_length=256, verbose_name="memory ID")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.memoryuser",
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "external ID",
                "verbose_name_plural": "external IDs",
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "app_id", "project_id", "application", "digest"),
                        name="external_id_of_one_memory",
                    )
                ],
            },
        ),
    ]
