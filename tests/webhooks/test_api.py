"""/webhooks: what callers configure, and that no other user sees or changes it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from accounts.audit import Actor
from accounts.models import AuditEvent, MemoryUser
from operations import erase
from tests.conftest import Person
from tests.memories.calls import call, say
from tests.webhooks.calls import create, deliver
from tests.webhooks.receiver import Receiver
from webhooks.models import Webhook, WebhookDelivery

pytestmark = pytest.mark.django_db(transaction=True)

URL = "https://hooks.example.com/memory"
FIELDS = ["webhook_id", "url", "events", "is_enabled", "created_at", "previous_secret_expires_at"]


def test_the_secret_is_shown_once(alice: Person) -> None:
    created = call(alice, "post", "/webhooks", url=URL, events=["memory.deleted"])
    assert list(created) == [*FIELDS, "secret"]
    assert created["secret"].startswith("whsec_")
    address = f"/webhooks/{created['webhook_id']}"
    listed = call(alice, "get", "/webhooks")["webhooks"]
    assert listed == [call(alice, "get", address)]
    assert listed[0] == {name: created[name] for name in FIELDS}
    assert created["secret"] not in str(Webhook.objects.values())
    rotated = call(alice, "post", f"{address}/rotate-secret")
    assert rotated["secret"] != created["secret"]
    assert rotated["previous_secret_expires_at"]
    assert "secret" not in call(alice, "get", address)


def test_a_webhook_changes_in_parts(alice: Person) -> None:
    created = call(alice, "post", "/webhooks", url=URL, events=["memory.deleted"])
    address = f"/webhooks/{created['webhook_id']}"
    assert call(alice, "patch", address, url=f"{URL}2")["events"] == ["memory.deleted"]
    assert call(alice, "patch", address, events=[])["url"] == f"{URL}2"
    assert call(alice, "patch", address, is_enabled=False)["is_enabled"] is False
    assert call(alice, "patch", address) == call(alice, "get", address)
    assert call(alice, "delete", address) == {"webhook_id": created["webhook_id"], "status": "deleted"}
    call(alice, "get", address, status=404)
    actions = [f"webhook.{verb}" for verb in ("create", "change", "change", "change", "delete")]
    found = AuditEvent.objects.filter(subject_type="webhook").order_by("pk")
    assert [event.action for event in found] == actions
    assert "example" not in str(list(found.values()))


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/",
        "http://127.0.0.1.example.com/",
        "http://localhost@example.com/",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[fd00::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://user:password@hooks.example.com/",
        "ftp://hooks.example.com/",
        "file:///etc/passwd",
        "https://",
        "https://[",
        "hooks",
        "",
        "https://h.example.com/" + "x" * 2048,
    ],
)
def test_addresses_that_must_not_be_called_are_refused(alice: Person, url: str) -> None:
    assert call(alice, "post", "/webhooks", status=422, url=url)["errors"][0]["field"] == "url"
    created = call(alice, "post", "/webhooks", url=URL)
    call(alice, "patch", f"/webhooks/{created['webhook_id']}", status=422, url=url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/", "http://localhost/", "https://localhost/", "https://[::1]/"])
def test_loopback_is_for_gateways_that_serve_their_own_machine_only(alice: Person, settings: Any, url: str) -> None:
    webhook = call(alice, "post", "/webhooks", url=url)
    for host, token in (("127.0.0.1", "a token"), ("::", "a token"), ("::", "")):
        settings.MEMORY_GATEWAY_HOST, settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = host, token
        call(alice, "post", "/webhooks", status=422, url=url)
        call(alice, "patch", f"/webhooks/{webhook['webhook_id']}", status=422, url=url)


def test_an_operator_can_allow_a_private_host(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = "a token"
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = ["localhost"]
    call(alice, "post", "/webhooks", url="https://localhost/")
    call(alice, "post", "/webhooks", status=422, url="http://localhost/")


def test_events_are_checked(alice: Person) -> None:
    for events in (["memory.vanished"], ["memory.added", "memory.added"], "memory.added", ["webhook.test"]):
        call(alice, "post", "/webhooks", status=422, url=URL, events=events)


def test_a_user_has_at_most_ten(alice: Person, bob: Person) -> None:
    for _ in range(10):
        created = call(alice, "post", "/webhooks", url=URL)
    assert "at most 10" in call(alice, "post", "/webhooks", status=409, url=URL)["detail"]
    call(bob, "post", "/webhooks", url=URL)
    call(alice, "delete", f"/webhooks/{created['webhook_id']}")
    call(alice, "post", "/webhooks", url=URL)


def test_a_test_and_its_delivery(alice: Person, receiver: Receiver) -> None:
    webhook = create(alice, receiver, "memory.deleted")
    address = f"/webhooks/{webhook['webhook_id']}"
    tested = call(alice, "post", f"{address}/test")
    assert (tested["event"], tested["status"], tested["sequence"]) == ("webhook.test", "pending", None)
    deliver(webhook)
    data = {"user_id": "alice", "webhook_id": webhook["webhook_id"]}
    assert [request.event["data"] for request in receiver.requests] == [data]
    [listed] = call(alice, "get", f"{address}/deliveries")["deliveries"]
    assert listed["delivery_id"] == tested["delivery_id"]
    assert (listed["status"], listed["status_code"], listed["attempts"], listed["sequence"]) == ("delivered", 204, 1, 1)
    call(alice, "patch", address, is_enabled=False)
    call(alice, "post", f"{address}/test", status=409)


def test_deliveries_come_in_pages(alice: Person, receiver: Receiver) -> None:
    webhook = create(alice, receiver)
    address = f"/webhooks/{webhook['webhook_id']}"
    made = [call(alice, "post", f"{address}/test")["delivery_id"] for _ in range(5)]
    found, cursor = [], {}
    while cursor is not None:
        page = call(alice, "get", f"{address}/deliveries", limit=2, **cursor)
        found += [one["delivery_id"] for one in page["deliveries"]]
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    assert found == made[::-1]
    deliver(webhook)
    call(alice, "post", f"{address}/test")
    answer = alice.client.get(f"{address}/deliveries", {"status": "pending"}).json()
    assert [one["attempts"] for one in answer["deliveries"]] == [0]
    call(alice, "get", f"{address}/deliveries", status=422, cursor="nonsense")


def test_other_users_get_404(alice: Person, bob: Person, receiver: Receiver) -> None:
    webhook = create(alice, receiver)
    create(bob, receiver)
    address = f"/webhooks/{webhook['webhook_id']}"
    for method, path in (
        ("get", address),
        ("patch", address),
        ("delete", address),
        ("post", f"{address}/rotate-secret"),
        ("post", f"{address}/test"),
        ("get", f"{address}/deliveries"),
        ("get", f"/webhooks/{uuid4()}"),
    ):
        call(bob, method, path, status=404)
    assert webhook["webhook_id"] not in str(call(bob, "get", "/webhooks"))
    assert call(alice, "get", address)["is_enabled"]


def test_erasing_a_user_ends_the_webhooks(alice: Person, bob: Person, receiver: Receiver) -> None:
    webhooks = {person.user_id: create(person, receiver) for person in (alice, bob)}
    for person in (alice, bob):
        say(person, "chat:c1", "Tea.")
    receipt = erase.erase(alice.user_pk, actor=Actor.command("tests"))
    assert (receipt["removed"]["webhooks"], receipt["removed"]["webhook_deliveries"]) == (1, 1)
    assert [str(pk) for pk in Webhook.objects.values_list("pk", flat=True)] == [webhooks["bob"]["webhook_id"]]
    assert set(WebhookDelivery.objects.values_list("user_id", flat=True)) == {bob.user_pk}
    assert deliver(webhooks["alice"]) == 0
    assert deliver(webhooks["bob"]) == 1
    assert [request.event["data"]["user_id"] for request in receiver.requests] == ["bob"]


def test_an_interrupted_erasure_sends_nothing(alice: Person, receiver: Receiver) -> None:
    webhook = create(alice, receiver)
    say(alice, "chat:c1", "Tea.")
    erase._begin(alice.user_pk, Actor.command("tests"))
    assert MemoryUser.objects.filter(pk=alice.user_pk).exists()
    assert deliver(webhook) == 0
    assert receiver.requests == []


def test_a_webhook_deleted_meanwhile_does_not_fail_the_change(alice: Person, receiver: Receiver) -> None:
    """A recorded delivery needs no webhook, so that a concurrent deletion cannot undo the change."""
    webhook = create(alice, receiver)
    WebhookDelivery.objects.create(webhook_id=uuid4(), user_id=alice.user_pk, event_type="memory.deleted")
    assert deliver(webhook) == 0
    erase.erase(alice.user_pk, actor=Actor.command("tests"))
    assert not WebhookDelivery.objects.exists()
