"""The tasks of operators and of a support team, each from the dashboard, with its clicks and its page loads.

The first 22 are those of a review by an operator, in its order; their loads are at most those that it counted. The
first run, its last one, needs an empty gateway: `test_first_steps`.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
from playwright.sync_api import Download, Page, Request, expect

from tests.console.panel import NARROW, Panel, running_panel

pytestmark = pytest.mark.browser
CATS = (
    ("user", "Our house is full of life, we got another cat last week."),
    ("assistant", "Lovely! What is its name?"),
    ("user", "Bailey. So now there are two of them."),
)
CALLS = 30
LOCKED_SECONDS = 8  # the 4 of a page, on a busy machine
LONG = f"{'مرحبا '}{'👩‍👩‍👧‍👦'}<script>alert(1)</script>{'x' * 300} {'A very long note. ' * 1_100}"


class Visit:
    """A signed-in operator with one page, whose clicks and loads are counted."""

    def __init__(self, page: Page, panel: Panel) -> None:
        self.page, self.panel, self.clicks, self.loads = page, panel, 0, 0
        self.downloads: list[Download] = []
        page.on("request", self._count)
        page.on("download", self._receive)

    def _count(self, request: Request) -> None:
        is_load = request.is_navigation_request() and request.frame == self.page.main_frame
        is_reload = request.method == "GET" and request.url == self.page.url  # of a page that waits for a job
        self.loads += is_load and not is_reload and not request.redirected_from

    def _receive(self, download: Download) -> None:
        self.loads -= 1  # the page stays
        self.downloads.append(download)

    def click(self, selector: str, **options: Any) -> None:
        self.clicks += 1
        self.page.locator(selector).first.click(**options)

    def go(self, label: str) -> None:
        """Open a page of the navigation."""
        self.click(f".mg-nav a:has-text('{label}')")

    def find(self, text: str) -> None:
        """Type into Find: no click, because a key leads there."""
        self.page.fill(".mg-top input[name=q]", text)
        self.page.keyboard.press("Enter")

    def search(self, text: str) -> None:
        self.page.fill("#f-q", text)
        self.page.keyboard.press("Enter")

    def sees(self, text: str, selector: str = "main") -> None:
        expect(self.page.locator(selector).first).to_contain_text(text)

    def notice(self, text: str) -> None:
        self.sees(text, ".mg-note")

    def download(self, selector: str) -> bytes:
        with self.page.expect_download() as found:
            self.click(selector)
        path: Path = found.value.path()
        return path.read_bytes()


def correct_two_cats(on: Visit) -> None:
    on.find("melanie cat")
    on.click(".mg-c-main .mg-text a:has-text('another cat')")
    on.sees("Shown with the text before and after it")
    on.sees("What is its name?")
    on.click("a[href*='/edit/']")
    on.page.fill("#text", "Our house is full of life: we have two cats since last week.")
    on.click(".mg-form .is-main")
    on.notice("Saved.")
    on.sees("another", ".mg-diff")
    on.click("main a:has-text('Try a search')")
    on.sees("we have two cats since last week", "main ol")


def export_and_erase_a_person(on: Visit) -> None:
    on.find("leaver")
    on.click("main button:has-text('Export user')")
    on.page.wait_for_url("**/jobs/*/**")
    download = on.page.locator("a:has-text('Download archive')")
    for _try in range(120):
        if download.count():
            break
        time.sleep(0.5)
        on.page.reload()
    assert on.download("a:has-text('Download archive')")
    on.find("leaver")
    on.click("a:has-text('Preview erasure')")
    on.page.fill("#confirm", "leaver")
    on.click("main button.is-danger-main")
    on.sees("leaver erased")
    assert json.loads(on.download("main form button"))["user_id"] == "leaver"


def retry_what_failed_this_week(on: Visit) -> None:
    on.click("main a:has-text('Failed')[href*='from=']")
    on.sees("One cause.")
    on.click(".mg-inbox form[action$='/retry/'] button.is-small")
    expect(on.page.locator(".mg-note").first).to_be_visible()
    on.page.go_back()
    on.click("a:has-text('Refused uploads')")
    on.sees("fair-2026.mov")


def delete_all_with_a_number_and_restore_half(on: Visit) -> None:
    on.find("555-01")
    on.sees(f"{CALLS} ", ".mg-pager")
    on.click("[data-all]")
    on.click("[name=matching]", force=True)
    on.click("button[value=delete]")
    on.sees(f"Move {CALLS} memories to trash?", "h1")
    on.click("main form button.is-danger-main, main form button.is-main")
    on.sees(f"{CALLS} of {CALLS}")
    on.go("Trash")
    on.search("555-01")
    on.click("[name=id] >> nth=0")
    on.click(f"[name=id] >> nth={CALLS // 2 - 1}", modifiers=["Shift"])
    on.click("button[value=restore]")
    on.notice(f"{CALLS // 2} memories restored.")


def see_who_looked_at_a_person(on: Visit) -> None:
    on.find("melanie")
    on.click("a:has-text('All reads')")
    on.sees("chen.yu")
    on.sees("Listed memories")


def add_a_viewer_and_deactivate_another(on: Visit) -> None:
    on.go("Operators")
    on.page.fill("#username", "new.viewer")
    on.page.select_option("#role", label="Viewer")
    on.click("main form button.is-main")
    on.sees("/admin/memory/invitation/", "#secret")
    on.click("main tbody a:has-text('ana.silva')")
    on.click("label:has([name=is_active])")
    on.click("main form button:has-text('Save')")
    on.notice("Operator changed.")
    on.sees("deactivated", "tr:has-text('ana.silva')")


def see_why_an_answer_was_given(on: Visit) -> None:
    on.go("Search log")
    on.click("tr:has-text('LT-40') a:has-text('What it returned')")
    on.sees("As it was")
    on.sees("The same search now")


def rotate_a_leaked_key(on: Visit) -> None:
    on.find("lin.wei")
    on.click("a:has-text('Rotate')")
    expect(on.page.locator("[name=grace_hours]")).to_have_value("0")
    on.sees("Last used")
    on.click("main button.is-main")
    on.sees("uk_", "#secret")
    on.click("text=I have copied it")
    on.sees("lin.wei", "h1")


def add_a_memory(on: Visit) -> None:
    on.click("a:has-text('Add memory')")
    on.page.fill("#user", "maria.keller")
    on.click("label:has(input[value=user_memory_fact])")
    on.page.fill("#text", "The gate code changes every quarter.")
    on.click(".mg-form button:has-text('Add memory')")
    on.notice("Memory added.")


def upload_ten_files_and_a_refused_one(on: Visit) -> None:
    on.page.keyboard.press("Control+k")
    on.page.keyboard.type("upload f")
    expect(on.page.locator("#mg-results li").first).to_contain_text("Upload files")
    on.page.keyboard.press("Enter")
    on.page.wait_for_url("**/upload/**")
    on.page.fill("#user", "maria.keller")
    files: list[Any] = [
        {"name": f"note-{number}.txt", "mimeType": "text/plain", "buffer": b"Gate %d opens at six." % number}
        for number in range(10)
    ]
    refused = {"name": "tool.exe", "mimeType": "application/octet-stream", "buffer": b"MZ\x90\0" * 64}
    on.page.set_input_files("#file", [*files, refused])
    if on.page.locator("[data-files] li").count() == 0:
        on.click("main button.is-main")
    expect(on.page.locator("[data-files] li")).to_have_count(11)
    expect(on.page.locator("[data-files] li:has-text('tool.exe')")).to_contain_text("type")


def go_back_to_an_older_profile(on: Visit) -> None:
    on.find("maria.keller")
    on.click("main a:has-text('Versions')")
    on.click("main tbody tr:last-child th a")
    on.sees("Changes if restored")
    on.click("main button:has-text('Restore version')")
    expect(on.page.locator(".mg-note").first).to_be_visible()


def find_words_of_all_users(on: Visit) -> None:
    on.find("adoption")
    on.sees("melanie")
    on.sees("caroline")


def export_ticked_memories(on: Visit) -> None:
    on.find("adoption")
    on.click("[name=id] >> nth=0")
    on.click("[name=id] >> nth=1")
    lines = on.download("button[value=export]").splitlines()
    assert len(lines) == 2


def meet_a_locked_database(on: Visit) -> None:
    address = on.panel.server.env["MEMORY_GATEWAY_DB_PATH"]
    if on.panel.server.env["DATABASE_URL"]:
        return  # PostgreSQL locks rows, not databases
    with contextlib.closing(sqlite3.connect(address, isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        on.go("Memories")
        on.sees("busy", "body")
        assert time.monotonic() - begun < LOCKED_SECONDS
        other.execute("ROLLBACK")


def work_by_keys(on: Visit) -> None:
    for key in "gm":
        on.page.keyboard.press(key)
    on.page.wait_for_url("**/list/**")
    for key in "jxjo":
        on.page.keyboard.press(key)
    on.page.wait_for_url("**/m/*/**")
    on.page.keyboard.press("e")
    on.page.wait_for_url("**/edit/**")
    expect(on.page.locator("#text")).to_be_visible()


def tick_a_row_by_its_name(on: Visit) -> None:
    on.find("peanuts")
    box = on.page.get_by_role("checkbox", name="Select: Allergic to peanuts.")
    box.check()
    on.sees("1 selected", ".mg-bulk")


def read_a_long_hostile_text_on_a_phone(on: Visit) -> None:
    on.find("melanie مرحبا")
    on.click(".mg-c-main .mg-text a")
    on.sees("<script>alert(1)</script>")
    on.page.set_viewport_size({"width": NARROW["width"], "height": NARROW["height"]})
    assert on.page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


def read_times_in_the_own_zone(on: Visit) -> None:
    on.find("peanuts")
    expect(on.page.locator("main td time[title$=' CST']").first).to_be_visible()


def edit_what_a_colleague_edits(on: Visit) -> None:
    with on.panel.open(f"m/{on.panel.rows['passage']}/edit/") as (mine, _observed):
        on.page.goto(on.panel.address(f"m/{on.panel.rows['passage']}/edit/"))
        for page, text in ((on.page, "Cats may be kept."), (mine, "No cats may be kept.")):
            page.fill("#text", text)
            page.locator(".mg-form .is-main").first.click()
        expect(mine.locator("main")).to_contain_text("Saved text and your text")
        for text in ("Cats may be kept.", "No cats may be kept."):
            expect(mine.locator(".mg-diff")).to_contain_text(text)


def send_a_failed_delivery_again(on: Visit) -> None:
    on.go("Webhooks")
    on.click("a:has-text('hooks.example.com')")
    on.sees("503")
    on.click("tr:has-text('503') button:has-text('Send again')")
    on.notice("The delivery is sent again.")


def read_a_conversation(on: Visit) -> None:
    on.find("maria.keller")
    on.click("tr:has-text('chat:planning') a")
    on.sees("Note 40 of the planning round")


# Ten tasks of a support team, and what operators do besides.


def find_a_customer_by_a_part_of_the_address(on: Visit) -> None:
    on.find("keller@ex")
    on.click("main a:has-text('maria.keller')")
    on.sees("Asked on the phone for the new price list.")


def find_a_customer_by_a_telephone_number(on: Visit) -> None:
    on.find("55501")
    on.sees("555-01", ".mg-c-main")


def note_what_a_customer_asked_for(on: Visit) -> None:
    on.find("melanie")
    on.click("a:has-text('Edit person')")
    on.page.fill("[name=labels]", "complaint")
    on.page.fill("[name=notes]", "Wrong number of cats.")
    on.click(".mg-form .is-main")
    on.click(".mg-badge:has-text('complaint')")
    on.sees("melanie", "tbody")


def work_through_a_list_of_edits(on: Visit) -> None:
    on.page.goto(on.panel.address("list/?user=maria.keller&q=supplier&sort=oldest"))
    on.click(".mg-c-main .mg-text a")
    on.click("a[href*='/edit/']")
    for text in ("The first note.", "The second note."):
        on.page.fill("#text", text)
        on.click("button[value=next]")
        on.notice("Saved.")
    on.click(".mg-crumbs a:has-text('Memories')")
    on.sees("supplier", ".mg-chips")


def retract_what_an_answer_used(on: Visit) -> None:
    on.go("Search log")
    on.click("tr:has-text('LT-40') a:has-text('What it returned')")
    on.click(".mg-returned a")
    on.click("button:has-text('Retract')")
    on.notice("Moved to trash.")
    on.click(".mg-note form button")
    on.notice("Undone.")


def see_what_agents_asked_for_in_vain(on: Visit) -> None:
    on.go("Queues")
    on.click("a:has-text('Searches without results')")
    on.sees("favorite color of the warehouse")


def restore_a_fact_that_was_superseded_wrongly(on: Visit) -> None:
    on.go("Queues")
    on.click("a:has-text('Superseded memories')")
    on.click(".mg-c-main a:has-text('Mondays')")
    on.click("main button:has-text('Restore')")
    on.notice("Restored.")


def tell_a_customer_why_an_upload_was_refused(on: Visit) -> None:
    on.go("Queues")
    on.click("a:has-text('Uploads refused')")
    on.sees("must be at most")


def see_what_a_key_did(on: Visit) -> None:
    on.find("melanie")
    on.click("th code")
    on.sees("Added a memory")


def undo_what_a_colleague_deleted(on: Visit) -> None:
    on.go("Jobs")
    on.click("main tbody tr:has-text('Move memories to trash') a >> nth=-1")
    on.click("button:has-text('Undo all')")
    on.notice("Undone.")


def see_why_a_memory_is_not_found(on: Visit) -> None:
    on.find("lin.wei")
    on.click("a:has-text('Search as this user')")
    on.page.fill("#f-q", "deliveries mondays")
    on.click("button:has-text('Run search')")
    on.sees("Hidden results")


def delete_by_filter_and_undo(on: Visit) -> None:
    on.page.goto(on.panel.address("list/?user=maria.keller&category=user_memory_decision"))
    on.click("[data-all]")
    on.click("button[value=delete]")
    on.notice("to trash")
    on.click(".mg-note form button")
    on.notice("Undone.")


def restore_a_deleted_memory_by_words(on: Visit) -> None:
    on.go("Trash")
    on.search("old price list 2")
    on.click("[name=id]")
    on.click("button[value=restore]")
    on.notice("1 memory restored.")


def change_a_profile(on: Visit) -> None:
    on.find("maria.keller")
    on.click("a.is-small:has-text('Open')")
    on.page.fill("[name=occupation]", "Head of purchasing")
    on.click("main button:has-text('Save')")
    on.notice("Document saved.")


def keep_a_case_of_a_complaint(on: Visit) -> None:
    on.find("melanie adoption")
    on.click(".mg-c-main .mg-text a")
    on.page.fill("#case-note", "She never asked for it. Call back.")
    on.page.select_option("#case-assignee", label="chen.yu")
    on.click("button:has-text('Save case')")
    on.notice("Case saved.")
    on.go("Queues")
    on.click("tr:has-text('Call back.') a")
    on.click("button:has-text('Close case')")
    on.notice("Case closed.")


def give_a_person_a_copy_of_all_data(on: Visit) -> None:
    on.find("caroline")
    assert on.download("main button:has-text('Readable copy')").startswith(b"PK")


def see_what_an_agent_knows_before_a_question(on: Visit) -> None:
    on.find("caroline")
    on.click("a:has-text('Prompt preview')")
    on.sees("customer of 555-0129")


def see_what_was_edited_of_a_person(on: Visit) -> None:
    on.find("maria.keller")
    on.click("a:has-text('Timeline') >> nth=0")
    on.click("main details.mg-drop summary")
    on.page.select_option("[name=what]", label="Edited")
    on.click("main details.mg-drop button")
    on.sees("The second note.")


def move_instructions_to_the_trash(on: Visit) -> None:
    on.go("Queues")
    on.click("a:has-text('Possible instructions')")
    on.sees("ignore your earlier instructions", "tbody")


def change_the_language_and_the_theme(on: Visit) -> None:
    before = on.page.get_attribute("html", "data-theme")
    on.click(".theme-toggle")
    assert on.page.get_attribute("html", "data-theme") != before
    on.click(".mg-top button:has-text('中文')")
    on.sees("记忆大盘", "body")
    on.click(".mg-top button:has-text('English')")


class Task(NamedTuple):
    """A task with the most clicks and page loads that it may take."""

    do: Callable[[Visit], None]
    clicks: int
    loads: int


TASKS = (
    Task(correct_two_cats, 4, 5),
    Task(export_and_erase_a_person, 5, 6),
    Task(retry_what_failed_this_week, 3, 4),
    Task(delete_all_with_a_number_and_restore_half, 8, 6),
    Task(see_who_looked_at_a_person, 1, 3),
    Task(add_a_viewer_and_deactivate_another, 5, 4),
    Task(see_why_an_answer_was_given, 2, 2),
    Task(rotate_a_leaked_key, 3, 4),
    Task(add_a_memory, 3, 3),
    Task(upload_ten_files_and_a_refused_one, 1, 1),
    Task(go_back_to_an_older_profile, 3, 4),
    Task(find_words_of_all_users, 0, 1),
    Task(export_ticked_memories, 3, 1),
    Task(meet_a_locked_database, 1, 1),
    Task(work_by_keys, 0, 3),
    Task(tick_a_row_by_its_name, 0, 1),
    Task(read_a_long_hostile_text_on_a_phone, 1, 2),
    Task(read_times_in_the_own_zone, 0, 1),
    Task(edit_what_a_colleague_edits, 0, 2),
    Task(send_a_failed_delivery_again, 3, 3),
    Task(read_a_conversation, 1, 2),
    Task(find_a_customer_by_a_part_of_the_address, 1, 2),
    Task(find_a_customer_by_a_telephone_number, 0, 1),
    Task(note_what_a_customer_asked_for, 3, 4),
    Task(work_through_a_list_of_edits, 5, 6),
    Task(retract_what_an_answer_used, 5, 5),
    Task(see_what_agents_asked_for_in_vain, 2, 2),
    Task(restore_a_fact_that_was_superseded_wrongly, 4, 4),
    Task(tell_a_customer_why_an_upload_was_refused, 2, 2),
    Task(see_what_a_key_did, 1, 2),
    Task(see_why_a_memory_is_not_found, 2, 3),
    Task(delete_by_filter_and_undo, 3, 3),
    Task(restore_a_deleted_memory_by_words, 3, 3),
    Task(undo_what_a_colleague_deleted, 3, 3),
    Task(keep_a_case_of_a_complaint, 5, 6),
    Task(give_a_person_a_copy_of_all_data, 1, 1),
    Task(see_what_an_agent_knows_before_a_question, 1, 2),
    Task(see_what_was_edited_of_a_person, 3, 3),
    Task(move_instructions_to_the_trash, 2, 2),
    Task(change_a_profile, 2, 3),
    Task(change_the_language_and_the_theme, 3, 2),
)


def fill(panel: Panel) -> None:
    """Store over REST what customers of the tasks said."""
    url = panel.server.url

    def post(path: str, body: dict[str, Any], key: str = "") -> Any:
        answer = requests.post(f"{url}{path}", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=30)
        answer.raise_for_status()
        return answer.json()

    keys = {name: post("/users", {"user_id": name})["user_key"] for name in ("melanie", "caroline", "leaver")}
    now = int(time.time() * 1000)
    messages = [
        {"sender_id": "melanie" if role == "user" else "main", "role": role, "timestamp": now + n, "content": text}
        for n, (role, text) in enumerate(CATS)
    ]
    post("/memories/add", {"session_id": "chat:pets", "messages": messages}, keys["melanie"])
    post("/memories/flush", {"session_id": "chat:pets"}, keys["melanie"])
    for name in ("melanie", "caroline"):
        post("/memories", {"text": f"{name} looks at adoption agencies."}, keys[name])
    post("/memories", {"text": LONG[:8_000]}, keys["melanie"])
    calls = [{"text": f"Call number {number}: customer of 555-{100 + number:04}."} for number in range(CALLS)]
    post("/memories/bulk", {"memories": calls}, keys["caroline"])


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Panel]:
    """Run one gateway and one browser for all tasks, which follow each other as those of one day."""
    with running_panel(tmp_path_factory.mktemp("tasks")) as running:
        fill(running)
        yield running


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.do.__name__)
def test_a_task_takes_few_clicks_and_loads(panel: Panel, task: Task) -> None:
    with panel.open("") as (page, _observed):
        on = Visit(page, panel)
        task.do(on)
        assert on.clicks <= task.clicks
        assert on.loads <= task.loads
