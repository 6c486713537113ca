"""axe-core, the checker of accessibility: one file from npm."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.node import installed

NODE = Path(__file__).parent / "node"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@cache
def source() -> str:
    return (installed(NODE) / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


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
