"""Both clients and both adapters on a running gateway."""

from __future__ import annotations

import ast
import asyncio
import doctest
import io
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from memory_gateway_client import (
    AsyncClient,
    Client,
    InvalidInput,
    Message,
    NotFound,
    PreconditionFailed,
    Unauthenticated,
)
from memory_gateway_client.mem0 import Memory
from memory_gateway_client.openai_agents import MAX_MESSAGES, MemoryGatewaySession
from tests.forked import PROJECT
from tests.server import RunningServer, running_server, wait_until
from tests.skill.conftest import Answer, StubGateway
from tests.stub_llm import running_llm

FOLDER = PROJECT / "clients" / "python"
SCOPE = ["all_user_memory"]
NUMBERS = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("client")) as started:
        yield started


@pytest.fixture
def stub() -> Iterator[StubGateway]:
    gateway = StubGateway()
    yield gateway
    gateway.close()


@pytest.fixture
def user_id() -> str:
    return f"user_{next(NUMBERS)}"


@pytest.fixture
def client(server: RunningServer, user_id: str) -> Iterator[Client]:
    """A client of a new user."""
    with Client(server.url) as anonymous:
        key = anonymous.users.create(user_id).user_key
    with Client(server.url, key) as made:
        yield made


def message(user_id: str, text: str, minute: int = 0) -> Message:
    return Message(sender_id=user_id, role="user", content=text, timestamp=1_780_300_800_000 + 60_000 * minute)


# --- the client ------------------------------------------------------------------------------------------------------


def test_a_conversation_is_stored_found_changed_deleted_and_restored(client: Client, user_id: str) -> None:
    added = client.sessions.add("chat:c_1", [message(user_id, "I prefer short answers.")])
    assert (added.session_id, added.backend.data.message_count) == ("chat:c_1", 1)
    assert client.sessions.flush("chat:c_1").backend.data.memory_count == 1

    [found] = client.memories.search("answers", scope=SCOPE, method="keyword", context=1, explain=True).results
    assert found.text == "I prefer short answers."
    changed = client.memories.update(found.id, "I prefer long answers.", importance=0.5, session_id="chat:c_1")
    detail = client.memories.get(found.id)
    assert (detail.memory.text, detail.memory.override_id) == ("I prefer long answers.", changed.override_id)
    assert [event.action for event in detail.history] == ["original", "override"]
    assert client.memories.undo_update(found.id).status == "undone"

    assert client.memories.delete(found.id, reason="outdated").status == "deleted"
    assert client.memories.search("answers", scope=SCOPE).results == []
    assert [item.reason for item in client.memories.trash()] == ["outdated"]
    assert client.memories.restore(found.id).status == "restored"
    assert [memory.text for memory in client.memories.list()] == ["I prefer short answers."]

    assert client.sessions.delete("chat:c_1").status == "deleted"
    assert [session.session_id for session in client.sessions.list(deleted=True)] == ["chat:c_1"]
    client.sessions.restore("chat:c_1")
    assert [session.memories for session in client.sessions.list()] == [1]


def test_lists_ask_for_their_pages_as_they_are_iterated(client: Client, user_id: str) -> None:
    client.sessions.add("chat:c_1", [message(user_id, f"Note {number}", number) for number in range(5)])
    pages = client.memories.list(session_id="chat:c_1", page_size=2)
    assert next(pages).text == "Note 4"
    assert [memory.text for memory in pages] == ["Note 3", "Note 2", "Note 1", "Note 0"]


def test_a_session_id_may_contain_anything_that_an_address_may_not(client: Client, user_id: str) -> None:
    client.sessions.add("chat:a/b?c#d e%2F", [message(user_id, "Hello")])
    assert client.sessions.delete("chat:a/b?c#d e%2F").session_id == "chat:a/b?c#d e%2F"


