"""The panel for tests and screenshots: a gateway with the data of `tests.console.seed`, a browser, and operators."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests import forked
from tests.browser import Observed, chromium
from tests.console.payloads import PASSWORD
from tests.server import RunningServer, running_server

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 360, "height": 780}
LOCALES = {"en": "en-GB", "zh": "zh-CN"}
in_both_languages = pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.torture)])


@dataclass
class Panel:
    """A running panel. `rows` are the ids that `seed` prints."""

    server: RunningServer
    browser: Browser
    rows: dict[str, Any]
    _cookies: Any = None

    def address(self, path: str) -> str:
        """Return the address for a path below `/admin/memory/`."""
        return path if path.startswith("http") else f"{self.server.url}/admin/memory/{path}"

    @contextlib.contextmanager
    def open(
        self,
        path: str = "",
        *,
        lang: str = "en",
        theme: str = "light",
        size: dict[str, int] | None = None,
        script: bool = True,
    ) -> Iterator[tuple[Page, Observed]]:
        """Open a page of a signed-in operator in its own context, with the time zone of Shanghai."""
        size = size or WIDE
        context = self.browser.new_context(
            locale=LOCALES[lang],
            timezone_id="Asia/Shanghai",
            storage_state=self._signed_in(),
            viewport={"width": size["width"], "height": size["height"]},
            java_script_enabled=script,
        )
        context.add_init_script(f"localStorage.setItem('theme', '{theme}')")
        observed = Observed()
        try:
            page = context.new_page()
            observed.watch(page)
            page.goto(self.address(path))
            yield page, observed
        finally:
            context.close()

    def _signed_in(self) -> Any:
        if not self._cookies:
            context = self.browser.new_context(timezone_id="Asia/Shanghai")
            page = context.new_page()
            page.goto(f"{self.server.url}/admin/login/?next=/admin/memory/")
            page.fill("#id_username", "chen.yu")
            page.fill("#id_password", PASSWORD)
            page.click("input[type=submit]")
            page.wait_for_url("**/admin/memory/")
            self._cookies = context.storage_state()
            context.close()
        return self._cookies


@contextlib.contextmanager
def running_panel(folder: Path) -> Iterator[Panel]:
    with chromium() as browser, running_server(folder) as server:
        seeded = forked.run(["-m", "tests.console.seed"], server.env)
        assert seeded.returncode == 0, seeded.stderr
        yield Panel(server, browser, json.loads(seeded.stdout))
