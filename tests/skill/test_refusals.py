"""Errors of the client and their exit codes."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.skill.conftest import Answer, Run, StubGateway


def problem(status: int, **headers: str) -> Answer:
    document = {"detail": f"The session is\nnot \x1b[31myours: 会话 {status}.", "code": "some_code", "status": status}
    return Answer(status, json.dumps(document).encode(), {"Content-Type": "application/problem+json", **headers})


@pytest.mark.parametrize(("status", "code"), [(400, 3), (401, 3), (404, 3), (422, 3), (429, 3), (502, 4), (503, 4)])
def test_a_refusal_is_one_sentence_with_the_gateways_own_words(
    run: Run, stub: StubGateway, status: int, code: int
) -> None:
    stub.answers = [problem(status)]
    outcome = run("list-resources")
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err == f"error: The session is not [31myours: 会话 {status} ({status} some_code).\n"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"detail": 5}', b"", b"\xff"])
def test_a_refusal_without_words_has_its_status(run: Run, stub: StubGateway, body: bytes) -> None:
    stub.answers = [Answer(502, body)]
    outcome = run("list-resources")
    assert outcome.code == 4
    assert outcome.err == "error: Bad Gateway (502).\n"


@pytest.mark.parametrize("status", [429, 503])
def test_reading_is_tried_again_after_the_time_that_the_gateway_names(run: Run, stub: StubGateway, status: int) -> None:
    stub.answers = [
        problem(status, **{"Retry-After": "7"}),
        problem(status, **{"Retry-After": "2"}),
        Answer(body=b"[]"),
    ]
    outcome = run("search-memory", "q")
    assert outcome.json == []
    assert outcome.slept == [7, 2]


def test_after_three_attempts_it_is_enough(run: Run, stub: StubGateway) -> None:
    stub.answers = [problem(503, **{"Retry-After": "1"})]
    outcome = run("list-resources")
    assert (outcome.code, len(stub.asked), outcome.slept) == (4, 3, [1, 1])
    assert "(503 some_code; try again in 1 s)" in outcome.err


@pytest.mark.parametrize("line", ["add-memory chat:c --text x", "delete-memory m", "issue-key", "flush-memory chat:c"])
def test_what_changes_something_is_asked_once(run: Run, stub: StubGateway, line: str) -> None:
    stub.answers = [problem(503, **{"Retry-After": "1"})]
    assert run(*line.split()).code == 4
    assert len(stub.asked) == 1


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "3600"}, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}])
def test_the_client_does_not_wait_for_an_unknown_or_long_time(
    run: Run, stub: StubGateway, headers: dict[str, str]
) -> None:
    stub.answers = [problem(429, **headers)]
    outcome = run("list-resources")
    assert (outcome.code, outcome.slept) == (3, [])


def test_other_refusals_are_not_tried_again(run: Run, stub: StubGateway) -> None:
    stub.answers = [problem(404, **{"Retry-After": "1"})]
    assert run("list-resources").slept == []


def test_a_redirect_does_not_get_the_key(run: Run, stub: StubGateway) -> None:
    stub.answers = [Answer(301, b"", {"Location": "https://elsewhere.example/"})]
    outcome = run("list-resources")
    assert outcome.code == 4
    assert "redirects to https://elsewhere.example/" in outcome.err
    assert len(stub.asked) == 1


def test_an_answer_that_is_no_json_is_no_gateways(run: Run, stub: StubGateway) -> None:
    stub.answers = [Answer(body=b"<html>hello")]
    outcome = run("health")
    assert outcome.code == 4
    assert "does not answer like a Memory Gateway" in outcome.err


def test_a_closed_port_is_unavailable(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        outcome = run("health", BASE_URL=f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert outcome.code == 4
    assert "cannot be reached" in outcome.err


def test_a_gateway_that_never_answers_is_given_up(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        outcome = run("health", "--timeout", "0.2", BASE_URL=url)
    assert time.monotonic() - began < 5
    assert outcome.code == 4
    assert outcome.err == f"error: {url} did not answer in time.\n"


def test_who_hangs_up_in_the_middle_of_a_file_is_still_heard(run: Run, tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    with large.open("wb") as file:
        file.truncate(32 * 2**20)
    with socket.create_server(("127.0.0.1", 0)) as server:
        hasty = threading.Thread(target=answer_and_hang_up, args=(server,))
        hasty.start()
        outcome = run("upload-resource", str(large), BASE_URL=f"http://127.0.0.1:{server.getsockname()[1]}")
        hasty.join()
    assert outcome.code == 3
    assert outcome.err == "error: Request Entity Too Large (413).\n"


def answer_and_hang_up(server: socket.socket) -> None:
    """Reads the head of a request and not its body."""
    connection, _ = server.accept()
    with connection:
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1024)
        connection.sendall(b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8010",
        "ftp://h",
        "http://",
        "http://u:p@h",
        "http://h:port",
        "http://h?x=1",
        "http://h#x",
        "http://[h",
    ],
)
def test_a_base_address_that_cannot_be_meant_is_wrong_usage(run: Run, url: str) -> None:
    outcome = run("health", BASE_URL=url)
    assert outcome.code == 2
    assert "MEMORY_GATEWAY_BASE_URL" in outcome.err
    assert "u:p" not in outcome.err


def test_without_a_key_nothing_is_sent(run: Run, stub: StubGateway) -> None:
    outcome = run("list-resources", USER_KEY="")
    assert outcome.code == 2
    assert "MEMORY_GATEWAY_USER_KEY" in outcome.err
    assert not stub.asked


def test_a_key_that_cannot_be_one_is_not_repeated(run: Run, stub: StubGateway) -> None:
    outcome = run("list-resources", USER_KEY="uk_a\r\nX-Other: 1")
    assert outcome.code == 2
    assert "uk_a" not in outcome.err
    assert not stub.asked


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no-such-command", "invalid choice"),
        ("search-memory", "query"),
        ("search-memory q --top-k many", "--top-k"),
        ("search-memory q --scope everything", "--scope"),
        ("search-memory q --filters []", "invalid JSON object"),
        ("search-memory q --filters {", "invalid JSON object"),
        ("upload-resource /no/such/file", "cannot be read: No such file"),
        ("upload-resource /dev/null", "is not a file"),
        ("add-memory chat:c", "Nothing to add"),
        ("add-memory chat:c --text x --messages -", "either --messages"),
        ("add-memory chat:c --messages /no/such/file", "cannot be read: No such file"),
        ("add-memory chat:c --messages -", "is not valid JSON"),
        ("add-memory chat:c --attach /no/such/file", "cannot be read: No such file"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_sent(run: Run, stub: StubGateway, line: str, said: str) -> None:
    outcome = run(*line.split())
    assert outcome.code == 2
    assert said in outcome.err
    assert not stub.asked


def test_a_folder_is_no_file(run: Run, tmp_path: Path) -> None:
    outcome = run("upload-resource", str(tmp_path))
    assert outcome.code == 2
    assert "cannot be read: Is a directory" in outcome.err


@pytest.mark.parametrize("text", ["5", '"text"', "[1]", '{"messages": {}}'])
def test_messages_must_be_a_list_of_objects(run: Run, stub: StubGateway, text: str) -> None:
    outcome = run("add-memory", "chat:c", "--messages", "-", stdin=text)
    assert outcome.code == 2
    assert "must contain a list of messages" in outcome.err


def test_create_user_needs_a_name(run: Run, stub: StubGateway) -> None:
    outcome = run("create-user", USER_ID="")
    assert outcome.code == 2
    assert not stub.asked