def test_a_file_is_uploaded_found_downloaded_and_deleted(client: Client, tmp_path: Path) -> None:
    contract = tmp_path / "付款 合同.txt"
    contract.write_text("The fee is due in thirty days.\n", encoding="utf-8")
    uploaded = client.resources.upload(contract, title="Contract")
    assert uploaded.status == "extracted"
    [found] = client.memories.search("When is the fee due?").results
    assert (found.resource_id, [file.name for file in found.attachments]) == (uploaded.resource_id, [contract.name])
    resource = client.resources.get(uploaded.resource_id)
    assert (resource.filename, resource.title) == (contract.name, "Contract")
    assert [*client.resources.list()] == [resource]
    assert b"".join(client.resources.content(uploaded.resource_id)) == contract.read_bytes()
    assert client.resources.delete(uploaded.resource_id).status == "deleted"
    [in_trash] = client.resources.list(deleted=True)
    assert (in_trash.resource_id, in_trash.deleted_at is not None) == (uploaded.resource_id, True)
    assert client.resources.restore(uploaded.resource_id).status == "extracted"
    assert client.resources.delete(uploaded.resource_id).status == "deleted"
    with pytest.raises(NotFound, match="no such resource") as refused:
        client.resources.get(uploaded.resource_id)
    assert refused.value.request_id


class Recorded(io.BytesIO):
    """A file that records how much is read at once."""

    name = "notes.txt"

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.reads: list[int] = []

    def read(self, size: int | None = -1, /) -> bytes:
        chunk = super().read(size)
        self.reads.append(len(chunk))
        return chunk


def test_a_file_is_streamed_in_both_directions(client: Client) -> None:
    content = b"word " * 400_000
    file = Recorded(content)
    uploaded = client.resources.upload(file, wait=False)
    assert sum(file.reads) == len(content)
    assert max(file.reads) <= 64 * 1024
    chunks = [*client.resources.content(uploaded.resource_id)]
    assert b"".join(chunks) == content
    assert max(map(len, chunks)) < len(content) / 4


def test_a_stream_without_a_length_can_be_uploaded(client: Client) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"The garden gate is green.")
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        client.resources.upload(pipe, filename="pipe.txt")
    assert len(client.memories.search("What color is the gate?").results) == 1


def test_a_file_elsewhere_is_registered_with_its_warnings(client: Client) -> None:
    registered = client.resources.register("scan.png", "https://example.org/scan.png", title="Scan", sha256="no")
    assert [warning.field for warning in registered.warnings or []] == ["sha256"]
    assert client.resources.get(registered.resource_id).title == "Scan"


def test_objects_are_changed_only_if_nothing_changed_them_meanwhile(client: Client, user_id: str) -> None:
    client.sessions.add("chat:etags", [message(user_id, "The gate is red.")])
    memory_id = next(iter(client.memories.list(session_id="chat:etags"))).id
    first = client.memories.get(memory_id)
    second = client.memories.update(memory_id, "The gate is blue.", if_match=first.etag)
    assert second.etag == client.memories.get(memory_id).etag != first.etag
    with pytest.raises(PreconditionFailed):
        client.memories.delete(memory_id, if_match=first.etag)
    session = client.sessions.get("chat:etags")
    assert (session.pending, client.sessions.delete("chat:etags", if_match=session.etag).status) == (1, "deleted")
    assert client.sessions.restore("chat:etags", if_match=client.sessions.get("chat:etags").etag).status == "restored"


def test_profiles_are_changed_only_if_nothing_changed_them_meanwhile(client: Client) -> None:
    first = client.profiles.replace("user", {"occupation": "architect"})
    assert first.content is not None
    second = client.profiles.update("user", {"timezone": "Europe/Paris"}, if_match=first.etag)
    assert second == client.profiles.get("user")
    with pytest.raises(PreconditionFailed):
        client.profiles.update("user", {"timezone": "Asia/Tokyo"}, if_match=first.etag)
    assert [change.version for change in client.profiles.history("user", page_size=1)] == [2, 1]
    assert client.profiles.version("user", 1).content == first.content
    assert client.profiles.restore("user", 1, if_match=second.etag).content == first.content
    assert client.profiles.get_both().user_memory == first.content
    assert "architect" in client.profiles.prompt("router").prompt
    assert "occupation" in client.profiles.schema("user")["properties"]


def test_keys_are_created_rotated_and_revoked(client: Client, server: RunningServer) -> None:
    laptop = client.keys.create(label="laptop", expires_at=datetime.now(UTC) + timedelta(days=1))
    assert {key.label for key in client.keys.list()} >= {"laptop"}
    client.keys.revoke(laptop.key_id)
    with Client(server.url, laptop.user_key) as revoked, pytest.raises(Unauthenticated) as refused:
        revoked.keys.list()
    assert refused.value.code == "unauthenticated"
    with Client(server.url, client.keys.rotate(grace_seconds=0).user_key) as rotated:
        assert len([key for key in rotated.keys.list() if key.is_live]) == 1


