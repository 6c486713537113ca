"""Repeated calls, the waits between them, and the errors, with a gateway that answers as the test says."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from memory_gateway_client import (
    AsyncClient,
    Client,
    InvalidAnswer,
    MemoryGatewayError,
    NoAnswer,
    Problem,
    Retries,
    TooManyRequests,
    Unavailable,
)
from memory_gateway_client.endpoints import Keys, Memories, Resources, Sessions, Users
from memory_gateway_client.transports import AsyncTransport, Settings, Transport
from tests.server import free_port
from tests.skill.conftest import Answer, StubGateway

MESSAGE = {"sender_id": "u", "role": "user", "content": "Hi", "timestamp": 1_780_300_800_000}
FOUND = Answer(body=b'{"results": [], "meta": {"method": "keyword", "scopes": {}, "corrected": {}}}')
EDITED = Answer(body=b'{"memory_id": "m_1", "override_id": "o_1", "status": "active"}')
NO_KEYS = Answer(body=b'{"keys": []}')
ADDED = Answer(
    body=b'{"session_id": "s", "backend": {"request_id": "r", "data": {"status": "accumulated", "message_count": 1}}, '
    b'"stored": 1, "skipped": []}'
)
DECIDED = Answer(body=b'{"memory_id": "m_1", "tombstone_id": "t_1", "status": "restored"}')
NEW_KEY = Answer(
    body=b'{"key_id": "00000000-0000-4000-8000-000000000000", "label": "", "created_at": "2026-06-10T10:00:00Z",'
    b' "expires_at": null, "user_key": "uk_1"}'
)
BROKEN = Answer(body=b"{", declared_bytes=100)


def refusal(status: int, code: str, **headers: str) -> Answer:
    document = {
        "type": "urn:x",
        "title": code,
        "status": status,
        "detail": f"Because of {code}.",
        "code": code,
        "errors": [],
    }
    fields = {"Content-Type": "application/problem+json", "X-Request-ID": "req_1"}
    return Answer(
        status, json.dumps(document).encode(), fields | {name.replace("_", "-"): one for name, one in headers.items()}
    )


BUSY = refusal(503, "database_unavailable", Retry_After="1")
DAMAGED = refusal(503, "database_damaged")
UNCONFIRMED = refusal(503, "upstream_outcome_unknown", Retry_After="30")
LIMITED = refusal(429, "too_many_requests", Retry_After="7")
PROXY = Answer(503, b"<html>", {"Retry-After": "1"})


@pytest.fixture
def stub() -> Iterator[StubGateway]:
    gateway = StubGateway()
    yield gateway
    gateway.close()


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def transport(stub: StubGateway, slept: list[float]) -> Iterator[Transport]:
    with httpx2.Client() as http:
        yield Transport(http, Settings(stub.url, {}, Retries()), slept.append)


def search(transport: Transport) -> Any:
    return Memories(transport, {}).search("x").results


def add(transport: Transport) -> Any:
    return Sessions(transport, {}).add("s", [MESSAGE]).backend.data.message_count


def create_key(transport: Transport) -> Any:
    return Keys(transport, {}).create().user_key


def edit(transport: Transport) -> Any:
    return Memories(transport, {}).update("m_1", "x").status


@pytest.mark.parametrize(
    ("refused", "waits"),
    [(BUSY, [1.0]), (LIMITED, [7.0]), (UNCONFIRMED, [30.0])],
    ids=["busy", "limited", "unconfirmed"],
)
def test_a_call_that_can_be_repeated_is_sent_again_after_the_time_that_the_gateway_says(
    refused: Answer, waits: list[float], transport: Transport, stub: StubGateway, slept: list[float]
) -> None:
    stub.answers = [refused, FOUND]
    assert search(transport) == []
    stub.answers = [refused, ADDED]
    assert add(transport) == 1
    assert slept == waits * 2
    assert stub.asked[2].json == stub.asked[3].json


@pytest.mark.parametrize("refused", [DAMAGED, BROKEN], ids=["damaged", "broken connection"])
def test_without_a_time_the_wait_grows(
    refused: Answer, transport: Transport, stub: StubGateway, slept: list[float]
) -> None:
    stub.answers = [refused]
    with pytest.raises(MemoryGatewayError):
        Keys(transport, {}).list()
    assert len(stub.asked) == 3
    assert 0.25 <= slept[0] <= 0.5 <= slept[1] <= 1


@pytest.mark.parametrize("refused", [BUSY, LIMITED], ids=["busy", "limited"])
def test_a_change_is_sent_again_if_the_gateway_did_not_do_it(
    refused: Answer, transport: Transport, stub: StubGateway
) -> None:
    stub.answers = [refused, EDITED]
    assert edit(transport) == "active"
    assert len(stub.asked) == 2


@pytest.mark.parametrize(
    "refused",
    [UNCONFIRMED, DAMAGED, PROXY, BROKEN, refusal(500, "internal_error"), refusal(409, "conflict", Retry_After="1")],
    ids=["unconfirmed", "damaged", "proxy", "broken connection", "internal error", "conflict"],
)
def test_a_change_that_may_be_done_is_sent_once(
    refused: Answer, transport: Transport, stub: StubGateway, slept: list[float]
) -> None:
    stub.answers = [refused]
    with pytest.raises(MemoryGatewayError):
        edit(transport)
    assert (len(stub.asked), slept) == (1, [])


def test_a_new_key_that_may_be_made_is_asked_for_with_the_same_key(transport: Transport, stub: StubGateway) -> None:
    stub.answers = [BROKEN, NEW_KEY]
    assert create_key(transport) == "uk_1"
    first, second = (asked.headers["Idempotency-Key"] for asked in stub.asked)
    assert first == second


@pytest.mark.parametrize("refused", [UNCONFIRMED, PROXY, BROKEN, refusal(409, "conflict", Retry_After="1")])
def test_a_change_with_a_key_is_repeated_with_the_same_key(
    refused: Answer, transport: Transport, stub: StubGateway, slept: list[float]
) -> None:
    stub.answers = [refused, DECIDED]
    for memory_id in ("m_1", "m_2"):
        assert Memories(transport, {}).restore(memory_id).status == "restored"
    keys = [asked.headers["Idempotency-Key"] for asked in stub.asked]
    assert (len(keys), keys[0] == keys[1], len(set(keys)), len(slept)) == (3, True, 2, 1)


def test_a_conflict_is_the_callers(transport: Transport, stub: StubGateway) -> None:
    stub.answers = [refusal(409, "conflict")]
    with pytest.raises(Problem):
        Memories(transport, {}).restore("m_1")
    assert len(stub.asked) == 1


def test_a_change_that_could_not_be_sent_is_sent_again(slept: list[float]) -> None:
    with httpx2.Client() as http, pytest.raises(NoAnswer, match="did not answer"):
        edit(Transport(http, Settings(f"http://127.0.0.1:{free_port()}", {}, Retries()), slept.append))
    assert len(slept) == 2


def test_a_longer_wait_than_allowed_is_the_callers(transport: Transport, stub: StubGateway, slept: list[float]) -> None:
    stub.answers = [refusal(429, "too_many_requests", Retry_After="31")]
    with pytest.raises(TooManyRequests) as refused:
        search(transport)
    assert (refused.value.retry_after, slept) == (31.0, [])


def test_a_file_is_sent_again_from_its_beginning_and_a_pipe_is_not(
    transport: Transport, stub: StubGateway, tmp_path: Any
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"The gate is green.")
    stub.answers = [BUSY, DAMAGED]
    with path.open("rb") as file, pytest.raises(Unavailable):
        Resources(transport, {}).upload(file)
    assert [b"The gate is green." in asked.body for asked in stub.asked] == [True] * 3
    assert [b'filename="notes.txt"' in asked.body for asked in stub.asked] == [True] * 3

    stub.answers = [BUSY]
    reader, writer = os.pipe()
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe, pytest.raises(Unavailable):
        Resources(transport, {}).upload(pipe, filename="notes.txt")
    assert len(stub.asked) == 4


def test_a_problem_has_all_that_the_gateway_says(transport: Transport, stub: StubGateway) -> None:
    stub.answers = [UNCONFIRMED]
    with pytest.raises(Unavailable) as refused:
        edit(transport)
    problem = refused.value
    assert (problem.status, problem.code, problem.request_id) == (503, "upstream_outcome_unknown", "req_1")
    assert str(problem) == "Because of upstream_outcome_unknown (503 upstream_outcome_unknown)."


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(502, b"<html>Bad gateway</html>"), r"Bad Gateway \(502\)"),
        (Answer(301, b"", {"Location": "https://m.example/"}), "redirects to https://m.example/"),
    ],
    ids=["proxy", "redirect"],
)
def test_the_answer_of_a_proxy_is_a_problem_without_a_code(
    answer: Answer, said: str, transport: Transport, stub: StubGateway
) -> None:
    stub.answers = [answer]
    with pytest.raises(Problem, match=said) as refused:
        search(transport)
    assert refused.value.code == ""


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"results": 1}'])
def test_an_answer_of_another_server_is_invalid(body: bytes, transport: Transport, stub: StubGateway) -> None:
    stub.answers = [Answer(body=body)]
    with pytest.raises(InvalidAnswer, match="did not answer as a Memory Gateway does"):
        search(transport)


def test_a_download_that_breaks_is_no_answer(transport: Transport, stub: StubGateway) -> None:
    stub.answers = [Answer(body=b"half", declared_bytes=8)]
    with pytest.raises(NoAnswer):
        list(Resources(transport, {}).content("r_1"))


def test_credentials_go_into_the_header_alone(stub: StubGateway) -> None:
    stub.answers = [NO_KEYS, refusal(403, "forbidden")]
    with Client(f"{stub.url}/prefix/", "uk_1") as client:
        client.keys.list()
        with pytest.raises(Problem):
            client.users.create("u_1", provisioning_token="token")
    assert [asked.target for asked in stub.asked] == ["/prefix/users/me/keys", "/prefix/users"]
    assert [asked.headers["Authorization"] for asked in stub.asked] == ["Bearer uk_1", "Bearer token"]
    assert stub.asked[1].json == {"user_id": "u_1"}


@pytest.mark.parametrize("base_url", ["", "127.0.0.1:8010", "ftp://127.0.0.1", "http://127.0.0.1?x=1"])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_an_address_that_is_not_one_of_a_gateway_is_refused(kind: Callable[[str], Any], base_url: str) -> None:
    with pytest.raises(ValueError, match="base_url must read like"):
        kind(base_url)


def test_the_asynchronous_client_repeats_calls_in_the_same_way(stub: StubGateway, slept: list[float]) -> None:
    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def use() -> None:
        async with httpx2.AsyncClient() as http:
            transport = AsyncTransport(http, Settings(stub.url, {}, Retries()), sleep)
            stub.answers = [BUSY, FOUND]
            assert (await Memories(transport, {}).search("x")).results == []
            stub.answers = [UNCONFIRMED]
            with pytest.raises(Unavailable):
                await Users(transport, {}).create("u_1")
            stub.answers = [Answer(body=b"half", declared_bytes=8)]
            with pytest.raises(NoAnswer):
                _ = [chunk async for chunk in Resources(transport, {}).content("r_1")]

    asyncio.run(use())
    assert slept == [1.0]
