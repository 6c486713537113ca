"""Operators' actions on memories in a browser, and their notices."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.console import axe
from tests.console.panel import NARROW, Panel, in_both_languages

pytestmark = pytest.mark.browser

WORDS: dict[str, dict[str, str]] = {
    "en": {"add": "Add memory", "saved": "Saved.", "moved": "Moved to trash.", "undone": "Undone."},
    "zh": {"add": "插入记忆", "saved": "已保存", "moved": "已移到回收站", "undone": "已撤销"},
}


def selected_count(page: Page) -> str:
    return page.inner_text(".mg-bulk [data-n]")


def add_memory(page: Page, panel: Panel, text: str, lang: str = "en", category: str = "user_memory_fact") -> str:
    """Add a memory and return the address of its page."""
    page.goto(panel.address("add/?user=maria.keller&agent=planner"))
    page.check(f"input[value={category}]")
    page.fill("#text", text)
    page.click(f".mg-form button:has-text('{WORDS[lang]['add']}')")
    page.wait_for_url(re.compile(r"/m/\d+/$"))
    return page.url


@in_both_languages
def test_a_memory_is_added_edited_deleted_and_restored(panel: Panel, lang: str) -> None:
    words = WORDS[lang]
    with panel.open(lang=lang) as (page, observed):
        address = add_memory(page, panel, f"The {lang} supplier calls on Mondays.", lang)
        page.click("a[href*='/edit/']")
        page.fill("#text", f"The {lang} supplier calls on Tuesdays.")
        page.select_option("#category", "user_memory_decision")
        page.fill("#importance", "0.35")
        page.click(".mg-form .is-main")
        expect(page.locator(".mg-note")).to_contain_text(words["saved"])
        assert page.inner_text(".mg-diff ins") == "Tuesdays"
        assert "0.35" in page.inner_text(".mg-pairs")
        page.click(".mg-head details.mg-drop > summary")
        page.fill("#reason", "no longer")
        page.click(".mg-drop-in .is-main")
        expect(page.locator(".mg-note").first).to_contain_text(words["moved"])
        assert "“no longer”" in page.inner_text(".mg-time")
        page.click(".mg-note form button")
        expect(page.locator(".mg-note")).to_contain_text(words["undone"])
        assert page.url == address
        page.click("form[action$='/revert/'] button")
        assert "Mondays" in page.inner_text(".mg-text >> nth=0")
        assert observed.errors == []


def test_a_concurrent_edit_is_shown_before_it_is_overwritten(panel: Panel) -> None:
    with panel.open() as (first, _observed):
        address = add_memory(first, panel, "Deliveries go to gate three.")
        first.goto(f"{address}edit/")
        with panel.open(address) as (second, _):
            second.goto(f"{address}edit/")
            second.fill("#text", "Deliveries go to gate four.")
            second.click(".mg-form .is-main")
        first.fill("#text", "Deliveries go to gate five.")
        with first.expect_response(lambda answer: answer.request.method == "POST") as answered:
            first.click(".mg-form .is-main")
        assert answered.value.status == 412
        assert (first.inner_text("del"), first.inner_text("ins")) == ("four", "five")
        first.click(".mg-card .is-main")
        expect(first.locator(".mg-note")).to_contain_text("Saved.")
        assert "gate five" in first.inner_text(".mg-text >> nth=0")


def test_a_text_that_is_too_long_is_rejected_and_not_cut(panel: Panel) -> None:
    with panel.open("add/?user=maria.keller") as (page, _observed):
        page.check("input[value=user_memory_fact]")
        page.fill("#text", "记" * 8012)
        assert page.inner_text("#n") == "8,012"
        assert "12" in page.inner_text("#n-err")
        page.click(".mg-form .is-main")
        assert "Shorten it" in page.inner_text("#text_error")
        assert len(page.input_value("#text")) == 8012
        page.fill("#text", "记" * 8000)
        assert not page.is_visible("#n-err")


def test_a_duplicate_text_needs_confirmation(panel: Panel) -> None:
    with panel.open() as (page, _observed):
        add_memory(page, panel, "Pallets are counted on arrival.")
        page.goto(panel.address("add/?user=maria.keller"))
        page.check("input[value=user_memory_decision]")
        page.fill("#text", "Pallets are counted on arrival.")
        page.click(".mg-form .is-main")
        assert "Pallets are counted" in page.inner_text("aside")
        page.click("button[name=again]")
        expect(page.locator(".mg-note")).to_contain_text("Memory added.")


def test_a_double_click_adds_one_memory(panel: Panel) -> None:
    with panel.open("add/?user=maria.keller") as (page, observed):
        sent = []
        page.on("request", lambda request: sent.append(request.method) if request.method == "POST" else None)
        page.check("input[value=user_memory_decision]")
        page.fill("#text", "Invoices are paid on the fifteenth.")
        page.dblclick(".mg-form .is-main")
        expect(page.locator(".mg-note")).to_contain_text("Memory added.")
        assert sent == ["POST"]
        assert observed.errors == []


def test_form_errors_are_shown_at_their_fields(panel: Panel) -> None:
    with panel.open("add/") as (page, _observed):
        page.fill("#user", "no.such.user")
        page.fill("#agent", "a b")
        page.click(".mg-form .is-main")
        assert "must be 1 to 64 characters" in page.inner_text("#agent_error")
        assert page.inner_text("#category_error").strip() == "Choose a category."
        page.fill("#agent", "")
        page.check("input[value=user_memory_fact]")
        page.fill("#text", "x")
        page.click(".mg-form .is-main")
        assert "There is no user no.such.user" in page.inner_text("#user_error")


def test_rows_are_selected_by_checkbox_range_page_and_filter(panel: Panel) -> None:
    with panel.open("list/?user=maria.keller") as (page, observed):
        boxes = page.locator("input[name=id]")
        assert page.is_disabled("button[value=delete]")
        boxes.nth(1).click()
        boxes.nth(4).click(modifiers=["Shift"])
        assert selected_count(page) == "4"
        page.click("[data-all]")
        assert selected_count(page) == "50"
        page.check("input[name=matching]")
        assert int(selected_count(page)) >= 60
        boxes.nth(2).click()
        assert selected_count(page) == "49"
        assert not page.is_checked("input[name=matching]")
        page.click("[data-clear]")
        assert page.is_disabled("button[value=delete]")
        assert observed.errors == []


@in_both_languages
def test_a_few_ticked_rows_are_deleted_immediately_and_restored_by_undo(panel: Panel, lang: str) -> None:
    with panel.open("list/?user=maria.keller&category=user_memory_decision", lang=lang) as (page, observed):
        deleted = page.locator(".mg-c-main a").first.inner_text()
        page.locator("input[name=id]").first.check()
        page.locator("input[name=id]").nth(1).check()
        page.click("button[value=delete]")
        expect(page.locator(".mg-note")).to_contain_text("2")
        assert page.locator(".mg-c-main a").first.inner_text() != deleted
        assert "category=user_memory_decision" in page.url
        page.click(".mg-note form button")
        assert page.locator(".mg-c-main a").first.inner_text() == deleted
        assert observed.errors == []


@in_both_languages
def test_deleting_all_matches_shows_a_preview(panel: Panel, lang: str) -> None:
    with panel.open("list/?user=maria.keller&range=all", lang=lang) as (page, observed):
        page.click("[data-all]")
        page.check("input[name=matching]")
        total = selected_count(page)
        page.click("button[value=delete]")
        assert total in page.inner_text("h1")
        assert total in page.inner_text(".mg-form .is-main")
        assert axe.violations(page) == []
        page.click(".mg-acts a.mg-btn")
        assert page.url.endswith("user=maria.keller&range=all")
        assert observed.errors == []


def test_ticked_rows_are_downloaded_as_a_file(panel: Panel) -> None:
    with panel.open("list/?user=maria.keller") as (page, _observed):
        page.locator("input[name=id]").first.check()
        with page.expect_download() as download:
            page.click("button[value=export]")
        lines = download.value.path().read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["user_id"] for line in lines] == ["maria.keller"]


def test_the_category_of_ticked_rows_is_changed_and_undone(panel: Panel) -> None:
    with panel.open("list/?user=maria.keller&category=user_memory_preference") as (page, _observed):
        before = page.inner_text(".mg-chips [role=status]")
        page.locator("input[name=id]").first.check()
        page.select_option("#to-cat", "user_memory_fact")
        page.click("button[value=categorize]")
        expect(page.locator(".mg-note")).to_contain_text("1 memory changed.")
        assert page.inner_text(".mg-chips [role=status]") != before
        page.click(".mg-note form button")
        assert page.inner_text(".mg-chips [role=status]") == before


def test_keyboard_shortcuts_work_and_can_be_disabled(panel: Panel) -> None:
    with panel.open("list/?user=maria.keller") as (page, _observed):
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("x")
        assert selected_count(page) == "1"
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "mg-find"
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("?")
        assert page.is_visible("#mg-keys")
        page.uncheck("#mg-keys-on")
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") != "mg-find"


def test_the_palette_finds_and_opens_by_keys(panel: Panel) -> None:
    with panel.open("jobs/") as (page, observed):
        page.keyboard.press("Control+k")
        expect(page.locator("#mg-results")).to_contain_text("Dashboard")
        page.keyboard.type("maria.kel")
        expect(page.locator("#mg-results li").first).to_contain_text("maria.keller")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.textContent") == "Maria Keller · maria.keller"
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        page.wait_for_url("**/users/*/")
        path = page.url.removeprefix(panel.server.url)
        page.goto(panel.address("audit/?tab=read&user=maria.keller&action=panel."))
        events = page.locator("tr[data-row]")
        assert events.count() == 2  # one for the opening of the palette, one for the result
        expect(events.first).to_contain_text("Opened a result of Find")
        expect(events.first).to_contain_text(path)
        page.keyboard.press("Meta+k")
        assert page.is_visible("#mg-palette")
        assert axe.violations(page) == []
        page.keyboard.press("Escape")
        assert not page.is_visible("#mg-palette")
        assert observed.errors == []


def test_pagination_goes_both_ways_and_jumps_to_a_day(panel: Panel) -> None:
    with panel.open("list/?user=maria.keller") as (page, _observed):
        first = page.locator(".mg-c-main a").first.inner_text()
        page.click("a[rel=next]")
        assert page.locator(".mg-c-main a").first.inner_text() != first
        page.click("a[rel=prev]")
        assert page.locator(".mg-c-main a").first.inner_text() == first
        day = page.locator("td time").last.get_attribute("datetime") or ""
        page.fill("#f-at", day[:10])
        page.click(".mg-pager form button")
        shown = [time.get_attribute("datetime") or "" for time in page.locator("td time").all()]
        assert shown[0][:10] == day[:10]
        page.click("thead th a")
        order = [time.get_attribute("datetime") or "" for time in page.locator("td time").all()]
        assert order == sorted(order)


def test_filters_chips_and_tabs_are_in_the_address(panel: Panel) -> None:
    with panel.open("list/?tab=user") as (page, _observed):
        page.click(".mg-filters summary")
        page.fill("#f-user", "lin.wei")
        page.fill("#f-importance_min", "0.9")
        page.click(".mg-drop-in .is-main >> visible=true")
        expect(page.locator("tbody tr")).to_have_count(3)
        page.click("a[aria-label='Remove filter: Minimum importance']")
        assert "importance_min=0.9" not in page.url
        expect(page.locator("tbody tr")).to_have_count(13)
        page.click(".mg-tabs a >> nth=1")
        expect(page.locator("tbody tr")).to_have_count(3)
        page.go_back()
        expect(page.locator("tbody tr")).to_have_count(13)


def test_words_are_found_and_marked_across_users_and_within_one(panel: Panel) -> None:
    with panel.open("list/?tab=all&q=grippers") as (page, observed):
        assert page.inner_text("tbody mark >> nth=0").lower().startswith("gripper")
        page.goto(panel.address("list/?q=PostgreSQL&user=lin.wei"))
        assert page.inner_text("tbody mark >> nth=0") == "PostgreSQL"
        page.goto(panel.address("list/?q=PostgreSQL&user=maria.keller"))
        assert page.is_visible(".mg-empty")
        page.goto(panel.address("list/?user=lin.wei&category=user_memory_fact"))
        page.fill("#f-q", "very long notes")
        page.press("#f-q", "Enter")
        assert "q=very+long+notes" in page.url
        expect(page.locator("tbody tr")).to_have_count(1)
        page.locator("tbody summary").click()
        expect(page.locator("tbody .mg-text mark")).to_have_count(1200)
        page.goto(panel.address("list/?tab=full&q=warranty"))
        expect(page.locator("tbody mark >> nth=0")).to_have_text("warranty")
        assert observed.errors == []


def test_a_very_long_text_is_loaded_when_it_is_unfolded(panel: Panel) -> None:
    with panel.open("list/?user=lin.wei&category=user_memory_fact") as (page, observed):
        row = page.locator("tr", has_text="A very long note")
        assert len(row.locator(".mg-text").inner_text()) < 500
        row.locator("summary").click()
        expect(row.locator(".mg-text")).to_have_text(re.compile(r"(A very long note\. ?){400}"))
        assert observed.errors == []


def test_dashboard_numbers_link_to_lists_with_as_many_rows(panel: Panel) -> None:
    with panel.open("?user=lin.wei") as (page, _observed):
        counted = page.inner_text("#h-kind-user >> xpath=../a >> b")
        page.click("#h-kind-user >> xpath=../a")
        expect(page.locator(".mg-chips [role=status]")).to_have_text(re.compile(rf"^{counted} match"))
        page.goto(panel.address("?user=lin.wei"))
        page.click(".mg-astable summary")
        total = page.inner_text(".mg-astable tbody tr >> nth=0 >> td >> nth=4")
        page.click(".mg-astable tbody tr >> nth=0 >> a")
        expect(page.locator(".mg-chips [role=status]")).to_have_text(re.compile(rf"^{total} match"))


def test_the_lab_explains_scores_and_errors(panel: Panel) -> None:
    with panel.open("search/") as (page, observed):
        page.fill("#f-q", "PostgreSQL region")
        page.fill("#f-user", "lin.wei")
        page.click(".mg-form .is-main")
        assert "PostgreSQL" in [mark.inner_text() for mark in page.locator(".mg-text mark").all()]
        assert "rank 1" in page.inner_text(".mg-tree >> nth=0")
        assert page.inner_text(".mg-table tbody tr >> nth=2 >> td >> nth=0") == "1"  # and the number
        page.click(".mg-options summary")
        page.select_option("#f-method", "vector")
        page.click(".mg-form .is-main")
        assert "needs a model that is not configured" in page.inner_text(".mg-note")
        assert page.is_visible("#f-method")  # options stay open while one is set
        assert all("422" in error for error in observed.errors)


def test_global_search_redirects_to_known_ids(panel: Panel) -> None:
    places = {
        "maria.keller": "/users/{user}/",
        "chat:weekly-sync": "/list/?tab=all&session=chat%3Aweekly-sync",
        "weekly-sync": "/list/?tab=all&session=chat%3Aweekly-sync",
        "{file_extracted}": "/resources/{file_extracted}/",
        "{job}": "/jobs/{job}/",
        "gripper": "/list/?tab=all&q=gripper",
    }
    with panel.open() as (page, _observed):
        for query, address in places.items():
            page.goto(panel.address(""))
            page.fill("#mg-find", query.format(**panel.rows))
            page.press("#mg-find", "Enter")
            assert page.url.endswith(address.format(**panel.rows))


def test_switching_language_and_theme_stays_on_the_page(panel: Panel) -> None:
    with panel.open("list/?tab=self") as (page, _observed):
        page.click("button[name=language]")
        assert page.inner_text("h1") == "记忆"
        assert page.url.endswith("list/?tab=self")
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        for _ in range(2):
            page.click(".theme-toggle")
        assert page.evaluate("document.documentElement.dataset.theme") != "light"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_closing_the_navigation_returns_the_focus(panel: Panel) -> None:
    with panel.open(size=NARROW) as (page, _observed):
        assert not page.is_visible("#mg-nav")
        page.click(".mg-menu-btn")
        assert page.is_visible("#mg-nav")
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.className") == "mg-tool mg-menu-btn"


def delete_first_row(page: Page) -> None:
    """Filter a list and delete the first row, by plain links and forms."""
    page.click(".mg-filters summary")
    page.fill("#f-agent", "planner")
    page.click(".mg-drop-in .is-main >> visible=true")
    page.locator("input[name=id]").first.check()
    page.click("button[value=delete]")


def test_pages_work_without_scripts(panel: Panel) -> None:
    with panel.open("list/?user=maria.keller", script=False) as (page, _observed):
        delete_first_row(page)
        expect(page.locator(".mg-note")).to_contain_text("1 memory moved to trash.")
        page.click(".mg-note form button")
        expect(page.locator(".mg-note")).to_contain_text("Undone.")
        assert page.is_visible("input[name=matching]")
        page.locator(".mg-c-main a").first.click()
        page.click("a[href*='/edit/']")
        page.fill("#text", "Edited without script.")
        page.click(".mg-form .is-main")
        expect(page.locator(".mg-note")).to_contain_text("Saved.")
    with panel.open(script=False, size=NARROW) as (page, _observed):
        page.click(".mg-menu-btn")
        assert page.is_visible("#mg-nav")


def test_a_narrow_page_shows_every_tab_and_every_actor(panel: Panel) -> None:
    for lang in ("en", "zh"):
        with panel.open("list/?tab=all", lang=lang, size=NARROW) as (page, _observed):
            assert all(
                tab.evaluate("tab => tab.getBoundingClientRect().right") <= NARROW["width"]
                for tab in page.locator(".mg-tabs a").all()
            )
            page.goto(panel.address("audit/"))
            actors = page.locator(".mg-audit td:nth-child(2)")
            assert actors.count() > 0
            assert min(actors.evaluate_all("cells => cells.map(cell => cell.clientWidth)")) > 40


def test_filters_open_within_the_window(panel: Panel) -> None:
    with panel.open() as (page, _observed):
        for path in ("", "list/", "audit/"):
            page.goto(panel.address(path))
            for width in (360, 700, 800, 1000, 1200, 1440):
                page.set_viewport_size({"width": width, "height": 900})
                page.click(".mg-filters > .mg-drop > summary")
                box = page.locator(".mg-filters > .mg-drop").first.locator(".mg-drop-in").bounding_box()
                assert box is not None
                assert 0 <= box["x"] <= box["x"] + box["width"] <= width, (path, width)
                page.click(".mg-filters > .mg-drop > summary")


def test_a_changed_edit_is_not_lost_without_a_question(panel: Panel) -> None:
    with panel.open(f"m/{panel.rows['edited']}/edit/") as (page, _observed):
        asked: list[str] = []
        page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
        here = page.url
        page.fill("#text", "Another text.")
        page.evaluate("setTimeout(() => { location.href = '/admin/memory/'; })")
        page.wait_for_timeout(500)
        assert (asked, page.url) == (["beforeunload"], here)


def test_ids_are_copied(panel: Panel) -> None:
    with panel.open(f"m/{panel.rows['edited']}/") as (page, _observed):
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.click("[data-copy=memory-id]")
        assert page.evaluate("navigator.clipboard.readText()") == page.inner_text("#memory-id")
        assert page.inner_text("[data-copy=memory-id]") == "Copied"


@in_both_languages
def test_a_time_says_how_long_ago_it_was(panel: Panel, lang: str) -> None:
    with panel.open("list/?tab=all&user=maria.keller", lang=lang) as (page, observed):
        time = page.locator("main tbody time").last
        time.hover()
        expect(time).to_have_attribute("title", re.compile({"en": r" · .+ ago$", "zh": r" · .+前$"}[lang]))
        assert observed.errors == []
