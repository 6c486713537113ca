"""Three people for every test: alice owns, bob is near (he has the like himself), charlie is an outsider."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.management import create_contenttypes
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.models.signals import post_migrate
from django.test import Client
from hypothesis import HealthCheck, settings

from accounts import services as accounts
from accounts.audit import Actor
from store.types import Owner
from tests import everos as real_everos
from tests import object_store
from tests.object_store import Bucket
from tests.server import drop_migrated_database, migrated_database, migrated_file

# The time per example depends on the machine.
settings.register_profile("any machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# The longest files. Workers begin with them, so that they finish at about the same time.
LONGEST = (
    "clients/claude-code/tests/test_claude_code_plugin.py",
    "clients/python/tests/test_adapters.py",
    "tests/memory_gateway/test_wheel.py",
    "tests/console/test_every_page.py",
    "tests/fleet/test_smoke.py",
    "tests/operations/test_outages.py",
    "tests/upgrade/test_upgrade.py",
    "tests/trust/test_pairs_of_deletions.py",
    "tests/trust/test_states.py",
    "tests/operations/reingest/test_kills.py",
    "tests/memory_gateway/test_serve.py",
    "tests/operations/test_wrong_storage.py",
    "tests/console/test_actions_on_data_pages.py",
    "tests/console/test_actions.py",
    "tests/documents/test_ocr.py",
    "tests/operations/test_worker_processes.py",
    "tests/agents/rpc/test_connection_limits.py",
    "tests/memory_gateway/test_bounds.py",
    "tests/operations/test_backup.py",
    "tests/resources/test_document_corpus.py",
    "tests/documents/test_bombs.py",
    "tests/resources/test_object_store.py",
    "tests/operations/test_export_import.py",
    "clients/typescript/tests/test_typescript_client.py",
    "tests/admin/test_pages.py",
    "tests/resources/test_scans.py",
    "tests/skill/test_on_a_gateway.py",
    "tests/console/test_tasks.py",
    "tests/console/test_operators.py",
    "tests/trust/test_killed_workers.py",
    "tests/console/test_injection.py",
    "tests/trust/test_web_pages.py",
    "tests/admin/test_browser.py",
    "tests/agents/mcp/test_inspector.py",
    "tests/agents/mcp/test_client.py",
    "tests/operations/test_import_gateway.py",
    "tests/operations/reingest/test_meanwhile.py",
    "tests/operations/reingest/test_again.py",
    "tests/agents/rpc/test_frame_fuzzing.py",
    "tests/trust/test_disks.py",
    "tests/trust/test_damaged_database.py",
    "tests/store/test_vectors.py",
    "tests/store/test_browse.py",
    "tests/store/test_browse_words.py",
    "tests/operations/test_kills.py",
    "tests/test_documentation.py",
    "tests/profiles/test_browser.py",
    "clients/openclaw/tests/test_hooks.py",
    "tests/profiles/test_admin.py",
    "tests/resources/test_media.py",
    "tests/engines/embedded/test_extraction.py",
    "tests/engines/embedded/test_rated_search.py",
    "tests/core/test_http_client.py",
    "tests/webhooks/test_api.py",
)

# What takes long here depends on the database, so that it runs on PostgreSQL too.
LONG_ON_EACH_DATABASE = (
    "tests/fleet",
    "tests/memory_gateway/test_database_version.py",
    "tests/operations/test_backup.py",
    "tests/operations/test_erase.py",
    "tests/operations/test_kills.py",
    "tests/operations/test_reembed.py",
    "tests/operations/test_upgrade.py",
    "tests/operations/test_worker_processes.py",
    "tests/remote",
    "tests/resources/test_kills.py",
    "tests/store/test_browse.py",
    "tests/store/test_rebuild_beside_writes.py",
    "tests/trust/test_killed_workers.py",
    "tests/upgrade",
)

# Many processes that write at once, as on PostgreSQL; the same on SQLite is left to the torture.
LONG_ON_POSTGRESQL = (
    "tests/operations/test_kills.py",
    "tests/operations/test_reembed.py",
    "tests/operations/test_worker_processes.py",
    "tests/remote/test_outage.py",
    "tests/resources/test_kills.py",
    "tests/trust/test_killed_workers.py",
)

TESTS = Path(__file__).resolve().parent
SHARED = TESTS.parent.parent / "shared"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage among thousands of tests, which all stay: that takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--one-case", action="store_true", help="run each test with the first of its parameters only")


def pytest_xdist_auto_num_workers() -> int:
    """Return one more than there are cores, because tests also wait for servers."""
    return min((os.cpu_count() or 1) + 1, 12)


def pytest_itemcollected(item: pytest.Item) -> None:
    path = item.path.relative_to(TESTS.parent).as_posix()
    if path.startswith(LONG_ON_EACH_DATABASE):
        item.add_marker(pytest.mark.database)
    if path in LONG_ON_POSTGRESQL and connection.vendor == "sqlite" and item.get_closest_marker("slow"):
        item.add_marker(pytest.mark.torture)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--one-case"):
        first: dict[str, pytest.Item] = {}
        others = [item for item in items if first.setdefault(item.nodeid.partition("[")[0], item) is not item]
        config.hook.pytest_deselected(items=others)
        items[:] = first.values()
    places = {TESTS.parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        drop_migrated_database()


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Let Django migrate the copied file, which has nothing left to do, instead of a new one."""
    return connection.vendor == "sqlite"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Begin with a copy of what one process of this run has migrated."""
    test_database = connection.settings_dict["TEST"]
    if connection.vendor == "sqlite":
        shutil.copyfile(migrated_file(), test_database["NAME"])
    else:
        test_database["TEMPLATE"] = migrated_database()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Have what a transactional test flushed come back as rows: Django would make every permission again, after each
    test, which takes longer than most of them."""
    with django_db_blocker.unblock():
        kept: list[list[Any]] = [list(model.objects.order_by("pk")) for model in (ContentType, Permission)]

    def restore(**_: Any) -> None:
        for rows in kept:
            type(rows[0]).objects.bulk_create(rows, ignore_conflicts=True)

    if connection.vendor == "postgresql":
        # TRUNCATE, which Django uses, writes new files for all tables and indexes.
        connection.ops.sql_flush = _delete_all  # type: ignore[method-assign]
    assert post_migrate.disconnect(create_contenttypes)
    assert post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    post_migrate.connect(restore, sender=apps.get_app_config("contenttypes"), weak=False)


