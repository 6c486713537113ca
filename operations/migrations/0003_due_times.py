from datetime import timedelta

from django.db import migrations, models

from core.persistence.migration_operations import require_stopped

# Rows of leases without a holder stored times of `operations.cleanup.purge`. They become times at which work is due.
FORMER = (
    ("clock:seen", "read_clock", timedelta(minutes=5)),
    ("clock:steady", "purge", timedelta(days=7)),
)


def move_times(apps, schema_editor):
    leases = apps.get_model("operations", "Lease").objects.using(schema_editor.connection.alias)
    for former, name, later in FORMER:
        for row in leases.filter(name=former):
            leases.update_or_create(name=name, defaults={"due_at": row.leased_until + later})
            row.delete()


def move_back(apps, schema_editor):
    leases = apps.get_model("operations", "Lease").objects.using(schema_editor.connection.alias)
    for former, name, later in FORMER:
        for row in leases.filter(name=name, due_at__isnull=False):
            leases.update_or_create(name=former, defaults={"lease_holder": "", "leased_until": row.due_at - later})
            row.delete()
    leases.filter(lease_holder="", leased_until=None).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0002_roles"),
    ]

    operations = [
        migrations.RunPython(require_stopped, migrations.RunPython.noop, elidable=True),
        migrations.AddField(
            model_name="lease",
            name="due_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="due at"),
        ),
        migrations.RunPython(move_times, move_back, elidable=True),
    ]
