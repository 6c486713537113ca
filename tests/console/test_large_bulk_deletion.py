"""Ten thousand memories deleted by words through the page: its progress, its one undo, its line in the trail."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from console.views.trash import MAX_COUNTED
from tests.browser import chromium
from tests.console.panel import Panel
from tests.console.test_million import make_operator
from tests.million import managed
from tests.server import running_server

pytestmark = [pytest.mark.browser, pytest.mark.torture]

CREATED, MIN_MATCHES = 36_000, 10_000
LIST = "list/?tab=all&q=green+tea"
UNDO = "form[action$='/undo/'] button"
JOB_SECONDS = 600


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Panel]:
    """Run a gateway with enough memories that ten thousand match."""
    with chromium() as browser, running_server(tmp_path_factory.mktemp("many")) as server:
        managed(server, "seed_memories", str(CREATED))
        make_operator(server)
        yield Panel(server, browser, {})


def match_count(page: Page, panel: Panel, path: str = LIST) -> int:
    """Return the number of matches that the list shows."""
    page.goto(panel.address(path))
    return int(page.get_attribute("form[data-select]", "data-total") or 0) if page.query_selector("[data-row]") else 0


def progress(page: Page, total: int) -> list[int]:
    """Return the values of the progress bar until the job is done."""
    bar, values, deadline = page.locator("progress"), [0], time.monotonic() + JOB_SECONDS
    while values[-1] < total:
        assert time.monotonic() < deadline, values
        values.append(int(bar.get_attribute("value") or 0))
        page.wait_for_timeout(200)
    expect(page.locator(".mg-badge.is-ok")).to_be_visible(timeout=30_000)
    return values


def test_ten_thousand_memories_are_deleted_with_progress_and_undone_once(panel: Panel) -> None:
    with panel.open(LIST) as (page, observed), panel.open() as (other, _):
        total = match_count(page, panel)
        assert total >= MIN_MATCHES
        page.check("[data-all]")
        page.check("input[name=matching]")
        page.click("button[name=do][value=delete]")
        expect(page.locator("h1")).to_contain_text(f"{total:,}")
        page.fill("#reason", "noise")
        page.click(".mg-form .is-main")
        page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]+/(\?|$)"))
        job = page.url
        values = progress(page, total)
        assert values == sorted(values)
        assert len({*values} - {0, total}) >= 3
        assert match_count(other, panel) == 0
        assert match_count(other, panel, "trash/") == MAX_COUNTED

        other.goto(job)  # this page still offers the undo after the other page has used it
        page.goto(job)
        page.click(UNDO)
        page.wait_for_url(lambda url: url != job)
        progress(page, total)
        assert match_count(page, panel) == total
        assert match_count(page, panel, "trash/") == 0

        page.goto(job)
        assert page.query_selector(UNDO) is None
        with other.expect_response(lambda answer: answer.request.method == "POST") as answered:
            other.click(UNDO)
        assert answered.value.status == 409
        assert match_count(page, panel) == total

        page.goto(panel.address("audit/?action=job.delete"))
        row = page.locator("tr[data-row]")
        expect(row).to_have_count(1)
        row.locator("summary").click()
        detail = row.inner_text()
        assert "words=2" in detail
        assert f"count: {total}" in detail
        assert "noise" in detail
        assert observed.errors == []
