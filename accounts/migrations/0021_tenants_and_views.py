"""Keep the tenants of users and operators, and the lists that operators save under a name."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from core.persistence.migration_operations import AddColumn, AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("accounts", "0020_second_factors"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

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
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=60, verbose_name="name")),
                (
                    "page",
                    models.CharField(
                        choices=[
                            ("memories", "Memories"),
                            ("resources", "Resources"),
                            ("users", "Users"),
                            ("searches", "Search log"),
                        ],
                        max_length=10,
                        verbose_name="page",
                    ),
                ),
                ("query", models.TextField(verbose_name="query")),
                ("is_shared", models.BooleanField(default=False, verbose_name="shared")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                (
                    "operator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_views",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="operator",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.memoryuser",
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "saved view",
                "verbose_name_plural": "saved views",
                "ordering": ("name", "pk"),
                "default_permissions": ("view",),
                "constraints": [models.UniqueConstraint(fields=("operator", "name"), name="saved_view_of_operator")],
            },
        ),
        migrations.CreateModel(
            name="OperatorTenant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tenant", models.CharField(max_length=64, verbose_name="tenant")),
                (
                    "operator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tenants",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="operator",
                    ),
                ),
            ],
            options={
                "verbose_name": "tenant of an operator",
                "verbose_name_plural": "tenants of operators",
                "ordering": ("operator", "tenant"),
                "default_permissions": ("view",),
                "constraints": [models.UniqueConstraint(fields=("operator", "tenant"), name="tenant_of_operator")],
            },
        ),
    ]
