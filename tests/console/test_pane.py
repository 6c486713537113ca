"""The pane beside a list: a memory is read, edited and left for the next one, while the list stays as it is."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.console.panel import Panel

pytestmark = pytest.mark.browser
LIST = "list/?user=lin.wei&tab=user"


def shown(page: Page) -> str:
    return page.locator("[data-shown]").first.get_attribute("data-shown") or ""


def wait_for_another(page: Page, before: str) -> None:
    page.wait_for_selector(f"[data-shown]:not([data-shown='{before}'])")


def test_save_and_next_keeps_list_filter_and_place(panel: Panel) -> None:
    with panel.open(LIST) as (page, observed):
        address, rows = page.url, page.locator("tr[data-row]").count()
        order = [one.get_attribute("data-peek") for one in page.locator("[data-peek]").all()]
        page.keyboard.press("j")
        page.keyboard.press("p")
        page.wait_for_selector("#mg-pane textarea")
        assert shown(page) == order[0]
        page.locator("#mg-pane textarea").first.fill("Lin Wei wants answers in Chinese, beside the list.")
        page.locator("#mg-pane button[value=next]").click()
        wait_for_another(page, order[0])
        assert shown(page) == order[1]
        expect(page.locator(f"tr.is-done [data-peek='{order[0]}']")).to_have_count(1)
        expect(page.locator(f"tr.is-open [data-peek='{order[1]}']")).to_have_count(1)
        assert page.url == address
        assert page.locator("tr[data-row]").count() == rows
        page.locator("#mg-pane a[rel=prev]").click()
        wait_for_another(page, order[1])
        assert shown(page) == order[0]
        expect(page.locator("#mg-pane textarea").first).to_have_value(re.compile("beside the list"))
        page.keyboard.press("Escape")
        expect(page.locator("[data-pane]")).to_be_hidden()
        assert observed.errors == []


def test_a_wrong_value_stays_in_the_pane(panel: Panel) -> None:
    with panel.open(LIST) as (page, observed):
        page.locator("[data-peek]").nth(2).click()
        page.wait_for_selector("#mg-pane textarea")
        before = shown(page)
        page.locator("#mg-pane textarea").first.fill(" ")
        page.locator("#mg-pane button[value=next]").click()
        expect(page.locator("#mg-pane .mg-err").first).to_be_visible()
        assert shown(page) == before
        assert all("422" in error for error in observed.errors)  # the browser notes the status


def test_without_script_the_page_goes_through_the_list(panel: Panel) -> None:
    with panel.open(LIST, script=False) as (page, _):
        order = [one.get_attribute("data-peek") for one in page.locator("[data-peek]").all()]
        page.locator("[data-peek]").nth(3).click()
        page.wait_for_url(re.compile(rf"/m/{order[3]}/edit/\?.*user=lin\.wei"))
        page.locator("button[value=next]").click()
        page.wait_for_url(re.compile(rf"/m/{order[4]}/edit/\?.*user=lin\.wei"))
        page.locator(".mg-crumbs > a").first.click()
        page.wait_for_url(re.compile(r"/list/\?.*user=lin\.wei"))
