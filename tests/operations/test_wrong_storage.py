"""`manage.py serve` with a storage folder that belongs to another database: refused, and no file is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
import requests

from resources.services.storage_binding import FILE
from tests.resources.people import RemotePerson, files_of
from tests.server import DATABASE_FILE, RunningServer, own_database, server_environment

FILES = 1000
FILL = "from tests.operations.stored import fill; fill({!r}, files={}, bind={})"
SENTENCE = "adopt_storage"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """A gateway with 1,000 files that has been started before."""
    data_dir = tmp_path / "gateway"
    data_dir.mkdir()
    with own_database(data_dir) as url:
        made = RunningServer(data_dir, server_environment(data_dir, url))
        fill(made)
        yield made
        if made._process is not None:
            made.kill()


def fill(server: RunningServer, user_id: str = "alice", files: int = FILES, *, bind: bool = True) -> None:
    done = server.manage("shell", "-v", "0", "-c", FILL.format(user_id, files, bind))
    assert done.returncode == 0, done.stderr


def other(server: RunningServer, url: str = "", **env: str) -> RunningServer:
    """The same gateway with another setting."""
    return RunningServer(server.data_dir, {**server.env, "DATABASE_URL": url, **env})


def refused(server: RunningServer) -> str:
    """Start where it must not, and return the sentence."""
    ended = server.manage("serve")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert SENTENCE in ended.stderr
    assert server.env["MEMORY_GATEWAY_STORAGE_DIR"] in ended.stderr
    return ended.stderr


def assert_serves(server: RunningServer) -> None:
    """The right database starts again and serves every file."""
    server.start()
    assert len(files_of(server)) == FILES
    person = RemotePerson.create(server, "alice")
    resource = person.resources()[0]
    content = requests.get(
        f"{server.url}/resources/{resource['resource_id']}/content", headers=person.headers, timeout=30
    )
    assert (content.status_code, content.text) == (200, "text")
    assert len(files_of(server)) == FILES


def other_sqlite_file(server: RunningServer, tmp_path: Path) -> RunningServer:
    """Its path names nothing yet: `make run` migrates before it serves."""
    made = other(server, MEMORY_GATEWAY_DB_PATH=str(tmp_path / "other.sqlite3"))
    assert made.manage("migrate", "--verbosity", "0").returncode == 0
    return made


def empty_sqlite_file(server: RunningServer, tmp_path: Path) -> RunningServer:
    (tmp_path / "empty.sqlite3").touch()
    made = other(server, MEMORY_GATEWAY_DB_PATH=str(tmp_path / "empty.sqlite3"))
    assert made.manage("migrate", "--verbosity", "0").returncode == 0
    return made


def other_filled_database(server: RunningServer, tmp_path: Path) -> RunningServer:
    elsewhere = str(tmp_path / "elsewhere")
    made = other(server, MEMORY_GATEWAY_DB_PATH=str(tmp_path / "filled.sqlite3"), MEMORY_GATEWAY_STORAGE_DIR=elsewhere)
    assert made.manage("migrate", "--verbosity", "0").returncode == 0
    fill(made, "bob", 20)
    return other(made, MEMORY_GATEWAY_STORAGE_DIR=server.env["MEMORY_GATEWAY_STORAGE_DIR"])


@pytest.mark.parametrize("way", [other_sqlite_file, empty_sqlite_file, other_filled_database])
def test_another_database_is_refused(
    server: RunningServer, tmp_path: Path, way: Callable[[RunningServer, Path], RunningServer]
) -> None:
    wrong = way(server, tmp_path)
    assert wrong.env["MEMORY_GATEWAY_DB_PATH"] in refused(wrong)
    assert_serves(server)


def test_a_database_that_was_lost_and_made_again_is_refused(server: RunningServer) -> None:
    if server.env["DATABASE_URL"]:
        pytest.skip("the file of a SQLite database is moved away")
    database = server.data_dir / DATABASE_FILE
    database.rename(server.data_dir / "moved")
    assert server.manage("migrate", "--verbosity", "0").returncode == 0
    refused(server)
    (server.data_dir / "moved").rename(database)
    assert_serves(server)


@pytest.mark.parametrize("has_id", [True, False], ids=["another gateway's", "empty"])
def test_another_storage_folder_is_refused(server: RunningServer, has_id: bool) -> None:
    folder = server.data_dir / "storage"
    folder.rename(server.data_dir / "moved")
    folder.mkdir()
    if has_id:
        (folder / FILE).write_text(f"{uuid4()}\n")
    refused(server)
    shutil.rmtree(folder)
    (server.data_dir / "moved").rename(folder)
    assert_serves(server)


def test_before_either_has_an_id_the_files_decide(server: RunningServer, tmp_path: Path) -> None:
    """As after an upgrade."""
    (server.data_dir / "storage" / FILE).unlink()
    done = server.manage(
        "shell", "-v", "0", "-c", "from resources.models import StorageIdentity as S; S.objects.all().delete()"
    )
    assert done.returncode == 0, done.stderr
    refused(other_sqlite_file(server, tmp_path))
    assert not (server.data_dir / "storage" / FILE).exists()
    assert_serves(server)
    assert (server.data_dir / "storage" / FILE).exists()


def test_commands_are_refused_too(server: RunningServer, tmp_path: Path) -> None:
    wrong = other_sqlite_file(server, tmp_path)
    for command in (("purge_trash",), ("backup", str(tmp_path / "b.tar")), ("doctor", "--fix"), ("ingest",)):
        ended = wrong.manage(*command)
        assert (ended.returncode, SENTENCE in ended.stderr) == (2, True), ended.stderr
    assert len(files_of(server)) == FILES


def test_a_wsgi_server_is_refused_too(server: RunningServer, tmp_path: Path) -> None:
    ended = other_sqlite_file(server, tmp_path).manage("shell", "-v", "0", "-c", "import memory_gateway.server.wsgi")
    assert ended.returncode != 0
    assert SENTENCE in ended.stderr


def test_a_folder_exchanged_under_a_running_server_loses_nothing(server: RunningServer) -> None:
    server.start()
    folder = server.data_dir / "storage"
    swapped = server.data_dir / "swapped"
    shutil.copytree(folder, swapped)
    (swapped / FILE).write_text(f"{uuid4()}\n")
    folder.rename(server.data_dir / "moved")
    swapped.rename(folder)
    delete = "from resources.models import Resource; Resource.objects.all().delete()"
    assert server.manage("shell", "-v", "0", "-c", delete).returncode == 0
    sweep = "from operations.worker import *; MaintenanceTask()._remove_files(timezone.now())"
    swept = server.manage("shell", "-v", "0", "-c", sweep)
    assert swept.returncode == 0, swept.stderr
    assert "No file is removed" in swept.stderr
    assert len(files_of(server)) == FILES


def test_adopting_ties_the_folder_to_the_new_database_and_frees_it_from_the_old(
    server: RunningServer, tmp_path: Path
) -> None:
    new = other_sqlite_file(server, tmp_path)
    shown = new.manage("adopt_storage")
    assert shown.returncode == 0
    assert f"{FILES:,} files have no row" in shown.stdout
    refused(new)
    adopted = new.manage("adopt_storage", "--yes")
    assert adopted.returncode == 0, adopted.stderr
    new.start()
    try:
        assert len(files_of(new)) == FILES
    finally:
        new.kill()
    assert "nothing was moved" in new.log
    doctor = new.manage("doctor")
    assert (doctor.returncode, "nothing was moved" in doctor.stdout) == (1, True)
    refused(server)
    assert server.manage("adopt_storage", "--yes").returncode == 0
    assert_serves(server)


def test_gateways_that_start_at_once_on_one_database_agree(tmp_path: Path) -> None:
    with own_database(tmp_path) as url:
        env = server_environment(tmp_path, url)
        servers = [RunningServer(tmp_path, env) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda one: one.manage("doctor", "--fix", "--json"), servers))
        assert [one.returncode for one in done] == [0] * 4, done
        assert_bound(servers[0])


def test_of_two_databases_on_one_empty_storage_one_wins(tmp_path: Path) -> None:
    storage = str(tmp_path / "storage")
    servers = []
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        env = server_environment(tmp_path / name, "", MEMORY_GATEWAY_STORAGE_DIR=storage)
        servers.append(RunningServer(tmp_path / name, env))
        assert servers[-1].manage("migrate", "--verbosity", "0").returncode == 0
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda one: one.manage("purge_trash"), servers))
    assert sorted(one.returncode for one in done) == [0, 2, 2]
    assert all(SENTENCE in one.stderr for one in done if one.returncode)
    (winner,) = (one for one, ended in zip(servers, done, strict=True) if not ended.returncode)
    assert_bound(winner)


def test_a_crash_between_the_two_writes_is_ended_by_the_next_start(tmp_path: Path) -> None:
    with own_database(tmp_path) as url:
        server = RunningServer(tmp_path, server_environment(tmp_path, url))
        die = (
            "import os; os.link = lambda *_: os._exit(9); "
            "from resources.services import storage_binding; storage_binding.require()"
        )
        assert server.manage("shell", "-v", "0", "-c", die).returncode == 9
        assert not (tmp_path / "storage" / FILE).exists()
        before = id_of(server)
        server.start()
        server.kill()
        assert_bound(server)
        assert id_of(server) == before


def id_of(server: RunningServer) -> str:
    shown = server.manage(
        "shell", "-v", "0", "-c", "from resources.models import StorageIdentity as S; print(S.objects.get())"
    )
    assert shown.returncode == 0, shown.stderr
    return shown.stdout.strip()


def assert_bound(server: RunningServer) -> None:
    folder = Path(server.env["MEMORY_GATEWAY_STORAGE_DIR"])
    assert (folder / FILE).read_text().strip() == id_of(server)