def _delete_all(_style: Any, tables: Iterable[str], **_options: Any) -> list[str]:
    """Return the statements that empty the tables without their triggers, as TRUNCATE does, sent as one."""
    return ["; ".join(["SET LOCAL session_replication_role = replica", *(f'DELETE FROM "{one}"' for one in tables)])]


@dataclass(frozen=True)
class Person:
    """A memory user with the key and a client that sends it as a bearer."""

    user_id: str
    user_pk: UUID
    user_key: str
    client: Client

    @property
    def owner(self) -> Owner:
        return Owner(self.user_pk, self.user_id)

    @property
    def credentials(self) -> dict[str, str]:
        return {"user_id": self.user_id, "user_key": self.user_key}


def make_person(user_id: str) -> Person:
    issued = accounts.create_user(user_id, actor=Actor.command("tests"))
    client = Client(headers={"Authorization": f"Bearer {issued.plaintext}"})
    return Person(user_id, issued.key.user_id, issued.plaintext, client)


@pytest.fixture
def alice(db: Any) -> Person:
    return make_person("alice")


@pytest.fixture
def bob(db: Any) -> Person:
    return make_person("bob")


@pytest.fixture
def charlie(db: Any) -> Person:
    return make_person("charlie")


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> Iterator[Path]:
    """A storage folder of this test's own, since each test's database is a new one."""
    folder = tmp_path / "storage"
    settings.MEMORY_GATEWAY_STORAGE_DIR = folder
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of an S3 server, the same for all tests."""
    with object_store.running() as address:
        yield address


@pytest.fixture
def bucket(settings: Any, storage: Path, s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket that holds the files instead of the folder, which then holds temporary files only."""
    for name, value in {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    bucket = Bucket(s3_server, settings)
    yield bucket
    bucket.remove()


@pytest.fixture(scope="session")
def everos() -> Iterator[real_everos.EverOS]:
    """A real EverOS, the same for all tests."""
    with real_everos.running() as service:
        yield service
