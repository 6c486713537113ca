"""The roles of operators, for tests."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

from django.apps import apps
from django.db import connection


def create_roles() -> None:
    """Create the roles as the migrations do; a test that empties the tables may have run before."""
    editor = SimpleNamespace(connection=connection)
    importlib.import_module("operations.migrations.0002_roles").create_roles(apps, editor)
    importlib.import_module("webhooks.migrations.0002_role").extend_role(apps, editor)
    importlib.import_module("memories.migrations.0003_role").extend_roles(apps, editor)
