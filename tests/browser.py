"""Chromium for tests of pages: started once per test, silent to the network, with every console message kept."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, sync_playwright

# Without the parts of a desktop browser a page costs less than half the time. CHROMIUM is the path of another one.
BROWSERS = (
    [Path(os.environ["CHROMIUM"])]
    if "CHROMIUM" in os.environ
    else [Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium")]
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 375, "height": 812}


@dataclass
class Observed:
    """Record of a page: console errors (refusals of the content security policy are among them), crashes, requests."""

    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", self._refuse_dialog)
        page.on("request", lambda request: self.requests.append(request.url))

    def _refuse_dialog(self, dialog: Dialog) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def foreign(self, origin: str) -> list[str]:
        """Requests that left the given origin (`http://127.0.0.1:8010`)."""
        return [url for url in self.requests if not url.startswith((origin + "/", "data:", "blob:"))]


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser; the test is skipped where Chromium is missing (under `CI=true` that is a failure)."""
    program = next((path for path in BROWSERS if path.exists()), None)
    if program is None:
        message = "Chromium is missing: apt-get install chromium-headless-shell (or chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def open_page(browser: Browser, viewport: dict[str, int] | None = None) -> Iterator[tuple[Page, Observed]]:
    """A page in its own context (no cookies shared) and the record of what it does."""
    size = viewport or WIDE
    context: BrowserContext = browser.new_context(viewport={"width": size["width"], "height": size["height"]})
    observed = Observed()
    try:
        page = context.new_page()
        observed.watch(page)
        yield page, observed
    finally:
        context.close()
