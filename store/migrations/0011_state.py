from django.db import migrations, models, transaction
from django.db.models import Q

from core.persistence.migration_operations import AddColumn

_BATCH = 2000


def fill(apps, schema_editor):
    """Set the state of what is not live, in batches: an interrupted migration goes on where it ended."""
    database = schema_editor.connection.alias
    memory, session = (apps.get_model("store", name).objects.using(database) for name in ("Memory", "Session"))
    is_purged = Q(delivery_state="purged")
    _fill(memory.filter(is_purged), "purged")
    hidden = memory.filter(hidden_at__isnull=False).exclude(is_purged)
    _fill(hidden.filter(hidden_reason="superseded"), "superseded")
    _fill(hidden.exclude(hidden_reason="superseded"), "trashed")
    _fill(session.filter(deleted_at__isnull=False), "purged")
    _fill(session.filter(deleted_at__isnull=True, hidden_at__isnull=False), "trashed")


def _fill(rows, state):
    rows = rows.filter(state="live").order_by("pk")
    last = 0
    while keys := list(rows.filter(pk__gt=last).values_list("pk", flat=True)[:_BATCH]):
        with transaction.atomic(using=rows.db):
            rows.filter(pk__in=keys).order_by().update(state=state)
        last = keys[-1]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("store", "0010_indexed_copies"),
    ]

    operations = [
        AddColumn("memory", "state", models.CharField(choices=[('live', 'Live'), ('trashed', 'In trash'), ('superseded', 'Superseded'), ('expired', 'Expired'), ('purged', 'Purged')], db_default='live', default='live', editable=False, max_length=10, verbose_name='state')),
        migrations.AddField("memory", "expires_at", models.DateTimeField(blank=True, default=None, null=True, verbose_name="expires at")),
        AddColumn("session", "state", models.CharField(choices=[('live', 'Live'), ('trashed', 'In trash'), ('superseded', 'Superseded'), ('expired', 'Expired'), ('purged', 'Purged')], db_default='live', default='live', editable=False, max_length=10, verbose_name='state')),
        migrations.AddField("session", "expires_at", models.DateTimeField(blank=True, default=None, null=True, verbose_name="expires at")),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
