"""Uploads to a running server: memory, concurrency, broken connections, a full disk."""

from __future__ import annotations

import os
import resource as limits
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from tests.resources.forms import BOUNDARY, CONTENT_TYPE
from tests.resources.people import RemotePerson, eventually, files_of, stored
from tests.server import RunningServer, running_server

MIB = 2**20
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("uploads")) as server:
        yield server


@pytest.fixture
def person(server: RunningServer, request: pytest.FixtureRequest) -> RemotePerson:
    """A separate user for each test, after one small upload that loads lazily loaded modules."""
    person = RemotePerson.create(server, f"u{abs(hash(request.node.name)) % 10**9}")
    assert person.upload("warm.txt", b"Something to warm up with.").status_code == 200
    return person


def picture(size: int) -> bytes:
    return PNG + os.urandom(size - len(PNG))


def prose(size: int) -> bytes:
    lines = b"".join(b"On day %d the committee settled point %d of the agenda.\n" % (n, n * 7) for n in range(4000))
    return (lines * (size // len(lines) + 1))[:size]


def test_one_file_from_fifty_threads_is_one_resource(server: RunningServer, person: RemotePerson) -> None:
    data = b"The same words from everybody. " + os.urandom(8).hex().encode()
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda number: person.upload(f"{number}.txt", data), range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.json()["status"] for answer in answers} == {"extracted"}
    (resource_id,) = {answer.json()["resource_id"] for answer in answers}
    rows = [row for row in stored(server)["resources"] if row["resource_id"] == resource_id]
    assert [row["attempts"] for row in rows] == [1]
    assert len(person.resources()) == 2
    assert sum(path.parent.name == resource_id for path in files_of(server)) == 1
    assert not list((server.data_dir / "storage" / ".incoming").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("make", [picture, prose])
def test_an_upload_of_25_mb_grows_the_server_by_less_than_50_mb(
    server: RunningServer, person: RemotePerson, make: Callable[[int], bytes]
) -> None:
    before = server.rss_bytes()
    answer = person.upload("large" + (".png" if make is picture else ".txt"), make(25 * MIB))
    assert (answer.status_code, answer.json()["status"]) == (200, "extracted")
    grown = server.rss_bytes().peak - before.current
    assert grown < 50 * MIB, f"{grown / MIB:.1f} MiB"


def test_uploads_above_the_limit_are_413_and_leave_no_file(server: RunningServer, person: RemotePerson) -> None:
    files = files_of(server)
    assert person.upload("large.png", picture(25 * MIB + 1)).status_code == 413
    assert person.upload("larger.png", picture(60 * MIB)).status_code == 413
    assert eventually(lambda: files_of(server) == files)
    assert len(person.resources()) == 1


@pytest.mark.slow
def test_eight_concurrent_uploads_of_25_mb_grow_the_server_by_less_than_80_mb(
    server: RunningServer, person: RemotePerson
) -> None:
    bodies = [picture(25 * MIB) for _ in range(8)]
    before = server.rss_bytes()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: person.upload(f"{number}.png", bodies[number]), range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert server.rss_bytes().peak - before.current < 80 * MIB


def test_a_download_returns_the_uploaded_bytes(server: RunningServer, person: RemotePerson) -> None:
    data = picture(5 * MIB)
    resource_id = person.upload("合同.png", data).json()["resource_id"]
    answer = requests.get(f"{server.url}/resources/{resource_id}/content", headers=person.headers, timeout=30)
    assert answer.content == data
    assert answer.headers["Content-Type"] == "image/png"


def test_an_interrupted_upload_leaves_no_file(server: RunningServer, person: RemotePerson) -> None:
    files = files_of(server)
    for size in (100, 400_000, 3 * MIB):
        send_half(server, person, picture(size))
    assert eventually(lambda: files_of(server) == files)
    assert len(person.resources()) == 1
    assert "Traceback" not in server.log


def send_half(server: RunningServer, person: RemotePerson, data: bytes) -> None:
    """Send half of an upload and close the connection."""
    body = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n'.encode() + data
    head = (
        f"POST /resources HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {person.user_key}\r\n"
        f"Content-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body) * 2}\r\n\r\n"
    )
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(head.encode() + body)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(limits, "prlimit"), reason="limiting another process's files needs Linux")
def test_an_upload_is_507_on_a_full_disk_and_accepted_again_later(
    tmp_path: Path,
) -> None:
    with running_server(tmp_path) as server:
        person = RemotePerson.create(server, "alice")
        _, hard = limits.prlimit(server.pid, limits.RLIMIT_FSIZE)
        limits.prlimit(server.pid, limits.RLIMIT_FSIZE, (4 * MIB, hard))
        refused = person.upload("large.png", picture(8 * MIB))
        assert (refused.status_code, refused.json()["code"]) == (507, "no_space")
        assert files_of(server) == []
        assert person.resources() == []
        limits.prlimit(server.pid, limits.RLIMIT_FSIZE, (hard, hard))
        assert person.upload("large.png", picture(8 * MIB)).status_code == 200
