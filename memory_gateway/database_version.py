"""Refuse a database that another version of the gateway made."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.migrations.loader import MigrationLoader

_APPS: Final = frozenset({
    "accounts", "memories", "operations", "profiles", "resources", "store",
    "engine", "lifecycle",  # their names until the tables were rebuilt
})  # fmt: skip


def require_known_migrations() -> None:
    """Raises: ImproperlyConfigured if a migration was applied that this version does not have. Changes nothing."""
    loader = MigrationLoader(connection)
    unknown = sorted(key for key in loader.applied_migrations if key[0] in _APPS and key not in loader.disk_migrations)
    if unknown:
        app, name = unknown[0]
        raise ImproperlyConfigured(
            f"Another version of Memory Gateway made this database (it has the migration {app}.{name}). Nothing was "
            "changed. Run `manage.py export_memory --all --with-keys` with that version, then "
            "`manage.py import_memory` into an empty database of this one."
        )
