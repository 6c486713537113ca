"""Files in a bucket of an S3 server."""

from __future__ import annotations

import hashlib
import io
import random
import tarfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.audit import Actor
from core.errors import NotFound, StorageUnavailable
from core.persistence import files
from core.persistence.file_keys import file_key
from memory_gateway.health import problems
from operations import jobs, operator_jobs
from operations.archives import backup
from operations.archives.archive import Reader
from operations.cleanup import orphans
from operations.files import remove_old_archives
from operations.importers import import_from
from resources import quarantine, services
from resources.models import Attachment, Resource
from resources.services import storage_binding
from resources.services.ingestion import try_ingest
from resources.tasks import Reconciler
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, search
from tests.object_store import BUCKET, PREFIX, Bucket, wrong_answers
from tests.resources.forms import upload

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = b"The quarterly report praises the walnut harvest."
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000") + bytes(60)
RIPE = "VGhlIHdhbG51dCBpcyByaXBlLg=="
ACTOR = Actor.command("tests")
AWAY = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _bound(bucket: Bucket) -> None:
    storage_binding.require()


def uploaded(alice: Person, data: bytes = TEXT, name: str = "notes.txt") -> Resource:
    answer = upload(alice, data, name)
    assert answer.status_code == 200, answer.content
    return Resource.objects.get(pk=answer.json()["resource_id"])


def add_file(alice: Person, *, status: int = 200, ext: str = "txt", base64: str) -> None:
    item = {"type": "doc", "base64": base64, "ext": ext, "name": f"ripe.{ext}"}
    message = {"sender_id": "alice", "role": "user", "timestamp": NOON_MS, "content": [item]}
    call(alice, "post", "/memories/add", status=status, session_id="chat:c_456", messages=[message])


def temporary_files(storage: Path) -> list[Path]:
    return [path for path in storage.rglob("*") if path.is_file()]


def test_an_upload_is_one_object_and_no_local_file(alice: Person, bucket: Bucket, storage: Path) -> None:
    resource = uploaded(alice)
    assert resource.status == "extracted"
    assert bucket.objects() == [resource.storage_path]
    body = bucket.client.get_object(Bucket=BUCKET, Key=f"{PREFIX}/{resource.storage_path}")["Body"].read()
    assert body == TEXT
    assert temporary_files(storage) == []
    assert Attachment.objects.get().internal_uri == resource.storage_path


def test_a_search_shows_the_address_of_the_object(alice: Person, bucket: Bucket) -> None:
    resource = uploaded(alice)
    (found,) = search(alice, "walnut", scope=["resources"])["results"]
    address = found["attachments"][0]["internal_uri"]
    assert address == f"s3://{BUCKET}/{PREFIX}/{resource.storage_path}"
    bucket.client.head_object(Bucket=BUCKET, Key=address.removeprefix(f"s3://{BUCKET}/"))


def test_a_large_file_is_uploaded_in_parts_and_read_in_ranges(alice: Person) -> None:
    data = PNG + random.Random(1).randbytes(10 * 2**20)
    resource = uploaded(alice, data, "noise.png")
    path = f"/resources/{resource.resource_id}/content"
    whole = alice.client.get(path).getvalue()
    assert hashlib.sha256(whole).hexdigest() == resource.sha256 == hashlib.sha256(data).hexdigest()
    part = alice.client.get(path, headers={"Range": "bytes=9000000-9000099"})
    assert (part.status_code, part.getvalue()) == (206, data[9_000_000:9_000_100])
    assert alice.client.get(path, headers={"Range": "bytes=-5"}).getvalue() == data[-5:]


def test_a_document_is_read_from_a_copy_that_is_removed(alice: Person, storage: Path) -> None:
    resource = uploaded(alice, b"<html><body><h1>Harvest</h1><p>Walnut trees.</p></body></html>", "page.html")
    assert resource.status == "extracted"
    assert temporary_files(storage) == []


def test_the_same_bytes_are_one_resource(alice: Person, bucket: Bucket) -> None:
    assert uploaded(alice).pk == uploaded(alice).pk
    assert len(bucket.objects()) == 1


def test_a_deleted_resource_is_restored_and_purged_with_its_object(alice: Person, bucket: Bucket) -> None:
    resource = uploaded(alice)
    path = f"/resources/{resource.resource_id}"
    assert alice.client.delete(path).status_code in {200, 204}
    assert bucket.objects() == [resource.storage_path]
    services.restore_as(alice.user_pk, "alice", resource.pk, actor=ACTOR)
    assert alice.client.get(f"{path}/content").getvalue() == TEXT
    alice.client.delete(path)
    services.purge(resource.pk, actor=ACTOR)
    assert bucket.objects() == []


