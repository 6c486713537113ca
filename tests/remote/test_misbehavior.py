"""Calls to a misbehaving EverOS end in time, with an error of the gateway, and count as done only if they were."""

from __future__ import annotations

import re
import socket
import threading
import time
import tracemalloc
from contextlib import ExitStack
from typing import Any

import pytest
import responses

from core.errors import EngineError, EngineRefused, EngineUnavailable, OutcomeUnknown
from core.network.http_client import Deadline
from remote.client.client import WRITES_AT_ONCE, Client
from remote.client.failures import CircuitOpen, InvalidResponse, NotReached
from remote.client.resilience import Retry
from tests.remote.conftest import EVEROS_URL, MockedEverOS, make_client
from tests.remote.test_client import add, flush, user_message
from tests.stub_upstream import Fault, StubUpstream

DEADLINE_SECONDS = 0.5
SLACK_SECONDS = 2.0  # for a busy machine
MEBIBYTE = 2**20
ANY_CALL = re.compile(f"{EVEROS_URL}/.*")

INVALID_RESPONSES: dict[str, Any] = {
    "html": {"body": b"<html>Welcome to nginx</html>", "content_type": "text/html"},
    "no json": {"body": b"{"},
    "json of another shape": {"json": [1, 2]},
    "wrong types": {"json": {"request_id": "x", "data": {"status": 7, "episodes": {}}}},
    "unknown words": {"json": {"request_id": "x", "data": {"status": "maybe", "episodes": None}}},
    "no data": {"json": {"request_id": "x"}},
    "deep json": {"body": b"[" * 100_000},
}
GZIP_BOMB = Fault(bomb_bytes=256 * MEBIBYTE)
BAD_BODIES = {
    "64 MB": Fault(size_bytes=64 * MEBIBYTE),
    "claimed 64 MB": Fault(body={}, headers={"Content-Length": str(64 * MEBIBYTE)}),
    "a gzip bomb": GZIP_BOMB,
    "damaged gzip": Fault(body=b"not gzip", headers={"Content-Encoding": "gzip"}),
    "unknown encoding": Fault(body={}, headers={"Content-Encoding": "br"}),
}
INCOMPLETE_RESPONSES = {
    "reset before acting": Fault(reset=True),
    "reset after acting": Fault(reset=True, acts=True),
    "silence": Fault(hang_seconds=4),
    "one byte at a time": Fault(drip_seconds=0.05),
    "half an answer": Fault(truncate=True),
    "no http": Fault(raw=b"SSH-2.0-OpenSSH_9.2\r\n"),
    "an endless header": Fault(raw=b"HTTP/1.1 200 X\r\nX: " + b"x" * 200_000),
}


@pytest.fixture
def impatient_client(stub: StubUpstream) -> Client:
    return make_client(stub, timeout_seconds=DEADLINE_SECONDS)


@pytest.mark.parametrize("answer", INVALID_RESPONSES.values(), ids=INVALID_RESPONSES.keys())
def test_an_invalid_response_is_reported_as_502(mocked: MockedEverOS, answer: dict[str, Any]) -> None:
    mocked.add(responses.POST, ANY_CALL, **{"content_type": "application/json", **answer})
    client = make_client()
    for call in (lambda: add(client, user_message("a")), lambda: flush(client), lambda: search(client)):
        with pytest.raises(InvalidResponse) as invalid:
            call()
        assert (invalid.value.status, invalid.value.code) == (502, "engine_invalid_response")
        assert invalid.value.retry_after_seconds == 5


@pytest.mark.parametrize("fault", BAD_BODIES.values(), ids=BAD_BODIES.keys())
def test_an_unreadable_body_is_reported_as_502(client: Client, stub: StubUpstream, fault: Fault) -> None:
    for call in (lambda: add(client, user_message("a")), lambda: flush(client), lambda: search(client)):
        stub.fault("*", fault)
        with pytest.raises(InvalidResponse) as invalid:
            call()
        assert (invalid.value.status, invalid.value.code) == (502, "engine_invalid_response")
        assert invalid.value.retry_after_seconds == 5


@pytest.mark.parametrize("fault", INCOMPLETE_RESPONSES.values(), ids=INCOMPLETE_RESPONSES.keys())
def test_the_outcome_of_a_write_without_a_complete_response_is_unknown(
    impatient_client: Client, stub: StubUpstream, fault: Fault
) -> None:
    for call in (lambda: add(impatient_client, user_message("a")), lambda: flush(impatient_client)):
        stub.fault("*", fault)
        started = time.monotonic()
        with pytest.raises(OutcomeUnknown):
            call()
        assert time.monotonic() - started < DEADLINE_SECONDS + SLACK_SECONDS


@pytest.mark.parametrize("fault", INCOMPLETE_RESPONSES.values(), ids=INCOMPLETE_RESPONSES.keys())
def test_a_read_without_a_complete_response_is_unavailable(
    impatient_client: Client, stub: StubUpstream, fault: Fault
) -> None:
    stub.fault("search", fault)
    with pytest.raises(EngineUnavailable) as unavailable:
        search(impatient_client)
    assert not isinstance(unavailable.value, OutcomeUnknown)
    assert unavailable.value.status == 503
    assert unavailable.value.retry_after_seconds


