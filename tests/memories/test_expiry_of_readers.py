"""After its time nothing of what has expired is seen, over any interface, by the first read already."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts import expiry as bounds
from accounts.audit import Actor
from accounts.models import MemoryUser
from memories.models import Tombstone
from memories.services import decisions
from memories.services.lookup import MemoryRef
from operations import ledger, tables
from store import writes
from store.models import Memory, PendingEmbedding, Session, State
from store.vectors import fill
from tests.agents.rpc import direct
from tests.conftest import Person, make_person
from tests.memories.calls import call, id_of, say, search
from tests.memories.test_expiry import SECRET, add, later, message, step
from webhooks.models import Webhook, WebhookDelivery

__all__ = ["step"]
DERIVED = "the safe of alice opens with a yellow key, says a model"
PREFERENCE = "I like tea with a yellow label"
pytestmark = pytest.mark.django_db


def mcp(person: Person, tool: str, **arguments: Any) -> str:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"accept": "application/json, text/event-stream"}
    answer = person.client.post("/mcp", orjson.dumps(body), content_type="application/json", headers=headers)
    assert answer.status_code == 200, answer.content
    return str(answer.content.decode())


def tool(person: Person, name: str, **arguments: Any) -> str:
    return str(call(person, "post", "/tools/invoke", tool=name, args=arguments))


def page(path: str) -> str:
    client = Client()
    operator = User.objects.filter(username="root").first()
    client.force_login(operator or User.objects.create_superuser("root"))
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


DAYS = {"agentId": "main", "timeFrom": "2026-06-01T00:00:00Z", "timeTo": "2026-06-30T00:00:00Z"}
READERS: dict[str, Callable[[Person], str]] = {
    "search": lambda alice: str(search(alice, "yellow", scope=["all_user_memory"])),
    "list": lambda alice: str(call(alice, "get", "/memories")),
    "context": lambda alice: str(call(alice, "post", "/memories/context", query="yellow")),
    "sessions": lambda alice: str([one["memories"] for one in call(alice, "get", "/sessions")["sessions"]]),
    "recall": lambda alice: tool(alice, "memory_recall", query="yellow"),
    "mcp recall": lambda alice: mcp(alice, "memory_recall", query="yellow"),
    "mcp search": lambda alice: mcp(alice, "memory_search", query="yellow", scope=["all_user_memory"]),
    "mcp list": lambda alice: mcp(alice, "memory_list"),
    "rpc list": lambda _: str(direct.call(direct.of_operator(), "memory.admin.list", agentId="main", tab="full")),
    "rpc dashboard": lambda _: str(direct.call(direct.of_operator(), "memory.admin.dashboard", **DAYS)),
    "panel list": lambda _: page("/admin/memory/list/?tab=all"),
    "panel search": lambda _: page("/admin/memory/list/?tab=all&q=yellow"),
    "panel dashboard": lambda _: page("/admin/memory/"),
    "admin count": lambda _: page("/admin/store/daycount/"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("of", ["memory", "session"])
def test_a_reader_shows_it_until_its_time_and_never_after(
    alice: Person, step: Callable[..., None], reader: str, of: str
) -> None:
    at = later(hours=1)
    fields = {"expires_at": at} if of == "session" else {}
    said = message(alice, PREFERENCE, **({"expires_at": at} if of == "memory" else {}))
    add(alice, said | {"role": "assistant", "sender_id": "main"}, **fields)
    call(alice, "post", "/memories/flush", session_id="chat:c1")
    shown = READERS[reader](alice)
    is_count = reader in {"sessions", "admin count", "rpc dashboard", "panel dashboard"}
    assert is_count or "I like tea" in shown
    step(hours=1)
    after = READERS[reader](alice)
    assert "I like tea" not in after
    if reader == "sessions":
        assert after == ("[0]" if of == "memory" else "[]")
    row = Memory.objects.get(text=PREFERENCE)
    assert row.state == (State.EXPIRED if of == "memory" else State.LIVE)
    assert Tombstone.objects.get().is_expiry
    assert list(ledger.differences()) == []


def test_a_read_costs_no_statement_for_it(alice: Person) -> None:
    add(alice, message(alice, SECRET, expires_at=later(hours=1)))
    search(alice, "safe", scope=["all_user_memory"])
    with CaptureQueriesContext(connection) as queries:
        call(alice, "get", "/memories")
    about = [one["sql"] for one in queries if 'next_expiry_at" <' in one["sql"] or "next_expiry_at <" in one["sql"]]
    assert ["accounts_userkey" in statement for statement in about] == [True]


def test_a_read_fails_rather_than_showing_it_while_nothing_can_be_written(
    alice: Person, step: Callable[..., None]
) -> None:
    add(alice, message(alice, SECRET, expires_at=later(hours=1)))
    step(hours=1)

    def refuse(**_: Any) -> None:
        raise OperationalError("database is locked")

    bounds.due.connect(refuse)
    try:
        refused = call(alice, "get", "/memories", status=503)
    finally:
        bounds.due.disconnect(refuse)
    assert SECRET not in str(refused)


def derive(person: Person) -> None:
    source = Memory.objects.get(text=SECRET)
    row = Memory(
        memory_id="derived",
        session=source.session,
        memory_type=Memory.Type.EPISODE,
        category="user_memory_fact",
        sender_id=person.user_id,
        text=DERIVED,
        original_text=DERIVED,
        sources=[source.memory_id],
        created_at_ms=source.created_at_ms,
        seq=9,
        origin=Memory.Origin.EXTRACTED,
    )
    writes.insert(person.owner, [row])


def test_what_was_derived_goes_and_comes_back_with_it(alice: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET, expires_at=later(hours=1)))
    derive(alice)
    assert DERIVED in str(search(alice, "yellow", scope=["all_user_memory"]))
    step(hours=1)
    assert search(alice, "yellow", scope=["all_user_memory"])["results"] == []
    call(alice, "post", f"/memories/{id_of(SECRET)}/restore", expires_at=None)
    assert DERIVED in str(search(alice, "yellow", scope=["all_user_memory"]))


def test_webhooks_hear_of_it_by_id(alice: Person, step: Callable[..., None]) -> None:
    user = MemoryUser.objects.get(pk=alice.user_pk)
    Webhook.objects.create(user=user, url="https://hooks.example.com", events=["memory.expired", "session.expired"])
    add(alice, message(alice, SECRET, expires_at=later(hours=1)))
    add(alice, message(alice, "more"), session_id="chat:c2", expires_at=later(hours=1))
    memory_id = id_of(SECRET)
    step(hours=1)
    bounds.end_all_due()
    found = {one.event_type: one.data for one in WebhookDelivery.objects.all()}
    assert found["memory.expired"]["memory_ids"] == [memory_id]
    assert found["session.expired"]["session_ids"] == ["chat:c2"]
    assert SECRET not in str(found)


def test_no_model_reads_it(alice: Person, step: Callable[..., None]) -> None:
    add(alice, message(alice, SECRET, expires_at=later(hours=1)))
    PendingEmbedding.objects.create(memory=Memory.objects.get())
    assert fill.pending().count() == 1
    step(hours=1)
    bounds.end_all_due()
    assert fill.pending().count() == 0
    call(alice, "post", f"/memories/{id_of(SECRET)}/restore", expires_at=None)
    assert fill.pending().count() == 1


def test_an_archive_keeps_the_time_and_a_restored_one_shows_nothing_that_expired_since(
    alice: Person, step: Callable[..., None], tmp_path: Path
) -> None:
    add(alice, message(alice, SECRET, expires_at=later(hours=1)))
    add(alice, message(alice, "of the session"), session_id="chat:c2", expires_at=later(hours=2))
    archive = tmp_path / "all.tar"
    call_command("export_memory", str(archive), "--all", stdout=StringIO(), stderr=StringIO())
    times = list(Memory.objects.order_by("pk").values_list("expires_at", flat=True))
    user = MemoryUser.objects.get(pk=alice.user_pk)
    bound = user.next_expiry_at
    tables.remove_rows(user)
    tables.remove_user(user)
    call_command("import_memory", str(archive), stdout=StringIO(), stderr=StringIO())
    assert list(Memory.objects.order_by("pk").values_list("expires_at", flat=True)) == times
    assert MemoryUser.objects.get().next_expiry_at == bound
    step(hours=2)
    assert search(make_person("alice"), "safe session", scope=["all_user_memory"])["results"] == []
    expired = tmp_path / "expired.tar"
    call_command("export_memory", str(expired), "--all", stdout=StringIO(), stderr=StringIO())
    for one in (archive, expired):
        call_command("import_memory", str(one), "--on-conflict", "replace", stdout=StringIO(), stderr=StringIO())
        assert search(make_person("alice"), "safe session", scope=["all_user_memory"])["results"] == []
        assert Memory.objects.get(text=SECRET).state == State.EXPIRED
        assert list(ledger.differences()) == []


def test_a_bulk_restore_leaves_out_what_has_expired(alice: Person, step: Callable[..., None]) -> None:
    say(alice, "chat:c1", SECRET, "another")
    call(alice, "patch", f"/memories/{id_of(SECRET)}", expires_at=later(hours=1))
    call(alice, "delete", f"/memories/{id_of('another')}")
    step(hours=1)
    bounds.end_all_due()
    rows = list(Memory.objects.values_list("pk", flat=True))
    assert len(decisions.restore_many(rows, actor=Actor.command("tests"))) == 1
    states = dict(Memory.objects.values_list("text", "state"))
    assert states == {SECRET: State.EXPIRED, "another": State.LIVE}


def test_many_that_are_due_at_once_end_before_the_answer(alice: Person, step: Callable[..., None]) -> None:
    say(alice, "chat:c1", "first")
    first = Memory.objects.get()
    rows = [
        Memory(
            memory_id=f"m{number}",
            session=first.session,
            memory_type=Memory.Type.EPISODE,
            text=f"yellow {number}",
            created_at_ms=first.created_at_ms + number,
            seq=number,
            expires_at=first.session.created_at if first.session else None,
        )
        for number in range(1, 4_502)
    ]
    writes.insert(alice.owner, rows)
    assert call(alice, "get", "/memories")["memories"][0]["text"] == "first"
    assert Memory.objects.filter(state=State.EXPIRED).count() == 4_501
    assert MemoryUser.objects.get().next_expiry_at is None
    assert decisions.delete(alice.user_pk, MemoryRef("m1"), actor=Actor.command("tests")).actor == "tests"


def test_the_panel_marks_and_filters_what_has_expired(
    alice: Person, step: Callable[..., None], admin_client: Client
) -> None:
    say(alice, "chat:c1", PREFERENCE, "deleted by alice")
    add(alice, message(alice, "a whole session"), session_id="chat:c2", expires_at=later(hours=1))
    call(alice, "patch", f"/memories/{id_of(PREFERENCE)}", expires_at=later(hours=1))
    call(alice, "delete", f"/memories/{id_of('deleted by alice')}")
    step(hours=1)
    admin_client.force_login(User.objects.get())  # the session of an operator has ended in that hour
    row = Memory.objects.get(text=PREFERENCE).pk

    def trash(**query: str) -> str:
        return admin_client.get("/admin/memory/trash/", query).content.decode()

    assert "I like tea" in trash()
    assert "deleted by alice" in trash()
    assert "I like tea" in trash(cause="expired")
    assert "deleted by alice" not in trash(cause="expired")
    assert "I like tea" not in trash(cause="deleted")
    assert "chat:c2" in trash(kind="sessions", cause="expired")
    assert "chat:c2" not in trash(kind="sessions", cause="deleted")
    refused = admin_client.post(f"/admin/memory/m/{row}/restore/")
    assert refused.status_code == 422
    assert "Expired" in admin_client.get(f"/admin/memory/m/{row}/").content.decode()
    rows = list(Memory.objects.filter(text__in=[PREFERENCE, "deleted by alice"]).values_list("pk", flat=True))
    shown = admin_client.post("/admin/memory/bulk/", {"do": "restore", "id": rows, "in_trash": "1"}, follow=True)
    assert "1 memory stays in the trash" in shown.content.decode()
    assert admin_client.post(f"/admin/memory/m/{row}/restore/", {"expires_at": ""}).status_code == 302
    assert Memory.objects.get(pk=row).state == State.LIVE


def test_mcp_sets_the_time_of_a_session_and_restores_with_a_new_one(alice: Person, step: Callable[..., None]) -> None:
    mcp(alice, "session_add", session_id="chat:c1", messages=[{"role": "user", "content": SECRET}])
    mcp(
        alice,
        "session_add",
        session_id="chat:c2",
        messages=[{"role": "user", "content": "x"}],
        expires_at=later(days=1),
    )
    assert Session.objects.get(session_id="chat:c2").expires_at is not None
    memory_id = id_of(SECRET)
    call(alice, "patch", f"/memories/{memory_id}", expires_at=later(hours=1))
    step(hours=1)
    assert "expires_at" in mcp(alice, "memory_restore", memory_id=memory_id)
    assert Memory.objects.get(memory_id=memory_id).state == State.EXPIRED
    mcp(alice, "memory_restore", memory_id=memory_id, expires_at=later(hours=1))
    assert Memory.objects.get(memory_id=memory_id).state == State.LIVE
