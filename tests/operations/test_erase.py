"""Erasing a person: nothing of them is left, and the receipt says what could not be reached."""

from __future__ import annotations

import base64
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import AuditEvent, MemoryUser
from operations import bulk, erase
from operations.commands import Stop, Stopped
from operations.models import Job
from operations.tables import ALL
from resources.models import Resource
from store.browse import Selection
from store.models import Memory
from store.types import SearchRequest
from tests.conftest import Person, make_person
from tests.engines.everos.conftest import make_engine, told
from tests.memories.calls import NOON_MS, call, say
from tests.operations.furnished import found, furnish
from tests.resources.people import RemotePerson, eventually
from tests.server import RunningServer, running_server
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")
MARKERS = 50


def erased(person: Person) -> erase.Receipt:
    answer = person.client.delete(f"/users/{person.user_id}?confirm=erase:{person.user_id}")
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def test_nothing_is_left_of_a_person_and_all_of_another(alice: Person, bob: Person, storage: Path) -> None:
    furnish(alice)
    furnish(bob, "chestnut")
    before = {table.name: table.rows(MemoryUser.objects.get(user_id="bob")).count() for table in ALL}
    receipt = erased(alice)
    user = MemoryUser(pk=alice.user_pk, user_id="alice")
    assert {table.name: table.rows(user).count() for table in ALL} == dict.fromkeys(before, 0)
    assert {table.name: table.rows(MemoryUser.objects.get(user_id="bob")).count() for table in ALL} == before
    assert [path.name for path in storage.iterdir() if path.name != ".incoming"] == [str(bob.user_pk)]
    assert found(bob, "chestnut")
    assert receipt["removed"]["memories"] > 0
    assert receipt["files"]["count"] == 2
    assert receipt["upstream"] is None
    assert not Resource.objects.filter(user_id=alice.user_pk).exists()


def test_the_key_ends_and_the_name_is_free_for_somebody_new(alice: Person, storage: Path) -> None:
    furnish(alice)
    erased(alice)
    assert alice.client.get("/memories").status_code == 401
    again = make_person("alice")
    assert call(again, "get", "/memories")["memories"] == []
    assert call(again, "get", "/memories/trash")["trash"] == []
    assert call(again, "get", "/sessions")["sessions"] == []
    assert found(again, "walnut") == []
    assert again.client.get("/resources").json()["resources"] == []


def test_only_a_bare_event_stays_in_the_trail(alice: Person, storage: Path) -> None:
    record(
        Actor.operator("root"), "memory.list", subject_type="memory", subject_id="", detail={"users": ["alice", "b"]}
    )
    furnish(alice)
    erased(alice)
    assert not AuditEvent.objects.filter(user_id="alice").exists()
    assert [event.detail for event in AuditEvent.objects.filter(action="memory.list")] == [{"users": ["b"]}]
    event = AuditEvent.objects.get(action="user.erase")
    assert (event.subject_id, event.user_id, set(event.detail)) == (str(alice.user_pk), "", {"rows"})


def test_the_admin_s_own_log_and_jobs_forget_them(alice: Person, bob: Person) -> None:
    operator = User.objects.create_user("root")
    for name in ("alice", "bob"):
        LogEntry.objects.create(user=operator, object_id=name, object_repr=name, action_flag=1)
    for person in (alice, bob):
        Job.objects.create(kind="x", params={"target": {"user_pk": str(person.user_pk)}})
    erased(alice)
    assert [entry.object_repr for entry in LogEntry.objects.all()] == ["bob"]
    assert [job.params["target"]["user_pk"] for job in Job.objects.all()] == [str(bob.user_pk)]


def test_what_operators_wrote_about_them_goes_too(alice: Person, bob: Person, storage: Path) -> None:
    olga = Actor.operator("olga")
    looked = {"filter": {"user": "alice", "session": "chat:walnut"}, "status": "done"}
    record(olga, "memory.list", subject_type="memory", subject_id="", detail=looked)
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
    erased(alice)
    [job] = Job.objects.all()
    assert job.params["reason"] == "chestnut"
    told = json.dumps(list(AuditEvent.objects.filter(actor="olga").values_list("detail", flat=True)))
    assert "walnut" not in told
    assert "alice" not in told
    assert "chestnut" in told