def test_a_file_of_a_message_is_an_object(alice: Person, bucket: Bucket, storage: Path) -> None:
    add_file(alice, base64=RIPE)
    (key,) = bucket.objects()
    assert key.startswith(f"{alice.user_pk}/memory_attachments/")
    assert Attachment.objects.get().internal_uri == key
    (found,) = search(alice, "walnut", conversation_id="c_456")["results"]
    assert found["attachments"][0]["internal_uri"] == f"s3://{BUCKET}/{PREFIX}/{key}"
    assert temporary_files(storage) == []


def test_a_refused_message_leaves_no_object(alice: Person, bucket: Bucket) -> None:
    add_file(alice, base64="AAECAwQ=", ext="xlsx", status=422)
    assert bucket.objects() == []


def test_erase_leaves_nothing_in_the_bucket(alice: Person, bob: Person, bucket: Bucket) -> None:
    uploaded(alice)
    kept = uploaded(bob)
    add_file(alice, base64=RIPE)
    answer = alice.client.delete("/users/alice?confirm=erase:alice")
    assert answer.status_code == 200, answer.content
    assert bucket.objects() == [kept.storage_path]


def test_orphans_are_quarantined_and_then_removed(alice: Person, bucket: Bucket) -> None:
    resource = uploaded(alice)
    key = f"{alice.user_pk}/r_{'0' * 32}/content.txt"
    bucket.client.put_object(Bucket=BUCKET, Key=f"{PREFIX}/{key}", Body=b"orphan")
    now = timezone.now()
    assert orphans.clear(now) == 0  # too young
    assert orphans.clear(now + timedelta(hours=2)) == 1
    (batch,) = quarantine.batches()
    assert [folder.name for folder in batch.folders()] == [f"r_{'0' * 32}"]
    assert key not in bucket.objects()
    orphans.clear(now + timedelta(days=31))
    assert bucket.objects() == [resource.storage_path]


def test_the_bucket_is_bound_to_one_database(alice: Person, bucket: Bucket) -> None:
    assert storage_binding.is_bound()
    key = f"{PREFIX}/storage_id"
    bucket.client.put_object(Bucket=BUCKET, Key=key, Body=b"0b0e6f0c-7a2b-4e55-9d1c-111111111111\n")
    assert storage_binding.is_changed()
    answer = upload(alice, TEXT)
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
    assert "s3://files/gateway" in storage_binding.refusal()
    storage_binding.adopt(ACTOR)
    assert upload(alice, TEXT).status_code == 200


def test_the_first_of_two_bindings_wins(bucket: Bucket) -> None:
    before = storage_binding.storage_id()
    files.stored_files().write_small("storage_id", b"another", replace=False)
    assert storage_binding.storage_id() == before


def test_an_archive_of_a_bucket_is_imported_into_a_folder(
    alice: Person, bucket: Bucket, settings: Any, tmp_path: Path
) -> None:
    resource, target = uploaded(alice), tmp_path / "alice.zip"
    call_command("export_memory", str(target), "--user", "alice")
    erase_user(alice)
    settings.MEMORY_GATEWAY_STORAGE_URL = ""
    settings.STORAGES = {**settings.STORAGES, "default": {"BACKEND": "core.persistence.files.LocalFiles"}}
    storage_binding.adopt(ACTOR)
    call_command("import_memory", str(target), "--even-erased")
    stored = Path(settings.MEMORY_GATEWAY_STORAGE_DIR) / Resource.objects.get().storage_path
    assert stored.read_bytes() == TEXT
    assert Attachment.objects.get().internal_uri == resource.storage_path


def test_the_panels_archives_are_in_the_bucket_for_all_gateways(
    alice: Person, bucket: Bucket, storage: Path, admin_client: Client
) -> None:
    uploaded(alice)
    job = jobs.run_now(operator_jobs.export_user(alice.user_pk, actor=ACTOR))
    key = f".archives/{alice.user_pk}/{job.pk}.tar"
    assert key in bucket.objects()
    assert temporary_files(storage) == []
    answer: Any = admin_client.get(reverse("console:job-download", args=[job.pk]))
    content = b"".join(answer.streaming_content)
    assert len(content) == job.result["bytes"] == int(answer["Content-Length"])
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert "manifest.json" in archive.getnames()
    assert remove_old_archives(timezone.now() + timedelta(hours=23)) == 0
    assert remove_old_archives(timezone.now() + timedelta(hours=25)) == 1
    assert key not in bucket.objects()


def test_a_source_uploaded_to_one_gateway_is_imported_by_any_worker(
    alice: Person, bucket: Bucket, storage: Path
) -> None:
    key = import_from.keep_upload(alice.user_pk, [b'[{"memory": ', b'"Tea"}]'], is_archive=False)
    assert bucket.objects() == [key]
    request = import_from.Request(source="mem0", key=key, owner=alice.owner)
    assert import_from.plan(request).new == 1
    done = jobs.run_now(import_from.submit(request, total=1, actor=ACTOR))
    assert done.result == {"made": 1, "left": 0}
    assert bucket.objects() == []
    assert temporary_files(storage) == []
    with pytest.raises(NotFound, match="Upload it again"):
        import_from.plan(request)


