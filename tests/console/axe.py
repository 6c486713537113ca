"""axe-core, the checker of accessibility: one file from npm, pinned by a lock, kept in a cache folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

NODE = Path(__file__).parent / "node"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@cache
def source() -> str:
    """The script. Installs it once; skips the test where npm is missing (under `CI=true` that is a failure)."""
    lock = (NODE / "package-lock.json").read_bytes()
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "memory-gateway-tests" / f"axe-{hashlib.sha256(lock).hexdigest()[:16]}"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        _install(folder)
    return script.read_text(encoding="utf-8")


def _install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        message = "npm is missing: axe-core cannot be installed"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(NODE / name, folder)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def violations(page: Page) -> list[str]:
    """What breaks a rule of WCAG 2.2 AA or a best practice, everything that folds unfolded.

    What drops down over other things is looked at by itself.
    """
    page.evaluate("document.querySelectorAll('details:not(.mg-drop)').forEach((one) => { one.open = true; })")
    page.evaluate(source())
    found = _run(page, "document")
    page.evaluate("document.querySelectorAll('#content details.mg-drop').forEach((one) => { one.open = true; })")
    if page.locator("#content .mg-drop-in").count():
        found += _run(page, "'#content .mg-drop-in'")
    return found


def _run(page: Page, part: str) -> list[str]:
    script = f"async (rules) => (await axe.run({part}, {{resultTypes: ['violations'], runOnly: rules}})).violations"
    found: list[dict[str, Any]] = page.evaluate(script, RULES)
    return [f"{one['id']}: {' | '.join(_node(node) for node in one['nodes'][:3])}" for one in found]


def _node(node: dict[str, Any]) -> str:
    why = [check["message"] for check in [*node["any"], *node["all"], *node["none"]]]
    return f"{node['html'][:120]} ({'; '.join(why)[:160]})"