def test_a_user_is_erased_only_with_the_confirmation(client: Client, user_id: str) -> None:
    with pytest.raises(InvalidInput):
        client.users.erase(user_id, confirm="yes")
    receipt = client.users.erase(user_id, confirm=f"erase:{user_id}")
    assert receipt.removed["user"] == 1
    with pytest.raises(Unauthenticated):
        client.keys.list()


def test_a_refusal_names_code_fields_and_request(client: Client) -> None:
    with pytest.raises(InvalidInput) as refused:
        client.memories.search("", top_k=1000)
    problem = refused.value
    assert (problem.status, problem.code) == (422, "invalid_input")
    assert {error.field for error in problem.errors} == {"query", "top_k"}
    assert problem.request_id
    assert str(problem).endswith("(422 invalid_input).")


def test_scopes_are_separate(client: Client, user_id: str) -> None:
    other = client.in_scope("other_app", "other_project")
    other.sessions.add("chat:c_1", [message(user_id, "Only there")])
    assert [*client.memories.list()] == []
    [memory] = other.memories.list()
    assert (memory.app_id, memory.project_id) == ("other_app", "other_project")


def test_the_asynchronous_client_has_the_same_endpoints(client: Client, server: RunningServer, user_id: str) -> None:
    async def use(key: str) -> None:
        async with AsyncClient(server.url, key) as gateway:
            assert (await gateway.health()).status == "ok"
            messages = [message(user_id, f"Note {number}", number) for number in range(3)]
            await gateway.sessions.add("chat:c_1", messages)
            assert [one.text async for one in gateway.memories.list(page_size=2)] == ["Note 2", "Note 1", "Note 0"]
            assert len((await gateway.memories.search("note", scope=SCOPE)).results) == 3
            uploaded = await gateway.resources.upload(io.BytesIO(b"The gate is green."), filename="gate.txt")
            content = [chunk async for chunk in gateway.resources.content(uploaded.resource_id)]
            assert b"".join(content) == b"The gate is green."
            with pytest.raises(NotFound):
                await gateway.memories.get(str(uuid4()))
            scoped = gateway.in_scope("other_app")
            assert [one async for one in scoped.memories.list()] == []

    asyncio.run(use(client.keys.create().user_key))


# --- the adapters ----------------------------------------------------------------------------------------------------


@pytest.fixture
def store(client: Client) -> Any:
    """A LangGraph store of a new user."""
    pytest.importorskip("langgraph.store.base")
    from memory_gateway_client.langgraph import MemoryGatewayStore  # noqa: PLC0415  needs langgraph

    return MemoryGatewayStore(client)


def test_the_store_keeps_the_last_value_of_a_key(store: Any, client: Client) -> None:
    value = {"color": "blau", "sizes": [1, 2.5, None], "deep": {"a": {"b": "…"}}}
    assert store.get(("users", "ann"), "likes") is None
    store.put(("users", "ann"), "likes", {"color": "red"})
    first = store.get(("users", "ann"), "likes")
    store.put(("users", "ann"), "likes", value)
    second = store.get(("users", "ann"), "likes")
    assert (second.namespace, second.key, second.value) == (("users", "ann"), "likes", value)
    assert first.created_at == first.updated_at == second.created_at <= second.updated_at
    assert len([*client.in_scope("langgraph").memories.list()]) == 1

    store.delete(("users", "ann"), "likes")
    assert store.get(("users", "ann"), "likes") is None
    store.delete(("users", "ann"), "likes")
    store.put(("users", "ann"), "likes", {"color": "green"})
    assert store.get(("users", "ann"), "likes").value == {"color": "green"}


def test_the_store_tells_similar_names_apart(store: Any) -> None:
    names = [(("a", "b"), "c"), (("a",), "b..c"), (("a",), ".b"), (("a:b",), "/c?"), (("用户",), "键 1")]
    for number, (namespace, key) in enumerate(names):
        store.put(namespace, key, {"n": number})
    assert [store.get(*name).value["n"] for name in names] == [0, 1, 2, 3, 4]
    assert {(item.namespace, item.key) for item in store.search(("a",))} == set(names[:3])


