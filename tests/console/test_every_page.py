"""Requirements on every page: accessible, without errors and foreign requests, translated, as wide as the screen."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser import Observed
from tests.console import axe
from tests.console.pages import pages
from tests.console.panel import NARROW, WIDE, Panel

pytestmark = pytest.mark.browser

LOOKS = [
    pytest.param("en", "light", WIDE, axe.RULES, id="en-light-wide", marks=pytest.mark.slow),
    pytest.param("zh", "dark", NARROW, axe.RULES_OF_LOOKS, id="zh-dark-narrow", marks=pytest.mark.slow),
]
# All rules on every page × language × theme × width.
MATRIX = [
    pytest.param(lang, theme, size, axe.RULES, id=f"all-{lang}-{theme}-{size['width']}", marks=pytest.mark.torture)
    for lang in ("en", "zh")
    for theme in ("light", "dark")
    for size in (WIDE, NARROW)
]
LAYOUT_SHIFTS = """
    window.layoutShifts = 0;
    new PerformanceObserver((found) => {
        for (const one of found.getEntries()) if (!one.hadRecentInput) window.layoutShifts += one.value;
    }).observe({type: 'layout-shift', buffered: true});
"""
ENGLISH_WORDS = ("Memories", "Dashboard", "Search", "Filters", "Category", "Importance", "Written", "Cancel")


def elements_beyond_the_screen(page: Page) -> list[str]:
    """Return the elements beyond the right edge of the screen."""
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


def english_words(page: Page) -> list[str]:
    """Return the English words on a Chinese page, on a wide and on a narrow screen."""
    text = ""
    for size in (WIDE, NARROW):
        page.set_viewport_size({"width": size["width"], "height": size["height"]})
        text += page.inner_text("body")
    return [word for word in ENGLISH_WORDS if word in text]


def assert_no_errors(observed: Observed, panel: Panel, *, except_for: str = "nothing") -> None:
    """Check that there was no console error, policy violation, dialog or request to another host."""
    assert [error for error in observed.errors if except_for not in error] == []
    assert observed.foreign(panel.server.url) == []


def layout_shifts(page: Page) -> list[str]:
    """Return a complaint if anything moved while the page arrived."""
    shifted = page.evaluate("layoutShifts")
    return [f"the layout shifts by {shifted:.5f}"] if shifted else []


@pytest.mark.parametrize(("lang", "theme", "size", "rules"), [*LOOKS, *MATRIX])
def test_every_page_is_accessible_without_errors_translated_and_fits(
    panel: Panel, lang: str, theme: str, size: dict[str, int], rules: dict[str, Any]
) -> None:
    found: list[str] = []
    with panel.open(lang=lang, theme=theme, size=size) as (page, observed):
        page.add_init_script(axe.source())
        page.add_init_script(LAYOUT_SHIFTS)
        for name, path in pages(panel).items():
            answer = page.goto(panel.address(path))
            assert answer is not None
            assert answer.status < 500, panel.server.log[-3000:]
            assert page.evaluate("document.documentElement.lang") == {"en": "en", "zh": "zh-hans"}[lang]
            lines = [*layout_shifts(page), *elements_beyond_the_screen(page), *axe.violations(page, rules)]
            lines += english_words(page) if lang == "zh" else []
            found += [f"{name}: {line}" for line in lines]
            assert_no_errors(observed, panel, except_for="the server responded with a status of 404")
    assert found == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_is_sufficient_in_the_other_languages_and_themes(panel: Panel, theme: str) -> None:
    lang = "zh" if theme == "light" else "en"
    found = []
    with panel.open(lang=lang, theme=theme) as (page, _observed):
        for path in ("", "list/?tab=all", f"m/{panel.rows['edited']}/"):
            page.goto(panel.address(path))
            found += axe.violations(page)
    assert found == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_long_user_ids_do_not_cut_the_state_of_a_file(panel: Panel, lang: str) -> None:
    with panel.open("resources/", lang=lang, size=NARROW) as (page, _observed):
        cut = page.eval_on_selector_all(
            ".mg-files .mg-badge",
            "all => all.filter(one => one.scrollWidth > one.clientWidth || one.clientHeight > 24).length",
        )
        assert (page.locator(".mg-files .mg-badge").count(), cut) == (48, 0)


def test_the_address_of_the_old_plugin_page_shows_an_accessible_sign_in_form(panel: Panel) -> None:
    context = panel.browser.new_context()
    page, observed = context.new_page(), Observed()
    observed.watch(page)
    answer = page.goto(f"{panel.server.url}/plugins/memory")
    assert answer is not None
    assert answer.status == 200
    assert page.is_visible("#id_password")
    assert axe.violations(page) == []
    assert_no_errors(observed, panel)
    context.close()
