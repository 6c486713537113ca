"""Erasing a user removes all data of the user, and the receipt lists what could not be removed."""

from __future__ import annotations

import base64
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import requests
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts.audit import Actor, record, record_opening
from accounts.models import AuditEvent, AuditSubject, MemoryUser
from operations import bulk, erase
from operations.commands import Stopped
from operations.models import Job
from operations.tables import ALL
from resources.models import Resource
from store.browse import Selection
from store.models import Memory
from store.types import SearchRequest
from tests.conftest import Person, make_person
from tests.memories.calls import NOON_MS, call, say
from tests.operations.sample_data import create_sample_data, search_texts
from tests.remote.conftest import make_engine, message_of
from tests.resources.people import RemotePerson, eventually
from tests.server import RunningServer, running_server
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")
MARKERS = 50


def erase_over_api(person: Person) -> erase.Receipt:
    answer = person.client.delete(f"/users/{person.user_id}?confirm=erase:{person.user_id}")
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def test_erasing_a_user_removes_all_rows_and_files_of_that_user_only(alice: Person, bob: Person, storage: Path) -> None:
    create_sample_data(alice)
    create_sample_data(bob, "chestnut")
    before = {table.name: table.rows(MemoryUser.objects.get(user_id="bob")).count() for table in ALL}
    receipt = erase_over_api(alice)
    user = MemoryUser(pk=alice.user_pk, user_id="alice")
    assert {table.name: table.rows(user).count() for table in ALL} == dict.fromkeys(before, 0)
    assert {table.name: table.rows(MemoryUser.objects.get(user_id="bob")).count() for table in ALL} == before
    assert [path.name for path in storage.iterdir() if path.name != ".incoming"] == [str(bob.user_pk)]
    assert search_texts(bob, "chestnut")
    assert receipt["removed"]["memories"] > 0
    assert receipt["files"]["count"] == 3  # one of them in the trash
    assert receipt["remote"] is None
    assert not Resource.objects.filter(user_id=alice.user_pk).exists()


def test_the_key_stops_working_and_the_user_id_can_be_reused(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    erase_over_api(alice)
    assert alice.client.get("/memories").status_code == 401
    again = make_person("alice")
    assert call(again, "get", "/memories")["memories"] == []
    assert call(again, "get", "/memories/trash")["trash"] == []
    assert call(again, "get", "/sessions")["sessions"] == []
    assert search_texts(again, "walnut") == []
    assert again.client.get("/resources").json()["resources"] == []


def test_only_an_event_without_details_remains_in_the_audit_log(alice: Person, storage: Path) -> None:
    record(Actor.operator("root"), "memory.list", detail={"users": ["alice", "b"]})
    create_sample_data(alice)
    erase_over_api(alice)
    assert not AuditEvent.objects.filter(user_id="alice").exists()
    assert [event.detail for event in AuditEvent.objects.filter(action="memory.list")] == [{"users": ["b"]}]
    event = AuditEvent.objects.get(action="user.erase")
    assert (event.subject_id, event.user_id, set(event.detail)) == (str(alice.user_pk), "", {"rows"})


def test_events_about_several_users_stay_without_the_erased(alice: Person, bob: Person, storage: Path) -> None:
    olga = Actor.operator("olga")
    record(olga, "memory.list", users=["alice", "bob"])
    record(olga, "memory.view", "m1", users=["alice"])
    record_opening(olga, "panel.find", "opening1", {"alice"}, subject_type="user", detail={})
    record(olga, "archive.export", "a.tar", users=["alice"])
    erase_over_api(alice)
    assert not AuditSubject.objects.filter(user_id="alice").exists()
    by_action = {event.action: event for event in AuditEvent.objects.filter(actor="olga")}
    assert set(by_action) == {"memory.list", "panel.find", "archive.export"}
    assert list(by_action["memory.list"].subjects.values_list("user_id", flat=True)) == ["bob"]
    assert by_action["memory.list"].digest == ""  # it covered both names


def test_the_admin_log_and_jobs_are_erased_too(alice: Person, bob: Person) -> None:
    operator = User.objects.create_user("root")
    for name in ("alice", "bob"):
        LogEntry.objects.create(user=operator, object_id=name, object_repr=name, action_flag=1)
    for person in (alice, bob):
        Job.objects.create(kind="x", params={"target": {"user_pk": str(person.user_pk)}})
    erase_over_api(alice)
    assert [entry.object_repr for entry in LogEntry.objects.all()] == ["bob"]
    assert [job.params["target"]["user_pk"] for job in Job.objects.all()] == [str(bob.user_pk)]


def test_texts_of_operators_about_the_user_are_erased(alice: Person, bob: Person, storage: Path) -> None:
    olga = Actor.operator("olga")
    detail = {"filter": {"user": "alice", "session": "chat:walnut"}, "status": "done"}
    record(olga, "memory.list", detail=detail)
    for person in (alice, bob):
        say(person, "chat:c1", "one", "two", "three")
    rows = dict(Memory.objects.filter(text="one").values_list("user_id", "pk"))
    bulk.start(
        "delete",
        bulk.freeze(Selection(user_pk=alice.user_pk, session_id="chat:c1")),
        {"reason": "walnut of all"},
        actor=olga,
    )
    bulk.start("restore", bulk.of_rows([rows[alice.user_pk]], in_trash=True), {}, actor=olga)
    bulk.start("delete", bulk.of_rows([rows[alice.user_pk]]), {"reason": "walnut of her"}, actor=olga)
    bulk.start("delete", bulk.of_rows([rows[bob.user_pk]]), {"reason": "chestnut"}, actor=olga)
    erase_over_api(alice)
    [job] = Job.objects.all()
    assert job.params["reason"] == "chestnut"
    details = json.dumps(list(AuditEvent.objects.filter(actor="olga").values_list("detail", flat=True)))
    assert "walnut" not in details
    assert "alice" not in details
    assert "chestnut" in details


# --- authorization and confirmation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "?confirm=yes", "?confirm=erase:bob", "?confirm=alice"])
def test_an_erasure_needs_a_confirmation(alice: Person, query: str) -> None:
    answer = alice.client.delete(f"/users/alice{query}")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "confirm")
    assert alice.client.get("/memories").status_code == 200