def search(client: Client) -> object:
    return client.search({"user_id": "alice", "query": "rent"}, client.deadline())


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_its_body_not_read(client: Client, stub: StubUpstream, status: int) -> None:
    stub.fault("add", Fault(status=status, headers={"Location": f"{stub.url}/health"}, bomb_bytes=4096 * MEBIBYTE))
    started = time.monotonic()
    with pytest.raises(EngineError):
        add(client, user_message("a"))
    assert time.monotonic() - started < 5.0
    assert [request.name for request in stub.requests] == ["add"]


def kind_of(error: EngineError) -> str:
    return "refused" if error.is_permanent else "unknown" if isinstance(error, OutcomeUnknown) else "not done"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *[(status, "refused") for status in (413, 415, 422)],
        *[(status, "not done") for status in (301, 302, 307, 308, 400, 401, 403, 404, 405, 408, 409, 410, 425, 429)],
        *[(status, "unknown") for status in (201, 204, 500, 502, 503, 504, 520, 524)],
    ],
)
def test_the_status_of_a_proxy_determines_the_outcome_of_a_write(
    client: Client, stub: StubUpstream, status: int, kind: str
) -> None:
    for call in (lambda: add(client, user_message("a")), lambda: flush(client)):
        stub.fault("*", Fault(status=status, body=b"<html>", content_type="text/html"))
        with pytest.raises(EngineError) as failed:
            call()
        assert kind_of(failed.value) == kind
        assert str(status) in failed.value.detail or kind == "refused" or status < 300


@pytest.mark.parametrize(
    ("status", "code", "add_kind", "flush_kind"),
    [
        (500, "INTERNAL_ERROR", "not done", "unknown"),
        (503, "EXTERNAL_SERVICE_UNAVAILABLE", "not done", "unknown"),
        (503, "CAPABILITY_UNAVAILABLE", "refused", "refused"),
        (429, "QUEUE_SATURATED", "not done", "not done"),
    ],
)
def test_the_error_code_of_everos_determines_the_outcome_of_a_write(
    client: Client, stub: StubUpstream, status: int, code: str, add_kind: str, flush_kind: str
) -> None:
    calls = {"add": (lambda: add(client, user_message("a")), add_kind), "flush": (lambda: flush(client), flush_kind)}
    for name, (call, kind) in calls.items():
        stub.fault(name, Fault(status=status, body={"error": {"code": code}}))
        with pytest.raises(EngineError) as failed:
            call()
        assert kind_of(failed.value) == kind


def test_the_buffer_shows_whether_a_failed_add_was_stored(client: Client, stub: StubUpstream) -> None:
    stub.fault("add", Fault(status=500, body={"error": {"code": "INTERNAL_ERROR"}}, acts=True))
    assert add(client, user_message("a")) == "accumulated"
    stub.fault("add", Fault(status=500, body={"error": {"code": "INTERNAL_ERROR"}}))
    stub.fault("search", Fault(reset=True))
    with pytest.raises(OutcomeUnknown):  # the buffer cannot be read
        add(client, user_message("b", 1_781_172_178_000))
    assert len(stub.calls("add")) == 2


def test_messages_found_in_the_buffer_are_not_sent_again(stub: StubUpstream) -> None:
    client = make_client(stub, attempts=2)
    stub.fault("add", Fault(status=504, acts=True))
    assert add(client, user_message("a")) == "accumulated"
    assert len(stub.calls("add")) == 1
    stub.fault("add", Fault(status=504))
    assert add(client, user_message("b", 1_781_172_178_000)) == "accumulated"
    assert len(stub.calls("add")) == 3


def test_a_closed_port_is_not_reached(stub: StubUpstream) -> None:
    client = make_client(stub)
    stub.__exit__()
    with pytest.raises(NotReached):
        add(client, user_message("a"))


def test_retry_after_reaches_the_caller(mocked: MockedEverOS) -> None:
    mocked.answer("memory/add", {}, status=429, headers={"Retry-After": "17"})
    with pytest.raises(EngineUnavailable) as busy:
        add(make_client(), user_message("a"))
    assert busy.value.retry_after_seconds == 17


def test_bombs_do_not_fill_the_memory(client: Client, stub: StubUpstream) -> None:
    stub.fault("*", GZIP_BOMB)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidResponse):
            search(client)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * MEBIBYTE  # including the compression in the stub