def test_the_store_searches_by_words_prefix_and_filter(store: Any) -> None:
    for number in range(4):
        store.put(("users", "ann"), f"m{number}", {"text": f"Ann likes tea {number}", "n": number})
    store.put(("users", "anna"), "m", {"text": "Anna likes tea", "n": 9})
    assert {item.key for item in store.search(("users", "ann"), query="tea")} == {"m0", "m1", "m2", "m3"}
    assert all(item.score is not None for item in store.search(("users", "ann"), query="tea"))
    assert store.search(("users",), query="bicycle") == []
    assert {item.value["n"] for item in store.search(("users",))} == {0, 1, 2, 3, 9}
    assert {item.key for item in store.search(("users", "ann"), filter={"n": {"$gte": 1, "$lt": 3}})} == {"m1", "m2"}
    assert [item.key for item in store.search(("users",), filter={"n": 9})] == ["m"]
    assert {item.value["n"] for item in store.search(("users",), filter={"n": {"$ne": 9}, "absent": None})} == {
        0,
        1,
        2,
        3,
    }
    assert [item.key for item in store.search(("users", "ann"), limit=2, offset=1)] == ["m2", "m1"]


def test_the_store_lists_its_namespaces(store: Any) -> None:
    for namespace in (("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f")):
        store.put(namespace, "key", {"n": 1})
    store.put(("gone",), "key", {"n": 1})
    store.delete(("gone",), "key")
    assert store.list_namespaces(prefix=("a", "b"), max_depth=3) == [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]
    assert store.list_namespaces(suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f")]
    assert store.list_namespaces(prefix=("a", "*", "f")) == [("a", "b", "f"), ("a", "c", "f")]
    assert store.list_namespaces(limit=1, offset=4) == [("a", "c", "f")]


def test_a_batch_returns_results_in_order_and_reads_before_it_writes(store: Any) -> None:
    from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp  # noqa: PLC0415  optional

    store.put(("n",), "old", {"v": 1})
    results = store.batch(
        [
            PutOp(("n",), "new", {"v": 1}),
            GetOp(("n",), "old"),
            PutOp(("n",), "new", {"v": 2}),
            SearchOp(("n",)),
            PutOp(("n",), "old", None),
            ListNamespacesOp(),
            GetOp(("n",), "new"),
        ]
    )
    assert (results[0], results[1].value, results[2], results[4], results[6]) == (None, {"v": 1}, None, None, None)
    assert ([item.key for item in results[3]], results[5]) == (["old"], [("n",)])
    again = asyncio.run(store.abatch([GetOp(("n",), "new"), GetOp(("n",), "old")]))
    assert (again[0].value, again[1]) == ({"v": 2}, None)


def test_the_store_refuses_what_memories_cannot_keep_before_it_writes(store: Any) -> None:
    from langgraph.store.base import InvalidNamespaceError, PutOp  # noqa: PLC0415  optional

    refused = [
        PutOp(("n",), "k" * 120, {"v": 1}),
        PutOp(("n",), "line\nend", {"v": 1}),
        PutOp(("n",), "key", {"v": "x" * 100_000}),
    ]
    for op in refused:
        with pytest.raises(NotImplementedError):
            store.batch([PutOp(("n",), "first", {"v": 1}), op])
    with pytest.raises(NotImplementedError):
        store.search(("n",), query="x", offset=95)
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "key", {"v": 1})])
    assert store.search(()) == []


def test_the_store_keeps_names_and_values_up_to_their_limits(store: Any) -> None:
    key, empty = "k" * (116 - len("n")), len(json.dumps({"v": ""}))
    for letter in ("a", "b"):
        value = {"v": letter * (100_000 - empty)}
        store.put(("n",), key, value)
        assert store.get(("n",), key).value == value


def test_an_item_lasts_as_long_as_its_ttl_says(store: Any, client: Client) -> None:
    def remaining() -> float | None:
        [memory] = client.in_scope("langgraph").memories.list()
        return memory.expires_at and (memory.expires_at - datetime.now(UTC)) / timedelta(minutes=1)

    store.put(("n",), "key", {"v": "tea"}, ttl=60)
    assert 59 < (remaining() or 0) <= 60
    store.put(("n",), "key", {"v": "tea"}, ttl=5)
    assert 4 < (remaining() or 0) <= 5
    [memory] = client.in_scope("langgraph").memories.list()
    client.in_scope("langgraph").memories.update(memory.id, expires_at=datetime.now(UTC) + timedelta(minutes=1))
    assert store.get(("n",), "key", refresh_ttl=False).value == {"v": "tea"}
    assert (remaining() or 9) <= 1
    for read in (lambda: store.get(("n",), "key"), lambda: store.search(("n",), query="tea")):
        client.in_scope("langgraph").memories.update(memory.id, expires_at=datetime.now(UTC) + timedelta(minutes=1))
        assert read()
        assert 4 < (remaining() or 0) <= 5
    store.put(("n",), "key", {"v": "tea"})
    assert remaining() is None
    store.put(("n",), "key", {"v": "tea"}, ttl=0.02)
    wait_until(lambda: store.get(("n",), "key", refresh_ttl=False) is None)
    assert (store.search(("n",)), store.list_namespaces()) == ([], [])
    store.put(("n",), "key", {"v": "coffee"})
    assert store.get(("n",), "key").value == {"v": "coffee"}


