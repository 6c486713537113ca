"""`ETag`, `If-Match` and `If-None-Match` of memories, sessions and resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from memories.models import Override
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, say, upload
from tests.resources.people import RemotePerson
from tests.server import running_server

TEXT = "the car is red"


def memory(person: Person) -> str:
    say(person, "chat:c1", TEXT)
    return f"/memories/{id_of(TEXT)}"


def session(person: Person) -> str:
    say(person, "chat:c1", TEXT)
    return "/sessions/chat:c1"


def session_like_a_restore(person: Person) -> str:
    say(person, "chat:c1/restore", TEXT)
    return "/sessions/chat:c1/restore"


def resource(person: Person) -> str:
    return f"/resources/{upload(person)['resource_id']}"


# An upload is ingested in another thread.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("storage")]
OBJECTS = pytest.mark.parametrize("create", [memory, session, session_like_a_restore, resource])


def send(person: Person, method: str, path: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return getattr(person.client, method)(path, body or {}, "application/json", headers=names)


def etag_of(person: Person, path: str) -> str:
    etag = person.client.get(path).headers["ETag"]
    assert etag == person.client.get(path).headers["ETag"]
    return str(etag)


def edit(person: Person, path: str, text: str, **headers: str) -> Any:
    return send(person, "patch", path, {"override_text": text}, **headers)


def test_the_second_of_two_agents_that_edit_a_memory_gets_the_present_text(alice: Person) -> None:
    path = memory(alice)
    etag = etag_of(alice, path)
    first = edit(alice, path, "the car is blue", If_Match=etag)
    second = edit(alice, path, "the car is green", If_Match=etag)
    assert (first.status_code, second.status_code) == (200, 412)
    assert second.headers["ETag"] == first.headers["ETag"] == etag_of(alice, path)
    problem = second.json()
    assert problem["code"] == "precondition_failed"
    assert problem["current"] == alice.client.get(path).json()
    assert problem["current"]["memory"]["text"] == "the car is blue"
    assert edit(alice, path, "the car is green", If_Match=second.headers["ETag"]).status_code == 200


def test_the_etag_changes_with_every_decision(alice: Person) -> None:
    path = memory(alice)
    seen = [etag_of(alice, path)]
    for method, address, body in (
        ("patch", path, {"override_text": "the car is blue"}),
        ("patch", path, {"override_text": TEXT}),
        ("delete", f"{path}/override", {}),
        ("delete", path, {}),
        ("post", f"{path}/restore", {}),
    ):
        refused = send(alice, method, address, body, If_Match='"stale"')
        assert (refused.status_code, refused.headers["ETag"]) == (412, seen[-1])
        assert send(alice, method, address, body, If_Match=seen[-1]).status_code == 200
        seen.append(etag_of(alice, path))
    assert len(set(seen)) == len(seen)


def test_a_session_that_got_a_message_is_not_deleted(alice: Person) -> None:
    path = session(alice)
    etag = etag_of(alice, path)
    say(alice, "chat:c1", TEXT, "one more")
    refused = send(alice, "delete", path, If_Match=etag)
    assert (refused.status_code, refused.json()["current"]) == (412, alice.client.get(path).json())
    assert refused.json()["current"]["memories"] == 2
    assert send(alice, "delete", path, If_Match=etag_of(alice, path)).status_code == 200
    assert alice.client.get(path).json()["deleted_at"] is not None
    assert send(alice, "post", f"{path}/restore", If_Match=etag).status_code == 412
    assert send(alice, "post", f"{path}/restore", If_Match=etag_of(alice, path)).status_code == 200


@OBJECTS
def test_the_rules_of_comparison(alice: Person, create: Callable[[Person], str]) -> None:
    path = create(alice)
    etag = etag_of(alice, path)
    for tags in (etag, f"W/{etag}", f'"other" , {etag}', f',"a,b",{etag},', "*"):
        unchanged = send(alice, "get", path, If_None_Match=tags)
        assert (unchanged.status_code, unchanged.content, unchanged.headers["ETag"]) == (304, b"", etag)
        assert send(alice, "delete", path, If_None_Match=tags).status_code == 412
    for tags in ('"other"', f"W/{etag}"):
        assert send(alice, "get", path, If_Match=tags).status_code == 412
        assert send(alice, "delete", path, If_Match=tags).status_code == 412
    for tags in ("nonsense", etag.strip('"'), "", f"{etag} {etag}", f"{etag}, x"):
        for header in ("If_Match", "If_None_Match"):
            for method in ("get", "delete"):
                refused = send(alice, method, path, **{header: tags})
                assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")
                assert refused.json()["errors"][0]["field"] == header.replace("_", "-")
    assert etag_of(alice, path) == etag
    assert send(alice, "get", path, If_None_Match='"other"').status_code == 200
    done = send(alice, "delete", path, If_Match=f'"other", {etag}', If_None_Match='"other"')
    assert done.status_code == 200


@OBJECTS
def test_any_object_meets_an_asterisk_and_an_absent_one_is_404(
    alice: Person, bob: Person, create: Callable[[Person], str]
) -> None:
    path = create(alice)
    for tags in (etag_of(alice, path), "*", '"other"'):
        assert send(bob, "delete", path, If_Match=tags).status_code == 404
    assert "car" not in send(bob, "delete", path, If_Match='"other"').content.decode()
    assert send(alice, "delete", path, If_Match="*").status_code == 200


def test_a_refused_change_changes_nothing(alice: Person) -> None:
    path = memory(alice)
    before = alice.client.get(path).json()
    for headers in ({"If_Match": '"other"'}, {"If_None_Match": "*"}, {"If_Match": "other"}):
        assert edit(alice, path, "the car is blue", **headers).status_code in {400, 412}
        assert send(alice, "delete", path, **headers).status_code in {400, 412}
    assert alice.client.get(path).json() == before
    assert not Override.objects.exists()


def test_a_file_is_read_under_the_same_rules(alice: Person) -> None:
    path = f"{resource(alice)}/content"
    whole = alice.client.get(path)
    assert b"".join(whole.streaming_content)
    etag = whole.headers["ETag"]
    assert send(alice, "get", path, If_None_Match=f"W/{etag}").status_code == 304
    assert send(alice, "get", path, If_Match=f"W/{etag}").status_code == 412
    assert send(alice, "get", path, If_None_Match="nonsense").status_code == 400


def test_lists_have_no_etag(alice: Person) -> None:
    memory(alice)
    for path in ("/memories", "/sessions", "/resources", "/memories/trash"):
        assert "ETag" not in alice.client.get(path).headers
    assert call(alice, "get", "/sessions/chat:c1") == call(alice, "get", "/sessions")["sessions"][0]


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_one_of_many_concurrent_changes_with_the_same_etag_wins(method: str, tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        person = RemotePerson.create(server, "alice")

        def ask(verb: str, path: str, body: Any = None, **headers: str) -> requests.Response:
            named = {**person.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
            return requests.request(verb, f"{server.url}{path}", json=body, headers=named, timeout=60)

        message = {"sender_id": "alice", "role": "user", "timestamp": NOON_MS, "content": TEXT}
        assert ask("POST", "/memories/add", {"session_id": "chat:c", "messages": [message]}).status_code == 200
        path = f"/memories/{ask('GET', '/memories').json()['memories'][0]['id']}"
        etag = ask("GET", path).headers["ETag"]

        def change(number: int) -> int:
            body = {"override_text": f"the car has {number} doors"} if method == "PATCH" else {"reason": f"{number}"}
            return ask(method, path, body, If_Match=etag).status_code

        with ThreadPoolExecutor(10) as pool:
            assert Counter(pool.map(change, range(10))) == {200: 1, 412: 9}
