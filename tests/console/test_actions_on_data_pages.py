"""Operators' actions on files, users, the trash and jobs, in a browser, in both languages."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
import requests
from playwright.sync_api import Page, expect

from tests.console.panel import Panel, in_both_languages
from tests.console.payloads import PAYLOADS

pytestmark = pytest.mark.browser

WORDS: dict[str, dict[str, str]] = {
    "en": {
        "uploaded": "1 file uploaded.", "retried": "Retrying 1 file.", "gone": "moved to the trash",
        "sure": "Purge 1 memory?", "restored": "1 memory restored.", "wrong": "user ID does not match",
        "erased": "erased", "session": "memories moved to trash.", "back": "1 session restored.",
    },
    "zh": {
        "uploaded": "已上传", "retried": "正在重试 1 个文件", "gone": "已移到回收站",
        "sure": "彻底删除 1 条记忆？", "restored": "已恢复 1 条记忆", "wrong": "用户 ID 不匹配",
        "erased": "已抹除", "session": "已移到回收站", "back": "已恢复 1 个会话",
    },
}  # fmt: skip


def make_user(panel: Panel, user_id: str) -> str:
    """Create a user and return its key."""
    key: str = requests.post(f"{panel.server.url}/users", json={"user_id": user_id}, timeout=10).json()["user_key"]
    return key


def add_memory(page: Page, panel: Panel, user_id: str, text: str) -> None:
    page.goto(panel.address(f"add/?user={user_id}"))
    page.check("input[value=user_memory_fact]")
    page.fill("#text", text)
    page.click(".mg-form .is-main")
    page.wait_for_url(re.compile(r"/m/\d+/$"))


def wait_for_job(page: Page) -> None:
    """Wait on the page of a job until the job is done."""
    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]+/(\?|$)"))
    expect(page.locator("[role=status] .mg-badge.is-ok")).to_be_visible(timeout=20_000)


def upload(page: Page, panel: Panel, name: str, text: str, user: str = "maria.keller") -> None:
    page.goto(panel.address(f"resources/upload/?user={user}"))
    page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": text.encode()})
    page.click(".mg-form .is-main")
    page.wait_for_url(re.compile(r"/resources/r_[0-9a-f]{32}/$"))


@in_both_languages
def test_a_file_is_uploaded_downloaded_reingested_and_deleted(panel: Panel, lang: str) -> None:
    words = WORDS[lang]
    with panel.open(lang=lang) as (page, observed):
        upload(page, panel, f"仓库-{lang}.txt", f"The {lang} dock opens at seven.\n\n码头七点开门。")
        expect(page.locator(".mg-note.is-ok")).to_contain_text(words["uploaded"])
        expect(page.locator(".mg-badge.is-ok")).to_be_visible(timeout=30_000)  # the page reloads by itself
        assert f"The {lang} dock opens at seven." in page.inner_text(".mg-passages")
        with page.expect_download() as download:
            page.click("a[href$='/content/']")
        assert download.value.suggested_filename == f"仓库-{lang}.txt"
        assert "码头七点开门" in download.value.path().read_text(encoding="utf-8")
        address = page.url
        page.click("form[action$='/resources/retry/'] button")
        wait_for_job(page)
        page.goto(address)
        assert f"The {lang} dock opens at seven." in page.inner_text(".mg-passages")
        page.click("a[href$='/delete/']")
        page.click("main form .is-main")
        expect(page.locator(".mg-note")).to_contain_text(words["gone"])
        assert page.goto(address + "content/").status == 404  # type: ignore[union-attr]
        assert [error for error in observed.errors if "404" not in error] == []


def test_upload_errors_are_shown_at_their_fields(panel: Panel) -> None:
    with panel.open("resources/upload/") as (page, _observed):
        page.click(".mg-form .is-main")
        assert "Choose a file." in page.inner_text("#file_error")
        page.set_input_files("#file", {"name": "x.pdf", "mimeType": "application/pdf", "buffer": b"MZ\x90\x00 no pdf"})
        page.fill("#user", "maria.keller")
        page.click(".mg-form .is-main")
        expect(page.locator("[data-files] li")).to_contain_text("x.pdf: ")
        page.set_input_files("#file", {"name": "x.txt", "mimeType": "text/plain", "buffer": b"Tea at four."})
        page.fill("#user", "no.such.user")
        page.click(".mg-form .is-main")
        expect(page.locator("#user_error")).to_contain_text("There is no user no.such.user")
        page.fill("#user", "maria.keller")
        page.set_input_files("#file", {"name": "x.txt", "mimeType": "text/plain", "buffer": b"Tea at four."})
        page.click(".mg-form .is-main")
        page.wait_for_url(re.compile(r"/resources/r_[0-9a-f]{32}/$"))
        assert "1 file uploaded" in page.inner_text(".mg-note.is-ok")


@pytest.mark.slow
def test_many_files_are_uploaded_by_one_drop(panel: Panel) -> None:
    files = [(f"drop-{number}.txt", f"Note {number} on the harbor.") for number in range(30)]
    files += [("large.txt", "x" * (25 * 2**20 + 1)), ("program.pdf", "MZ\0 no pdf")]
    make_user(panel, "harbor")
    with panel.open("resources/upload/?user=harbor") as (page, observed):
        transfer = page.evaluate_handle(
            """files => {
                const transfer = new DataTransfer();
                for (const [name, text] of files) transfer.items.add(new File([text], name));
                return transfer;
            }""",
            files,
        )
        page.dispatch_event("h1", "drop", {"dataTransfer": transfer})
        page.click(".mg-form .is-main")
        expect(page.locator("[data-files] a")).to_have_count(30, timeout=60_000)
        expect(page.locator(".mg-form .is-main")).to_be_enabled()
        failed = page.locator("[data-files] li:not(:has(a))")
        assert failed.count() == 2
        assert "too large" in failed.nth(0).inner_text()
        assert failed.nth(1).inner_text().startswith("program.pdf program.pdf: ")
        expect(page.locator("[data-files] .mg-badge.is-ok")).to_have_count(30, timeout=60_000)
        assert page.get_attribute("[data-search]", "href") == "/admin/memory/search/?user=harbor&resources=1"
        page.click("[data-files] a >> nth=7")
        assert page.inner_text("h1").startswith("drop-7")
        assert [error for error in observed.errors if "422" not in error and "415" not in error] == []


def test_several_files_are_uploaded_without_script(panel: Panel) -> None:
    make_user(panel, "harbor-2")
    with panel.open("resources/upload/?user=harbor-2", script=False) as (page, _observed):
        files = [{"name": f"plain-{number}.txt", "mimeType": "text/plain", "buffer": b"Plain."} for number in range(3)]
        page.set_input_files("#file", [*files, {"name": "p.pdf", "mimeType": "application/pdf", "buffer": b"MZ\x90"}])
        page.click(".mg-form .is-main")
        assert "p.pdf: " in page.inner_text("#file_error")
        assert "3 files uploaded." in page.inner_text(".mg-note.is-ok")
        page.set_input_files("#file", files[:2])
        page.click(".mg-form .is-main")
        assert page.url.endswith("/resources/?user=harbor-2")


@in_both_languages
def test_failures_are_grouped_by_cause_and_retried(panel: Panel, lang: str) -> None:
    with panel.open("resources/?state=failed&user=lin.wei", lang=lang, script=lang == "en") as (page, _observed):
        before = int(page.inner_text(".mg-nav .mg-count.is-bad").split()[0])
        assert before > 0
        page.locator("input[name=id]").first.check()
        page.click("form[action$='/resources/retry/'] .mg-bulk .mg-acts button")
        expect(page.locator(".mg-note")).to_contain_text(WORDS[lang]["retried"])
        page.wait_for_timeout(1500)  # it fails again: the file of the seed data does not exist
        page.goto(panel.address("resources/"))
        causes = page.locator(".mg-fail")
        assert causes.count() >= 2
        count = causes.first.locator(".mg-count").inner_text()
        causes.first.locator("a.mg-btn").click()
        expect(page.locator("tbody tr")).to_have_count(int(count))


@in_both_languages
def test_a_memory_in_the_trash_is_restored_or_purged(panel: Panel, lang: str) -> None:
    user, words = f"trash.{lang}", WORDS[lang]
    make_user(panel, user)
    with panel.open(lang=lang) as (page, observed):
        for text in ("The first goes and comes back.", "The second goes for good."):
            add_memory(page, panel, user, text)
        page.goto(panel.address(f"list/?user={user}"))
        page.click("[data-all]")
        page.click("button[value=delete]")
        page.goto(panel.address(f"trash/?user={user}"))
        row = page.locator("tr", has_text="The first goes")
        row.locator("input[name=id]").check()
        page.click("button[value=restore]")
        expect(page.locator(".mg-note").first).to_contain_text(words["restored"])
        page.locator("input[name=id]").check()
        page.click("button[value=purge]")
        assert page.inner_text("h1") == words["sure"]
        page.click(".is-danger-main")
        wait_for_job(page)
        page.goto(panel.address(f"trash/?user={user}"))
        expect(page.locator("tbody tr")).to_have_count(0)
        page.goto(panel.address(f"list/?user={user}"))
        expect(page.locator("tbody tr")).to_have_count(1)
        assert observed.errors == []


@in_both_languages
def test_a_session_is_deleted_and_restored(panel: Panel, lang: str) -> None:
    words = WORDS[lang]
    with panel.open(f"users/{panel.rows['user']}/?view=sessions", lang=lang) as (page, observed):
        row = page.locator("tr", has_text="session:7f2a")
        row.locator("button").click()
        expect(page.locator(".mg-note")).to_contain_text(words["session"])
        page.goto(panel.address("trash/?kind=sessions&user=maria.keller"))
        page.locator("tr", has_text="session:7f2a").locator("input[name=id]").check()
        page.click("button[value=restore]")
        expect(page.locator(".mg-note")).to_contain_text(words["back"])
        assert observed.errors == []


@in_both_languages
def test_a_bulk_deletion_shows_its_progress_and_is_undone(panel: Panel, lang: str) -> None:
    with panel.open("list/?user=maria.keller&category=user_memory_preference", lang=lang) as (page, observed):
        page.click("[data-all]")
        total = int(page.inner_text(".mg-bulk [data-n]"))
        page.goto(panel.address("list/?user=maria.keller"))
        page.click("[data-all]")
        page.check("input[name=matching]")
        match_count = page.inner_text(".mg-bulk [data-n]")
        page.click("button[value=delete]")
        page.fill("#reason", "all out of date")
        page.click(".mg-form .is-main")
        wait_for_job(page)
        assert match_count in page.inner_text(".mg-count-line")
        assert "all out of date" in page.inner_text(".mg-pairs >> nth=1")
        page.click("#content a[href*='/audit/?subject=']")
        expect(page.locator("tbody tr", has=page.locator("[title='job.delete']"))).to_have_count(1)
        page.goto(panel.address("trash/"))
        assert "all out of date" in page.inner_text(".mg-inbox")
        page.locator(".mg-fail", has_text="all out of date").locator("button").click()
        wait_for_job(page)
        page.goto(panel.address("trash/"))
        assert "all out of date" not in page.inner_text("#content")
        page.goto(panel.address("list/?user=maria.keller&category=user_memory_preference"))
        page.click("[data-all]")
        assert int(page.inner_text(".mg-bulk [data-n]")) == total
        assert observed.errors == []


def test_a_job_is_refreshed_and_stopped_without_scripts(panel: Panel) -> None:
    with panel.open(f"jobs/{panel.rows['running']}/", script=False) as (page, _observed):
        assert "6,400 of 10,000" in page.inner_text("[role=status]")
        page.click("a:has-text('Refresh')")
        page.click("form[action$='/stop/'] button")
        assert "The job stops after the current step" in page.inner_text(".mg-note")
        expect(page.locator("form[action$='/stop/']")).to_have_count(0)


@in_both_languages
def test_a_user_is_exported_and_erased(panel: Panel, lang: str) -> None:
    user, words = f"leaving.{lang}", WORDS[lang]
    make_user(panel, user)
    with panel.open(lang=lang) as (page, observed):
        add_memory(page, panel, user, "Leaves tomorrow.")
        page.goto(panel.address(f"users/?q={user}"))
        page.click("tbody a")
        address = page.url
        assert "Leaves tomorrow." in page.inner_text("#content")
        page.click("form[action$='/export/'] button")
        wait_for_job(page)
        with page.expect_download() as download:
            page.click("a[href$='/download/']")
        assert download.value.suggested_filename == f"export-{user}.tar"
        page.goto(f"{address}erase/")
        page.fill("#confirm", user.upper())
        page.click(".is-danger-main")
        assert words["wrong"] in page.inner_text("#confirm_error")
        page.fill("#confirm", user)
        page.click(".is-danger-main")
        expect(page.locator(".mg-note")).to_contain_text(words["erased"])
        page.goto(panel.address(f"users/?q={user}"))
        expect(page.locator("tbody tr")).to_have_count(0)
        assert [error for error in observed.errors if "422" not in error] == []


def test_lists_have_next_and_previous_pages(panel: Panel) -> None:
    with panel.open("audit/") as (page, _observed):
        first = page.inner_text("tbody")
        page.click("a[rel=next]")
        second = page.inner_text("tbody")
        assert first != second
        page.click("a[rel=prev]")
        expect(page.locator("tbody tr[data-row]")).to_have_count(50)
        page.goto(panel.address("audit/?action=memory.override&user=lin.wei"))
        assert page.locator("tbody tr").count() >= 1
        expect(page.locator(".mg-chip")).to_have_count(2)


def test_hostile_names_are_shown_as_text(panel: Panel) -> None:
    """Payloads do not run or load anything, even with unfolded details."""
    rows = panel.rows
    paths = ["resources/", "resources/?q=script", "users/", "trash/", "trash/?kind=sessions", "jobs/"]
    paths += [f"audit/?action={quote(PAYLOADS[0])}"]
    paths += [f"users/{rows['hostile_user']}/", f"users/{rows['hostile_user']}/?view=sessions"]
    paths += [f"users/{rows['hostile_user']}/?view=audit", f"users/{rows['hostile_user']}/erase/"]
    paths += [f"resources/{rows['hostile_file']}/", f"resources/{rows['hostile_file']}/delete/"]
    paths += [f"jobs/{rows['hostile_job']}/"]
    with panel.open() as (page, observed):
        for path in paths:
            page.goto(panel.address(path))
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            page.wait_for_timeout(30)
            assert "alert(1)" in page.inner_text("#content"), path
        for payload in PAYLOADS[::5]:
            for path in ("resources/", "users/", "trash/", "audit/", "resources/upload/"):
                parameters = dict.fromkeys(("q", "user", "state", "cause", "type", "actor", "action", "after"), payload)
                page.goto(panel.address(path + page.evaluate("(one) => '?' + new URLSearchParams(one)", parameters)))
        assert observed.errors == []
        assert observed.foreign(panel.server.url) == []
