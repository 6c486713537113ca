"""Keep a chain of digests over the audit trail, cases of operators, and the levels of queues for alerts."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import accounts.models
from core.persistence.migration_operations import AddColumn


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0021_tenants_and_views"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditBatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("last_event", models.BigIntegerField(verbose_name="last event")),
                ("count", models.PositiveIntegerField(verbose_name="count")),
                ("root", models.CharField(max_length=64, verbose_name="root")),
                ("sealed_at", models.DateTimeField(verbose_name="sealed at")),
                ("is_dropped", models.BooleanField(default=False, verbose_name="events dropped")),
            ],
            options={
                "verbose_name": "batch of audit events",
                "verbose_name_plural": "batches of audit events",
                "ordering": ("-id",),
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="QueueLevel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=40, unique=True, verbose_name="name")),
                ("level", models.PositiveSmallIntegerField(default=0, verbose_name="level")),
            ],
            options={
                "verbose_name": "level of a queue",
                "verbose_name_plural": "levels of queues",
                "ordering": ("name",),
                "default_permissions": ("view",),
            },
        ),
        AddColumn(
            model_name="auditevent",
            name="salt",
            field=models.CharField(
                blank=True,
                db_default="",
                default=accounts.models.new_salt,
                editable=False,
                max_length=32,
                verbose_name="salt",
            ),
        ),
        migrations.CreateModel(
            name="AuditDigest",
            fields=[
                ("event_id", models.BigIntegerField(primary_key=True, serialize=False, verbose_name="event")),
                ("value", models.CharField(max_length=64, verbose_name="digest")),
                ("is_released", models.BooleanField(default=False, verbose_name="released")),
                (
                    "batch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="digests",
                        to="accounts.auditbatch",
                        verbose_name="batch",
                    ),
                ),
            ],
            options={
                "verbose_name": "digest of an audit event",
                "verbose_name_plural": "digests of audit events",
                "ordering": ("-event_id",),
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Case",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "subject_type",
                    models.CharField(
                        choices=[
                            ("memory", "Memory"),
                            ("resource", "Resource"),
                            ("search", "Search"),
                            ("user", "User"),
                            ("webhook", "Webhook"),
                        ],
                        max_length=8,
                        verbose_name="subject type",
                    ),
                ),
                ("subject_id", models.CharField(max_length=64, verbose_name="subject ID")),
                ("note", models.TextField(blank=True, max_length=4000, verbose_name="note")),
                ("is_closed", models.BooleanField(default=False, verbose_name="closed")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                ("updated_at", models.DateTimeField(auto_now=True, verbose_name="updated at")),
                (
                    "assignee",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="cases",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="assignee",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="cases",
                        to="accounts.memoryuser",
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "case",
                "verbose_name_plural": "cases",
                "ordering": ("-updated_at", "-pk"),
                "default_permissions": ("view",),
                "constraints": [models.UniqueConstraint(fields=("subject_type", "subject_id"), name="case_of_subject")],
            },
        ),
    ]
