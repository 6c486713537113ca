"""The tests of both adapters and their examples, with the frameworks in an environment made for them.

The frameworks are no development packages of the gateway: OpenAI's holds back packages that the gateway uses.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.forked import PROJECT
from tests.node import CACHE

TESTS = Path(__file__).parent
FRAMEWORKS = TESTS / "frameworks.txt"


def run(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout


def python_with_frameworks() -> Path:
    """The Python of an environment with the pinned frameworks, made once, and the packages of this one."""
    here = sysconfig.get_path("purelib")
    pinned = hashlib.sha256(FRAMEWORKS.read_bytes() + here.encode()).hexdigest()[:16]
    folder = CACHE / f"frameworks-{pinned}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        run(sys.executable, "-m", "venv", "--clear", folder)
        run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", FRAMEWORKS)
        own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        Path(own, "gateway.pth").write_text(here, encoding="utf-8")
        (folder / "complete").touch()
    return python


@pytest.mark.slow
def test_the_adapters_with_their_frameworks() -> None:
    tests = [TESTS / "test_live.py", "-k", "store or session or example or ttl or index"]
    said = run(python_with_frameworks(), "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-q", *tests)
    assert "skipped" not in said, said[-3000:]
