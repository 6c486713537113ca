"""Accessibility checks by axe-core, which is installed from npm."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.node import installed

NODE = Path(__file__).parent / "node"
RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
# What depends on language, theme and width: the others read the same elements in each of them.
RULES_OF_LOOKS = {"type": "rule", "values": ["color-contrast", "target-size", "html-lang-valid", "valid-lang"]}


@cache
def source() -> str:
    return (installed(NODE) / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Page, rules: dict[str, Any] = RULES) -> list[str]:
    """Return violations of WCAG 2.2 AA and of best practices, or of the given rules. Folded content is unfolded.

    Drop-downs cover other content, so they are checked separately.
    """
    page.evaluate("document.querySelectorAll('details:not(.mg-drop)').forEach((one) => { one.open = true; })")
    if page.evaluate("typeof axe") == "undefined":  # an init script is cheaper where many pages are checked
        page.evaluate(source())
    found = _run(page, "document", rules)
    page.evaluate("document.querySelectorAll('#content details.mg-drop').forEach((one) => { one.open = true; })")
    if page.locator("#content .mg-drop-in").count():
        found += _run(page, "'#content .mg-drop-in'", rules)
    return found


def _run(page: Page, part: str, rules: dict[str, Any]) -> list[str]:
    # Preloading would fetch style sheets and media again, for the rules about orientation and autoplay.
    options = {"resultTypes": ["violations"], "runOnly": rules, "preload": False}
    script = f"async (options) => (await axe.run({part}, options)).violations"
    found: list[dict[str, Any]] = page.evaluate(script, options)
    return [f"{one['id']}: {' | '.join(_node(node) for node in one['nodes'][:3])}" for one in found]


def _node(node: dict[str, Any]) -> str:
    messages = [check["message"] for check in [*node["any"], *node["all"], *node["none"]]]
    return f"{node['html'][:120]} ({'; '.join(messages)[:160]})"
