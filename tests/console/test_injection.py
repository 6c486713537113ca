"""Forty injection payloads in every field: no page runs one. A control checks that the test would detect it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route

from tests.browser import Observed
from tests.console.panel import Panel
from tests.console.payloads import PAYLOADS

pytestmark = pytest.mark.browser


def test_there_are_forty_payloads() -> None:
    assert len(set(PAYLOADS)) == 40


def test_lists_and_the_dashboard_show_payloads_as_text(panel: Panel) -> None:
    with panel.open() as (page, observed):
        for path in ("", "?range=24h", "list/?tab=all", "list/?tab=full", "list/?tab=all&q=alert"):
            page.goto(panel.address(path))
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            page.wait_for_timeout(50)
            assert "alert(1)" in page.inner_text("#content")
        assert observed.errors == []
        assert observed.foreign(panel.server.url) == []


@pytest.mark.slow
def test_memory_pages_show_payloads_as_text(panel: Panel) -> None:
    first, last = panel.rows["hostile_first"], panel.rows["hostile_last"]
    with panel.open() as (page, observed):
        for row, payload in zip(range(first, last + 1), PAYLOADS, strict=True):
            page.goto(panel.address(f"m/{row}/"), wait_until="load")
            assert payload in page.inner_text("#h-text >> xpath=../..")
            if row % 4 == 0:
                page.goto(panel.address(f"m/{row}/edit/"))
                assert page.input_value("#text") == f"{payload} edited {payload}".strip() or "trash" in page.content()
        page.wait_for_timeout(200)
        assert observed.errors == []
        assert observed.foreign(panel.server.url) == []


@pytest.mark.slow
def test_payloads_in_addresses_do_not_run(panel: Panel) -> None:
    with panel.open() as (page, observed):
        for payload in PAYLOADS[::4]:
            for path in ("list/", "", "search/", "add/"):
                parameters = dict.fromkeys(("q", "user", "agent", "session", "from", "tab", "at", "method"), payload)
                query = page.evaluate("(given) => new URLSearchParams(given).toString()", parameters)
                page.goto(panel.address(f"{path}?{query}"))
        assert observed.errors == []
        assert observed.foreign(panel.server.url) == []


def test_an_unescaped_payload_is_detected(panel: Panel) -> None:
    """Control: the same response headers, with unescaped payloads in the body."""

    def serve_unescaped(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(
            response=answer, body=f"<html><body><p style='color:red'>x</p>{PAYLOADS[0]}{PAYLOADS[1]}</body></html>"
        )

    context = panel.browser.new_context()
    page, observed = context.new_page(), Observed()
    observed.watch(page)
    page.route("**/plugins/memory", serve_unescaped)
    page.goto(f"{panel.server.url}/plugins/memory")
    page.wait_for_timeout(100)
    context.close()
    assert len([error for error in observed.errors if "Content Security Policy" in error]) >= 3
