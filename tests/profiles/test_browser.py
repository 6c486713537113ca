"""An operator edits a document in a real browser, with and without scripts, in English and in Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, Page

from tests.browser import NARROW, WIDE, Observed, chromium
from tests.profiles.documents import FULL
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.browser


@dataclass(frozen=True)
class Site:
    server: RunningServer
    browser: Browser
    credentials: tuple[str, str]
    headers: dict[str, str]

    def document(self) -> dict[str, Any]:
        content: dict[str, Any] = requests.get(
            f"{self.server.url}/api/v1/memories/user", headers=self.headers, timeout=30
        ).json()
        return content


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_server(tmp_path_factory.mktemp("profiles")) as server, chromium() as browser:
        printed = server.manage("ensure_operator").stdout
        user, password = re.findall(r"(?:user|password) +(\S+)", printed)[-2:]
        created = requests.post(f"{server.url}/users", json={"user_id": "alice"}, timeout=30).json()
        yield Site(server, browser, (user, password), {"Authorization": f"Bearer {created['user_key']}"})


def open_form(site: Site, page: Page) -> None:
    """Sign in and open the form by links."""
    url = f"{site.server.url}/api/v1/memories/user"
    requests.put(url, json={"content": FULL["user"]}, headers=site.headers, timeout=30).raise_for_status()
    page.goto(f"{site.server.url}/admin/profiles/profilememory/")
    page.fill("#id_username", site.credentials[0])
    page.fill("#id_password", site.credentials[1])
    page.click("input[type=submit]")
    page.click("#result_list tbody a")
    page.click(".object-tools a >> nth=0")
    page.wait_for_selector(".pf .pf-status")


@pytest.mark.parametrize(
    ("locale", "theme", "size", "has_scripts"),
    [("en-US", "light", WIDE, True), ("zh-CN", "dark", NARROW, False)],
)
def test_an_operator_adds_moves_and_saves_an_entry(
    site: Site, locale: str, theme: Any, size: dict[str, int], has_scripts: bool
) -> None:
    viewport: Any = {"width": size["width"], "height": size["height"]}
    context = site.browser.new_context(
        locale=locale, color_scheme=theme, viewport=viewport, java_script_enabled=has_scripts
    )
    observed = Observed()
    page = context.new_page()
    observed.watch(page)
    open_form(site, page)
    assert ("人际关系" in page.content()) == (locale == "zh-CN")
    page.click('button[value="add:people"]')
    page.fill('[name="people.1.name"]', "李雷 & <Co>")
    page.click('button[value="up:people.1"]')
    assert page.input_value('[name="people.0.name"]') == "李雷 & <Co>"
    assert [person["name"] for person in site.document()["people"]] == ["小林"]
    page.keyboard.press("Tab")
    page.focus('[name="occupation"]')
    page.keyboard.press("Enter")  # as Save, and as no other button
    page.wait_for_selector(".mg-note.is-ok")
    assert [person["name"] for person in site.document()["people"]] == ["李雷 & <Co>", "小林"]
    assert site.document() | {"people": []} == FULL["user"] | {"people": []}
    if has_scripts:
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    page.click(".historylink")
    page.wait_for_selector("#content-main tbody a")
    page.click("#content-main tbody a >> nth=0")
    page.wait_for_selector(".pf-differences")
    assert "李雷" in page.inner_text(".pf-differences >> nth=0")
    assert observed.errors == []
    assert observed.foreign(site.server.url) == []
    context.close()


def test_the_form_fits_a_small_screen(site: Site) -> None:
    context = site.browser.new_context(viewport={"width": NARROW["width"], "height": NARROW["height"]})
    page = context.new_page()
    open_form(site, page)
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    context.close()
