"""Let the role Administrator see webhooks and send deliveries again."""

from typing import Any

from django.apps import apps as global_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations


def extend_role(apps: Any, schema_editor: Any) -> None:
    database = schema_editor.connection.alias
    create_permissions(global_apps.get_app_config("webhooks"), verbosity=0, using=database)
    group, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    added = permission.objects.using(database).filter(
        content_type__app_label="webhooks", codename__in=["view_webhook", "change_webhook"]
    )
    for role in group.objects.using(database).filter(name="Administrator"):
        role.permissions.add(*added)


class Migration(migrations.Migration):
    dependencies = (
        ("webhooks", "0001_webhooks"),
        ("operations", "0002_roles"),
    )
    operations = (migrations.RunPython(extend_role, migrations.RunPython.noop),)
