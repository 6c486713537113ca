"""Migrations that replace the absolute paths and `file://` addresses of stored files by their keys."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection

from core.persistence import files
from resources.models import Attachment
from tests.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)

DIGEST = "a" * 64


def migrate(app: str, name: str) -> None:
    function = getattr(import_module(f"{app}.migrations.0004_file_keys" if app == "store" else FILE_KEYS), name)
    with connection.schema_editor() as editor:
        function(apps, editor)


FILE_KEYS = "resources.migrations.0003_file_keys"


def attachment(alice: Person, location: str, source: str = "upload", sha256: str = DIGEST) -> int:
    row = Attachment.objects.create(
        user_id=alice.user_pk,
        session_id="chat:c_1",
        source=source,
        type="text",
        name="a.txt",
        internal_uri=location,
        sha256=sha256,
    )
    return int(row.pk)


def test_addresses_of_stored_files_become_keys(alice: Person, bob: Person) -> None:
    upload = f"{alice.user_pk}/r_{'0' * 32}/content.txt"
    of_message = f"{alice.user_pk}/memory_attachments/{DIGEST}/content"
    others = [
        ("https://example.com/a.txt", "external_resource", ""),
        (f"file:///srv/{bob.user_pk}/r_{'0' * 32}/content.txt", "upload", DIGEST),
        (f"file:///srv/given/{upload}", "memory_add", ""),  # the address of a caller has no digest
    ]
    changed = {
        attachment(alice, f"file:///srv/my%20files/{upload}"): upload,
        attachment(alice, f"file:///srv/{of_message}", "memory_add"): of_message,
    }
    unchanged = {attachment(alice, *other): other[0] for other in others}
    for _again in range(2):
        migrate("resources", "addresses_to_keys")
        assert dict(Attachment.objects.values_list("pk", "internal_uri")) == changed | unchanged


def test_a_moved_storage_folder_needs_no_change_of_rows(alice: Person, storage: Path, settings: object) -> None:
    key = f"{alice.user_pk}/r_{'0' * 32}/content.txt"
    assert files.address_of(key) == (storage / key).as_uri()
    settings.MEMORY_GATEWAY_STORAGE_DIR = storage.with_name("moved")  # type: ignore[attr-defined]
    assert files.address_of(key) == (storage.with_name("moved") / key).as_uri()
