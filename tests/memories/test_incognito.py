"""An incognito session: begun by its first add, ended once, and then gone."""

from __future__ import annotations

import base64
import io
import zipfile
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import IdempotencyKey, MemoryUser
from core.errors import EngineUnavailable
from engines.embedded.extraction import due_extractions
from engines.registry import get_engine
from memories.models import LoggedSearch, Tombstone
from memories.services import search_log
from operations import person_export, tasks
from operations.cleanup import incognito
from remote.models import OutboxEntry
from resources.models import Attachment
from store import browse, rollups
from store.browse import Selection
from store.models import Memory, PendingEmbedding, Session
from store.types import Owner
from store.vectors import fill
from tests.agents.mcp.test_tools import Agent
from tests.conftest import Person
from tests.memories.calls import call
from tests.portal.visits import visit

pytestmark = pytest.mark.django_db(transaction=True)

WORD = "zanzibar"
SESSION = "chat:secret"


def add(person: Person, text: str, *, status: int = 200, session_id: str = SESSION, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return call(person, "post", "/memories/add", status=status, session_id=session_id, messages=messages, **fields)


def session() -> Session:
    return Session.objects.get(session_id=SESSION)


def test_only_the_first_add_makes_a_session_incognito(alice: Person) -> None:
    add(alice, "I like tea.", session_id="chat:open")
    assert (
        add(alice, "And more.", session_id="chat:open", incognito=True, status=422)["errors"][0]["field"] == "incognito"
    )
    assert Session.objects.get().incognito_until is None
    add(alice, f"I like {WORD}.", incognito=True)
    before = session().incognito_until
    add(alice, "And more.", incognito=False)
    after = session().incognito_until
    assert before is not None
    assert after is not None
    assert after > before


def test_a_first_add_that_is_refused_makes_it_incognito_all_the_same(alice: Person) -> None:
    add(alice, " ", incognito=True)
    assert session().incognito_until is not None


@pytest.mark.parametrize("end", ["delete", "flush", "time"])
def test_a_session_ends_and_is_purged(alice: Person, end: str, storage: Path) -> None:
    data = base64.b64encode(WORD.encode()).decode()
    file = {"type": "doc", "name": f"{WORD}.txt", "ext": "txt", "base64": data}
    messages = [{"role": "user", "content": [{"type": "text", "text": f"I like {WORD}."}, file]}]
    alice.client.post(
        "/memories/add",
        {"session_id": SESSION, "messages": messages, "incognito": True},
        "application/json",
        headers={"idempotency-key": "one"},
    )
    assert Memory.objects.count() == 2
    assert IdempotencyKey.objects.count() == 1
    if end == "delete":
        call(alice, "delete", f"/sessions/{SESSION}", reason=f"Not {WORD}.")
    elif end == "flush":
        call(alice, "post", "/memories/flush", session_id=SESSION, end=True)
    else:
        Session.objects.update(incognito_until=timezone.now() - timedelta(seconds=1))
    assert add(alice, "One more.", status=409)["code"] == "session_ended"
    assert incognito.purge_ended() == 1
    for model in (Memory, IdempotencyKey, Attachment, Tombstone, PendingEmbedding, OutboxEntry):
        assert not model._default_manager.exists(), model
    assert not [path for path in storage.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]
    assert WORD not in words_in_tables()
    for fields in ({}, {"incognito": True}):
        assert add(alice, "One more.", status=409, **fields)["code"] == "session_ended"
    assert incognito.purge_ended() == 0
    assert timedelta(seconds=30) >= tasks.INCOGNITO_EVERY


def words_in_tables() -> str:
    with connection.cursor() as cursor:
        found = []
        for table in set(connection.introspection.table_names(cursor)) - {"store_keywords"}:  # its parts are tables
            cursor.execute(f'SELECT * FROM "{table}"')
            found += cursor.fetchall()
    return str(found)


def test_an_interrupted_purge_is_carried_out_again(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    add(alice, f"I like {WORD}.", incognito=True)
    call(alice, "post", "/memories/flush", session_id=SESSION, end=True)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(incognito, "record", fail)
        with pytest.raises(RuntimeError):
            incognito.purge_ended()
    assert incognito.ended(timezone.now()).exists()
    assert incognito.purge_ended() == 1
    assert WORD not in words_in_tables()


def test_a_purge_that_fails_stops_no_other(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["chat:1", "chat:2", "chat:3"]
    for name in names:
        add(alice, f"I like {WORD}.", session_id=name, incognito=True)
        call(alice, "post", "/memories/flush", session_id=name, end=True)
    engine = get_engine()
    delete = engine.delete

    def fail_once(owner: Owner, session_id: str) -> None:
        if session_id == "chat:2":
            raise EngineUnavailable("The database is busy.")
        delete(owner, session_id)

    with monkeypatch.context() as patched:
        patched.setattr(type(engine), "delete", staticmethod(fail_once))
        with pytest.raises(EngineUnavailable):
            incognito.purge_ended()
    assert list(incognito.ended(timezone.now()).values_list("session_id", flat=True)) == ["chat:2"]
    assert incognito.purge_ended() == 1


def test_no_model_gets_its_messages(alice: Person) -> None:
    add(alice, f"I like {WORD}.", incognito=True)
    call(alice, "post", "/memories/flush", session_id=SESSION)
    PendingEmbedding.objects.bulk_create(
        [PendingEmbedding(memory=memory) for memory in Memory.objects.all()], ignore_conflicts=True
    )
    assert not fill.pending().exists()
    assert not due_extractions(timezone.now()).exists()


def test_an_archive_has_nothing_of_an_incognito_session_but_its_id(
    alice: Person, tmp_path: Path, storage: Path
) -> None:
    data = base64.b64encode(WORD.encode()).decode()
    file = {"type": "doc", "name": f"{WORD}.txt", "ext": "txt", "base64": data}
    call(
        alice, "post", "/memories/add", session_id=SESSION, incognito=True,
        messages=[{"role": "user", "content": [{"type": "text", "text": f"I like {WORD}."}, file]}],
    )  # fmt: skip
    first, second = Memory.objects.order_by("pk")
    call(alice, "patch", f"/memories/{first.memory_id}", override_text=f"I love {WORD}.")
    call(alice, "delete", f"/memories/{second.memory_id}", reason=f"No {WORD}.")
    add(alice, "I like tea.", session_id="chat:open")
    archive = tmp_path / "all.tar"
    call_command("export_memory", str(archive), "--all", verbosity=0)
    assert WORD.encode() not in archive.read_bytes()
    assert b"I like tea." in archive.read_bytes()
    call_command("import_memory", str(archive), "--on-conflict", "replace", verbosity=0)
    assert list(Memory.objects.values_list("text", flat=True)) == ["I like tea."]
    assert add(alice, "One more.", status=409)["code"] == "session_ended"


def test_a_fact_said_elsewhere_too_is_not_lost_with_it(alice: Person) -> None:
    add(alice, "Hello.", incognito=True)
    call(alice, "post", "/memories", status=201, text=f"Likes {WORD}", session_id=SESSION)
    call(alice, "post", "/memories", status=200, text=f"Likes {WORD}", session_id=SESSION)
    call(alice, "post", "/memories", status=201, text=f"Likes {WORD}")
    call(alice, "post", "/memories/flush", session_id=SESSION, end=True)
    incognito.purge_ended()
    assert list(Memory.objects.values_list("text", flat=True)) == [f"Likes {WORD}"]


@pytest.mark.parametrize("conversation", [SESSION, "secret"])
def test_the_search_log_has_no_words_of_it(alice: Person, settings: Any, conversation: str) -> None:
    settings.MEMORY_GATEWAY_LOG_QUERIES = True
    add(alice, "Hello.", incognito=True)
    call(alice, "post", "/memories/search", query=f"Where is {WORD}?", conversation_id=conversation)
    search_log.write()
    assert WORD not in words_in_tables()
    call(alice, "post", "/memories/flush", session_id=SESSION, end=True)
    incognito.purge_ended()
    call(alice, "post", "/memories/search", query=f"Where is {WORD}?", conversation_id=conversation)
    call(alice, "post", "/memories/search", query="tea", conversation_id="other")
    search_log.write()
    assert set(LoggedSearch.objects.values_list("query", flat=True)) == {"", "tea"}


def test_only_the_session_itself_finds_its_texts(alice: Person, admin_client: Client) -> None:
    add(alice, f"I like {WORD}.", incognito=True)
    add(alice, "I like tea.", session_id="chat:open")
    call(alice, "post", "/memories", status=201, text=f"Likes {WORD}", session_id=SESSION)

    def found(**fields: Any) -> list[str]:
        answer = call(alice, "post", "/memories/search", query=f"Who likes {WORD}?", min_relevance=0, **fields)
        return sorted(one["text"] for one in answer["results"])

    assert f"I like {WORD}." in found(conversation_id="secret")
    assert f"I like {WORD}." in found(conversation_id="secret", scope=["current_chat"])
    assert f"I like {WORD}." in found(conversation_id=SESSION, scope=["all_user_memory"])
    now = timezone.now().isoformat()
    for fields in ({}, {"conversation_id": "open"}, {"as_of": now}, {"filters": {"session_id": SESSION}}):
        assert WORD not in str(found(scope=["all_user_memory"], **fields)), fields
    assert WORD not in str(call(alice, "get", "/memories"))
    assert WORD in str(call(alice, "get", "/memories", session_id=SESSION))
    agent = Agent(alice)
    for name, arguments in (
        ("memory_search", {"query": WORD}),
        ("memory_list", {}),
        ("memory_context", {"query": f"Who likes {WORD}?"}),
        ("memory_context", {}),
    ):
        assert WORD not in str(agent.call(name, **arguments)).replace(f"Who likes {WORD}?", ""), name
    here = visit(alice)
    for path in ("", "conversations", f"?q={WORD}", f"memories/forget?q={WORD}"):
        assert f"ikes {WORD}" not in here.get(f"/portal/{path}"), path
    assert WORD not in admin_client.get(reverse("console:memories")).content.decode()
    user = MemoryUser.objects.get(pk=alice.user_pk)
    packed = zipfile.ZipFile(io.BytesIO(b"".join(person_export.export(user, person_export.Words.now(user.user_id)))))
    assert not [name for name in packed.namelist() if WORD.encode() in packed.read(name)]


def test_only_its_own_session_reads_a_memory_by_its_id(alice: Person, admin_client: Client) -> None:
    add(alice, f"I like {WORD}.", incognito=True)
    add(alice, "I like tea.", session_id="chat:open")
    row = Memory.objects.get(text__contains=WORD)
    address, now = f"/memories/{row.memory_id}", timezone.now().isoformat()
    for fields in ({}, {"session_id": "chat:open"}, {"as_of": now}):
        call(alice, "get", address, status=404, **fields)
    assert WORD in str(call(alice, "get", address, session_id=SESSION))
    agent = Agent(alice)
    assert WORD not in str(agent.call("memory_get", memory_id=row.memory_id))
    assert WORD in str(agent.call("memory_get", memory_id=row.memory_id, session_id=SESSION))
    assert visit(alice).client.get(f"/portal/memories/{row.pk}").status_code == 404
    assert admin_client.get(reverse("console:memory", args=[row.pk])).status_code == 404


def test_lists_of_sessions_and_the_trash_leave_it_out(alice: Person, admin_client: Client) -> None:
    for text in (f"I like {WORD}.", f"And {WORD}."):
        add(alice, text, incognito=True)
    assert call(alice, "get", "/sessions")["sessions"] == []
    assert call(alice, "get", f"/sessions/{SESSION}")["session_id"] == SESSION
    here, user = visit(alice), reverse("console:user", args=[alice.user_pk])
    pages = (f"{user}?view=sessions", f"{user}?view=timeline", user, f"{reverse('console:find')}?q=secret")
    call(alice, "delete", f"/memories/{Memory.objects.latest('pk').memory_id}", reason=f"Not {WORD}.")
    for deletion in ("memory", "session"):
        assert call(alice, "get", "/memories/trash")["trash"] == []
        assert WORD not in here.get("/portal/trash")
        for page in (*pages, reverse("console:trash"), f"{reverse('console:trash')}?kind=sessions"):
            shown = admin_client.get(page, follow=True)
            assert shown.status_code == 200, page
            assert WORD not in shown.content.decode(), page
            assert SESSION not in shown.content.decode(), page
        if deletion == "memory":
            call(alice, "delete", f"/sessions/{SESSION}")


def test_its_memories_are_in_no_count(alice: Person, admin_client: Client) -> None:
    add(alice, f"I like {WORD}.", incognito=True)
    add(alice, "I like tea.", session_id="chat:open")
    facets = browse.facets(Selection(user_pk=alice.user_pk))
    assert [(one.key, one.count) for one in facets.sessions] == [("chat:open", 1)]
    assert sum(one.count for one in facets.categories) == browse.count(Selection()) == 1
    call(alice, "post", "/memories/flush", session_id=SESSION, end=True)
    incognito.purge_ended()
    assert browse.count(Selection()) == 1
    rollups.settle()
    assert list(rollups.differences([Owner(alice.user_pk, alice.user_id, "default", "default")])) == []


def test_an_upgrade_counts_them_no_more(alice: Person) -> None:
    add(alice, "I like tea.", session_id="chat:open")
    add(alice, f"I like {WORD}.")
    migration = import_module("store.migrations.0033_incognito_not_counted")
    with connection.schema_editor() as editor:
        rollups.remove(editor)
        for statement in rollups.statements(connection.vendor, knows_incognito=False):
            editor.execute(statement, params=None)
    Session.objects.filter(session_id=SESSION).update(incognito_until=timezone.now() + timedelta(hours=1))
    assert browse.count(Selection()) == 2
    with connection.schema_editor(atomic=False) as editor:
        migration.write(apps, editor, knows_incognito=True)
    assert browse.count(Selection()) == 1
    call(alice, "post", "/memories/flush", session_id=SESSION, end=True)
    incognito.purge_ended()
    assert browse.count(Selection()) == 1