def test_an_erasure_removes_archives_from_the_bucket(alice: Person, bucket: Bucket) -> None:
    jobs.run_now(operator_jobs.export_user(alice.user_pk, actor=ACTOR))
    import_from.keep_upload(alice.user_pk, [b"[]"], is_archive=False)
    assert len(bucket.objects()) == 2
    erase_user(alice)
    assert bucket.objects() == []


def erase_user(person: Person) -> None:
    answer = person.client.delete(f"/users/{person.user_id}?confirm=erase:{person.user_id}")
    assert answer.status_code == 200, answer.content


def test_a_backup_of_a_bucket_has_its_files(alice: Person, tmp_path: Path, storage: Path) -> None:
    resource, target = uploaded(alice), tmp_path / "backup.zip"
    assert backup.backup(target).files == 1
    with Reader(target, backup.FORMAT) as archive, archive.open(f"files/{resource.storage_path}") as file:
        assert file.read() == TEXT
    assert temporary_files(storage) == []


# --- an object store that fails --------------------------------------------------------------------------------------


def test_only_the_health_check_gives_a_late_store_up(bucket: Bucket) -> None:
    with wrong_answers("late") as endpoint:
        bucket.use(endpoint)
        with pytest.raises(StorageUnavailable):
            storage_binding.is_changed(is_quick=True)
        assert storage_binding.is_changed()  # it answers something else than the id


@pytest.mark.parametrize("kind", ["away", "slow_down", "drop"])
def test_an_upload_without_the_store_is_503_and_leaves_nothing(
    alice: Person, bucket: Bucket, storage: Path, kind: str
) -> None:
    if kind == "away":
        bucket.use(AWAY)
        answer = upload(alice, TEXT)
    else:
        with wrong_answers(kind) as address:
            bucket.use(address)
            answer = upload(alice, TEXT)
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    assert Resource.objects.count() == Attachment.objects.count() == 0
    assert temporary_files(storage) == []
    bucket.use(bucket.endpoint)
    assert bucket.objects() == []
    assert upload(alice, TEXT).status_code == 200


def test_a_download_without_the_store_is_503(alice: Person, bucket: Bucket) -> None:
    resource = uploaded(alice)
    bucket.use(AWAY)
    answer = alice.client.get(f"/resources/{resource.resource_id}/content")
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0


def test_a_missing_object_is_404(alice: Person, bucket: Bucket) -> None:
    resource = uploaded(alice)
    bucket.client.delete_object(Bucket=BUCKET, Key=f"{PREFIX}/{resource.storage_path}")
    assert alice.client.get(f"/resources/{resource.resource_id}/content").status_code == 404
    upload(alice, TEXT)  # the same bytes again repair it
    assert alice.client.get(f"/resources/{resource.resource_id}/content").getvalue() == TEXT


def test_an_ingestion_without_the_store_is_retried(alice: Person, bucket: Bucket) -> None:
    resource = uploaded(alice)
    Resource.objects.update(status="pending")
    bucket.use(AWAY)
    try_ingest(resource.pk)
    failed = Resource.objects.get()
    assert (failed.status, failed.retry_at is not None) == ("failed", True)
    assert "object store" in failed.error_message
    bucket.use(bucket.endpoint)
    try_ingest(resource.pk)
    assert Resource.objects.get().status == "extracted"


@pytest.mark.parametrize("kind", ["short", "corrupt"])
def test_a_damaged_copy_is_refused_and_removed(bucket: Bucket, storage: Path, kind: str) -> None:
    key = f"00000000-0000-0000-0000-000000000000/r_{'0' * 32}/content.txt"
    with wrong_answers(kind) as address:
        bucket.use(address)
        with pytest.raises(StorageUnavailable), files.local_copy(file_key(key)):
            pytest.fail("a damaged copy was used")
    assert temporary_files(storage) == []


def test_a_purge_without_the_store_stays_pending(alice: Person, bucket: Bucket) -> None:
    resource = uploaded(alice)
    alice.client.delete(f"/resources/{resource.resource_id}")
    bucket.use(AWAY)
    services.purge(resource.pk, actor=ACTOR)
    due = Resource.objects.get().retry_at
    assert due is not None
    bucket.use(bucket.endpoint)
    reconciler = Reconciler()
    assert reconciler.finish_deletions(due - timedelta(seconds=1)) == 0
    assert reconciler.finish_deletions(due) == 1
    assert Resource.objects.get().retry_at is None
    assert reconciler.finish_deletions(due + timedelta(days=1)) == 0
    assert bucket.objects() == []


def test_the_health_reports_the_store(bucket: Bucket) -> None:
    assert list(problems()) == []
    bucket.use(AWAY)
    assert list(problems()) == ["The object store does not answer: files can be neither stored nor read."]
