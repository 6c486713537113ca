"""`manage.py serve`: how it starts, refuses to start, and ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.server import RunningServer, running_server, wait_until

SITE = {"DJANGO_SETTINGS_MODULE": "tests.memory_gateway.site"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server for the tests that do not stop it."""
    with running_server(tmp_path_factory.mktemp("serve")) as server:
        yield server


def refuses(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


def port_of(server: RunningServer) -> int:
    return int(server.url.rpartition(":")[2])


def test_it_says_where_everything_is(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        assert server.stop() == 0
        for line in (
            f"running at {server.url}\n",
            f"{server.url}/api/docs/\n",
            f"{server.url}/admin/memory/\n",
            "embedded",
            "local",
        ):
            assert line in server.log
        assert "note" not in server.log
        assert "Traceback" not in server.log


def test_sigterm_lets_a_request_finish_and_ends_with_zero(tmp_path: Path) -> None:
    with running_server(tmp_path, **SITE) as server:
        answers: list[requests.Response] = []
        caller = threading.Thread(target=lambda: answers.append(requests.get(f"{server.url}/test/sleep/1", timeout=20)))
        caller.start()
        time.sleep(0.3)
        server.process.terminate()
        wait_until(lambda: refuses(port_of(server)))
        assert server.wait(10) == 0
        caller.join()
        assert answers[0].json()["slept"] == "1"


def test_ctrl_c_and_sigterm_of_a_parent_let_a_request_finish(tmp_path: Path) -> None:
    with running_server(tmp_path, **SITE) as server:
        answers: list[requests.Response] = []
        caller = threading.Thread(target=lambda: answers.append(requests.get(f"{server.url}/test/sleep/2", timeout=20)))
        caller.start()
        time.sleep(0.3)
        os.kill(server.pid, signal.SIGINT)
        time.sleep(0.1)
        server.process.terminate()
        server.wait(10)
        caller.join()
        assert answers[0].json()["slept"] == "2"
        assert "Traceback" not in server.log


@pytest.mark.slow
def test_sigterm_waits_no_more_than_ten_seconds(tmp_path: Path) -> None:
    with running_server(tmp_path, **SITE) as server:
        requests.get(f"{server.url}/test/hang", timeout=10)
        answers: list[requests.Response] = []
        caller = threading.Thread(
            target=lambda: answers.append(requests.get(f"{server.url}/test/sleep/60", timeout=20))
        )
        caller.start()
        time.sleep(0.3)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 11
        caller.join()
        assert (answers[0].status_code, answers[0].json()["code"]) == (503, "shutting_down")
        assert answers[0].headers["Retry-After"]


def test_a_port_in_use_is_one_sentence_and_exit_code_3(undisturbed: RunningServer) -> None:
    second = undisturbed.manage("serve")
    assert second.returncode == 3
    assert second.stderr.count("\n") == 1
    assert "MEMORY_GATEWAY_PORT" in second.stderr


@pytest.mark.slow
def test_unapplied_migrations_stop_the_start(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        server.stop()
        server.write("DELETE FROM django_migrations WHERE app = 'webhooks'")
        refused = server.manage("serve")
        assert refused.returncode == 1
        assert refused.stderr.count("\n") == 1
        assert "manage.py migrate" in refused.stderr


def test_another_address_than_loopback_needs_a_token_also_as_an_option(undisturbed: RunningServer) -> None:
    refused = undisturbed.manage("serve", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - it is refused
    assert refused.returncode == 1
    assert "MEMORY_GATEWAY_PROVISIONING_TOKEN" in refused.stderr


def test_a_kill_leaves_nothing_behind_and_the_data_are_still_there(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        created = requests.post(f"{server.url}/users", json={"user_id": "ann"}, timeout=10).json()
        server.kill()
        assert refuses(port_of(server))
        server.start()
        again = requests.post(f"{server.url}/users", json={"user_id": "ann"}, timeout=10).json()
        assert again["user_key"] == created["user_key"]


def children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid), "-f", "spawn_main"], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


@pytest.mark.slow
def test_several_workers_share_the_port_and_end_together(tmp_path: Path) -> None:
    with running_server(tmp_path, "--workers", "2", **SITE) as server:
        wait_until(lambda: len(children(server.pid)) == 2)
        assert {requests.get(f"{server.url}/test/sleep/0", timeout=10).json()["pid"]} <= set(children(server.pid))
        assert "workers    2" in server.log
        assert server.stop() == 0
        assert refuses(port_of(server))


@pytest.mark.slow
def test_workers_that_start_slowly_are_waited_for_while_they_live(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    start = "import sys, time\nif 'spawn_main' in ' '.join(sys.orig_argv):\n    time.sleep(7)\n"
    (slow / "sitecustomize.py").write_text(start)
    with running_server(tmp_path, "--workers", "2", PYTHONPATH=str(slow)) as server:
        first = children(server.pid)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        wait_until(lambda: len({*children(server.pid)} - {*first}) == 1)
        [loading] = {*children(server.pid)} - {*first}
        time.sleep(1)  # it is asked for a sign of life
        os.kill(loading, signal.SIGKILL)
        wait_until(lambda: loading not in (now := children(server.pid)) and len(now) == 2, seconds=30)
        assert f"Worker process {first[0]} ended with exit code -9 and was replaced." in server.log


@pytest.mark.slow
def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    with running_server(tmp_path, "--workers", "2") as server:
        wait_until(lambda: len(children(server.pid)) == 2)
        os.kill(server.pid, signal.SIGKILL)
        server.wait(10)
        wait_until(lambda: refuses(port_of(server)))


@pytest.mark.slow
def test_reload_starts_again_when_the_code_changes(tmp_path: Path) -> None:
    with running_server(tmp_path, MEMORY_GATEWAY_RELOAD="true", **SITE) as server:
        first = requests.get(f"{server.url}/test/sleep/0", timeout=10).json()["pid"]

        def is_another() -> bool:
            """Touches while the first one answers: changes before its first look are none, later ones end the next."""
            time.sleep(0.5)
            try:
                another = requests.get(f"{server.url}/test/sleep/0", timeout=10).json()["pid"] != first
            except requests.ConnectionError:
                return False
            if not another:
                (Path(__file__).parent / "site_urls.py").touch()
            return bool(another)

        wait_until(is_another, 180)
        assert server.stop() == 0
        assert refuses(port_of(server))


def test_a_truncated_body_creates_nothing(undisturbed: RunningServer) -> None:
    """The whole row: uvicorn, bridge, Django, view. A request sent before the client left is valid."""
    body = b'{"user_id": "ann"}'
    head = b"POST /users HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    for rest in (
        b"Content-Length: 300\r\n\r\n" + body,
        b"Content-Length: 300000\r\n\r\n" + body,
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(body), body),
    ):
        with socket.create_connection(("127.0.0.1", port_of(undisturbed)), timeout=10) as client:
            client.sendall(head + rest)
            time.sleep(0.2)
    time.sleep(0.3)
    assert undisturbed.rows("SELECT count(*) FROM accounts_memoryuser") == [(0,)]
    assert "Traceback" not in undisturbed.log