def test_the_store_applies_its_own_ttl(client: Client) -> None:
    pytest.importorskip("langgraph.store.base")
    from memory_gateway_client.langgraph import MemoryGatewayStore  # noqa: PLC0415  needs langgraph

    MemoryGatewayStore(client, ttl={"default_ttl": 10, "refresh_on_read": False}).put(("n",), "key", {"v": 1})
    [memory] = client.in_scope("langgraph").memories.list()
    assert memory.expires_at is not None
    assert memory.expires_at - datetime.now(UTC) <= timedelta(minutes=10)


def test_no_query_finds_an_item_without_index(store: Any) -> None:
    store.put(("n",), "hidden", {"v": "tea"}, index=False)
    store.put(("n",), "shown", {"v": "tea"}, index=["v"])
    assert [item.key for item in store.search(("n",), query="tea")] == ["shown"]
    assert {item.key for item in store.search(("n",))} == {"hidden", "shown"}
    store.put(("n",), "hidden", {"v": "tea"})
    assert {item.key for item in store.search(("n",), query="tea")} == {"hidden", "shown"}


FILTERS: list[Any] = [
    {"n": 2},
    {"n": {"$gt": 1, "$lte": 3}},
    {"n": {"$ne": 2}},
    {"deep": {"a": 1}},
    {"deep": {"a": {"$eq": 1}}},
    {"list": [1, 2]},
    {"list": [1]},
    {"absent": None},
    {"n": 1, "deep": {"b": "x"}},
]


def test_the_store_answers_as_the_framework_s_own(store: Any) -> None:
    from langgraph.store.memory import InMemoryStore  # noqa: PLC0415  optional

    reference = InMemoryStore()
    for number in range(4):
        for namespace in (("a",), ("a", "b"), ("b", "a"), ("a", "b", "c")):
            value = {"n": number, "deep": {"a": number % 2, "b": "x"}, "list": [1, 2][: number % 3]}
            for one in (store, reference):
                one.put(namespace, f"k{number}", value)
                if number == 3:
                    one.delete(namespace, "k0")

    def shown(items: Any) -> Any:
        return sorted((item.namespace, item.key, str(item.value)) for item in items)

    for filter_ in (None, *FILTERS):
        for prefix in ((), ("a",), ("a", "b")):
            got = [shown(one.search(prefix, filter=filter_, limit=100)) for one in (store, reference)]
            assert got[0] == got[1], (filter_, prefix)
    for conditions in (
        {},
        {"prefix": ("a",)},
        {"suffix": ("a",)},
        {"prefix": ("*", "b")},
        {"prefix": ("a",), "suffix": ("c",)},
        {"max_depth": 1},
        {"prefix": ("a",), "max_depth": 2, "limit": 1, "offset": 1},
    ):
        assert store.list_namespaces(**conditions) == reference.list_namespaces(**conditions), conditions
    for namespace, key in ((("a",), "k0"), (("a",), "k1"), (("b",), "k1")):
        got = [one.get(namespace, key) for one in (store, reference)]
        assert (got[0] and got[0].dict().keys()) == (got[1] and {**got[1].dict(), "score": None}.keys())
        assert (got[0] and got[0].value) == (got[1] and got[1].value)


EVEROS = Answer(
    body=b'{"status": "ok", "api": {"status": "ok"}, "backend": {"status": "ok", "base_url": "http://127.0.0.1:1995"}}'
)


def test_the_store_refuses_items_that_everos_would_rewrite(stub: StubGateway) -> None:
    pytest.importorskip("langgraph.store.base")
    from memory_gateway_client.langgraph import MemoryGatewayStore  # noqa: PLC0415  needs langgraph

    stub.answers = [Answer(body=b'{"memories": [], "next_cursor": null}'), EVEROS]
    with Client(stub.url, "uk_1") as client, pytest.raises(NotImplementedError, match="EverOS"):
        MemoryGatewayStore(client).put(("n",), "key", {"v": 1})
    assert [asked.path for asked in stub.asked] == ["/memories", "/health"]


