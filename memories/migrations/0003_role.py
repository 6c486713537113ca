"""Let every role see the log of searches."""

from typing import Any

from django.apps import apps as global_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

_ROLES = ("Viewer", "Editor", "Curator", "Privacy officer", "Administrator")


def extend_roles(apps: Any, schema_editor: Any) -> None:
    database = schema_editor.connection.alias
    create_permissions(global_apps.get_app_config("memories"), verbosity=0, using=database)
    group, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    added = permission.objects.using(database).get(
        content_type__app_label="memories", codename="view_loggedsearch"
    )
    for role in group.objects.using(database).filter(name__in=_ROLES):
        role.permissions.add(added)


class Migration(migrations.Migration):
    dependencies = (
        ("memories", "0002_search_log"),
        ("operations", "0002_roles"),
    )
    operations = (migrations.RunPython(extend_roles, migrations.RunPython.noop),)
