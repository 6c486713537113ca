"""The admin's pages in a real browser cause no error, no violation of the security policy and no foreign request."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import NARROW, WIDE, Observed, chromium, open_page
from tests.console import axe
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.browser

TABLES = [
    "accounts/memoryuser",
    "accounts/userkey",
    "accounts/auditevent",
    "accounts/signinthrottle",
    "store/session",
    "store/memory",
    "store/indexstatistics",
    "resources/resource",
    "resources/attachment",
    "operations/lease",
    "auth/user",
    "auth/group",
]


LOOKS = [
    pytest.param(
        lang,
        theme,
        size,
        marks=pytest.mark.slow if (lang, theme, size) == ("en", "light", WIDE) else pytest.mark.torture,
    )
    for lang in ("en", "zh")
    for theme in ("light", "dark")
    for size in (WIDE, NARROW)
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("admin")) as running:
        yield running


@pytest.fixture(scope="module")
def credentials(server: RunningServer) -> tuple[str, str]:
    printed = server.manage("ensure_operator").stdout
    user, password = re.findall(r"(?:user|password) +(\S+)", printed)[-2:]
    return user, password


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


def sign_in(page: Page, server: RunningServer, credentials: tuple[str, str]) -> None:
    page.goto(f"{server.url}/admin/")
    page.fill("#id_username", credentials[0])
    page.fill("#id_password", credentials[1])
    page.click("input[type=submit]")
    page.wait_for_selector("#user-tools")


def leave_key_page(page: Page) -> None:
    page.click("text=I have copied it")
    page.wait_for_selector("text=Create API key")


def assert_no_errors(observed: Observed, server: RunningServer) -> None:
    assert observed.errors == []
    assert observed.foreign(server.url) == []


def assert_fits(page: Page) -> None:
    """The page does not scroll horizontally; wide tables scroll inside themselves."""
    page.wait_for_load_state()
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_an_operator_creates_rotates_and_revokes_a_key(
    server: RunningServer, credentials: tuple[str, str], browser: Browser, size: dict[str, int]
) -> None:
    with open_page(browser, size) as (page, observed):
        sign_in(page, server, credentials)
        assert_fits(page)
        page.goto(f"{server.url}/admin/memory/users/")
        page.click("text=Add user")
        page.fill("#id_user_id", f"dora-{size['width']}")
        page.click("main button.is-main")
        first = page.inner_text("#secret")
        assert re.fullmatch(r"uk_[A-Za-z0-9_-]{43}", first)
        assert_fits(page)
        leave_key_page(page)
        assert first not in page.content()
        assert_fits(page)
        page.click("text=Create API key")
        page.fill("#id_label", "laptop")
        page.click("main button.is-main")
        page.wait_for_selector("#secret")
        assert page.inner_text("#secret") != first
        leave_key_page(page)
        page.click("main >> text=Rotate >> nth=0")
        assert_fits(page)
        page.click("main button.is-main")
        assert page.inner_text("#secret").startswith("uk_")
        leave_key_page(page)
        page.click("main >> text=Revoke >> nth=0")
        page.click("main button.is-danger-main")
        page.wait_for_selector("text=Requests with it now fail")
        assert_no_errors(observed, server)


@pytest.mark.parametrize(("lang", "theme", "size"), LOOKS)
def test_every_list_and_form_is_accessible_without_browser_errors(
    server: RunningServer, credentials: tuple[str, str], browser: Browser, lang: str, theme: str, size: dict[str, int]
) -> None:
    viewport = {"width": size["width"], "height": size["height"]}
    context = browser.new_context(locale={"en": "en-GB", "zh": "zh-CN"}[lang], viewport=viewport)
    context.add_init_script(f"localStorage.setItem('theme', '{theme}')")
    page, observed = context.new_page(), Observed()
    observed.watch(page)
    sign_in(page, server, credentials)
    found = []
    for path in [*TABLES, "auth/user/1/change", "auth/group/1/change", "auth/user/add", "password_change"]:
        page.goto(f"{server.url}/admin/{path}/")
        found += [f"{path}: {line}" for line in axe.violations(page)]
        assert_no_errors(observed, server)
    assert found == []
    context.close()


def test_pages_are_chinese_in_a_chinese_browser(
    server: RunningServer, credentials: tuple[str, str], browser: Browser
) -> None:
    context = browser.new_context(locale="zh-CN")
    page = context.new_page()
    sign_in(page, server, credentials)
    assert "最近动作" in page.content()
    context.close()


@pytest.mark.slow
def test_the_sign_in_page_shows_the_lock_after_failures(server: RunningServer, browser: Browser) -> None:
    with open_page(browser) as (page, observed):
        for _ in range(6):
            page.goto(f"{server.url}/admin/login/")
            page.fill("#id_username", "mallory")
            page.fill("#id_password", "guess")
            page.click("input[type=submit]")
            page.wait_for_selector(".errornote")
        assert "Too many failed attempts" in page.inner_text(".errornote")
        assert_no_errors(observed, server)
