"""Archives are written completely or not at all, by one writer at a time, and interrupted writers leave nothing."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import Conflict, InvalidInput, NoSpace, NotFound
from operations.archives.archive import Reader, Writer
from operations.commands import no_report
from tests.forked import PROJECT
from tests.operations import edit_archive
from tests.server import RunningServer, own_database, server_environment

KIND = "tests"
_KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
import memory_gateway.django_setup
from operations.archives.archive import Writer

with Writer(Path(sys.argv[1]), "tests") as writer:
    writer.folder.mkdir()
    (writer.folder / "copy").write_text("private")
    writer.add_lines("rows", [{"text": "private"}])
    os.kill(os.getpid(), signal.SIGKILL)
"""


def write(target: Path) -> None:
    with Writer(target, KIND) as writer:
        writer.add_lines("rows", [{"text": target.name}])
        writer.finish({})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_and_kill(target: Path) -> None:
    subprocess.run([sys.executable, "-c", _KILLED_WRITER, str(target)], cwd=PROJECT, check=False)


def test_the_next_writer_removes_the_files_of_a_killed_one(tmp_path: Path) -> None:
    (tmp_path / ".other.part").write_text("somebody else's")
    write_and_kill(tmp_path / "monday.tar")
    assert ".monday.tar.mg-files" in names(tmp_path)
    write(tmp_path / "tuesday.tar")
    assert names(tmp_path) == [".other.part", "tuesday.tar"]


def test_concurrent_writers_of_one_archive_conflict(tmp_path: Path) -> None:
    target = tmp_path / "all.tar"
    with Writer(target, KIND) as first:
        first.add_lines("rows", [{"number": 1}])
        with pytest.raises(Conflict, match="Another command is writing"):
            write(target)
        write(tmp_path / "another.tar")
        first.finish({})
    with Reader(target, KIND) as written:
        written.verify(no_report)
    assert names(tmp_path) == ["all.tar", "another.tar"]


@pytest.mark.parametrize(("version", "oldest"), [(1, 2), (5, 1), ("1", 1), (True, 1), (None, 1)])
def test_other_versions_are_refused(version: object, oldest: int, tmp_path: Path) -> None:
    target = tmp_path / "all.tar"
    _write_version(target, version)
    with pytest.raises(InvalidInput, match=f"The archive has version {version!r}; this gateway supports"):
        Reader(target, KIND, oldest=oldest)


def test_an_older_version_is_read_if_supported(tmp_path: Path) -> None:
    target = tmp_path / "all.tar"
    _write_version(target, 1)
    with Reader(target, KIND, oldest=1) as written:
        assert written.manifest["version"] == 1


def _write_version(target: Path, version: object) -> None:
    write(target)
    files = edit_archive.contents(target)
    manifest = json.loads(files[edit_archive.MANIFEST]) | {"version": version}
    edit_archive.write(target, {**files, edit_archive.MANIFEST: json.dumps(manifest).encode()})


def test_a_file_created_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "all.tar"
    with Writer(target, KIND) as writer:
        target.write_text("mine")
        with pytest.raises(Conflict, match="created meanwhile"):
            writer.finish({})
    assert (target.read_text(), names(tmp_path)) == ("mine", ["all.tar"])


def write_to_full_disk(full: Path, target: Path, source: Path) -> None:
    """Write an archive to `/dev/full`, which fails like a full disk, also when the file is closed."""
    with Writer(target, KIND) as writer, source.open("rb") as data, full.open("wb") as device:
        os.dup2(device.fileno(), writer._raw.fileno())
        writer.add_file("file", data)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 100_000)
    with pytest.raises(NoSpace, match="There is no space left for"):
        write_to_full_disk(Path("/dev/full"), tmp_path / "all.tar", source)
    assert names(tmp_path) == ["source"]


def test_other_disk_errors_are_raised_unchanged(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Input/output") as failed, Writer(tmp_path / "all.tar", KIND):
        raise OSError(errno.EIO, "Input/output error")
    assert failed.value.errno == errno.EIO
    assert names(tmp_path) == []


@pytest.mark.slow
def test_a_restore_removes_the_copy_of_an_interrupted_one(tmp_path: Path) -> None:
    (source := tmp_path / "made").mkdir()
    archive = tmp_path / "backup.tar"
    url = own_database(source)
    gateway = RunningServer(source, server_environment(source, url))
    assert gateway.manage("create_user", "alice").returncode == 0
    assert gateway.manage("backup", str(archive)).returncode == 0
    (again := tmp_path / "again").mkdir()
    url = own_database(again)
    gateway = RunningServer(again, server_environment(again, url))
    database = Path(gateway.env["MEMORY_GATEWAY_DB_PATH"])
    (database.parent / f".{database.name}.restoring").write_bytes(b"half of a copy")
    restored = gateway.manage("restore", str(archive), "--json")
    assert restored.returncode == 0, restored.stderr
    assert [name for name in names(database.parent) if name.startswith(".")] == (
        [f".{database.name}.restoring"] if url else []
    )
    assert gateway.manage("revoke_key", "alice", "--last").returncode == 0


def test_what_is_no_file_is_refused_as_that(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"nothing\.tar does not exist"):
        Reader(tmp_path / "nothing.tar", KIND)
    for path in (Path("/dev/null"), tmp_path):
        with pytest.raises(InvalidInput, match=f"{path} is not a regular file"):
            Reader(path, KIND)
