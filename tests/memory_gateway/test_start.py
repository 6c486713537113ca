"""`manage.py start`: what cannot start is refused before the database is written, and the printed address is served."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
import requests

from resources.services.storage_binding import FILE
from tests.server import START_SECONDS, RunningServer, free_port, server_environment, wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def gateway(tmp_path: Path) -> RunningServer:
    """A gateway without a database file."""
    return RunningServer(tmp_path, server_environment(tmp_path, ""))


def storage_of(gateway: RunningServer) -> Path:
    folder = Path(gateway.env["MEMORY_GATEWAY_STORAGE_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def refusal(gateway: RunningServer, *arguments: str) -> str:
    """Return what a refused start prints, and assert that it wrote nothing to the database."""
    done = gateway.manage("start", *arguments)
    assert done.returncode != 0
    assert "password" not in done.stdout + done.stderr
    assert not Path(gateway.env["MEMORY_GATEWAY_DB_PATH"]).exists()
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_storage_folder_of_another_database_is_refused(gateway: RunningServer) -> None:
    (storage_of(gateway) / FILE).write_text(f"{uuid4()}\n")
    assert "belongs to another database" in refusal(gateway)


def test_a_storage_folder_with_files_and_without_an_id_is_refused(gateway: RunningServer) -> None:
    file = storage_of(gateway) / str(uuid4()) / f"r_{uuid4().hex}" / "content"
    file.parent.mkdir(parents=True)
    file.write_text("kept")
    assert "does not match the database" in refusal(gateway)
    assert file.read_text() == "kept"


def test_a_port_in_use_is_refused(gateway: RunningServer) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        assert "Cannot listen on 127.0.0.1 port" in refusal(gateway, "--port", str(other.getsockname()[1]))


def test_an_unsafe_address_is_refused(gateway: RunningServer) -> None:
    assert "MEMORY_GATEWAY_PROVISIONING_TOKEN" in refusal(gateway, "--host", "0.0.0.0")  # noqa: S104


def test_a_database_that_is_bound_to_another_folder_is_not_migrated(gateway: RunningServer) -> None:
    """Nor is the index rebuilt, or an operator created."""
    assert gateway.manage("migrate", "--verbosity", "0").returncode == 0
    values = "(1, '00000000000000000000000000000001', '2026-01-01')"
    gateway.write(f"INSERT INTO resources_storageidentity (id, uuid, bound_at) VALUES {values}")
    (storage_of(gateway) / FILE).write_text(f"{uuid4()}\n")
    gateway.write("DELETE FROM django_migrations WHERE app = 'store' AND name LIKE '0008%'")
    done = gateway.manage("start")
    assert (done.returncode != 0, "belongs to another database" in done.stderr) == (True, True)
    assert gateway.rows("SELECT count(*) FROM auth_user") == [(0,)]
    assert gateway.rows("SELECT count(*) FROM django_migrations WHERE app = 'store' AND name LIKE '0008%'") == [(0,)]


@contextmanager
def started(gateway: RunningServer, *arguments: str) -> Iterator[list[str]]:
    """Run `start` until the end of the block; yield the addresses that it printed."""
    command = [sys.executable, "manage.py", "start", *arguments]
    output = gateway.data_dir / "start.log"
    with output.open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=gateway.env, stdout=log, stderr=log)
        try:
            until = time.monotonic() + START_SECONDS
            while "OpenClaw" not in output.read_text():
                assert time.monotonic() < until
                assert process.poll() is None, output.read_text()
                time.sleep(0.1)
            yield re.findall(r"http://\S+", output.read_text())
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.parametrize("port", ["0", "free"])
def test_the_printed_addresses_are_served(gateway: RunningServer, port: str) -> None:
    port = str(free_port()) if port == "free" else port
    with started(gateway, "--port", port) as addresses:
        assert len(addresses) == 4  # the operator's, then those of the server
        wait_until(lambda: _answers(addresses[0]), 60)
        for address in addresses:
            assert _answers(address)


def _answers(address: str) -> bool:
    try:
        return requests.get(address, timeout=30).ok
    except requests.ConnectionError:
        return False
