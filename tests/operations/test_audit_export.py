"""`audit_export`: JSON lines to stdout, a webhook or a syslog server, continued after a position."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction

from accounts.audit import Actor, record
from accounts.audit_export import events_after
from accounts.models import AuditEvent
from operations import audit_targets
from tests.stub_http import answering_posts

ACTOR = Actor.operator("op")


def exported(*arguments: str) -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command("audit_export", *arguments, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def actions(events: list[dict[str, Any]]) -> list[str]:
    return [event["action"] for event in events]


@pytest.mark.django_db
def test_events_are_json_lines_with_their_users_oldest_first() -> None:
    record(ACTOR, "memory.list", users=["alice", "bob"])
    record(ACTOR, "memory.delete", "m", user_id="bob")
    first, second, own = exported()
    assert (first["action"], first["users"], first["count"]) == ("memory.list", ["alice", "bob"], 1)
    assert (second["action"], second["users"], second["subject_id"]) == ("memory.delete", ["bob"], "m")
    assert own["action"] == "audit.export"
    assert actions(exported("--after", str(first["id"])))[0] == "memory.delete"
    assert len(exported("--since", "2020-01-01")) > 3
    assert actions(exported("--since", "2100-01-01")) == ["audit.export"]  # its own


@pytest.mark.django_db
def test_it_continues_after_the_position_of_a_file(tmp_path: Path) -> None:
    position = tmp_path / "position"
    record(ACTOR, "memory.delete", "m1")
    assert actions(exported("--position", str(position))) == ["memory.delete", "audit.export"]
    record(ACTOR, "memory.restore", "m1")
    assert actions(exported("--position", str(position))) == ["memory.restore", "audit.export"]
    assert int(position.read_text()) == AuditEvent.objects.latest("pk").pk
    position.write_text("half a n")
    with pytest.raises(CommandError, match="does not hold the id"):
        exported("--position", str(position))


@pytest.mark.django_db
def test_a_webhook_gets_batches_and_the_position_moves_only_when_they_arrive(tmp_path: Path) -> None:
    received: list[tuple[str, bytes]] = []
    statuses = iter([503, 200])

    def respond(path: str, headers: Any, body: Any) -> tuple[int | str, bytes]:
        received.append((headers["Authorization"], body))
        return next(statuses), b""

    position, secrets = tmp_path / "position", tmp_path / "headers"
    secrets.write_text("Authorization: Splunk abc\n")
    record(ACTOR, "memory.delete", "m1")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with answering_posts(port, respond, lambda: False):
        arguments = (
            "--webhook",
            f"http://127.0.0.1:{port}/events",
            "--headers",
            str(secrets),
            "--position",
            str(position),
        )
        with pytest.raises(CommandError, match="answered with status 503"):
            exported(*arguments)
        assert not position.exists()
        exported(*arguments)
    assert [authorization for authorization, _body in received] == ["Splunk abc", "Splunk abc"]
    lines = [json.loads(line) for line in received[1][1].splitlines()]
    assert actions(lines) == ["memory.delete", "audit.export", "audit.export"]
    assert int(position.read_text()) == lines[-1]["id"]


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["ftp://a", "udp://a", "tcp://a:x", "syslog"])
def test_an_address_that_no_target_takes_is_refused(address: str) -> None:
    option = "--webhook" if address.startswith("ftp") else "--syslog"
    with pytest.raises(CommandError, match="The address must"):
        exported(option, address)


@pytest.fixture
def server() -> Iterator[tuple[int, list[bytes], threading.Thread]]:
    """Yield the port of a TCP server, the line that it has received at the end of its thread, and the thread."""
    lines: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def receive() -> None:
            accepted, _peer = listening.accept()
            with accepted, accepted.makefile("rb") as stream:
                lines.append(stream.readline())

        thread = threading.Thread(target=receive)
        thread.start()
        yield listening.getsockname()[1], lines, thread


@pytest.mark.django_db
def test_a_syslog_server_gets_a_line_for_each_event(
    server: tuple[int, list[bytes], threading.Thread],
) -> None:
    port, lines, thread = server
    record(ACTOR, "memory.list", users=["alice"])
    with audit_targets.syslog(f"tcp://127.0.0.1:{port}") as send:
        send(events_after(0) or [])
        thread.join(10)
    header, _colon, written = lines[0].partition(b": ")
    assert header == b"<86>memory-gateway"  # authpriv.info
    assert json.loads(written)["users"] == ["alice"]


def test_a_datagram_leaves_users_out_and_says_so() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiving:
        receiving.bind(("127.0.0.1", 0))
        receiving.settimeout(5)
        with audit_targets.syslog(f"udp://127.0.0.1:{receiving.getsockname()[1]}") as send:
            send([{"id": 1, "users": [f"user-{number}" for number in range(5_000)]}])
        written = json.loads(receiving.recv(65_536).partition(b": ")[2])
    assert len(written["users"]) + written["users_left_out"] == 5_000
    assert written["users"][0] == "user-0"


def test_a_syslog_server_that_is_away_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with (
        audit_targets.syslog(f"tcp://127.0.0.1:{port}") as send,
        pytest.raises(audit_targets.NotDelivered, match="cannot be reached"),
    ):
        send([{"id": 1, "users": []}])


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer")
def test_an_event_that_commits_later_than_its_successor_is_not_skipped() -> None:
    begun, end = threading.Event(), threading.Event()

    def write_slowly() -> None:
        try:
            with transaction.atomic():
                record(ACTOR, "memory.delete", "slow")
                begun.set()
                end.wait(10)
        finally:
            connections.close_all()

    slow = threading.Thread(target=write_slowly)
    slow.start()
    begun.wait(10)
    record(ACTOR, "memory.delete", "quick")
    assert events_after(0, wait_seconds=0.2) is None
    end.set()
    slow.join()
    assert [event["subject_id"] for event in events_after(0) or []] == ["slow", "quick"]
