"""`Idempotency-Key`: a repeated request is carried out once and gets the same answer."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from django.db.models.signals import post_save
from django.utils import timezone

from accounts import idempotency
from accounts.audit import Actor
from accounts.models import AuditEvent, IdempotencyKey, Principal, UserKey
from core.background import leases
from operations import erase
from profiles.models import ProfileRevision
from resources.models import Resource
from tests.conftest import Person
from tests.openapi import operations, resolved, schema
from tests.resources.forms import Form
from tests.resources.people import RemotePerson
from tests.server import RunningServer, running_server
from webhooks.models import Webhook

MESSAGE = {"sender_id": "alice", "role": "user", "timestamp": 1_780_300_800_000, "content": "Lena lives in Oslo."}
DOCUMENT = "/api/v1/memories/user"


def post(person: Person, path: str, key: str, body: dict[str, Any] | None = None) -> Any:
    return person.client.post(path, body or {}, "application/json", headers={"Idempotency-Key": key})


def memory_of(person: Person) -> str:
    person.client.post("/memories/add", {"session_id": "chat:c", "messages": [MESSAGE]}, "application/json")
    (memory,) = person.client.get("/memories").json()["memories"]
    return str(memory["id"])


def deleted_memory(person: Person) -> tuple[str, dict[str, Any]]:
    memory_id = memory_of(person)
    person.client.delete(f"/memories/{memory_id}")
    return f"/memories/{memory_id}/restore", {}


def deleted_session(person: Person) -> tuple[str, dict[str, Any]]:
    memory_of(person)
    person.client.delete("/sessions/chat:c")
    return "/sessions/chat:c/restore", {}


def deleted_resource(person: Person) -> tuple[str, dict[str, Any]]:
    resource_id = Form().file(b"The report.").post(person.client).json()["resource_id"]
    person.client.delete(f"/resources/{resource_id}")
    return f"/resources/{resource_id}/restore", {}


def two_versions(person: Person) -> tuple[str, dict[str, Any]]:
    for occupation in ("architect", "baker"):
        person.client.patch(DOCUMENT, {"content": {"occupation": occupation}}, "application/json")
    return f"{DOCUMENT}/restore/1", {}


def webhook(person: Person) -> str:
    body = {"url": "https://hooks.example.com/memory"}
    return f"/webhooks/{person.client.post('/webhooks', body, 'application/json').json()['webhook_id']}"


def unflushed_session(person: Person) -> tuple[str, dict[str, Any]]:
    memory_of(person)
    return "/memories/flush", {"session_id": "chat:c"}


REQUESTS: dict[str, Callable[[Person], tuple[str, dict[str, Any]]]] = {
    "add": lambda _: ("/memories/add", {"session_id": "chat:c", "messages": [MESSAGE]}),
    "flush": unflushed_session,
    "register": lambda _: ("/resources/external", {"filename": "a.txt", "source_uri": "minio://bucket/a.txt"}),
    "restore memory": deleted_memory,
    "restore profile": two_versions,
    "restore resource": deleted_resource,
    "restore session": deleted_session,
    "store": lambda _: ("/memories", {"text": "Lena lives in Oslo."}),
    "store many": lambda _: ("/memories/bulk", {"memories": [{"text": "Lena lives in Oslo."}]}),
    "test webhook": lambda person: (f"{webhook(person)}/test", {}),
}
# What creates a secret, and the field of its id.
SECRETS: dict[str, tuple[Callable[[Person], tuple[str, dict[str, Any]]], str]] = {
    "issue key": (lambda _: ("/users/me/keys", {"label": "phone"}), "key_id"),
    "rotate key": (lambda _: ("/users/me/keys/rotate", {}), "key_id"),
    "create webhook": (lambda _: ("/webhooks", {"url": "https://hooks.example.com/memory"}), "webhook_id"),
    "rotate secret": (lambda person: (f"{webhook(person)}/rotate-secret", {}), "webhook_id"),
}
# POST requests without the header.
EXEMPT = {
    "create_user": "its contract: an existing user is returned with the same key",
    "create_browser_key": "a key that is not used ends within the hour",
    "create_portal_link": "a link that is not opened ends after ten minutes",
    "search_memories": "it changes nothing",
    "make_context": "it changes nothing",
    "invoke_tool": "OpenClaw's contract: memory_store recognizes an equal text as its own",
}


def test_every_request_that_creates_takes_the_header() -> None:
    for method, path in operations():
        operation = schema()["paths"][path][method]
        names = {one["name"] for one in map(resolved, operation.get("parameters", []))}
        is_keyed = method == "post" and operation["operationId"] not in EXEMPT
        assert ("Idempotency-Key" in names) is is_keyed, operation["operationId"]
        assert not is_keyed or "409" in operation["responses"], operation["operationId"]


def secrets_of(person: Person) -> tuple[int, int, set[str]]:
    return (
        UserKey.objects.filter(user=person.user_pk).count(),
        Webhook.objects.filter(user=person.user_pk).count(),
        set(Webhook.objects.values_list("secret", flat=True)),
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", SECRETS)
def test_a_repeated_request_for_a_secret_is_refused_with_its_id(name: str, alice: Person) -> None:
    prepare, field = SECRETS[name]
    path, body = prepare(alice)
    first = post(alice, path, "k 1", body)
    assert first.status_code == 200, first.content
    before = secrets_of(alice)
    again = post(alice, path, "k 1", body)
    assert (again.status_code, again.json()["code"]) == (409, "already_done")
    assert again.json()["created"] == {field: first.json()[field]}
    assert first.json()[field] in again.json()["detail"]
    assert "Retry-After" not in again.headers
    assert secrets_of(alice) == before
    secret = first.json().get("user_key") or first.json()["secret"]
    stored = json.dumps(list(IdempotencyKey.objects.values()), default=str)
    assert secret not in stored + again.content.decode()
    assert post(alice, path, "k 2", body).status_code == 200
    assert secrets_of(alice) != before


@pytest.mark.django_db(transaction=True)
def test_a_webhook_created_before_a_crash_is_not_created_again(alice: Person) -> None:
    prepare, field = SECRETS["create webhook"]
    path, body = prepare(alice)
    created = post(alice, path, "k", body).json()[field]
    interrupt(dead_holder(), result={field: created})
    for _ in range(2):
        refused = post(alice, path, "k", body)
        assert (refused.status_code, refused.json()["created"]) == (409, {field: created})
    assert Webhook.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_error_after_the_change_keeps_the_key(alice: Person) -> None:
    caller = Principal(alice.user_pk, alice.user_id, uuid.uuid4())

    def fail_after_the_change() -> None:
        claimed = idempotency.claim(caller, "k", "digest")
        assert isinstance(claimed, idempotency.Claim)
        with idempotency.carrying_out(claimed, in_transaction=False):
            idempotency.keep(webhook_id="w")
            raise OSError

    with pytest.raises(OSError):
        fail_after_the_change()
    again = idempotency.claim(caller, "k", "digest")
    assert isinstance(again, idempotency.Claim)
    assert again.kept == {"webhook_id": "w"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", REQUESTS)
def test_a_repeated_request_gets_the_same_answer_and_changes_nothing(name: str, alice: Person) -> None:
    path, body = REQUESTS[name](alice)
    first = post(alice, path, "k 1", body)
    assert first.status_code in {200, 201}, first.content
    assert "Idempotent-Replayed" not in first.headers
    events, rows = AuditEvent.objects.count(), ProfileRevision.objects.count()
    again = post(alice, path, "k 1", body)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers.get("ETag") == first.headers.get("ETag")
    assert (AuditEvent.objects.count(), ProfileRevision.objects.count()) == (events, rows)


@pytest.mark.django_db(transaction=True)
def test_a_repeated_upload_gets_the_same_answer_even_after_its_file_was_deleted(alice: Person) -> None:
    form = Form().text("title", "Report").file(b"The report.")
    headers = {"Idempotency-Key": "k", "Prefer": "respond-async"}
    first = form.post(alice.client, **headers)
    assert first.status_code == 202
    alice.client.delete(f"/resources/{first.json()['resource_id']}")
    again = form.post(alice.client, **headers)
    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["Location"] == first.headers["Location"]
    for other in (Form().text("title", "Report").file(b"The Report."), Form().text("title", "R").file(b"The report.")):
        assert other.post(alice.client, **headers).status_code == 422


@pytest.mark.django_db(transaction=True)
def test_a_key_of_another_request_is_refused_and_names_the_header(alice: Person) -> None:
    body = {"session_id": "chat:c", "messages": [MESSAGE]}
    post(alice, "/memories/add", "k", body)
    for path, other in (("/memories/add", {**body, "session_id": "chat:d"}), ("/memories/flush", {"session_id": "c"})):
        refused = post(alice, path, "k", other)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "Idempotency-Key")
    assert post(alice, "/memories/add", "k", {**body, **alice.credentials}).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_the_keys_of_users_are_separate(alice: Person, bob: Person) -> None:
    path, body = "/memories/add", {"session_id": "chat:c", "messages": [{**MESSAGE, "role": "assistant"}]}
    assert post(alice, path, "k", body).status_code == 200
    answer = post(bob, path, "k", body)
    assert "Idempotent-Replayed" not in answer.headers
    assert len(bob.client.get("/memories").json()["memories"]) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("key", ["", "é", "a\tb", "x" * 256])
def test_an_invalid_key_is_refused_before_anything_is_done(key: str, alice: Person) -> None:
    refused = post(alice, "/memories/add", key, {"session_id": "chat:c", "messages": [MESSAGE]})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "Idempotency-Key")
    assert alice.client.get("/memories").json()["memories"] == []


@pytest.mark.django_db(transaction=True)
def test_a_failure_is_not_kept(alice: Person) -> None:
    memory_id = memory_of(alice)
    assert post(alice, f"/memories/{memory_id}/restore", "k").status_code == 404
    assert not IdempotencyKey.objects.exists()
    alice.client.delete(f"/memories/{memory_id}")
    assert post(alice, f"/memories/{memory_id}/restore", "k").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_key_is_forgotten_after_a_day(alice: Person) -> None:
    path, body = two_versions(alice)
    first = post(alice, path, "k", body)
    a_day_ago = timezone.now() - idempotency.KEPT_FOR
    IdempotencyKey.objects.update(created_at=a_day_ago + timedelta(minutes=1))
    assert idempotency.forget_old(timezone.now()) == 0
    assert post(alice, path, "k", body).headers["ETag"] == first.headers["ETag"]
    IdempotencyKey.objects.update(created_at=a_day_ago)
    alice.client.patch(DOCUMENT, {"content": {"occupation": "baker"}}, "application/json")
    assert post(alice, path, "k", body).headers["ETag"] == '"user-5"'
    IdempotencyKey.objects.update(created_at=a_day_ago)
    assert idempotency.forget_old(timezone.now()) == 1


@pytest.mark.django_db(transaction=True)
def test_neither_key_nor_texts_are_stored(alice: Person) -> None:
    for number, name in enumerate(("add", "flush", "restore profile")):
        path, body = REQUESTS[name](alice)
        assert post(alice, path, f"Lena{number}", body).status_code == 200
    stored = json.dumps(list(IdempotencyKey.objects.values()), default=str)
    assert IdempotencyKey.objects.count() == 3
    assert not any(word in stored for word in ("Lena", "Oslo", "architect", "baker"))


@pytest.mark.django_db(transaction=True)
def test_the_keys_of_an_erased_user_are_removed(alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        post(person, "/memories/flush", "k", {"session_id": "chat:c"})
    erase.erase(alice.user_pk, actor=Actor.command("tests"))
    assert [row.user_id for row in IdempotencyKey.objects.all()] == [bob.user_pk]


def interrupt(holder: str, **values: Any) -> None:
    """Put the key back into the state of a running request."""
    leased_until = timezone.now() + idempotency.LEASE
    IdempotencyKey.objects.update(status=None, lease_holder=holder, leased_until=leased_until, **values)


def dead_holder() -> str:
    """Return the holder of an earlier process with the same pid."""
    return f"{leases.new_holder().rpartition(':')[0]}:{'0' * 16}"


@pytest.mark.django_db(transaction=True)
def test_a_running_request_answers_409_until_its_process_has_ended(alice: Person) -> None:
    path, body = two_versions(alice)
    post(alice, path, "k", body)
    interrupt(leases.new_holder(), created_at=timezone.now() - timedelta(seconds=7))
    refused = post(alice, path, "k", body)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert refused.headers["Retry-After"] == "7"
    interrupt(dead_holder())
    answer = post(alice, path, "k", body)
    assert answer.status_code == 200
    assert "Idempotent-Replayed" not in answer.headers


@pytest.mark.django_db(transaction=True)
def test_a_restore_and_its_key_are_committed_together(alice: Person) -> None:
    path, body = two_versions(alice)

    def lose_key(**_: Any) -> None:
        IdempotencyKey.objects.all().delete()

    post_save.connect(lose_key, sender=ProfileRevision)
    try:
        assert post(alice, path, "k", body).status_code == 409
    finally:
        post_save.disconnect(lose_key, sender=ProfileRevision)
    assert ProfileRevision.objects.count() == 2
    assert post(alice, path, "k", body).headers["ETag"] == '"user-3"'


@pytest.mark.django_db(transaction=True)
def test_a_registration_without_a_digest_is_found_again_after_a_crash(alice: Person) -> None:
    path, body = REQUESTS["register"](alice)
    answer = post(alice, path, "k", body).json()
    Resource.objects.update(status=Resource.Status.EXTRACTED)  # a later registration of the address is another one
    interrupt(dead_holder(), result={"resource_id": answer["resource_id"]})
    assert post(alice, path, "k", body).json()["resource_id"] == answer["resource_id"]
    assert len(alice.client.get("/resources").json()["resources"]) == 1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running_server(tmp_path_factory.mktemp("idempotency")) as running:
        yield running


def prepared(server: RunningServer) -> RemotePerson:
    """A user whose document has two versions."""
    person = RemotePerson.create(server, f"u_{uuid.uuid4().hex[:8]}")
    for occupation in ("architect", "baker"):
        body = {"content": {"occupation": occupation}}
        requests.patch(f"{server.url}{DOCUMENT}", json=body, headers=person.headers, timeout=30).raise_for_status()
    return person


def restore(person: RemotePerson, version: int, key: str) -> requests.Response:
    headers = {**person.headers, "Idempotency-Key": key}
    return requests.post(f"{person.server.url}{DOCUMENT}/restore/{version}", json={}, headers=headers, timeout=60)


def versions(person: RemotePerson) -> int:
    answer = requests.get(f"{person.server.url}{DOCUMENT}/history", headers=person.headers, timeout=30)
    return int(answer.json()["changes"][0]["version"])


def test_of_concurrent_requests_with_one_key_one_is_carried_out(server: RunningServer) -> None:
    person = prepared(server)
    for number in range(5):
        barrier = threading.Barrier(6)

        def call(_: int, number: int = number, barrier: threading.Barrier = barrier) -> requests.Response:
            barrier.wait()
            return restore(person, 1 + number % 2, f"key {number}")

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(call, range(6)))
        done = [answer for answer in answers if answer.status_code == 200]
        assert [answer.headers.get("Idempotent-Replayed") for answer in done].count(None) == 1
        assert {(answer.text, answer.headers["ETag"]) for answer in done} == {(done[0].text, f'"user-{number + 3}"')}
        assert {(one.status_code, one.headers.get("Retry-After")) for one in answers if one not in done} <= {(409, "1")}
        assert versions(person) == number + 3
    assert "Traceback" not in server.log


@pytest.mark.parametrize("name", ["issue key", "create webhook"])
def test_of_concurrent_requests_for_a_secret_one_is_carried_out(name: str, server: RunningServer) -> None:
    person = RemotePerson.create(server, f"u_{uuid.uuid4().hex[:8]}")
    barrier = threading.Barrier(6)
    path, body, field = {
        "issue key": ("/users/me/keys", {"label": "phone"}, "key_id"),
        "create webhook": ("/webhooks", {"url": "https://hooks.example.com/memory"}, "webhook_id"),
    }[name]

    def call(_: int) -> requests.Response:
        barrier.wait()
        headers = {**person.headers, "Idempotency-Key": "k"}
        return requests.post(f"{server.url}{path}", json=body, headers=headers, timeout=60)

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(call, range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 5]
    (created,) = (answer.json()[field] for answer in answers if answer.status_code == 200)
    listed = requests.get(f"{server.url}{path}", headers=person.headers, timeout=30).json()
    (rows,) = listed.values()
    assert [row[field] for row in rows].count(created) == 1
    assert len(rows) == 1 + (name == "issue key")


@pytest.mark.slow
@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.torture)])
def test_a_request_that_is_repeated_until_it_is_answered_is_carried_out_once(tmp_path: Path, kills: int) -> None:
    """The server is killed at any time, also between the commit and the answer."""
    with running_server(tmp_path) as server:
        person, stop, answered = prepared(server), threading.Event(), []

        def client() -> None:
            while not stop.is_set():
                version, key = 1 + len(answered), str(uuid.uuid4())  # the one before the current; old ones are dropped
                while True:
                    try:
                        answer = restore(person, version, key)
                    except requests.RequestException:
                        time.sleep(0.02)
                        continue
                    if answer.status_code == 200:
                        answered.append(answer.headers["ETag"])
                        break
                    assert answer.status_code in {409, 503}, answer.text
                    time.sleep(0.02)

        with ThreadPoolExecutor(1) as pool:
            calling = pool.submit(client)
            for number in range(kills):
                time.sleep(0.3 + number % 7 / 10)
                server.kill()
                server.start()
            stop.set()
            calling.result(60)
        assert len(answered) > kills
        assert answered == [f'"user-{number + 3}"' for number in range(len(answered))]
        assert versions(person) == len(answered) + 2
