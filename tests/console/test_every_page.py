"""Requirements on every page: accessible, without errors and foreign requests, translated, as wide as the screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser import Observed
from tests.console import axe
from tests.console.pages import pages
from tests.console.panel import NARROW, WIDE, Panel

pytestmark = pytest.mark.browser

LOOKS = [
    pytest.param("en", "light", WIDE, id="en-light-wide"),
    pytest.param("zh", "dark", NARROW, id="zh-dark-narrow", marks=pytest.mark.slow),
]
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


@pytest.mark.parametrize(("lang", "theme", "size"), LOOKS)
def test_every_page_is_accessible_without_errors_translated_and_fits(
    panel: Panel, lang: str, theme: str, size: dict[str, int]
) -> None:
    found: list[str] = []
    rules = axe.RULES if lang == "en" else axe.RULES_OF_LOOKS
    with panel.open(lang=lang, theme=theme, size=size) as (page, observed):
        page.add_init_script(axe.source())
        for name, path in pages(panel).items():
            answer = page.goto(panel.address(path))
            assert answer is not None
            assert answer.status < 500, panel.server.log[-3000:]
            assert page.evaluate("document.documentElement.lang") == {"en": "en", "zh": "zh-hans"}[lang]
            words = english_words(page) if lang == "zh" else []
            found += [
                f"{name}: {line}" for line in [*words, *elements_beyond_the_screen(page), *axe.violations(page, rules)]
            ]
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