# --- who may, and how ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "?confirm=yes", "?confirm=erase:bob", "?confirm=alice"])
def test_nobody_erases_by_accident(alice: Person, query: str) -> None:
    answer = alice.client.delete(f"/users/alice{query}")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "confirm")
    assert alice.client.get("/memories").status_code == 200


def test_another_s_name_is_as_good_as_none(alice: Person, bob: Person) -> None:
    answers = [alice.client.delete(f"/users/{name}?confirm=erase:{name}") for name in ("bob", "nobody")]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json()["detail"] == answers[1].json()["detail"]
    assert bob.client.get("/memories").status_code == 200


def test_the_provisioner_erases_anybody(alice: Person, client: Any, settings: Any) -> None:
    settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = "t" * 40
    headers = {"Authorization": f"Bearer {'t' * 40}"}
    assert client.delete("/users/nobody?confirm=erase:nobody", headers=headers).status_code == 404
    receipt = client.delete("/users/alice?confirm=erase:alice", headers=headers).json()
    assert receipt["by"] == {"kind": "provisioning", "name": ""}
    assert not MemoryUser.objects.exists()


def test_without_a_key_nobody_does(alice: Person, client: Any) -> None:
    assert client.delete("/users/alice?confirm=erase:alice").status_code == 401
    assert MemoryUser.objects.exists()


def test_the_command_says_what_there_is_and_erases_with_yes(alice: Person, storage: Path) -> None:
    furnish(alice)
    out = StringIO()
    call_command("erase_user", "alice", stdout=out, stderr=StringIO())
    assert "Add --yes" in out.getvalue()
    assert MemoryUser.objects.filter(user_id="alice").exists()
    out = StringIO()
    call_command("erase_user", "alice", "--yes", "--json", stdout=out, stderr=StringIO())
    assert json.loads(out.getvalue())["user_id"] == "alice"
    assert not MemoryUser.objects.exists()
    with pytest.raises(CommandError, match="no such user"):
        call_command("erase_user", "alice", "--yes", stdout=StringIO(), stderr=StringIO())


# --- broken off ------------------------------------------------------------------------------------------------------


def test_broken_off_it_hides_everything_and_goes_on(alice: Person, storage: Path) -> None:
    furnish(alice)
    stop = Stop()
    stop.set(15)
    with pytest.raises(Stopped):
        erase.erase(alice.user_pk, actor=ACTOR, stop=stop)
    assert alice.client.get("/memories").status_code == 401
    again = make_person("alice")
    say(again, "chat:c1", "I am new here.")
    assert found(again, "walnut") == []
    assert erase.find("alice") == alice.user_pk
    receipt = erase.erase(erase.find("alice"), actor=Actor.command("other"))
    assert (receipt["user_id"], receipt["by"]["name"]) == ("alice", "tests")
    assert found(again, "new") == ["I am new here."]
    assert AuditEvent.objects.filter(user_id="alice").exists()  # the new one's
    assert erase.find("alice") == again.user_pk


def test_the_sweeper_finishes_what_broke_off(alice: Person, storage: Path) -> None:
    furnish(alice)
    stop = Stop()
    stop.set(15)
    with pytest.raises(Stopped):
        erase.erase(alice.user_pk, actor=ACTOR, stop=stop)
    assert erase.unfinished(timezone.now()) == [alice.user_pk]
    assert erase.finish(alice.user_pk) is not None
    assert erase.finish(alice.user_pk) is None
    assert not MemoryUser.objects.exists()


# --- an upstream that cannot delete ----------------------------------------------------------------------------------


