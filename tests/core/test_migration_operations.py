"""Migrations let processes of the version before go on: a rolling upgrade applies them while those run."""

from __future__ import annotations

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader

from core.persistence.migration_operations import AddColumn, AddIndexOnline

ROLLING_SINCE = {
    ("accounts", "0010_authority"),
    ("memories", "0008_options_of_searches"),
    ("operations", "0002_roles"),
    ("profiles", "0002_revision_agent"),
    ("remote", "0002_entries_of_messages"),
    ("resources", "0007_indexes_by_state"),
    ("store", "0022_tokenizers_of_owners"),
    ("webhooks", "0002_role"),
}
"""The last migrations of the upgrade for which all processes stop: `remote.0001` refuses while one runs."""
UNSAFE = (migrations.RemoveField, migrations.RenameField, migrations.RenameModel, migrations.DeleteModel)


def defects(migration: migrations.Migration) -> list[str]:
    """Return what a migration does that processes of the version before cannot work with, or wait for."""
    created = {one.name.lower() for one in migration.operations if isinstance(one, migrations.CreateModel)}
    found = []
    for one in migration.operations:
        model = getattr(one, "model_name", "").lower()
        if isinstance(one, UNSAFE):
            found.append(f"{migration}: the version before still uses what {one.describe()!r} takes away")
        elif model in created:
            continue
        elif isinstance(one, migrations.AddIndex) and not (isinstance(one, AddIndexOnline) and not migration.atomic):
            found.append(f"{migration}: add the index by AddIndexOnline, with atomic = False")
        elif isinstance(one, migrations.AddField) and not (one.field.null or one.field.has_db_default()):
            found.append(f"{migration}: the version before writes rows without {one.name}, which needs a db_default")
    return found


def test_new_migrations_let_the_version_before_go_on() -> None:
    loader = MigrationLoader(None)
    own = {label for label, _name in ROLLING_SINCE}
    before = {key for last in ROLLING_SINCE for key in loader.graph.forwards_plan(last)}
    later = [one for key, one in loader.disk_migrations.items() if key[0] in own and key not in before]
    assert [defect for one in later for defect in defects(one)] == []


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("memory", "text"),
        migrations.AddIndex("memory", models.Index(fields=["text"], name="of_text")),
        AddIndexOnline("memory", models.Index(fields=["text"], name="of_text")),  # in an atomic migration
        migrations.AddField("memory", "mood", models.CharField(max_length=16, default="")),
    ],
)
def test_each_defect_is_found(operation: migrations.operations.base.Operation) -> None:
    migration = type("Migration", (migrations.Migration,), {"operations": [operation]})("next", "store")
    assert len(defects(migration)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_column_is_added_without_rebuilding_the_table() -> None:
    before = MigrationLoader(connection).project_state([("store", "0005_leases_of_pending_work")])
    after = before.clone()
    operation = AddColumn("memory", "mood", models.CharField(max_length=16, default="", db_default=""))
    operation.state_forwards("store", after)
    with connection.schema_editor(collect_sql=True) as editor:
        operation.database_forwards("store", editor, before, after)
        statements = [one for one in editor.collected_sql if not one.startswith("--")]
    assert [one.split(" varchar")[0] for one in statements] == ['ALTER TABLE "store_memory" ADD COLUMN "mood"']


@pytest.mark.django_db(transaction=True)
def test_an_invalid_index_is_built_again_and_the_limit_for_locks_stays() -> None:
    loader = MigrationLoader(connection)
    state = loader.project_state([("store", "0005_leases_of_pending_work")])
    after = state.clone()
    operation = AddIndexOnline("memory", models.Index(fields=["batch_id"], name="memory_of_test"))
    operation.state_forwards("store", after)
    is_postgresql = connection.vendor == "postgresql"
    with connection.schema_editor(atomic=False) as editor:
        if is_postgresql:
            editor.execute("CREATE INDEX memory_of_test ON store_memory (speaker)")  # as an interrupted build leaves it
            editor.execute("SET lock_timeout = '2s'")
        operation.database_forwards("store", editor, state, after)
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, "store_memory")
        assert constraints["memory_of_test"]["columns"] == ["batch_id"]
        if is_postgresql:
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("2s",)
            cursor.execute("RESET lock_timeout")
    with connection.schema_editor(atomic=False) as editor:
        operation.database_backwards("store", editor, after, state)
    with connection.cursor() as cursor:
        assert "memory_of_test" not in connection.introspection.get_constraints(cursor, "store_memory")
