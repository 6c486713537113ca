from django.db import migrations, models
from django.db.models import Q

from core.persistence.migration_operations import AddColumn


def fill(apps, schema_editor):
    """Set the state of deleted resources."""
    resources = apps.get_model("resources", "Resource").objects.using(schema_editor.connection.alias)
    resources.exclude(former_status="").update(state="trashed")
    resources.filter(former_status="", status="deleted").update(state="purged")


class Migration(migrations.Migration):

    dependencies = [
        ("resources", "0004_sealed_ingest_uri"),
    ]

    operations = [
        AddColumn("resource", "state", models.CharField(choices=[('live', 'Live'), ('trashed', 'In trash'), ('superseded', 'Superseded'), ('expired', 'Expired'), ('purged', 'Purged')], db_default='live', default='live', editable=False, max_length=10, verbose_name='state')),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
