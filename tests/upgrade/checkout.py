"""Run `tests.upgrade.write_fixture` by the code of the commit that the fixtures are of."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.upgrade.fixture import COMMIT

PROJECT = Path(__file__).resolve().parents[2]


class NoCommit(Exception):
    """The repository does not have the commit, as in a shallow clone."""


def write_fixtures(target: Path, *options: str) -> None:
    """Write the fixtures into a folder. Raises: `NoCommit`."""
    archive = subprocess.run(["git", "archive", COMMIT], cwd=PROJECT, capture_output=True, check=False)
    if archive.returncode:
        raise NoCommit(archive.stderr.decode())
    with tempfile.TemporaryDirectory() as name:
        checkout = Path(name)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(checkout, filter="data")
        shutil.copytree(
            PROJECT / "tests" / "upgrade", checkout / "tests" / "upgrade", ignore=shutil.ignore_patterns("data")
        )
        command = [sys.executable, "-m", "tests.upgrade.write_fixture", str(target.resolve()), *options]
        subprocess.run(command, cwd=checkout, check=True)


if __name__ == "__main__":
    write_fixtures(Path(sys.argv[1]), *sys.argv[2:])
