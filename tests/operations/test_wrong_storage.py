"""`manage.py serve` refuses a storage folder that belongs to another database, and no file is lost."""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

import pytest
import requests

from resources.services.storage_binding import FILE
from tests.resources.people import RemotePerson, files_of
from tests.server import DATABASE_FILE, RunningServer, migrated_file, own_database, server_environment, wait_until

CREATE_FILES = "from tests.operations.stored_files import create_stored_files as create; create({!r}, files={})"
EXPECTED_ERROR = "adopt_storage"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 64).decode()


@pytest.fixture(scope="module", params=[150, pytest.param(1000, marks=pytest.mark.torture)])
def files(request: pytest.FixtureRequest) -> int:
    """The number of files, more than may be moved as orphans."""
    return int(request.param)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, files: int) -> RunningServer:
    """A gateway with many files; each test works on a copy."""
    data_dir = tmp_path_factory.mktemp("filled")
    url = own_database(data_dir)
    made = RunningServer(data_dir, server_environment(data_dir, url))
    create_files(made, "alice", files)
    return made


@pytest.fixture
def server(filled: RunningServer, tmp_path: Path) -> Iterator[RunningServer]:
    data_dir = tmp_path / "gateway"
    shutil.copytree(filled.data_dir, data_dir)
    url = own_database(data_dir, filled)
    copy = RunningServer(data_dir, server_environment(data_dir, url))
    yield copy
    if copy._process is not None:
        copy.kill()


def create_files(server: RunningServer, user_id: str, files: int) -> None:
    done = server.manage("shell", "-v", "0", "-c", CREATE_FILES.format(user_id, files))
    assert done.returncode == 0, done.stderr


def with_settings(server: RunningServer, url: str = "", **env: str) -> RunningServer:
    """Return the same gateway with other settings."""
    return RunningServer(server.data_dir, {**server.env, "DATABASE_URL": url, **env})


def startup_error(server: RunningServer) -> str:
    """Assert that the server refuses to start; return the error message."""
    ended = server.manage("serve")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert EXPECTED_ERROR in ended.stderr
    assert server.env["MEMORY_GATEWAY_STORAGE_DIR"] in ended.stderr
    return ended.stderr


def assert_serves(server: RunningServer, files: int) -> None:
    """Assert that the gateway starts and still has every file."""
    server.start()
    assert len(files_of(server)) == files
    person = RemotePerson.create(server, "alice")
    resource = person.resources()[0]
    content = requests.get(
        f"{server.url}/resources/{resource['resource_id']}/content", headers=person.headers, timeout=30
    )
    assert (content.status_code, content.text) == (200, "text")
    assert len(files_of(server)) == files


@pytest.fixture
def wrong_database(server: RunningServer, tmp_path: Path) -> RunningServer:
    """The gateway with a new database."""
    shutil.copyfile(migrated_file(), tmp_path / "other.sqlite3")
    return with_settings(server, MEMORY_GATEWAY_DB_PATH=str(tmp_path / "other.sqlite3"))


def test_another_database_is_refused(
    server: RunningServer, wrong_database: RunningServer, tmp_path: Path, files: int
) -> None:
    """Both a new database and one with other files are refused."""
    assert wrong_database.env["MEMORY_GATEWAY_DB_PATH"] in startup_error(wrong_database)
    create_files(with_settings(wrong_database, MEMORY_GATEWAY_STORAGE_DIR=str(tmp_path / "elsewhere")), "bob", 20)
    assert wrong_database.env["MEMORY_GATEWAY_DB_PATH"] in startup_error(wrong_database)
    assert_serves(server, files)


@pytest.mark.slow
def test_a_recreated_database_is_refused(server: RunningServer, files: int) -> None:
    if server.env["DATABASE_URL"]:
        pytest.skip("the file of a SQLite database is moved away")
    database = server.data_dir / DATABASE_FILE
    database.rename(server.data_dir / "moved")
    shutil.copyfile(migrated_file(), database)
    startup_error(server)
    (server.data_dir / "moved").rename(database)
    assert_serves(server, files)


def test_another_storage_folder_is_refused(server: RunningServer, files: int) -> None:
    folder = server.data_dir / "storage"
    folder.rename(server.data_dir / "moved")
    folder.mkdir()
    startup_error(server)  # an empty folder
    (folder / FILE).write_text(f"{uuid4()}\n")
    startup_error(server)  # the folder of another gateway
    shutil.rmtree(folder)
    (server.data_dir / "moved").rename(folder)
    assert_serves(server, files)


@pytest.mark.slow
def test_without_ids_the_stored_files_decide(server: RunningServer, wrong_database: RunningServer, files: int) -> None:
    """After an upgrade neither the database nor the folder has an id."""
    (server.data_dir / "storage" / FILE).unlink()
    done = server.manage(
        "shell", "-v", "0", "-c", "from resources.models import StorageIdentity as S; S.objects.all().delete()"
    )
    assert done.returncode == 0, done.stderr
    startup_error(wrong_database)
    assert not (server.data_dir / "storage" / FILE).exists()
    assert_serves(server, files)
    assert (server.data_dir / "storage" / FILE).exists()


