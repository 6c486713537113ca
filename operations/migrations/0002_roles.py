"""Create the roles of operators: groups with the permissions of one kind of work. Administrators may change them."""

from typing import Any, Final

from django.apps import apps as global_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

_APPS: Final = ("accounts", "auth", "memories", "operations", "profiles", "resources", "store")
_VIEWER: Final = {
    "store.view_memory",
    "resources.view_resource",
    "accounts.view_memoryuser",
    "accounts.view_userkey",
    "profiles.view_profilememory",
    "profiles.view_profilerevision",
}
_EDITOR: Final = _VIEWER | {
    "store.add_memory",
    "store.change_memory",
    "store.delete_memory",
    "resources.add_resource",
    "resources.change_resource",
    "resources.delete_resource",
    "profiles.change_profilememory",
}
_CURATOR: Final = _EDITOR | {
    "memories.delete_tombstone",
    "profiles.restore_profilememory",
    "accounts.view_auditevent",
}
_PRIVACY_OFFICER: Final = _VIEWER | {
    "accounts.export_memoryuser",
    "accounts.erase_memoryuser",
    "accounts.view_auditevent",
    "profiles.disable_profilememory",
}
_ADMINISTRATOR: Final = (
    _CURATOR
    | _PRIVACY_OFFICER
    | {f"accounts.{verb}_userkey" for verb in ("add", "rotate", "revoke")}
    | {f"accounts.{verb}_rpctoken" for verb in ("add", "view", "revoke")}
    | {f"accounts.{verb}_signinthrottle" for verb in ("view", "delete")}
    | {f"auth.{verb}_user" for verb in ("add", "view", "change")}
    | {"accounts.add_memoryuser", "operations.view_job", "operations.view_unmatcheddecision"}
)
_ROLES: Final = {
    "Viewer": _VIEWER,
    "Editor": _EDITOR,
    "Curator": _CURATOR,
    "Privacy officer": _PRIVACY_OFFICER,
    "Administrator": _ADMINISTRATOR,
}


def create_roles(apps: Any, schema_editor: Any) -> None:
    """Create the groups that do not exist yet."""
    database = schema_editor.connection.alias
    for label in _APPS:  # Django creates permissions after the last migration only
        create_permissions(global_apps.get_app_config(label), verbosity=0, using=database)
    group, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    rows = permission.objects.using(database).values_list("pk", "content_type__app_label", "codename")
    pks = {f"{app}.{codename}": pk for pk, app, codename in rows}
    for name, permissions in _ROLES.items():
        role, is_new = group.objects.using(database).get_or_create(name=name)
        if is_new:
            role.permissions.set([pks[one] for one in permissions])


class Migration(migrations.Migration):
    dependencies = (
        ("accounts", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("memories", "0001_initial"),
        ("operations", "0001_initial"),
        ("profiles", "0001_initial"),
        ("resources", "0002_trash"),
        ("store", "0002_word_index"),
    )
    operations = (migrations.RunPython(create_roles, migrations.RunPython.noop),)
