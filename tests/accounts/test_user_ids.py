"""User ids of any identity source, and hostile ones: over the whole life of a user, with and without a remote."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID, uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import MemoryUser
from accounts.services import active_users
from core.ids import alias_of, parse_session_id
from remote.deletions import PendingDeletion
from remote.models import OutboxEntry
from store.models import Memory, Session
from tests.conftest import Person
from tests.everos import EverOS
from tests.memories.calls import call, search, send, texts
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

SCOPE = {"scope": ["all_user_memory"]}
PLAIN = ["u_123", "Ann.B@example.org", "a+b-c", "MIXED", "mixed"]
SOURCES = [
    "auth0|5f7c8ec7c33c6c004bbafe82", "google-oauth2|103547991597142817347", "https://login.example.org/u/17?x=1#me",
    "did:web:example.org:users:ann", "slack:T01/U02", "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66",
    "CN=Ann Bee,OU=People,DC=example", "DOMAIN\\ann", "\"ann bee\"@example.org", "用户小明", "안녕 하세요",
    "Łukasz Żółć", "مستخدم", "👩🙂", "user with spaces",
]  # fmt: skip
HOSTILE = [
    "a/../b", "../../etc/passwd", "%2F", "%00", "a%2Fb", "..%2f", "a:b", "resource:alice:r_1", "memory_edit:alice",
    "...", "'; DROP TABLE accounts_memoryuser; --", "<script>alert(1)</script>", "{{7*7}}", "${x}", "=1+1", "@SUM(A1)",
    "-1", "null", "a&b=c", "a#b", "a?b", "e\u0301te", "\u0430lice", "al1ce", "\uff41lice", "!x", "x" * 80, "x" * 81,
    "y" * 255, "🙂" * 128, "字" * 170,
]  # fmt: skip
ACCEPTED = [*PLAIN, *SOURCES, *HOSTILE]
FEW = {"Ann.B@example.org", "auth0|5f7c8ec7c33c6c004bbafe82", "用户小明", "a/../b", "%2F", "null", "x" * 81, "🙂" * 128}
REFUSED = {
    "": "1 to 255 characters",
    "x" * 256: "1 to 255 characters",
    "🙂" * 129: "512 bytes",
    " ann": "space",
    "ann ": "space",
    "\u3000ann": "space",
    ".": "must not be",
    "..": "must not be",
    "me": "must not be",
    "!" + "0" * 32: "must not be",
    "a\u202eb": "U+202E RIGHT-TO-LEFT OVERRIDE",
    "a\u200bb": "U+200B ZERO WIDTH SPACE",
    "a\u200db": "U+200D",
    "\ufeffa": "U+FEFF",
    "a\nb": "U+000A",
    "a\tb": "U+0009",
    "a\x7fb": "U+007F",
    "a\u2028b": "U+2028",
    "a\ue000b": "U+E000",
    "a\u0378b": "U+0378",
}


@pytest.fixture
def upstream(settings: Any, storage: Path) -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = 1
        yield running


def create(user_id: str) -> Person:
    answer = Client().post("/users", {"user_id": user_id}, "application/json")
    assert answer.status_code == 200, answer.content
    body = answer.json()
    user = MemoryUser.objects.get(user_id=body["user_id"])
    client = Client(headers={"Authorization": f"Bearer {body['user_key']}"})
    return Person(user.user_id, user.pk, body["user_key"], client)


def say(person: Person, text: str, **fields: Any) -> None:
    message = {"role": "user", "content": text, **fields}
    call(person, "post", "/memories/add", session_id="chat:c1", messages=[message])


def erase(user_id: str, key: str) -> Any:
    query = urlencode({"user_id": user_id, "confirm": f"erase:{user_id}"})
    return Client().delete(f"/users?{query}", headers={"Authorization": f"Bearer {key}"})


def test_the_ids_are_forty_or_more() -> None:
    assert len({unicodedata.normalize("NFC", one) for one in ACCEPTED}) == len(ACCEPTED) >= 40


@pytest.mark.parametrize(
    "user_id", [one if one in FEW else pytest.param(one, marks=pytest.mark.slow) for one in ACCEPTED]
)
def test_the_life_of_a_user(user_id: str, alice: Person, storage: Path) -> None:
    person = create(user_id)
    assert person.user_id == unicodedata.normalize("NFC", user_id)
    assert create(user_id).user_pk == person.user_pk
    say(person, "The code is 4711.", sender_id=user_id)
    say(alice, "The code is 1234.")
    assert texts(search(person, "code", **SCOPE)) == ["The code is 4711."]
    pair = {"user_id": user_id, "user_key": person.user_key}
    listed = Client().get("/memories", pair).json()["memories"]
    assert [(one["text"], one["sender_id"]) for one in listed] == [("The code is 4711.", person.user_id)]
    assert Client().get("/memories", {**pair, "user_id": "alice"}).status_code == 401

    file = SimpleUploadedFile("notes.txt", b"The rent is due on Friday.", "text/plain")
    uploaded = person.client.post("/resources", {"file": file}).json()
    resource_id = uploaded["resource_id"]
    assert uploaded["uri"] == f"resource://{quote(person.user_id, safe='@+')}/{resource_id}"
    session_name = person.user_id if len(person.user_id) <= 80 else alias_of(person.user_pk)
    assert uploaded["session_id"] == f"resource:{session_name}:{resource_id}"
    assert parse_session_id(uploaded["session_id"])[1:] == (session_name, resource_id)
    [found] = search(person, "rent", scope=["resources"])["results"]
    assert (found["resource_id"], found["resource_uri"]) == (resource_id, uploaded["uri"])
    corrected = call(
        person,
        "patch",
        f"/memories/{found['id']}",
        session_id=uploaded["session_id"],
        override_text="The rent is paid.",
    )
    assert corrected["status"] == "active"
    for other in (f"resource:{session_name}:r_1", f"memory_edit:{session_name}"):
        call(alice, "post", "/memories/add", status=404, session_id=other, messages=[{"role": "user", "content": "x"}])
    edit = {"session_id": f"memory_edit:{session_name}", "messages": [{"role": "user", "content": "I like tea."}]}
    call(person, "post", "/memories/add", **edit)

    assert erase(user_id, alice.user_key).status_code == 403
    receipt = erase(user_id, person.user_key)
    assert (receipt.status_code, receipt.json().get("user_id")) == (200, person.user_id)
    assert not MemoryUser.objects.filter(pk=person.user_pk).exists()
    assert [one.text for one in Memory.objects.all()] == ["The code is 1234."]
    assert create(user_id).user_pk != person.user_pk


@pytest.mark.parametrize("user_id", ["auth0|12", "用户小明", "a/../b", "🙂" * 128, "y" * 255, "Ann.B@example.org"])
def test_a_remote_is_given_a_name_that_it_takes(user_id: str, upstream: StubUpstream, settings: Any) -> None:
    person = create(user_id)
    say(person, "The code is 4711.")
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = upstream.url
    settings.MEMORY_GATEWAY_EVEROS_DELETE = True
    say(person, "The door is green.")
    send(person)
    call(person, "post", "/memories/flush", session_id="chat:c1")
    search(person, "door", **SCOPE)
    [sent] = [message for one in upstream.calls("add") for message in one["messages"]]
    name = person.user_id if user_id == "Ann.B@example.org" else alias_of(person.user_pk)
    assert sent["sender_id"] == name
    assert re.fullmatch(r"[A-Za-z0-9_.@+-]{1,128}", name)
    assert {one["user_id"] for one in upstream.calls("search")} == {name}
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = ""
    assert texts(search(person, "door", **SCOPE)) == ["The door is green."]
    assert OutboxEntry.objects.filter(user=person.user_pk).exists()
    assert erase(user_id, person.user_key).json()["remote"]["user_id"] == name
    assert not PendingDeletion.objects.exclude(owner_id__in=[name, ""]).filter(is_agent=False).exists()
    assert not Session.objects.exists()


@pytest.mark.torture
@pytest.mark.upstream
def test_a_real_everos_keeps_all_these_ids_apart(everos: EverOS, settings: Any, storage: Path) -> None:
    """Store without a remote, attach it, detach it, erase, and begin again: no user finds the words of another."""
    run = uuid4().hex[:8]
    sentences = {one: f"The {run} locker number is {4000 + place}." for place, one in enumerate(ACCEPTED)}
    people = {one: create(one) for one in ACCEPTED}

    def found(user_id: str) -> set[str]:
        answer = search(people[user_id], f"{run} locker number", **SCOPE, top_k=50, include_profile=False)
        return {number for text in texts(answer) if run in text for number in re.findall(r"\b4\d{3}\b", text)}

    def number(user_id: str) -> str:
        return str(4000 + ACCEPTED.index(user_id))

    for user_id, person in people.items():
        say(person, f"Before: {sentences[user_id]}")
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = everos.url
    for user_id, person in people.items():
        message = {"role": "user", "content": f"After: {sentences[user_id]}"}
        call(person, "post", "/memories/add", session_id=f"chat:{run}", messages=[message])
        send(person, f"chat:{run}")
        call(person, "post", "/memories/flush", session_id=f"chat:{run}")
        name = user_id if re.fullmatch(r"[A-Za-z0-9_.@+-]{1,128}", user_id) else alias_of(person.user_pk)
        assert person.owner.remote_name == name
    derived = Memory.objects.filter(origin="upstream", text__contains=run)
    for user_id, person in people.items():
        of_user = list(derived.filter(user_id=person.user_pk).values_list("text", flat=True))
        assert of_user, user_id
        assert all(number(user_id) in text for text in of_user), (user_id, of_user)
        assert found(user_id) == {number(user_id)}, user_id
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = ""
    for user_id in people:
        assert found(user_id) == {number(user_id)}, user_id
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = everos.url
    for user_id, person in people.items():
        assert erase(user_id, person.user_key).status_code == 200, user_id
    assert not Memory.objects.exists()
    people = {one: create(one) for one in ACCEPTED}
    for user_id in people:
        assert found(user_id) == set(), user_id


@pytest.mark.parametrize(("user_id", "reason"), REFUSED.items())
def test_a_refused_id_says_why(user_id: str, reason: str) -> None:
    answer = Client().post("/users", {"user_id": user_id}, "application/json")
    [error] = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (422, "user_id")
    assert reason in error["message"]
    assert not MemoryUser.objects.exists()


def test_two_forms_of_a_name_are_one_user(storage: Path) -> None:
    composed, decomposed = "Zo\u00eb", "Zoe\u0308"
    person = create(decomposed)
    assert person.user_id == composed
    assert create(composed).user_pk == person.user_pk
    key = {"user_key": person.user_key}
    assert Client().get("/memories", {"user_id": decomposed, **key}).status_code == 200
    assert person.client.get("/memories", {"user_id": decomposed}).status_code == 200
    edit = {"session_id": f"memory_edit:{decomposed}", "messages": [{"role": "user", "content": "tea"}]}
    assert call(person, "post", "/memories/add", **edit)["session_id"] == f"memory_edit:{composed}"
    assert erase(decomposed, person.user_key).status_code == 200


def test_the_alias_of_another_user_is_refused(storage: Path) -> None:
    person = create("z" * 200)
    answer = Client().post("/users", {"user_id": alias_of(person.user_pk)}, "application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert create(alias_of(uuid4())).user_id.startswith("u_")  # of no user


def test_aliases_are_of_one_form_and_unique() -> None:
    keys = [UUID(int=number) for number in (0, 1, 2**127, 2**128 - 1)]
    aliases = {alias_of(key) for key in keys}
    assert len(aliases) == len(keys)
    assert all(re.fullmatch(r"[a-z0-9_]{28}", alias) for alias in aliases)


def test_look_alikes_are_different_users(storage: Path) -> None:
    names = ["alice", "\u0430lice", "al1ce", "\uff41lice", "Alice", "alic\u0435"]
    people = [create(name) for name in names]
    for person in people:
        say(person, f"I am number {names.index(person.user_id)}.")
    for person in people:
        listed = call(person, "get", "/memories")["memories"]
        assert [one["text"] for one in listed] == [f"I am number {names.index(person.user_id)}."]


def test_only_users_who_are_being_erased_are_not_active() -> None:
    for name in ("!x", "!", "ann"):
        create(name)
    MemoryUser.objects.create(user_id=f"!{uuid4().hex}")
    assert set(active_users().values_list("user_id", flat=True)) == {"!x", "!", "ann"}


def test_agents_keep_their_plain_ids(alice: Person) -> None:
    message = {"role": "assistant", "content": "x", "sender_id": "a|b"}
    refused = call(alice, "post", "/memories/add", status=422, session_id="chat:c1", messages=[message])
    assert [error["field"] for error in refused["errors"]] == ["messages.0.sender_id"]