@pytest.mark.slow
def test_commands_are_refused_too(
    server: RunningServer, wrong_database: RunningServer, tmp_path: Path, files: int
) -> None:
    for command in (("purge_trash",), ("backup", str(tmp_path / "b.tar")), ("doctor", "--fix"), ("ingest",)):
        ended = wrong_database.manage(*command)
        assert (ended.returncode, EXPECTED_ERROR in ended.stderr) == (2, True), ended.stderr
    assert len(files_of(server)) == files


def test_a_wsgi_server_is_refused_too(wrong_database: RunningServer) -> None:
    ended = wrong_database.manage("shell", "-v", "0", "-c", "import memory_gateway.server.wsgi")
    assert ended.returncode != 0
    assert EXPECTED_ERROR in ended.stderr


@pytest.mark.slow
def test_no_file_is_removed_from_a_folder_replaced_under_a_running_server(server: RunningServer, files: int) -> None:
    server.start()
    folder = server.data_dir / "storage"
    swapped = server.data_dir / "swapped"
    shutil.copytree(folder, swapped)
    (swapped / FILE).write_text(f"{uuid4()}\n")
    folder.rename(server.data_dir / "moved")
    swapped.rename(folder)
    delete = "from resources.models import Resource; Resource.objects.all().delete()"
    clean_up = "from core.background.tasks import Round; from operations.tasks import clean_up; clean_up(Round())"
    done = server.manage("shell", "-v", "0", "-c", f"{delete}; {clean_up}")
    assert done.returncode == 0, done.stderr
    assert "No files are removed" in done.stderr
    assert len(files_of(server)) == files


@pytest.mark.slow
def test_adopting_binds_the_folder_to_the_new_database_only(
    server: RunningServer, wrong_database: RunningServer, files: int
) -> None:
    new = wrong_database
    shown = new.manage("adopt_storage")
    assert shown.returncode == 0
    assert f"{files:,} files have no row" in shown.stdout
    startup_error(new)
    adopted = new.manage("adopt_storage", "--yes")
    assert adopted.returncode == 0, adopted.stderr
    new.start()
    try:
        wait_until(lambda: "Nothing was moved" in new.log)
        assert len(files_of(new)) == files
    finally:
        new.kill()
    doctor = new.manage("doctor")
    assert (doctor.returncode, "Nothing was moved" in doctor.stdout) == (1, True)
    startup_error(server)
    assert server.manage("adopt_storage", "--yes").returncode == 0
    assert_serves(server, files)


@pytest.mark.slow
def test_gateways_that_start_concurrently_on_one_database_agree(tmp_path: Path) -> None:
    url = own_database(tmp_path)
    env = server_environment(tmp_path, url)
    servers = [RunningServer(tmp_path, env) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda one: one.manage("doctor", "--fix", "--json"), servers))
    assert [one.returncode for one in done] == [0] * 4, done
    assert_bound(servers[0])


@pytest.mark.slow
def test_one_of_several_databases_gets_an_empty_storage_folder(tmp_path: Path) -> None:
    storage = str(tmp_path / "storage")
    servers = []
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        env = server_environment(tmp_path / name, "", MEMORY_GATEWAY_STORAGE_DIR=storage)
        servers.append(RunningServer(tmp_path / name, env))
        shutil.copyfile(migrated_file(), tmp_path / name / DATABASE_FILE)
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda one: one.manage("purge_trash"), servers))
    assert sorted(one.returncode for one in done) == [0, 2, 2]
    assert all(EXPECTED_ERROR in one.stderr for one in done if one.returncode)
    (winner,) = (one for one, ended in zip(servers, done, strict=True) if not ended.returncode)
    assert_bound(winner)


@pytest.mark.slow
def test_a_crash_between_the_two_writes_is_repaired_by_the_next_start(tmp_path: Path) -> None:
    url = own_database(tmp_path)
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
    [(identity,)] = server.rows("SELECT uuid FROM resources_storageidentity")
    return str(UUID(str(identity)))


def assert_bound(server: RunningServer) -> None:
    folder = Path(server.env["MEMORY_GATEWAY_STORAGE_DIR"])
    assert (folder / FILE).read_text().strip() == id_of(server)


@pytest.mark.slow
def test_a_folder_replaced_under_a_running_server_is_detected(server: RunningServer) -> None:
    server.start()
    person = RemotePerson.create(server, "alice")
    folder, moved = server.data_dir / "storage", server.data_dir / "moved"
    folder.rename(moved)
    folder.mkdir()
    image = {"type": "image", "name": "a.png", "ext": "png", "base64": PNG}
    message = {"sender_id": "alice", "role": "user", "timestamp": 1_781_172_177_000, "content": [image]}
    body = {"session_id": "chat:c1", "messages": [message]}
    answers = [
        person.upload("notes.txt", b"A note."),
        requests.post(f"{server.url}/memories/add", json=body, headers=person.headers, timeout=30),
    ]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(503, "storage_unavailable")] * 2
    time.sleep(1.1)  # /health is cached for a second
    health = requests.get(f"{server.url}/health", timeout=10).json()
    assert health["status"] == "degraded"
    assert "storage folder" in health["problems"][0]
    assert not [path for path in folder.rglob("*") if path.is_file()]
    shutil.rmtree(folder)
    moved.rename(folder)
    assert person.upload("notes.txt", b"A note.").status_code == 200
