from django.db import migrations, models
from django.db.models import Q

from core.persistence.migration_operations import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = (("accounts", "0007_audit_subjects"),)
    operations = (
        AddIndexOnline(
            "auditevent", models.Index(fields=["digest"], condition=~Q(digest=""), name="audit_by_digest")
        ),
    )
