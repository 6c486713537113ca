"""Check that this version of the gateway knows the database's migrations."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.migrations.loader import MigrationLoader

_APPS: Final = frozenset({
    "accounts", "memories", "operations", "profiles", "resources", "store",
    "engine", "lifecycle",  # app labels before the tables were rebuilt
})  # fmt: skip


def require_known_migrations() -> None:
    """Check that this version has all applied migrations. Changes nothing.

    Raises: ImproperlyConfigured if one is unknown.
    """
    loader = MigrationLoader(connection)
    unknown = sorted(key for key in loader.applied_migrations if key[0] in _APPS and key not in loader.disk_migrations)
    if unknown:
        app, name = unknown[0]
        raise ImproperlyConfigured(
            f"Another version of Memory Gateway made this database (it has the migration {app}.{name}). Nothing was "
            "changed. Run `manage.py export_memory --all --with-keys` with that version, then "
            "`manage.py import_memory` into an empty database of this one."
        )
