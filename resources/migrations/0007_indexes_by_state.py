from django.db import migrations, models
from django.db.models import Q

from core.persistence.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("resources", "0006_state_alone"),
    ]

    operations = [
        AddIndexOnline("resource", models.Index(condition=Q(state="live", status__in=["pending", "ingesting", "failed"]), fields=["status", "retry_at"], name="resource_unfinished")),
        AddIndexOnline("resource", models.Index(condition=Q(state="purged", retry_at__isnull=False), fields=["retry_at"], name="resource_cleanup")),
        AddIndexOnline("resource", models.Index(condition=Q(state="trashed"), fields=["state_since", "resource_id"], name="resource_in_trash")),
        AddIndexOnline("resource", models.Index(condition=Q(state="live", status="failed", retry_at__isnull=True), fields=["updated_at"], name="resource_waiting")),
    ]