def test_nobody_gets_what_an_upstream_holds_by_taking_the_name(alice: Person, storage: Path, settings: Any) -> None:
    with StubUpstream() as stub:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        engine = make_engine(stub)
        say_upstream(engine, alice, "chat:c1", "The walnut safe opens with 4711.")
        receipt = erase.erase(alice.user_pk, actor=ACTOR, engine=engine)
        assert receipt["upstream"]["sessions"] == ["chat:c1"]
        assert receipt["upstream"]["base_url"] == stub.url
        assert "has no deletion" in receipt["residue"][0]
        again = make_person("alice")
        say_upstream(engine, again, "chat:c1", "I like tea.")
        for sessions in (("chat:c1",), None):
            (result,) = engine.search(again.owner, [request("walnut safe tea", sessions)])
            assert [hit.text for hit in result.hits if "walnut" in hit.text] == []
            assert any("tea" in hit.text for hit in result.hits)


def say_upstream(engine: Any, person: Person, session_id: str, text: str) -> None:
    engine.add(person.owner, session_id, [told(person.owner, text)])
    engine.flush(person.owner, session_id)


def request(query: str, sessions: tuple[str, ...] | None) -> Any:
    return SearchRequest(query, method="keyword", session_ids=sessions, include_profile=sessions is None)


# --- the files themselves --------------------------------------------------------------------------------------------


class Planter:
    """Gives each field 50 words that stand nowhere else."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def word(self) -> str:
        word = "zq" + uuid.uuid4().hex.translate(str.maketrans("0123456789", "ghijklmnop"))
        self.words.append(word)
        return word

    def text(self, about: str = "The plan of") -> str:
        return f"{about} {self.word()}."


def plant(person: RemotePerson, planter: Planter) -> None:
    """Fifty of everything, over the API alone."""
    say = [{"sender_id": person.user_id, "role": "user", "timestamp": NOON_MS + n} for n in range(MARKERS)]
    plant_messages(person, planter, say)
    plant_decisions(person, planter)
    plant_keys(person, planter)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: plant_resource(person, planter), range(MARKERS)))
    for resource in person.resources()[:10]:
        send(person, "DELETE", f"/resources/{resource['resource_id']}")


def send(person: RemotePerson, method: str, path: str, **body: Any) -> Any:
    answer = requests.request(method, f"{person.server.url}{path}", json=body, headers=person.headers, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def plant_messages(person: RemotePerson, planter: Planter, say: list[dict[str, Any]]) -> None:
    """In texts, agents' names, file names, files and session ids."""
    messages = [{**one, "content": planter.text()} for one in say]
    agents = [{**one, "sender_id": planter.word()[:60], "role": "assistant", "content": "Done."} for one in say]
    send(person, "POST", "/memories/add", session_id="chat:c1", messages=messages + agents)
    send(person, "POST", "/memories/flush", session_id="chat:c1")
    with_files = [
        {
            **one,
            "content": [
                {
                    "type": "doc",
                    "name": f"{planter.word()}.txt",
                    "ext": "txt",
                    "base64": base64.b64encode(planter.text().encode()).decode(),
                }
            ],
        }
        for one in say
    ]
    send(person, "POST", "/memories/add", session_id="chat:files", messages=with_files)
    for one in say:
        send(person, "POST", "/memories/add", session_id=f"chat:{planter.word()}", messages=[one | {"content": "Hm."}])


def plant_decisions(person: RemotePerson, planter: Planter) -> None:
    listed = send(person, "GET", "/memories?session_id=chat:c1&limit=100")["memories"]
    for memory in listed[:MARKERS]:
        send(person, "PATCH", f"/memories/{memory['id']}", override_text=planter.text())
        send(person, "PATCH", f"/memories/{memory['id']}", override_text=planter.text("Rather"))
    for memory in listed[MARKERS:]:
        send(person, "DELETE", f"/memories/{memory['id']}", reason=planter.text("Because"))


def plant_keys(person: RemotePerson, planter: Planter) -> None:
    for _ in range(MARKERS):
        made = send(person, "POST", "/users/me/keys", label=planter.word())
        send(person, "DELETE", f"/users/me/keys/{made['key_id']}")


