"""The EverOS client with a stub that follows the API."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from core.errors import EngineRefused, EngineUnavailable
from remote.client.client import Client
from tests.remote.conftest import MockedEverOS, make_client
from tests.stub_upstream import Fault, StubUpstream


def user_message(text: str, timestamp: int = 1_781_172_177_000) -> dict[str, Any]:
    return {"sender_id": "alice", "role": "user", "timestamp": timestamp, "content": text}


def add(client: Client, *messages: dict[str, Any], session_id: str = "chat:1") -> str:
    return client.add({"session_id": session_id, "messages": list(messages)}, client.deadline()).status


def flush(client: Client, session_id: str = "chat:1") -> str | None:
    return client.flush({"session_id": session_id}, client.deadline()).status


def test_added_and_flushed_messages_are_found_and_listed(client: Client) -> None:
    assert add(client, user_message("the rent is 700 euros")) == "accumulated"
    assert flush(client) == "extracted"
    records = client.search({"user_id": "alice", "query": "rent"}, client.deadline())
    page = client.list({"user_id": "alice", "memory_type": "episode"}, client.deadline())
    assert [item.text for item in records.episodes] == ["alice said: the rent is 700 euros"]
    assert page.total_count == 1


def test_flushing_nothing_extracts_nothing(client: Client) -> None:
    assert flush(client, "chat:unknown") == "no_extraction"


def test_calls_reuse_the_connection(client: Client, stub: StubUpstream) -> None:
    for _ in range(5):
        client.search({"user_id": "alice", "query": "rent"}, client.deadline())
    assert stub.connections == 1


def test_a_connection_is_not_reused_after_a_500(client: Client, stub: StubUpstream) -> None:
    stub.fault("add", Fault(status=500, body={}))
    with pytest.raises(EngineUnavailable):
        add(client, user_message("hello"))
    add(client, user_message("hello"))
    assert stub.connections == 2


QUEUED = {"request_id": "t1", "data": {"status": "queued", "message_count": 1, "pending": 1}}
ADDED = {"request_id": "x", "data": {"status": "accumulated", "message_count": 1}}


def test_add_waits_for_a_queued_task(mocked: MockedEverOS) -> None:
    mocked.answer("memory/add", QUEUED, status=202)
    mocked.answer("tasks/t1", *(_task(id="t1", status=status) for status in ("queued", "processing", "success")))
    assert add(make_client(), user_message("hello")) == "accumulated"
    assert mocked.names == ["add", "t1", "t1", "t1"]


def _task(**task: str) -> dict[str, Any]:
    return {"request_id": "x", "data": task}


@pytest.mark.parametrize(
    ("task", "error"),
    [
        ({"status": "failed", "error_code": "UNSUPPORTED_FORMAT"}, EngineRefused),
        ({"status": "failed", "error_code": "INTERNAL_ERROR"}, EngineUnavailable),
    ],
)
def test_a_queued_flush_fails_with_its_task(mocked: MockedEverOS, task: dict[str, str], error: type[Exception]) -> None:
    mocked.answer("memory/flush", QUEUED, status=202)
    mocked.answer("tasks/t1", _task(**task))
    with pytest.raises(error):
        flush(make_client())


def test_a_queued_flush_returns_no_status(mocked: MockedEverOS) -> None:
    mocked.answer("memory/flush", QUEUED, status=202)
    mocked.answer("tasks/t1", _task(status="success"))
    assert flush(make_client()) is None


def test_a_task_id_cannot_name_another_path(mocked: MockedEverOS) -> None:
    mocked.answer("memory/flush", {"request_id": "../memory/flush", "data": {"status": "queued"}}, status=202)
    with pytest.raises(EngineUnavailable):
        flush(make_client())
    assert mocked.names == ["flush"]


@pytest.mark.parametrize("version", [None, "1.5.1"])
def test_health_of_old_and_new_versions_is_parsed(version: str | None) -> None:
    with StubUpstream(version=version) as stub:
        client = make_client(stub)
        checked, data = client.health(client.deadline(2.0))
    assert checked.status == "ok"
    assert (data["status"], data.get("version")) == ("ok", version)


def test_temporary_failures_are_retried(mocked: MockedEverOS) -> None:
    busy = {"error": {"code": "EXTERNAL_SERVICE_UNAVAILABLE"}}
    mocked.answer("memory/add", busy, busy, status=503)
    mocked.answer("memory/add", ADDED)
    assert add(make_client(attempts=3), user_message("hello")) == "accumulated"
    assert mocked.names == ["add", "add", "add"]


def test_a_retried_flush_reports_its_failed_attempts(stub: StubUpstream) -> None:
    client = make_client(stub, attempts=2)
    add(client, user_message("hello {"))
    stub.store.loses_next_flush = True
    answer = client.flush({"session_id": "chat:1"}, client.deadline())
    assert answer.status == "no_extraction"
    assert len(answer.failed_before) == 1


@pytest.mark.parametrize("status", [413, 415, 422])
def test_permanent_failures_are_not_retried(mocked: MockedEverOS, status: int) -> None:
    mocked.answer("memory/add", {"detail": "no"}, status=status)
    with pytest.raises(EngineRefused):
        add(make_client(attempts=3), user_message("hello"))
    assert mocked.names == ["add"]


def test_a_missing_capability_is_permanent_despite_status_503(mocked: MockedEverOS) -> None:
    mocked.answer("memory/add", {"error": {"code": "CAPABILITY_UNAVAILABLE", "message": "no office"}}, status=503)
    with pytest.raises(EngineRefused):
        add(make_client(attempts=3), user_message("hello"))
    assert mocked.names == ["add"]


def test_the_error_message_of_everos_is_logged_redacted_and_not_shown_to_callers(mocked: MockedEverOS) -> None:
    message = "no parser for /srv/files\nforged line, key uk_abcdefgh12345678"
    mocked.answer("memory/add", {"error": {"code": "UNSUPPORTED_FORMAT", "message": message}}, status=415)
    with captured_log() as lines, pytest.raises(EngineRefused) as refused:
        add(make_client(), user_message("hello"))
    assert "parser" not in refused.value.detail
    assert "type is unknown, or there is no file at its address" in refused.value.detail
    [line] = lines
    assert "no parser for /srv/files" in line
    assert "uk_abcdefgh" not in line
    assert "\n" not in line


@contextmanager
def captured_log() -> Iterator[list[str]]:
    """Collect the log messages of the client before the filters of other handlers."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("memory_gateway.remote")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
