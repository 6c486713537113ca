"""Events of the audit trail: their users, repeated reads, the source of a request, and what needs no credentials."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, connections
from django.test import Client
from django.utils import timezone

from accounts import audit, services, sign_in
from accounts.audit import Actor, Source, record, record_anonymous, record_opening
from accounts.models import AuditEvent, AuditSubject
from console.queries import trail_of
from core.background.tasks import Round
from operations.tasks import clean_up

OPERATOR = Actor.operator("op")
HERE = Source("203.0.113.7", "Firefox", "/admin/memory/list/")

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def request_source() -> Iterator[None]:
    token = audit.source.set(HERE)
    yield
    audit.source.reset(token)


def users_of(event: AuditEvent) -> list[str]:
    return sorted(event.subjects.values_list("user_id", flat=True))


def test_each_user_has_one_row_whatever_their_number() -> None:
    names = [f"user-{number}" for number in range(3_000)]
    record(OPERATOR, "memory.list", users=[*names, *names])
    event = AuditEvent.objects.get()
    assert users_of(event) == sorted(names)
    assert (event.address, event.client, event.detail) == ("203.0.113.7", "Firefox", {})


def test_a_repeated_read_raises_the_count(django_assert_num_queries: Any) -> None:
    locks = connection.vendor == "postgresql"
    with django_assert_num_queries(3 + locks):
        record(OPERATOR, "memory.list", users=["a", "b"])
    with django_assert_num_queries(1 + locks):
        record(OPERATOR, "memory.list", users=["b", "a"])
    event = AuditEvent.objects.get()
    assert event.count == 2
    assert event.last_at is not None
    assert event.last_at > event.at - timedelta(seconds=2)
    AuditEvent.objects.update(at=timezone.now() - audit.SAME_FOR)
    record(OPERATOR, "memory.list", users=["a", "b"])
    assert list(AuditEvent.objects.order_by("pk").values_list("count", flat=True)) == [2, 1]


@pytest.mark.parametrize(
    "other",
    [
        {"actor": Actor.operator("other")},
        {"users": ["a", "c"]},
        {"users": ["a"]},
        {"detail": {"q_chars": 3}},
        {"subject_id": "m2"},
        {"source": HERE._replace(address="198.51.100.1")},
        {"source": HERE._replace(client="curl")},
        {"source": HERE._replace(page="/admin/memory/list/?q=other+words")},
    ],
)
def test_a_read_that_differs_is_another_event(other: dict[str, Any]) -> None:
    given = {"actor": OPERATOR, "subject_id": "m1", "users": ["a", "b"], "detail": {"q_chars": 4}}
    record(given.pop("actor"), "memory.view", **given)  # type: ignore[arg-type]
    audit.source.set(other.pop("source", HERE))
    again = {"actor": OPERATOR, **given, **other}
    record(again.pop("actor"), "memory.view", **again)  # type: ignore[arg-type]
    assert list(AuditEvent.objects.values_list("count", flat=True)) == [1, 1]


def test_changes_are_never_counted_together() -> None:
    for _ in range(2):
        record(OPERATOR, "memory.delete", "m", user_id="a")
    assert list(AuditEvent.objects.values_list("count", flat=True)) == [1, 1]
    assert AuditSubject.objects.filter(user_id="a").count() == 2


@pytest.mark.django_db(transaction=True)
def test_concurrent_reads_are_one_event() -> None:
    start = threading.Barrier(8)

    def read() -> None:
        audit.source.set(HERE)
        try:
            start.wait()
            for _ in range(5):
                record(OPERATOR, "memory.list", users=["a", "b"])
        finally:
            connections.close_all()

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    event = AuditEvent.objects.get()
    assert event.count == 40
    assert users_of(event) == ["a", "b"]


def test_what_one_opening_of_the_palette_lists_is_one_event() -> None:
    for opening, users in (("opening1", {"a"}), ("opening1", {"a", "b"}), ("opening2", {"a"})):
        record_opening(OPERATOR, "panel.find", opening, users, subject_type="user", detail={"opening": opening})
    first, second = AuditEvent.objects.order_by("pk")
    assert (users_of(first), first.count, first.user_id) == (["a", "b"], 2, "")
    assert (users_of(second), second.count) == (["a"], 1)


def test_the_client_is_cut_and_has_no_secrets() -> None:
    found = Source.of("::1", f"agent\r\nuk_{'a' * 43} {'x' * 1_000}")
    assert len(found.client) == audit.MAX_CLIENT_CHARS
    assert "uk_" not in found.client
    assert found.client.isprintable()


def test_a_page_records_address_and_client_of_the_operator(admin_client: Client, alice: Any) -> None:
    headers = {"User-Agent": "Mozilla/5.0 (test)"}
    admin_client.get("/admin/memory/users/", headers=headers, REMOTE_ADDR="198.51.100.20")
    event = AuditEvent.objects.get(action="user.list")
    assert (event.address, event.client) == ("198.51.100.20", "Mozilla/5.0 (test)")


@contextmanager
def editor_in_transaction() -> Iterator[Any]:
    """Yield an editor of the schema, which SQLite's own refuses to be within a transaction."""
    yield connection.SchemaEditorClass(connection, atomic=False)


