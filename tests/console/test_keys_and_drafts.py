"""Keys that act on rows and lead to pages, and text that outlives the session in which it was typed."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.console.panel import Panel
from tests.console.payloads import PASSWORD

pytestmark = pytest.mark.browser

LEAVE = "document.querySelector('form[data-guard]').dispatchEvent(new Event('submit'))"
"""Keeps the browser from asking before it leaves the form."""
LIST = "list/?user=maria.keller"


def sign_in(page: Page) -> None:
    page.fill("#id_username", "chen.yu")
    page.fill("#id_password", PASSWORD)
    page.click("input[type=submit]")


def test_keys_edit_go_up_and_go_to_pages(panel: Panel) -> None:
    with panel.open(LIST) as (page, observed):
        page.keyboard.press("j")
        page.keyboard.press("e")
        page.wait_for_url(re.compile(r"/m/\d+/edit/"))
        page.keyboard.press("u")
        page.wait_for_url(re.compile(r"/m/\d+/(\?|$)"))
        page.keyboard.press("g")
        page.keyboard.press("u")
        page.wait_for_url("**/users/")
        page.keyboard.press("g")
        page.keyboard.press("m")
        page.wait_for_url("**/list/")
        assert observed.errors == []


def test_a_key_moves_a_row_to_the_trash(panel: Panel) -> None:
    with panel.open(LIST) as (page, observed):
        first = page.locator("tr[data-row] .mg-text a").first.inner_text()
        page.keyboard.press("j")
        page.keyboard.press("#")
        page.wait_for_selector(".mg-note.is-ok")
        assert page.locator("tr[data-row] .mg-text a").first.inner_text() != first
        page.locator(".mg-note.is-ok form button").first.click()  # undo
        expect(page.locator("tr[data-row] .mg-text a").first).to_have_text(first)
        assert observed.errors == []


def test_text_typed_before_the_session_ended_is_kept(panel: Panel) -> None:
    with panel.open("add/") as (page, _observed):
        page.fill("[name=text]", "The meeting is on Monday.")
        page.fill("[name=user]", "maria.keller")
        page.context.clear_cookies()
        page.click("form[data-guard] button.is-main")
        page.goto(panel.address("../login/?next=/admin/memory/add/"))
        sign_in(page)
        page.wait_for_url("**/add/")
        expect(page.locator("[name=text]")).to_have_value("The meeting is on Monday.")
        expect(page.locator("[name=user]")).to_have_value("maria.keller")
        page.evaluate(LEAVE)
        page.goto(panel.address("jobs/"))
        page.goto(panel.address("add/"))
        expect(page.locator("[name=text]")).to_have_value("")
        assert page.evaluate("Object.keys(sessionStorage).length") == 0
