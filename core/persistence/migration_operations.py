"""Operations of migrations that run while processes of the version before do, and a check that none runs."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.core.management.base import CommandError
from django.db import router
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AddField, AddIndex, AlterField
from django.utils import timezone


def require_stopped(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Refuse while a process of an older version runs, which would read and write columns that the migration removes.

    The migration depends on `operations.0002_roles`. Raises: `CommandError`.
    """
    leases = apps.get_model("operations", "Lease").objects.using(schema_editor.connection.alias)
    running = leases.exclude(lease_holder="").filter(leased_until__gt=timezone.now()).first()
    if running is not None:
        raise CommandError(
            f"A process of an older version uses this database ({running.lease_holder}). Stop all gateways and "
            "workers, wait half a minute, and migrate again."
        )


class AddColumn(AddField):
    """Add a field with a constant `db_default` in a moment, whatever the size of the table.

    Django rebuilds the table on SQLite, which takes long, and which views and triggers on the table prevent.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            BaseDatabaseSchemaEditor.add_field(schema_editor, model, model._meta.get_field(self.name))  # noqa: SLF001


class WidenText(AlterField):
    """Let a column hold longer texts, in a moment.

    SQLite does not limit texts; there Django would rebuild the table, which takes long, and which views and triggers on
    the table prevent.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "sqlite":
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class AddIndexOnline(AddIndexConcurrently):
    """Add an index without blocking writers: on PostgreSQL concurrently, which needs a migration with `atomic = False`.

    The build waits for open transactions as long as they take, because nothing waits for it. An invalid index that an
    interrupted build left is built again.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        connection = schema_editor.connection
        if connection.vendor != "postgresql":
            AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
            return
        if not router.allow_migrate_model(connection.alias, to_state.apps.get_model(app_label, self.model_name)):
            return
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            (timeout,) = cursor.fetchone()
            cursor.execute("SET lock_timeout = 0")
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {connection.ops.quote_name(self.index.name)}")
        try:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        finally:
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, false)", [timeout])

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            super().database_backwards(app_label, schema_editor, from_state, to_state)
        else:
            AddIndex.database_backwards(self, app_label, schema_editor, from_state, to_state)