def test_a_value_that_a_person_edited_stays_readable(store: Any, client: Client) -> None:
    store.put(("n",), "key", {"v": 1})
    [memory] = client.in_scope("langgraph").memories.list()
    client.in_scope("langgraph").memories.update(memory.id, "No JSON")
    assert store.get(("n",), "key").value == {"text": "No JSON"}


ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Green.\nLike\nits frame.", "annotations": [], "logprobs": []}],
}
ITEMS: list[Any] = [
    {"role": "user", "content": "Which color has the gate?\n"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "gate"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "绿色"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "…"}], "encrypted_content": "x"},
    ANSWER,
    {"role": "user", "content": "Yes"},
    {"role": "user", "content": "Yes"},
    {"role": "assistant", "content": ""},
    {"role": "user", "content": " ", "type": "message"},
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "See"}, {"type": "input_image", "image_url": "data:,"}],
    },
    {"role": "developer", "content": "Be short."},
]


def use_session(server: RunningServer, client: Client, user_id: str, use: Callable[[MemoryGatewaySession], Any]) -> Any:
    """Run a coroutine with a session of the client's user."""

    async def run() -> Any:
        async with AsyncClient(server.url, client.keys.create().user_key) as gateway:
            return await use(MemoryGatewaySession("c_1", gateway, user_id=user_id))

    return asyncio.run(run())


def test_a_session_returns_items_as_they_were_added(server: RunningServer, client: Client, user_id: str) -> None:
    async def use(session: MemoryGatewaySession) -> None:
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items([])
        await session.add_items(ITEMS[:3])
        await session.add_items(ITEMS[3:])
        assert await session.get_items() == ITEMS
        assert await session.get_items(0) == []
        assert await session.get_items(3) == ITEMS[-3:]
        assert await session.get_items(1000) == ITEMS
        await session.flush()
        assert await session.get_items() == ITEMS
        assert await session.pop_item() == ITEMS[-1]
        assert await session.get_items() == ITEMS[:-1]

        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items(ITEMS[:1])
        assert await session.get_items() == ITEMS[:1]

    use_session(server, client, user_id, use)
    assert [memory.text for memory in client.memories.list()] == ["Which color has the gate?\n"]


def test_a_session_takes_more_items_than_one_call_and_searches_find_them(
    server: RunningServer, client: Client, user_id: str
) -> None:
    items: list[Any] = [{"role": "user", "content": f"Line {number}"} for number in range(MAX_MESSAGES + 1)]

    async def use(session: MemoryGatewaySession) -> None:
        await session.add_items([*items, ANSWER])
        assert await session.get_items() == [*items, ANSWER]

    use_session(server, client, user_id, use)
    [found] = client.memories.search("frame", conversation_id="c_1").results
    assert found.text.startswith("Green.\nLike\nits frame.\n{")


def test_an_answer_that_a_person_edited_stays_readable(server: RunningServer, client: Client, user_id: str) -> None:
    use_session(server, client, user_id, lambda session: session.add_items([ANSWER]))
    [memory] = client.memories.list()
    client.memories.update(memory.id, "Blue.")
    items = use_session(server, client, user_id, lambda session: session.get_items())
    assert items == [{"role": "assistant", "content": "Blue."}]


def test_a_session_refuses_items_that_everos_would_rewrite(stub: StubGateway) -> None:
    async def use() -> None:
        async with AsyncClient(stub.url, "uk_1") as gateway:
            with pytest.raises(NotImplementedError, match="EverOS"):
                await MemoryGatewaySession("c_1", gateway, user_id="u").add_items(ITEMS)

    stub.answers = [EVEROS]
    asyncio.run(use())
    assert [asked.path for asked in stub.asked] == ["/health"]


