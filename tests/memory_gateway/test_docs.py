"""The documentation page in a real browser: it renders under the strict content security policy, from our files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import NARROW, WIDE, chromium, open_page
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("docs")) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_page_shows_every_endpoint_and_asks_no_other_host(server: RunningServer, viewport: dict[str, int]) -> None:
    with chromium() as browser, open_page(browser, viewport) as (page, observed):
        page.goto(f"{server.url}/docs")
        page.wait_for_selector(".opblock")
        assert page.url == f"{server.url}/api/docs/"
        assert page.get_by_text("/users/me/keys/rotate").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.locator(".opblock-summary-control").first.click()
        page.wait_for_selector(".opblock-body")
        page.wait_for_load_state("networkidle")
        assert observed.errors == []
        assert observed.foreign(server.url) == []
