import django.utils.timezone
from django.db import migrations, models
from django.db.models import F, Q

from core.persistence.migration_operations import require_stopped


def move_deletions_to_state(apps, schema_editor):
    """Keep what the former columns say and `state` does not: the status before a deletion, and a pending cleanup.

    A purge forgot the status of its resource, which no answer or page shows: `failed` is a status without pending work.
    Each row is updated once: after a second update, PostgreSQL would not alter the table in the same transaction.
    """
    resources = apps.get_model("resources", "Resource").objects.using(schema_editor.connection.alias)
    resources.filter(state="trashed").update(status=F("former_status"))
    purged = resources.filter(state="purged")
    purged.filter(cleanup_pending=False).update(status="failed", retry_at=None)
    purged.filter(cleanup_pending=True).update(status="failed", retry_at=django.utils.timezone.now())


def move_deletions_back(apps, schema_editor):
    resources = apps.get_model("resources", "Resource").objects.using(schema_editor.connection.alias)
    resources.filter(state="trashed").update(former_status=F("status"), status="deleted")
    purged = resources.filter(state="purged")
    purged.filter(retry_at__isnull=True).update(status="deleted")
    purged.filter(retry_at__isnull=False).update(status="deleted", cleanup_pending=True, retry_at=None)


class Migration(migrations.Migration):

    dependencies = [
        ("resources", "0005_state"),
        ("memories", "0006_fill_ledger"),
        ("operations", "0002_roles"),
    ]

    operations = [
        migrations.RunPython(require_stopped, migrations.RunPython.noop, elidable=True),
        migrations.RemoveConstraint("resource", "one_live_resource_per_content"),
        migrations.RemoveConstraint("resource", "resource_in_trash_is_deleted"),
        migrations.RemoveIndex("resource", "resource_unfinished"),
        migrations.RemoveIndex("resource", "resource_cleanup_pending"),
        migrations.RemoveIndex("resource", "resource_in_trash"),
        migrations.RemoveIndex("resource", "resource_waiting"),
        migrations.RunPython(move_deletions_to_state, move_deletions_back, elidable=True),
        migrations.RemoveField("resource", "former_status"),
        migrations.RemoveField("resource", "cleanup_pending"),
        migrations.RenameField("resource", "deleted_at", "state_since"),
        migrations.AlterField("resource", "state_since", models.DateTimeField(blank=True, editable=False, help_text='When the row got its state; null while it is live.', null=True, verbose_name='state since')),
        migrations.AlterField("resource", "retry_at", models.DateTimeField(blank=True, help_text='When its failed ingestion is retried; once purged, when its file and engine data are removed.', null=True, verbose_name='retry at')),
        migrations.AlterField("resource", "status", models.CharField(choices=[('pending', 'Pending'), ('ingesting', 'Ingesting'), ('extracted', 'Extracted'), ('empty', 'Empty'), ('failed', 'Failed')], default='pending', max_length=10, verbose_name='status')),
        migrations.AddConstraint("resource", models.UniqueConstraint(condition=Q(state="live") & ~Q(sha256=""), fields=('user', 'app_id', 'project_id', 'origin', 'sha256'), name='one_live_resource_per_content')),
    ]