def test_other_users_and_absent_users_are_rejected_alike(alice: Person, bob: Person) -> None:
    answers = [alice.client.delete(f"/users/{name}?confirm=erase:{name}") for name in ("bob", "nobody")]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json()["detail"] == answers[1].json()["detail"]
    assert bob.client.get("/memories").status_code == 200


def test_the_provisioning_token_erases_any_user(alice: Person, client: Any, settings: Any) -> None:
    settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = "t" * 40
    headers = {"Authorization": f"Bearer {'t' * 40}"}
    assert client.delete("/users/nobody?confirm=erase:nobody", headers=headers).status_code == 404
    receipt = client.delete("/users/alice?confirm=erase:alice", headers=headers).json()
    assert receipt["by"] == {"kind": "provisioning", "name": ""}
    assert not MemoryUser.objects.exists()


def test_an_erasure_needs_a_key(alice: Person, client: Any) -> None:
    assert client.delete("/users/alice?confirm=erase:alice").status_code == 401
    assert MemoryUser.objects.exists()


def test_the_command_shows_the_data_and_erases_with_yes(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    out = StringIO()
    call_command("erase_user", "alice", stdout=out, stderr=StringIO())
    assert "Run again with --yes" in out.getvalue()
    assert MemoryUser.objects.filter(user_id="alice").exists()
    out = StringIO()
    call_command("erase_user", "alice", "--yes", "--json", stdout=out, stderr=StringIO())
    assert json.loads(out.getvalue())["user_id"] == "alice"
    assert not MemoryUser.objects.exists()
    with pytest.raises(CommandError, match="no such user"):
        call_command("erase_user", "alice", "--yes", stdout=StringIO(), stderr=StringIO())


# --- interruptions ---------------------------------------------------------------------------------------------------


def stop(_step: str, _done: int, _total: int) -> None:
    raise Stopped


def test_an_interrupted_erasure_hides_everything_and_can_be_finished(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    with pytest.raises(Stopped):
        erase.erase(alice.user_pk, actor=ACTOR, report=stop)
    assert alice.client.get("/memories").status_code == 401
    again = make_person("alice")
    say(again, "chat:c1", "I am new here.")
    assert search_texts(again, "walnut") == []
    assert erase.find("alice") == alice.user_pk
    receipt = erase.erase(erase.find("alice"), actor=Actor.command("other"))
    assert (receipt["user_id"], receipt["by"]["name"]) == ("alice", "tests")
    assert search_texts(again, "new") == ["I am new here."]
    assert AuditEvent.objects.filter(user_id="alice").exists()  # of the new user
    assert erase.find("alice") == again.user_pk


def test_the_worker_finishes_an_interrupted_erasure(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    with pytest.raises(Stopped):
        erase.erase(alice.user_pk, actor=ACTOR, report=stop)
    assert erase.unfinished(timezone.now()) == [alice.user_pk]
    assert erase.finish(alice.user_pk) is not None
    assert erase.finish(alice.user_pk) is None
    assert not MemoryUser.objects.exists()


# --- an upstream that cannot delete ----------------------------------------------------------------------------------


def test_the_next_user_of_the_id_finds_nothing_that_an_upstream_kept(
    alice: Person, storage: Path, settings: Any
) -> None:
    with StubUpstream() as stub:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        engine = make_engine(stub)
        add_and_flush(engine, alice, "chat:c1", "The walnut safe opens with 4711.")
        engine.add(alice.owner, "chat:c2", [message_of(alice.owner, "This waits.")])
        receipt = erase.erase(alice.user_pk, actor=ACTOR, engine=engine)
        assert receipt["remote"]["sessions"] == ["chat:c1", "chat:c2"]
        assert (receipt["remote"]["withdrawn"], receipt["remote"]["sent"]) == (1, 1)
        assert receipt["remote"]["base_urls"] == [stub.url]
        assert "cannot delete" in receipt["residue"][0]
        again = make_person("alice")
        add_and_flush(engine, again, "chat:c1", "I like tea.")
        for sessions in (("chat:c1",), None):
            (result,) = engine.search(again.owner, [request("walnut safe tea", sessions)])
            assert [hit.text for hit in result.hits if "walnut" in hit.text] == []
            assert any("tea" in hit.text for hit in result.hits)


def test_the_next_user_of_the_id_finds_nothing_after_detaching_and_attaching(
    alice: Person, storage: Path, settings: Any
) -> None:
    with StubUpstream() as stub:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        say(alice, "chat:c1", "The walnut safe opens with 4711.")
        erase.erase(alice.user_pk, actor=ACTOR)
        again = make_person("alice")
        for address in ("", stub.url, "", stub.url):
            settings.MEMORY_GATEWAY_BACKEND_BASE_URL = address
            said = f"I like tea {address}{Memory.objects.count()}."
            say(again, "chat:c1", said)
            for scope in ({"scope": ["all_user_memory"]}, {"scope": ["current_chat"], "conversation_id": "c1"}):
                answer = call(again, "post", "/memories/search", query="walnut safe 4711 tea", **scope)
                texts = [hit["text"] for hit in answer["results"]]
                assert any(said in text for text in texts)
                assert not any("walnut" in text or "4711" in text for text in texts)
            assert "walnut" not in str(call(again, "get", "/memories")).casefold()
        assert any("walnut" in episode["episode"] for episode in stub.store.episodes)


def add_and_flush(engine: Any, person: Person, session_id: str, text: str) -> None:
    engine.add(person.owner, session_id, [message_of(person.owner, text)])
    engine.flush(person.owner, session_id)


def request(query: str, sessions: tuple[str, ...] | None) -> Any:
    return SearchRequest(query, method="keyword", session_ids=sessions, include_profile=sessions is None)


def test_an_erasure_that_was_begun_before_remotes_had_their_name_is_finished(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    with pytest.raises(Stopped):
        erase.erase(alice.user_pk, actor=ACTOR, report=stop)
    event = AuditEvent.objects.get(action=erase.BEGUN)
    left = {"user_id": "alice", "agents": "*", "sessions": ["chat:c1"], "memories": 2}
    old = {
        "removed": event.detail["removed"],
        "upstream": {**left, "base_url": "https://everos.example", "messages": 3},
    }
    AuditEvent.objects.filter(pk=event.pk).update(detail=old)
    import_module("accounts.migrations.0011_remote_in_erasures").convert(apps, SimpleNamespace(connection=connection))
    receipt = erase.finish(alice.user_pk)
    assert receipt is not None
    new = {**left, "base_urls": ["https://everos.example"], "withdrawn": 0, "sent": 3, "deletions": None}
    assert receipt["remote"] == new


# --- bytes on disk ---------------------------------------------------------------------------------------------------


class UniqueWords:
    """Generate words that appear nowhere else, and remember them."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def word(self) -> str:
        word = "zq" + uuid.uuid4().hex.translate(str.maketrans("0123456789", "ghijklmnop"))
        self.words.append(word)
        return word

    def text(self, about: str = "The plan of") -> str:
        return f"{about} {self.word()}."


def plant(person: RemotePerson, unique_words: UniqueWords) -> None:
    """Fill each field that the API writes with `MARKERS` words."""
    say = [{"sender_id": person.user_id, "role": "user", "timestamp": NOON_MS + n} for n in range(MARKERS)]
    plant_messages(person, unique_words, say)
    plant_decisions(person, unique_words)
    plant_keys(person, unique_words)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: plant_resource(person, unique_words), range(MARKERS)))
    for resource in person.resources()[:10]:
        send(person, "DELETE", f"/resources/{resource['resource_id']}")


def send(person: RemotePerson, method: str, path: str, **body: Any) -> Any:
    answer = requests.request(method, f"{person.server.url}{path}", json=body, headers=person.headers, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def plant_messages(person: RemotePerson, unique_words: UniqueWords, say: list[dict[str, Any]]) -> None:
    """Plant words in texts, names of agents, file names, files and session ids."""
    messages = [{**one, "content": unique_words.text()} for one in say]
    agents = [{**one, "sender_id": unique_words.word()[:60], "role": "assistant", "content": "Done."} for one in say]
    send(person, "POST", "/memories/add", session_id="chat:c1", messages=messages + agents)
    send(person, "POST", "/memories/flush", session_id="chat:c1")
    with_files = [
        {
            **one,
            "content": [
                {
                    "type": "doc",
                    "name": f"{unique_words.word()}.txt",
                    "ext": "txt",
                    "base64": base64.b64encode(unique_words.text().encode()).decode(),
                }
            ],
        }
        for one in say
    ]
    send(person, "POST", "/memories/add", session_id="chat:files", messages=with_files)
    for one in say:
        send(
            person,
            "POST",
            "/memories/add",
            session_id=f"chat:{unique_words.word()}",
            messages=[one | {"content": "Hm."}],
        )


def plant_decisions(person: RemotePerson, unique_words: UniqueWords) -> None:
    listed = send(person, "GET", "/memories?session_id=chat:c1&limit=100")["memories"]
    for memory in listed[:MARKERS]:
        send(person, "PATCH", f"/memories/{memory['id']}", override_text=unique_words.text())
        send(person, "PATCH", f"/memories/{memory['id']}", override_text=unique_words.text("Rather"))
    for memory in listed[MARKERS:]:
        send(person, "DELETE", f"/memories/{memory['id']}", reason=unique_words.text("Because"))


def plant_keys(person: RemotePerson, unique_words: UniqueWords) -> None:
    for _ in range(MARKERS):
        made = send(person, "POST", "/users/me/keys", label=unique_words.word())
        send(person, "DELETE", f"/users/me/keys/{made['key_id']}")


def plant_resource(person: RemotePerson, unique_words: UniqueWords) -> None:
    fields = {"title": unique_words.text("On"), "description": unique_words.text("About")}
    files = {"file": (f"{unique_words.word()}.txt", unique_words.text().encode())}
    url = f"{person.server.url}/resources"
    answer = requests.post(url, files=files, data=fields, headers=person.headers, timeout=120)
    assert answer.status_code == 200, answer.text


def stored_bytes(server: RunningServer) -> bytes:
    """Return all bytes that the gateway stores: database, journal, files and log."""
    data = b"".join(path.read_bytes() for path in server.data_dir.rglob("*") if path.is_file())
    url = server.env["DATABASE_URL"]
    if not url:
        return data
    with psycopg.connect(url) as reading:
        names = reading.execute("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
        for (name,) in names.fetchall():
            rows = reading.execute(f"SELECT t::text FROM {name} t").fetchall()
            data += "\n".join(row[0] for row in rows).encode()
    return data


@pytest.mark.slow
def test_no_marker_of_any_field_remains_in_any_file(tmp_path: Path) -> None:
    unique_words = UniqueWords()
    with running_server(tmp_path, MEMORY_GATEWAY_LOG_BODIES="false") as server:
        person = RemotePerson.create(server, "alice")
        other = RemotePerson.create(server, "bob")
        other.upload("kept.txt", b"The zebra contract.")
        plant(person, unique_words)
        before = stored_bytes(server)
        assert sum(word.encode() in before for word in unique_words.words) > 0.9 * len(unique_words.words)
        answer = requests.delete(
            f"{server.url}/users/alice", params={"confirm": "erase:alice"}, headers=person.headers, timeout=120
        )
        assert answer.status_code == 200, answer.text
        assert not [line for line in answer.json()["residue"] if "busy" in line]
        after = stored_bytes(server)
        assert [word for word in unique_words.words if word.encode() in after] == []
        exported = server.manage("export_memory", str(tmp_path / "after.tar"), "--all")
        assert exported.returncode == 0, exported.stderr
        archive = (tmp_path / "after.tar").read_bytes()
        assert [word for word in unique_words.words if word.encode() in archive] == []
        assert other.search("zebra").json()["results"]
        assert "Traceback" not in server.log


@pytest.mark.slow
def test_a_killed_erasure_is_finished_after_the_next_start(tmp_path: Path) -> None:
    unique_words = UniqueWords()
    with running_server(tmp_path, MEMORY_GATEWAY_LOG_BODIES="false") as server:
        person = RemotePerson.create(server, "alice")
        messages = [
            {"sender_id": "alice", "role": "user", "timestamp": NOON_MS + n, "content": unique_words.text()}
            for n in range(500)
        ]
        for start in range(0, 500, 100):
            body = {"session_id": f"chat:{start}", "messages": messages[start : start + 100]}
            requests.post(
                f"{server.url}/memories/add", json=body, headers=person.headers, timeout=60
            ).raise_for_status()
        with ThreadPoolExecutor(1) as pool:
            address = f"{server.url}/users/alice?confirm=erase:alice"
            pool.submit(requests.delete, address, headers=person.headers, timeout=60)
            assert eventually(lambda: not key_works(person))
            server.kill()
        done = server.manage("erase_user", "alice", "--yes", "--json")
        assert done.returncode in {0, 2}, done.stderr  # 2: the erasure was complete before the kill
        after = stored_bytes(server)
        assert [word for word in unique_words.words if word.encode() in after] == []


def key_works(person: RemotePerson) -> bool:
    try:
        return requests.get(f"{person.server.url}/sessions", headers=person.headers, timeout=10).status_code == 200
    except requests.RequestException:
        return False


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite adds up its counts as they change")
def test_counts_that_another_process_settles_keep_no_agent_name(tmp_path: Path) -> None:
    """Counts by agent remain until they are settled: the erasure waits for the lock and settles them itself."""
    unique_words = UniqueWords()
    with running_server(tmp_path, MEMORY_GATEWAY_LOG_BODIES="false") as server:
        person = RemotePerson.create(server, "alice")
        message = {"sender_id": unique_words.word(), "role": "assistant", "timestamp": NOON_MS, "content": "Done."}
        send(person, "POST", "/memories/add", session_id="chat:c1", messages=[message])
        with ThreadPoolExecutor(1) as pool:
            with psycopg.connect(server.env["DATABASE_URL"]) as another:
                another.execute("SELECT pg_advisory_xact_lock(7201960)")
                erasing = pool.submit(send, person, "DELETE", "/users/alice?confirm=erase:alice")
                assert eventually(lambda: not rows_of(server, "accounts_memoryuser"))
                with pytest.raises(TimeoutError):
                    erasing.result(1)
            assert erasing.result(30)["user_id"] == "alice"
        assert [word for word in unique_words.words if word.encode() in stored_bytes(server)] == []


def rows_of(server: RunningServer, table: str) -> int:
    with psycopg.connect(server.env["DATABASE_URL"]) as reading:
        counted = reading.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert counted
    return int(counted[0])
