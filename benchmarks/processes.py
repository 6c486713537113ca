"""Start the measured processes and read their CPU time."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
START_SECONDS = 180.0  # on a busy machine too
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def python(arguments: list[str], port: int, log: Path, env: Mapping[str, str]) -> Iterator[int]:
    """Run `python …` in a separate process; yield its pid once it answers on the port, and end it afterwards."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=PROJECT,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_for(process, port, log)
        yield process.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"a server ended by itself:\n{log.read_text()}"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(f"a server does not listen:\n{log.read_text()}")


@contextlib.contextmanager
def gateway(folder: Path, **settings: str) -> Iterator[tuple[int, int]]:
    """Run `manage.py serve` on an empty SQLite database in `folder`; yield its port and pid.

    `settings` are set without their prefix: `BACKEND_BASE_URL="http://…"`.
    """
    port = free_port()
    env = gateway_environment(folder, PORT=str(port), **settings)
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=PROJECT, env=env, check=True)
    with python(["manage.py", "serve"], port, folder / "gateway.log", env) as pid:
        yield port, pid


def gateway_environment(folder: Path, **settings: str) -> dict[str, str]:
    """Return the environment of a gateway with database and files in `folder`."""
    given = {
        "ENV_FILE": "",
        "DB_PATH": str(folder / "memory_gateway.sqlite3"),
        "STORAGE_DIR": str(folder / "storage"),
        **settings,
    }
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("MEMORY_GATEWAY_")},
        "DATABASE_URL": "",
        **{f"MEMORY_GATEWAY_{name}": value for name, value in given.items()},
    }


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def cpu_seconds_with_children(pid: int) -> float:
    """Return that of a process and its descendants, also of those that have ended (Linux)."""
    times: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            times[int(folder.name)] = sum(map(int, fields[11:15]))
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [pid]
    for process in found:
        found += children.get(process, ())
    return sum(times[process] for process in found) / _TICKS_PER_SECOND


def call(
    port: int,
    path: str,
    body: Any,
    *,
    method: str = "POST",
    key: str = "",
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Send a request and return the JSON response. Bytes are sent unchanged.

    Raises: AssertionError for any status but 200.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Content-Type": content_type, **(headers or {})}
    if key:
        sent["Authorization"] = f"Bearer {key}"
    with contextlib.closing(connection):
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        answer = response.read()
    assert response.status == 200, f"{path}: {response.status} {answer[:500]!r}"
    return json.loads(answer)


def upload(port: int, key: str, filename: str, text: str) -> dict[str, Any]:
    """Upload a text file and return the gateway's response."""
    content_type, body = form_data(filename, "text/plain", text.encode())
    answer: dict[str, Any] = call(port, "/resources", body, key=key, content_type=content_type)
    return answer


def form_data(filename: str, mime_type: str, content: bytes) -> tuple[str, bytes]:
    """Return the content type and the body of an upload."""
    head = (
        "--benchmark-boundary\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{filename}"\r\nContent-Type: {mime_type}\r\n\r\n'
    )
    body = head.encode() + content + b"\r\n--benchmark-boundary--\r\n"
    return "multipart/form-data; boundary=benchmark-boundary", body
