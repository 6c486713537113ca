"""What holds for every page: accessible, quiet, at home, and no wider than the screen, in both languages and themes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser import Observed
from tests.console import axe
from tests.console.pages import pages
from tests.console.panel import NARROW, WIDE, Panel

pytestmark = pytest.mark.browser

LOOKS = [("en", "light", WIDE), ("zh", "dark", NARROW)]
ENGLISH_WORDS = ("Memories", "Dashboard", "Search", "Filters", "Category", "Importance", "Written", "Cancel")


def sideways(page: Page) -> list[str]:
    """What lies beyond the right edge of the screen."""
    found: list[str] = page.evaluate(
        """() => {
            const width = document.documentElement.clientWidth;
            const all = [...document.querySelectorAll('#content *, .mg-top *')];
            const out = all.filter((one) => {
                const box = one.getBoundingClientRect();
                return box.width && box.right > width + 1
                    && !one.closest('svg, .mg-vh, .mg-tabs, .mg-scroll, pre, details:not([open]) > :not(summary)');
            });
            const scroll = document.documentElement.scrollWidth > width ? ['the page scrolls sideways'] : [];
            return [...scroll, ...out.slice(0, 3).map((one) => one.outerHTML.slice(0, 100))];
        }"""
    )
    return found


def quiet(observed: Observed, panel: Panel, *, but_for: str = "nothing") -> None:
    """No console error, no refusal of the policy, no dialog, nobody else asked."""
    assert [error for error in observed.errors if but_for not in error] == []
    assert observed.foreign(panel.server.url) == []


@pytest.mark.parametrize(("lang", "theme", "size"), LOOKS, ids=["en-light-wide", "zh-dark-narrow"])
def test_every_page_is_accessible_quiet_and_fits(panel: Panel, lang: str, theme: str, size: dict[str, int]) -> None:
    found: list[str] = []
    with panel.open(lang=lang, theme=theme, size=size) as (page, observed):
        for name, path in pages(panel).items():
            answer = page.goto(panel.address(path))
            assert answer is not None
            assert answer.status < 500, panel.server.log[-3000:]
            assert page.evaluate("document.documentElement.lang") == {"en": "en", "zh": "zh-hans"}[lang]
            found += [f"{name}: {line}" for line in [*sideways(page), *axe.violations(page)]]
            quiet(observed, panel, but_for="the server responded with a status of 404")
    assert found == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_hold_their_contrast_in_the_other_pairs(panel: Panel, theme: str) -> None:
    lang = "zh" if theme == "light" else "en"
    found = []
    with panel.open(lang=lang, theme=theme) as (page, _observed):
        for path in ("", "list/?tab=all", f"m/{panel.rows['edited']}/"):
            page.goto(panel.address(path))
            found += axe.violations(page)
    assert found == []


def test_no_english_word_is_left_on_a_chinese_page(panel: Panel) -> None:
    with panel.open(lang="zh") as (page, _observed):
        for name, path in pages(panel).items():
            page.goto(panel.address(path))
            shown = page.inner_text("body")
            assert [word for word in ENGLISH_WORDS if word in shown] == [], name


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_state_of_a_file_is_whole_beside_a_long_user_id(panel: Panel, lang: str) -> None:
    with panel.open("resources/", lang=lang, size=NARROW) as (page, _observed):
        cut = page.eval_on_selector_all(
            ".mg-files .mg-badge",
            "all => all.filter(one => one.scrollWidth > one.clientWidth || one.clientHeight > 24).length",
        )
        assert (page.locator(".mg-files .mg-badge").count(), cut) == (48, 0)


def test_strangers_meet_an_accessible_form_where_the_plugin_had_its_page(panel: Panel) -> None:
    context = panel.browser.new_context()
    page, observed = context.new_page(), Observed()
    observed.watch(page)
    answer = page.goto(f"{panel.server.url}/plugins/memory")
    assert answer is not None
    assert answer.status == 200
    assert page.is_visible("#id_password")
    assert axe.violations(page) == []
    quiet(observed, panel)
    context.close()