def derived(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """A fact and a case, as the stand-in model extracts them from the session's messages."""
    if any("memory" in line for line in lines):
        return {"summary": "Ann has a gate."}
    case = {"task_intent": "Look", "approach": "Walk", "quality": 0.5, "key_insight": "", "messages": [1, len(lines)]}
    fact = {"kind": "fact", "text": "The gate is green.", "importance": 0.8, "messages": [1]}
    return {"memories": [fact], "cases": [case]}


@pytest.mark.slow
def test_memories_that_a_model_derived_are_not_items(tmp_path: Path, user_id: str) -> None:
    async def use(url: str) -> None:
        async with AsyncClient(url) as anonymous:
            key = (await anonymous.users.create(user_id)).user_key
        async with AsyncClient(url, key) as gateway:
            session = MemoryGatewaySession("c_1", gateway, user_id=user_id)
            await session.add_items(ITEMS)
            await session.flush()

            async def types() -> set[str]:
                return {one.memory_type async for one in gateway.memories.list(session_id="chat:c_1")}

            async with asyncio.timeout(60):
                while "agent_case" not in await types():
                    await asyncio.sleep(0.1)
            texts = [one.text async for one in gateway.memories.list(session_id="chat:c_1")]
            assert "The gate is green." in texts
            assert await session.get_items() == ITEMS
            assert await session.get_items(1) == ITEMS[-1:]
            assert await session.get_items(len(ITEMS)) == ITEMS
            assert [await session.pop_item() for _ in ITEMS] == ITEMS[::-1]
            assert await session.get_items() == []

    with running_llm() as llm:
        llm.extract = derived
        settings = {"MEMORY_GATEWAY_MODELS": f"llm={llm.url}#stub"}
        with running_server(tmp_path, **settings) as server:
            asyncio.run(use(server.url))


# --- examples and pages ----------------------------------------------------------------------------------------------


def needs(distribution: str) -> pytest.MarkDecorator:
    """Skip the test if this optional package is not installed."""
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return pytest.mark.skip(f"{distribution} is not installed")
    return pytest.mark.skipif(False, reason="")


def run_elsewhere(folder: Path, *arguments: str, **env: str) -> str:
    """The output of Python outside of this project, whose package `agents` would hide that of the Agents SDK."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(FOLDER)} | env,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("langgraph_store", marks=needs("langgraph")),
        pytest.param("openai_agents_session", marks=needs("openai-agents")),
    ],
)
def test_an_example_prints_what_it_says(name: str, server: RunningServer, tmp_path: Path) -> None:
    script = FOLDER / "examples" / f"{name}.py"
    printed = run_elsewhere(tmp_path, str(script), MEMORY_GATEWAY_BASE_URL=server.url)
    said = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    assert printed.strip() == textwrap.dedent(said.partition("It prints:\n")[2]).strip()


SDK_SESSION = """
import asyncio
from agents.memory import Session, SessionSettings
from memory_gateway_client import AsyncClient
from memory_gateway_client.mem0 import Memory
from memory_gateway_client.openai_agents import MemoryGatewaySession

async def main():
    async with AsyncClient({url!r}, {key!r}) as client:
        session = MemoryGatewaySession("c_1", client, user_id={user_id!r}, session_settings=SessionSettings(limit=2))
        assert isinstance(session, Session)
        await session.add_items([{{"role": "user", "content": str(number)}} for number in range(5)])
        print([item["content"] for item in await session.get_items()])

asyncio.run(main())
"""


@needs("openai-agents")
def test_a_session_is_one_of_the_agents_sdk(
    server: RunningServer, client: Client, user_id: str, tmp_path: Path
) -> None:
    code = SDK_SESSION.format(url=server.url, key=client.keys.create().user_key, user_id=user_id)
    assert run_elsewhere(tmp_path, "-c", code) == "['3', '4']\n"


@pytest.mark.parametrize(
    "page", [FOLDER / "README.md", PROJECT / "docs" / "use" / "python.md"], ids=lambda page: page.name
)
def test_the_examples_of_a_page_print_what_they_show(page: Path, server: RunningServer) -> None:
    text = page.read_text(encoding="utf-8").replace("http://127.0.0.1:8010", server.url).replace("```", "")
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert len(examples.examples) > 5
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(examples, out=said.append)
    assert said == []


# --- the client with mem0's methods ----------------------------------------------------------------------------------


@pytest.fixture
def memory(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    monkeypatch.setenv("MEMORY_GATEWAY_BASE_URL", server.url)
    with closing(Memory()) as made:
        yield made


def test_a_program_of_mem0_runs_with_another_import(memory: Memory, user_id: str) -> None:
    [added] = memory.add("I prefer short answers.", user_id=user_id, metadata={"topic": "style"})["results"]
    assert (added["memory"], added["event"]) == ("I prefer short answers.", "ADD")
    [found] = memory.search("Which answers?", filters={"user_id": user_id})["results"]
    assert {"id": added["id"], "user_id": user_id, "metadata": {"topic": "style"}}.items() <= found.items()
    assert found["score"] > 0
    assert memory.update(added["id"], "I prefer long answers.", metadata={"source": "ui"})["message"]
    got = memory.get(added["id"])
    assert got is not None
    assert (got["memory"], got["metadata"]) == ("I prefer long answers.", {"topic": "style", "source": "ui"})
    memory.delete(added["id"])
    assert memory.get_all(filters={"user_id": user_id}) == {"results": []}
    assert (memory.get(added["id"]), memory.get(f"{user_id}/none")) == (None, None)
    history = [(one["event"], one["old_memory"], one["new_memory"]) for one in memory.history(added["id"])]
    short, long = "I prefer short answers.", "I prefer long answers."
    assert history == [("ADD", None, short), ("UPDATE", short, long), ("DELETE", long, None)]


def test_messages_of_mem0_are_a_conversation(memory: Memory, user_id: str) -> None:
    said = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I moved to Lisbon."},
        {"role": "assistant", "content": "How do you like Lisbon?"},
    ]
    added = memory.add(said, user_id=user_id, run_id="trip", agent_id="guide", expiration_date="2999-12-31")["results"]
    assert [one["memory"] for one in added] == ["I moved to Lisbon.", "How do you like Lisbon?"]
    assert {(one["run_id"], one["agent_id"], one["metadata"]) for one in added} == {("trip", "guide", None)}
    assert memory.search("Lisbon", user_id=user_id, run_id="other")["results"] == []
    assert len(memory.search("Lisbon", user_id=user_id, run_id="trip", limit=1)["results"]) == 1
    memory.add("I like trams.", user_id=user_id)
    memory.delete_all(user_id=user_id, run_id="trip")
    assert [one["memory"] for one in memory.get_all(user_id=user_id)["results"]] == ["I like trams."]


def test_filters_of_mem0_narrow_and_never_cross_users(memory: Memory, user_id: str) -> None:
    other = f"other/{user_id}"
    for name, number in ((user_id, 1), (user_id, 2), (other, 3)):
        memory.add(
            f"Note {number} of tea", user_id=name, metadata={"n": number, "kind": "odd" if number % 2 else "even"}
        )

    def numbers(**given: Any) -> list[int]:
        return sorted(one["metadata"]["n"] for one in memory.get_all(**given)["results"])

    me = {"user_id": user_id}
    assert numbers(filters={"AND": [me, {"kind": "odd"}]}) == [1]
    assert numbers(filters=me | {"n": {"gte": 2}}) == [2]
    assert numbers(filters=me | {"OR": [{"n": 1}, {"n": 2}]}) == [1, 2]
    assert numbers(filters=me | {"NOT": [{"kind": "odd"}]}) == [2]
    assert numbers(filters=me | {"kind": {"ne": "even"}}) == [1]
    assert numbers(filters=me | {"n": {"nin": [1]}}) == [2]
    assert numbers(filters=me | {"kind": "*"}) == [1, 2]
    assert numbers(user_id=other) == [3]
    refused: list[Any] = [{}, {"n": 1}, {"OR": [me, {"user_id": other}]}, {"AND": [me, {"user_id": other}]}]
    for filters in (*refused, me | {"kind": {"contains": "o"}}):
        with pytest.raises(ValueError, match=r"user|contains"):
            memory.get_all(filters=filters)
    [mine] = memory.get_all(filters=me | {"n": 1})["results"]
    assert memory.get(mine["id"].replace(user_id, "other%2F" + user_id)) is None


def test_mem0_takes_keys_and_a_last_day(server: RunningServer, user_id: str) -> None:
    with Client(server.url) as anonymous:
        key = anonymous.users.create(user_id).user_key
    memory = Memory.from_config({"llm": {}, "memory_gateway": {"host": server.url, "keys": {user_id: key}}})
    with closing(memory), Client(server.url, key, app_id="mem0") as client:
        [added] = memory.add("I like trams.", user_id=user_id)["results"]
        [stored] = client.memories.list()
        assert stored.expires_at is None
        memory.update(added["id"], expiration_date="2999-12-31")
        assert next(client.memories.list()).expires_at == datetime(3000, 1, 1, tzinfo=UTC)
        memory.update(added["id"], expiration_date=None)
        assert next(client.memories.list()).expires_at is None