def plant_resource(person: RemotePerson, planter: Planter) -> None:
    fields = {"title": planter.text("On"), "description": planter.text("About")}
    files = {"file": (f"{planter.word()}.txt", planter.text().encode())}
    url = f"{person.server.url}/resources"
    answer = requests.post(url, files=files, data=fields, headers=person.headers, timeout=120)
    assert answer.status_code == 200, answer.text


def everything_in(server: RunningServer) -> bytes:
    """All bytes that the gateway keeps anywhere: database, journal, storage, log."""
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


def test_not_one_of_fifty_markers_in_any_field_is_left_in_any_file(tmp_path: Path) -> None:
    planter = Planter()
    with running_server(tmp_path, MEMORY_GATEWAY_LOG_BODIES="false") as server:
        person = RemotePerson.create(server, "alice")
        other = RemotePerson.create(server, "bob")
        other.upload("kept.txt", b"The zebra contract.")
        plant(person, planter)
        before = everything_in(server)
        assert sum(word.encode() in before for word in planter.words) > 0.9 * len(planter.words)
        answer = requests.delete(
            f"{server.url}/users/alice", params={"confirm": "erase:alice"}, headers=person.headers, timeout=120
        )
        assert answer.status_code == 200, answer.text
        assert not [line for line in answer.json()["residue"] if "busy" in line]
        after = everything_in(server)
        assert [word for word in planter.words if word.encode() in after] == []
        exported = server.manage("export_memory", str(tmp_path / "after.tar"), "--all")
        assert exported.returncode == 0, exported.stderr
        archive = (tmp_path / "after.tar").read_bytes()
        assert [word for word in planter.words if word.encode() in archive] == []
        assert other.search("zebra").json()["results"]
        assert "Traceback" not in server.log


def test_a_kill_in_the_midst_is_made_good_by_the_next_start(tmp_path: Path) -> None:
    planter = Planter()
    with running_server(tmp_path, MEMORY_GATEWAY_LOG_BODIES="false") as server:
        person = RemotePerson.create(server, "alice")
        messages = [
            {"sender_id": "alice", "role": "user", "timestamp": NOON_MS + n, "content": planter.text()}
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
            assert eventually(lambda: not person_answers(person))
            server.kill()
        done = server.manage("erase_user", "alice", "--yes", "--json")
        assert done.returncode in {0, 2}, done.stderr  # 2: it was quicker than the kill
        after = everything_in(server)
        assert [word for word in planter.words if word.encode() in after] == []


def person_answers(person: RemotePerson) -> bool:
    try:
        return requests.get(f"{person.server.url}/sessions", headers=person.headers, timeout=10).status_code == 200
    except requests.RequestException:
        return False


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite adds up its counts as they change")
def test_counts_that_another_process_is_adding_up_keep_no_agent_s_name(tmp_path: Path) -> None:
    """The counts by agent stay until they are added up: the erasure waits for its turn, and does it itself."""
    planter = Planter()
    with running_server(tmp_path, MEMORY_GATEWAY_LOG_BODIES="false") as server:
        person = RemotePerson.create(server, "alice")
        said = {"sender_id": planter.word(), "role": "assistant", "timestamp": NOON_MS, "content": "Done."}
        send(person, "POST", "/memories/add", session_id="chat:c1", messages=[said])
        with ThreadPoolExecutor(1) as pool:
            with psycopg.connect(server.env["DATABASE_URL"]) as another:
                another.execute("SELECT pg_advisory_xact_lock(7201960)")
                erasing = pool.submit(send, person, "DELETE", "/users/alice?confirm=erase:alice")
                assert eventually(lambda: not rows_of(server, "accounts_memoryuser"))
                with pytest.raises(TimeoutError):
                    erasing.result(1)
            assert erasing.result(30)["user_id"] == "alice"
        assert [word for word in planter.words if word.encode() in everything_in(server)] == []


def rows_of(server: RunningServer, table: str) -> int:
    with psycopg.connect(server.env["DATABASE_URL"]) as reading:
        counted = reading.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert counted
    return int(counted[0])
