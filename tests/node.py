"""Packages of Node's for tests: clients of the gateway and a checker of pages, pinned by lock files, installed once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memory-gateway-tests"
INSTALL_SECONDS = 300


def installed(project: Path) -> Path:
    """The folder with the `node_modules` of a `package.json` and its lock file; the test is skipped where Node or the
    packages cannot be installed (under `CI=true` that is a failure)."""
    lock = (project / "package-lock.json").read_bytes()
    folder = CACHE / hashlib.sha256(lock).hexdigest()[:16]
    if shutil.which("node") is None or shutil.which("npm") is None:
        _missing("needs Node and npm")
    if not folder.exists():
        _install(project, folder)
    return folder


def _install(project: Path, folder: Path) -> None:
    """Install beside it and then move: no process meets half an installation; of several at once one is kept."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as around:
        aside = Path(around, "packages")
        aside.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(project / name, aside / name)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=aside, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if done.returncode:
            _missing(f"npm could not install the packages of {project}: {done.stderr[-500:]}")
        try:
            aside.rename(folder)
        except OSError:
            if not folder.exists():
                raise


def _missing(sentence: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)
