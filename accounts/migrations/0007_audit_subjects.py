from typing import Any

import django.db.models.deletion
from django.db import migrations, models

_REFERENCE = """
    ALTER TABLE accounts_auditsubject ADD CONSTRAINT audit_subject_of_event FOREIGN KEY (event_id)
    REFERENCES accounts_auditevent (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
"""


def add_reference(apps: Any, schema_editor: Any) -> None:
    """Let PostgreSQL delete the rows of events: processes of the version before delete events without these rows."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(_REFERENCE)


class Migration(migrations.Migration):
    dependencies = (("accounts", "0006_audit_without_subject"),)
    operations = (
        migrations.AddField(
            "auditevent",
            "address",
            models.CharField(blank=True, db_default="", default="", max_length=64, verbose_name="network address"),
        ),
        migrations.AddField(
            "auditevent",
            "client",
            models.CharField(blank=True, db_default="", default="", max_length=200, verbose_name="client"),
        ),
        migrations.AddField(
            "auditevent", "count", models.PositiveIntegerField(db_default=1, default=1, verbose_name="count")
        ),
        migrations.AddField(
            "auditevent", "last_at", models.DateTimeField(blank=True, default=None, null=True, verbose_name="last time")
        ),
        migrations.AddField(
            "auditevent",
            "digest",
            models.CharField(
                blank=True, db_default="", default="", editable=False, max_length=32, verbose_name="digest"
            ),
        ),
        migrations.CreateModel(
            "AuditSubject",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "event",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subjects",
                        to="accounts.auditevent",
                        verbose_name="audit event",
                    ),
                ),
                ("user_id", models.CharField(max_length=64, verbose_name="user ID")),
            ],
            options={
                "verbose_name": "subject of an audit event",
                "verbose_name_plural": "subjects of audit events",
                "default_permissions": ("view",),
                "constraints": [models.UniqueConstraint(fields=("user_id", "event"), name="audit_trail_of_user")],
            },
        ),
        migrations.RunPython(add_reference, migrations.RunPython.noop),
    )
