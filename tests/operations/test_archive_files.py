"""Archives while they are written: whole or not there, one writer at a time, nothing left of those that broke off."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import Conflict, NoSpace
from operations.archive import Reader, Writer
from operations.commands import no_report
from tests.server import PROJECT, RunningServer, own_database, server_environment

KIND = "tests"
BEGUN = """
import os, signal, sys
from pathlib import Path
import memory_gateway.django_setup
from operations.archive import Writer

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


def killed_midway(target: Path) -> None:
    subprocess.run([sys.executable, "-c", BEGUN, str(target)], cwd=PROJECT, check=False)


def test_what_a_killed_one_left_goes_with_the_next_of_any_name(tmp_path: Path) -> None:
    (tmp_path / ".other.part").write_text("somebody else's")
    killed_midway(tmp_path / "monday.tar")
    assert ".monday.tar.mg-files" in names(tmp_path)
    write(tmp_path / "tuesday.tar")
    assert names(tmp_path) == [".other.part", "tuesday.tar"]


def test_two_at_once_never_leave_half_an_archive(tmp_path: Path) -> None:
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


def test_what_came_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    target = tmp_path / "all.tar"
    with Writer(target, KIND) as writer:
        target.write_text("mine")
        with pytest.raises(Conflict, match="came meanwhile"):
            writer.finish({})
    assert (target.read_text(), names(tmp_path)) == ("mine", ["all.tar"])


def write_onto(full: Path, target: Path, source: Path) -> None:
    """`/dev/full` refuses what is written as a full disk does, also what closing would still write."""
    with Writer(target, KIND) as writer, source.open("rb") as data, full.open("wb") as device:
        os.dup2(device.fileno(), writer._raw.fileno())
        writer.add_file("file", data)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 100_000)
    with pytest.raises(NoSpace, match="There is no space for"):
        write_onto(Path("/dev/full"), tmp_path / "all.tar", source)
    assert names(tmp_path) == ["source"]


def test_other_failures_of_the_disk_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Input/output") as failed, Writer(tmp_path / "all.tar", KIND):
        raise OSError(errno.EIO, "Input/output error")
    assert failed.value.errno == errno.EIO
    assert names(tmp_path) == []


def test_a_restore_that_broke_off_leaves_no_copy_beside_the_database(tmp_path: Path) -> None:
    (made := tmp_path / "made").mkdir()
    archive = tmp_path / "backup.tar"
    with own_database(made) as url:
        gateway = RunningServer(made, server_environment(made, url))
        assert gateway.manage("create_user", "alice").returncode == 0
        assert gateway.manage("backup", str(archive)).returncode == 0
    (again := tmp_path / "again").mkdir()
    with own_database(again) as url:
        gateway = RunningServer(again, server_environment(again, url))
        left = Path(gateway.env["MEMORY_GATEWAY_DB_PATH"])
        (left.parent / f".{left.name}.restoring").write_bytes(b"half of a copy")
        restored = gateway.manage("restore", str(archive), "--json")
        assert restored.returncode == 0, restored.stderr
        assert [name for name in names(left.parent) if name.startswith(".")] == (
            [f".{left.name}.restoring"] if url else []
        )
        assert gateway.manage("revoke_key", "alice", "--last").returncode == 0