def test_the_users_of_older_events_get_their_rows() -> None:
    one = AuditEvent.objects.create(action="memory.view", user_id="a", detail={"x": 1})
    several = AuditEvent.objects.create(action="memory.list", detail={"users": ["a", "b", "a"], "filter": {}})
    both = AuditEvent.objects.create(action="memory.list", user_id="c", detail={"users": ["c"]})
    migration = import_module("accounts.migrations.0009_users_of_audit_events")
    with editor_in_transaction() as editor:
        migration.add_subjects(apps, editor)
    found = {(row.event_id, row.user_id) for row in AuditSubject.objects.all()}
    assert found == {(one.pk, "a"), (several.pk, "a"), (several.pk, "b"), (both.pk, "c")}
    assert list(AuditEvent.objects.order_by("pk").values_list("detail", flat=True)) == [{"x": 1}, {"filter": {}}, {}]


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="other databases have no rolling upgrades")
def test_events_that_the_version_before_deletes_leave_no_rows() -> None:
    record(OPERATOR, "memory.list", users=["a", "b"])
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM accounts_auditevent")
    assert not AuditSubject.objects.exists()


# --- what needs no credentials ---------------------------------------------------------------------------------------


def fail(client: Client, name: str, address: str = "198.51.100.9") -> None:
    client.post("/admin/login/", {"username": name, "password": "wrong"}, REMOTE_ADDR=address)


def test_failed_sign_ins_are_counted_in_one_event(client: Client, django_user_model: Any) -> None:
    django_user_model.objects.create_user("Maria", is_staff=True)
    for _ in range(8):  # from the sixth on the name is locked
        fail(client, "maria")
    event = AuditEvent.objects.get(action="operator.fail_sign_in")
    assert (event.count, event.kind, event.subject_id) == (8, "sign_in", "Maria")
    assert (event.address, event.detail["network"]) == ("198.51.100.9", "198.51.100.9")


def test_a_name_that_no_operator_has_may_be_a_password_and_is_not_recorded(client: Client) -> None:
    for name in ("hunter2", "correct horse"):
        fail(client, name)
    event = AuditEvent.objects.get(action="operator.fail_sign_in")
    assert (event.count, event.subject_id) == (2, "")
    assert "hunter2" not in str(vars(event))


def test_many_addresses_leave_a_bounded_number_of_events() -> None:
    for number in range(1_000):
        sign_in.record_failure("x", f"10.{number // 250}.{number % 250}.1")
    events = AuditEvent.objects.filter(action="operator.fail_sign_in").order_by("pk")
    assert len(events) == audit.ANONYMOUS_EVENTS + 1
    last = events[audit.ANONYMOUS_EVENTS]
    assert (last.count, last.detail, last.address) == (1_000 - audit.ANONYMOUS_EVENTS, {"others": True}, "")


def test_events_without_credentials_are_deleted_after_90_days() -> None:
    record_anonymous(Actor.provisioning(), "provisioning.refuse", "10.0.0.1", subject_type="address")
    record(OPERATOR, "operator.sign_in", "op")
    assert audit.delete_old(timezone.now() + timedelta(days=89)) == 0
    assert audit.delete_old(timezone.now() + timedelta(days=91)) == 1
    assert AuditEvent.objects.get().action == "operator.sign_in"


# --- the short names of keys -----------------------------------------------------------------------------------------


def test_a_key_has_one_name_that_finds_what_it_did(admin_client: Client, alice: Any) -> None:
    key = services.keys_of(alice.user_pk)[0]
    record(Actor.key(services.Principal(alice.user_pk, "alice", key.pk)), "memory.delete", "m", user_id="alice")
    for actor in (key.prefix, f"{key.prefix}…", str(key.pk), str(key.pk)[:8]):
        page = admin_client.get("/admin/memory/audit/", {"tab": "all", "actor": actor}, follow=True).content.decode()
        assert "Deleted memories" in page, actor
        assert f"<code>{key.prefix}…</code></a>" in page
    user_page = admin_client.get(f"/admin/memory/users/{alice.user_pk}/").content.decode()
    assert f'href="/admin/memory/audit/?tab=all&amp;actor={key.prefix}"' in user_page
    found = admin_client.get("/admin/memory/find/", {"q": key.prefix}).content.decode()
    assert f"{key.prefix}…" in found
    assert f"actor={key.prefix}" in found
    by_id = admin_client.get("/admin/memory/find/", {"q": str(key.pk)})
    assert by_id.headers["Location"] == f"/admin/memory/users/{alice.user_pk}/"


def test_a_pasted_key_does_not_stand_in_the_trail(admin_client: Client, alice: Any) -> None:
    page = admin_client.get(
        "/admin/memory/audit/", {"tab": "all", "actor": alice.user_key}, follow=True
    ).content.decode()
    assert alice.user_key not in page
    assert alice.user_key not in str(list(AuditEvent.objects.values()))


def test_events_of_an_older_process_come_into_the_trail_of_their_users_once() -> None:
    record(OPERATOR, "user.view", user_id="alice")
    columns = {"actor_kind": "operator", "actor": "op", "subject_type": "memory"}
    AuditEvent.objects.create(**columns, action="memory.delete", user_id="alice", subject_id="m_1")
    AuditEvent.objects.create(**columns, action="memory.export", detail={"users": ["alice", "bob"], "count": 2})
    AuditEvent.objects.create(**columns, action="job.run", detail={"users": 2})
    nameless = AuditEvent.objects.create(**columns, action="search.list")
    assert [event.action for event in trail_of("alice")] == ["user.view"]
    for _ in range(2):
        clean_up(Round())
        assert sorted(event.action for event in trail_of("alice")) == ["memory.delete", "memory.export", "user.view"]
        assert [event.action for event in trail_of("bob")] == ["memory.export"]
    assert AuditEvent.objects.get(action="memory.export").detail == {"count": 2}
    assert users_of(nameless) == []