def test_the_circuit_opens_after_five_failures_and_closes_by_a_probe(stub: StubUpstream) -> None:
    now = [1000.0]
    client = make_client(stub, clock=lambda: now[0])
    stub.fault("search", Fault(status=502, body={}), times=6)
    for _ in range(5):
        with pytest.raises(EngineUnavailable):
            search(client)
    with pytest.raises(CircuitOpen) as opened:
        search(client)
    assert opened.value.retry_after_seconds == 5
    assert len(stub.requests) == 5
    now[0] += 5.1
    with pytest.raises(EngineUnavailable):  # the probe fails: open again
        search(client)
    with pytest.raises(CircuitOpen):
        search(client)
    now[0] += 5.1
    search(client)
    search(client)
    assert len(stub.requests) == 8


def test_invalid_responses_open_the_circuit_too(stub: StubUpstream) -> None:
    client = make_client(stub)
    stub.fault("search", Fault(body=b"<html>", content_type="text/html"), times=6)
    for _ in range(5):
        with pytest.raises(InvalidResponse):
            search(client)
    with pytest.raises(CircuitOpen):
        search(client)
    assert len(stub.requests) == 5


def test_rejected_calls_do_not_open_the_circuit(mocked: MockedEverOS) -> None:
    client = make_client()
    mocked.answer("memory/search", {}, status=422)
    for _ in range(11):
        with pytest.raises(EngineRefused):
            search(client)
    assert mocked.names == ["search"] * 11


def test_a_circuit_opened_for_one_user_does_not_stop_others(stub: StubUpstream) -> None:
    now = [1000.0]
    client = make_client(stub, clock=lambda: now[0])
    stub.fault("search", Fault(status=502, body={}), times=6)
    for _ in range(5):
        with pytest.raises(EngineUnavailable):
            search(client.of("alice"))
    for _ in range(2):  # successful calls of others do not close it
        with pytest.raises(CircuitOpen):
            search(client.of("alice"))
        flush(client.of("bob"))
    now[0] += 5.1
    with pytest.raises(EngineUnavailable):
        search(client.of("alice"))


@pytest.mark.parametrize("body", [{"error": {"code": "INTERNAL_ERROR"}}, {}], ids=["everos", "proxy"])
def test_failed_searches_open_the_circuit_of_their_user_alone(stub: StubUpstream, body: dict[str, Any]) -> None:
    now = [1000.0]
    client = make_client(stub, clock=lambda: now[0])
    stub.fault("search", Fault(status=500, body=body), times=10)
    for user in ("alice", "bob"):
        for _ in range(5):
            with pytest.raises(EngineUnavailable):
                search(client.of(user))
        with pytest.raises(CircuitOpen):
            search(client.of(user))
    search(client.of("charlie"))
    now[0] += 5.1
    search(client.of("alice"))


def test_failed_writes_do_not_open_the_circuit(stub: StubUpstream) -> None:
    """The cause may be the content of the write."""
    client = make_client(stub)
    stub.fault("flush", Fault(status=500, body={"error": {"code": "INTERNAL_ERROR"}}), times=20)
    for _ in range(6):
        with pytest.raises(OutcomeUnknown):
            flush(client)
    search(client)


def test_failures_of_two_users_open_the_circuit_for_all(stub: StubUpstream) -> None:
    now = [1000.0]
    client = make_client(stub, clock=lambda: now[0])
    stub.fault("search", Fault(status=502, body={}), times=11)
    for user in ("alice", "bob"):
        for _ in range(5):
            with pytest.raises(EngineUnavailable):
                search(client.of(user))
    with pytest.raises(CircuitOpen):
        search(client.of("charlie"))
    now[0] += 5.1
    with pytest.raises(EngineUnavailable):  # the probe
        search(client.of("charlie"))
    with pytest.raises(CircuitOpen):
        search(client.of("daphne"))
    now[0] += 5.1
    for user in ("daphne", "charlie", "bob", "alice"):
        search(client.of(user))


def test_hanging_writes_of_one_user_do_not_block_searches_or_other_users(stub: StubUpstream) -> None:
    client = make_client(stub, timeout_seconds=1.5)
    stub.fault("add", Fault(hang_seconds=3), times=WRITES_AT_ONCE // 2)
    writers = [threading.Thread(target=_add_and_fail, args=(client.of("alice"),)) for _ in range(20)]
    for writer in writers:
        writer.start()
    time.sleep(0.2)
    started = time.monotonic()
    search(client.of("alice"))
    add(client.of("bob"), user_message("b"))
    took, most_at_once = time.monotonic() - started, stub.most_at_once["add"]
    for writer in writers:
        writer.join()
    assert took < 1.2  # a writer gives up after 1.5
    assert most_at_once == WRITES_AT_ONCE // 2 + 1


def _add_and_fail(client: Client) -> None:
    with pytest.raises(EngineUnavailable):
        add(client, user_message("a"))


def test_connecting_ends_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        address = full.getsockname()
        for _ in range(4):  # fill the queue: further connections get no answer
            sock = waiting.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(address)
        client = Client(f"http://127.0.0.1:{address[1]}", retry=Retry(attempts=1))
        started = time.monotonic()
        with pytest.raises(NotReached):
            client.health(Deadline.after(0.4))
        assert time.monotonic() - started < 0.4 + SLACK_SECONDS
