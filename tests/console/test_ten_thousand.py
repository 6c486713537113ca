"""Ten thousand memories deleted through the page: its filter, its progress, its one undo, its line in the trail."""

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

MADE, AT_LEAST = 12_000, 10_000
LIST = "list/?tab=full"
UNDO = "form[action$='/undo/'] button"
JOB_SECONDS = 600


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Panel]:
    """A gateway with so many that ten thousand of them match."""
    with chromium() as browser, running_server(tmp_path_factory.mktemp("many")) as server:
        managed(server, "seed_memories", str(MADE), "--no-index")
        make_operator(server)
        yield Panel(server, browser, {})


def matching(page: Page, panel: Panel, path: str = LIST) -> int:
    """How many the list says there are."""
    page.goto(panel.address(path))
    return int(page.get_attribute("form[data-select]", "data-total") or 0) if page.query_selector("[data-row]") else 0


def progress(page: Page, total: int) -> list[int]:
    """What the bar showed while the page stayed open, until the job was done."""
    bar, seen, until = page.locator("progress"), [0], time.monotonic() + JOB_SECONDS
    while seen[-1] < total:
        assert time.monotonic() < until, seen
        seen.append(int(bar.get_attribute("value") or 0))
        page.wait_for_timeout(200)
    expect(page.locator(".mg-badge.is-ok")).to_be_visible(timeout=30_000)
    return seen


def test_they_go_with_progress_come_back_once_and_are_one_act(panel: Panel) -> None:
    with panel.open(LIST) as (page, observed), panel.open() as (other, _):
        total = matching(page, panel)
        assert total >= AT_LEAST
        page.check("[data-all]")
        page.check("input[name=matching]")
        page.click("button[name=do][value=delete]")
        expect(page.locator("h1")).to_contain_text(f"{total:,}")
        page.fill("#reason", "noise")
        page.click(".is-danger-main")
        page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]+/$"))
        job = page.url
        seen = progress(page, total)
        assert seen == sorted(seen)
        assert len({*seen} - {0, total}) >= 3
        assert matching(other, panel) == 0
        assert matching(other, panel, "trash/") == MAX_COUNTED

        other.goto(job)  # where the undo is offered still when the other page has taken it
        page.goto(job)
        page.click(UNDO)
        page.wait_for_url(lambda url: url != job)
        progress(page, total)
        assert matching(page, panel) == total
        assert matching(page, panel, "trash/") == 0

        page.goto(job)
        assert page.query_selector(UNDO) is None
        with other.expect_response(lambda answer: answer.request.method == "POST") as answered:
            other.click(UNDO)
        assert answered.value.status == 409
        assert matching(page, panel) == total

        page.goto(panel.address("audit/?action=memories.delete"))
        row = page.locator("tr[data-row]")
        expect(row).to_have_count(1)
        row.locator("summary").click()
        detail = row.inner_text()
        assert "{'tab': 'full'}" in detail
        assert f"count: {total}" in detail
        assert "noise" in detail
        assert observed.errors == []
