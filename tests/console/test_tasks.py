"""The tasks of operators, each from the dashboard and within four clicks."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator

import pytest
import requests
from playwright.sync_api import Page, expect

from tests.console.panel import Panel

pytestmark = pytest.mark.browser
MAX_CLICKS = 4


class Clicks:
    """A page that counts its clicks."""

    def __init__(self, page: Page, panel: Panel) -> None:
        self.page = page
        self.panel = panel
        self.count = 0

    def click(self, selector: str) -> None:
        self.count += 1
        self.page.locator(selector).first.click()

    def go(self, label: str) -> None:
        """Open a page of the navigation."""
        self.click(f".mg-nav a:has-text('{label}')")

    def find(self, text: str) -> None:
        """Type into Find: no click, because a key leads there."""
        self.page.fill(".mg-top input[name=q]", text)
        self.page.keyboard.press("Enter")

    def expect_text(self, text: str, selector: str = "main") -> None:
        expect(self.page.locator(selector).first).to_contain_text(text)


@contextlib.contextmanager
def operator(panel: Panel) -> Iterator[Clicks]:
    with panel.open("") as (page, _observed):
        yield Clicks(page, panel)


def see_everything_about_a_user(on: Clicks) -> None:
    on.find("maria.keller")
    on.expect_text("Asia/Shanghai")
    on.expect_text("Note 1 of the planning round")


def find_a_memory_by_words(on: Clicks) -> None:
    on.go("Memories")
    on.page.fill("#f-q", "peanuts")
    on.page.keyboard.press("Enter")
    on.click(".mg-c-main a:has-text('peanuts')")
    on.expect_text("Allergic to peanuts.")


def correct_a_memory_and_undo(on: Clicks) -> None:
    on.find("Show prices with and without tax")
    on.click(".mg-c-main a")
    on.click("a[href$='/edit/']")
    on.page.fill("#text", "Show all prices with tax.")
    on.click(".mg-form .is-main")
    on.expect_text("Saved.", ".mg-note")
    on.click(".mg-note form button")
    on.expect_text("Undone.", ".mg-note")


def delete_all_that_words_match(on: Clicks) -> None:
    on.page.goto(on.panel.address("list/?tab=all&q=supplier+3"))
    on.click("[data-all]")
    on.click("button[value=delete]")
    on.expect_text("to trash", ".mg-note")
    on.click(".mg-note form button")
    on.expect_text("Undone.", ".mg-note")


def see_why_a_memory_is_not_found(on: Clicks) -> None:
    on.find("lin.wei")
    on.click("a:has-text('Search as this user')")
    on.page.fill("#f-q", "deliveries mondays")
    on.click("button:has-text('Run search')")
    on.expect_text("Hidden results")


def see_what_an_agent_searched_and_why(on: Clicks) -> None:
    on.go("Search log")
    on.click("a:has-text('Explain')")
    on.expect_text("Query terms")


def retry_a_failed_file(on: Clicks) -> None:
    on.go("Resources")
    on.click(".mg-inbox form[action$='/retry/'] button.is-small")
    expect(on.page.locator(".mg-note").first).to_be_visible()


def add_a_memory(on: Clicks) -> None:
    on.click("a:has-text('Add memory')")
    on.page.fill("#user", "maria.keller")
    on.click("label:has(input[value=user_memory_fact])")
    on.page.fill("#text", "The gate code changes every quarter.")
    on.click(".mg-form button:has-text('Add memory')")
    on.expect_text("Memory added.", ".mg-note")


def see_who_changed_what(on: Clicks) -> None:
    on.go("Audit trail")
    on.expect_text("Wrote a profile")
    on.expect_text("chen.yu")


def upload_a_file(on: Clicks) -> None:
    on.find("maria.keller")
    on.click("a:has-text('Upload files')")
    file = {"name": "gate.txt", "mimeType": "text/plain", "buffer": b"The gate opens at six."}
    on.page.set_input_files("#file", file)
    if on.page.locator("main button.is-main").is_visible():
        on.click("main button.is-main")
    on.expect_text("gate.txt")


def add_an_operator(on: Clicks) -> None:
    on.go("Operators")
    on.page.fill("#username", "new.operator")
    on.click("main form button.is-main")
    on.expect_text("new.operator")


def rotate_a_key(on: Clicks) -> None:
    on.find("lin.wei")
    on.click("a:has-text('Rotate')")
    on.click("main button.is-main")
    on.expect_text("uk_", "#secret")
    on.click("text=I have copied it")
    on.expect_text("lin.wei", "h1")


def change_a_profile(on: Clicks) -> None:
    on.find("maria.keller")
    on.click("a.is-small:has-text('Open')")
    on.page.fill("[name=occupation]", "Head of purchasing")
    on.click("main button:has-text('Save')")
    on.expect_text("Document saved.", ".mg-note")
    on.page.goto(on.panel.address(f"users/{on.panel.rows['user']}/"))
    on.expect_text("Head of purchasing")


def read_a_conversation(on: Clicks) -> None:
    on.find("maria.keller")
    on.click("tr:has-text('chat:planning') a")
    on.expect_text("Note 59 of the planning round")


def erase_a_user_and_keep_the_receipt(on: Clicks) -> None:
    requests.post(f"{on.panel.server.url}/users", json={"user_id": "leaver"}, timeout=10).raise_for_status()
    on.find("leaver")
    on.click("a:has-text('Preview erasure')")
    on.page.fill("#confirm", "leaver")
    on.click("main button.is-danger-main")
    on.expect_text("leaver erased")
    with on.page.expect_download() as download:
        on.click("main form button")
    assert json.loads(download.value.path().read_bytes())["user_id"] == "leaver"


def delete_by_filter_and_undo(on: Clicks) -> None:
    on.page.goto(on.panel.address("list/?user=maria.keller&category=user_memory_decision"))
    on.click("[data-all]")
    on.click("button[value=delete]")
    on.expect_text("to trash", ".mg-note")
    on.click(".mg-note form button")
    on.expect_text("Undone.", ".mg-note")


def restore_a_deleted_memory_by_words(on: Clicks) -> None:
    on.go("Trash")
    on.page.fill("#f-q", "old price list 2")
    on.page.keyboard.press("Enter")
    on.click("[name=id]")
    on.click("button[value=restore]")
    on.expect_text("1 memory restored.", ".mg-note")


def open_a_user_by_keys(on: Clicks) -> None:
    on.page.keyboard.press("Control+k")
    on.page.keyboard.type("maria.k")
    expect(on.page.locator("#mg-results li").first).to_contain_text("maria.keller")
    on.page.keyboard.press("Enter")
    on.expect_text("maria.keller", "h1")


def see_health(on: Clicks) -> None:
    on.go("Health")
    on.expect_text("Backlog")


def see_jobs(on: Clicks) -> None:
    on.go("Jobs")
    on.expect_text("Move memories to trash")


def see_the_trash(on: Clicks) -> None:
    on.go("Trash")
    on.expect_text("Recent bulk deletions")


def change_the_theme(on: Clicks) -> None:
    before = on.page.get_attribute("html", "data-theme")
    on.click(".theme-toggle")
    assert on.page.get_attribute("html", "data-theme") != before


def change_the_language(on: Clicks) -> None:
    on.click(".mg-top button:has-text('中文')")
    on.expect_text("记忆大盘", "body")
    on.click(".mg-top button:has-text('English')")


TASKS: tuple[Callable[[Clicks], None], ...] = (
    see_everything_about_a_user,
    find_a_memory_by_words,
    correct_a_memory_and_undo,
    delete_all_that_words_match,
    see_why_a_memory_is_not_found,
    see_what_an_agent_searched_and_why,
    retry_a_failed_file,
    add_a_memory,
    see_who_changed_what,
    upload_a_file,
    add_an_operator,
    rotate_a_key,
    read_a_conversation,
    change_a_profile,
    erase_a_user_and_keep_the_receipt,
    delete_by_filter_and_undo,
    restore_a_deleted_memory_by_words,
    open_a_user_by_keys,
    see_health,
    see_jobs,
    see_the_trash,
    change_the_theme,
    change_the_language,
)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
def test_a_task_takes_at_most_four_clicks(panel: Panel, task: Callable[[Clicks], None]) -> None:
    with operator(panel) as on:
        task(on)
        assert on.count <= MAX_CLICKS
