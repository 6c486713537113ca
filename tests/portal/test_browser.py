"""The tasks of a person on a phone, without script and by keyboard; and the accessibility of every page."""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, Page

from tests import stub_oidc
from tests.browser import Observed, chromium, open_page
from tests.console import axe
from tests.console.panel import in_both_languages
from tests.pauses import APPLICATION, PROVISIONING
from tests.server import RunningServer, running_server, wait_until

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
LOCALES = {"en": "en-GB", "zh": "zh-CN"}
PAGES = (
    "", "?q=tea", "?q=giraffe", "memories/forget?q=tea", "profile", "profile/user", "files", "conversations",
    "remembering", "connections", "looks?all=1", "trash", "everything", "everything/erase",
    "memories/forget?never=health",
)  # fmt: skip
WORDS = {
    "en": {"open": "Open", "delete": "Delete", "undo": "Undo", "save": "Save", "why": "Why do you know this?"},
    "zh": {"open": "打开", "delete": "删除", "undo": "撤销", "save": "保存", "why": "为什么知道这个？"},
}


@dataclass
class Phone:
    """A gateway with the data of one person, and a browser."""

    server: RunningServer
    browser: Browser

    def create(self, user_id: str) -> str:
        """Create a person who has said something, has a fact, a file and a spare key; return the key."""
        key = str(self._call("", "users", {"user_id": user_id})["user_key"])
        message = {
            "sender_id": user_id,
            "role": "user",
            "timestamp": 1_780_000_000_000,
            "content": "I drink green tea.",
        }
        self._call(key, "memories/add", {"session_id": "chat:c1", "messages": [message]})
        self._call(key, "memories/flush", {"session_id": "chat:c1"})
        self._call(key, "memories", {"text": "Lives in Lyon.", "category": "user_memory_fact"})
        self._call(key, "users/me/keys", {"label": "Old phone", "scopes": ["search"]})
        uploaded = requests.post(
            f"{self.server.url}/resources",
            headers={"Authorization": f"Bearer {key}"},
            files={"file": ("roses.txt", b"The roses need water on Sunday.")},
            timeout=30,
        )
        assert uploaded.ok, uploaded.text
        return key

    def link(self, key: str) -> str:
        return str(self._call(key, "portal-links", {})["url"])

    def personal_link(self, user_id: str) -> str:
        """Return a link that the application makes for its user, without a key."""
        return str(self._call("", "portal-links", {"user_id": user_id})["url"])

    def say(self, key: str, session_id: str, text: str, **fields: Any) -> Any:
        messages = [{"role": "user", "content": text}]
        return self._call(key, "memories/add", {"session_id": session_id, "messages": messages, **fields})

    @contextlib.contextmanager
    def open(
        self, key: str, lang: str = "en", theme: Any = "light", *, script: bool = False, personal: str = ""
    ) -> Iterator[tuple[Page, Observed]]:
        """Open the pages by a new link of the key, or of the application for the user `personal`, on a phone."""
        context = self.browser.new_context(
            locale=LOCALES[lang],
            color_scheme=theme,
            viewport=PHONE,
            java_script_enabled=script,  # type: ignore[arg-type]
        )
        observed = Observed()
        try:
            page = context.new_page()
            observed.watch(page)
            page.goto(self.personal_link(personal) if personal else self.link(key))
            page.keyboard.press("Tab")
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")
            page.wait_for_url("**/portal/")
            yield page, observed
        finally:
            context.close()

    def _call(self, key: str, path: str, body: dict[str, Any]) -> Any:
        headers = {"Authorization": f"Bearer {key}"} if key else APPLICATION
        answer = requests.post(f"{self.server.url}/{path}", json=body, headers=headers, timeout=30)
        assert answer.ok, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phone]:
    folder = tmp_path_factory.mktemp("portal")
    with stub_oidc.running() as provider, chromium() as browser:
        env = {
            "MEMORY_GATEWAY_PROVISIONING_TOKEN": PROVISIONING,
            "MEMORY_GATEWAY_OIDC_ISSUER": provider.issuer,
            "MEMORY_GATEWAY_OIDC_CLIENT_ID": stub_oidc.CLIENT_ID,
            "MEMORY_GATEWAY_OIDC_CLIENT_SECRET": stub_oidc.CLIENT_SECRET,
            "MEMORY_GATEWAY_OIDC_ROLES": "staff=Viewer",
            "MEMORY_GATEWAY_PORTAL_OIDC_CLAIM": "preferred_username",
        }
        with running_server(folder, **env) as server:
            yield Phone(server, browser)


def press(page: Page, name: str, place: str = "main") -> None:
    """Press a button by keyboard."""
    page.locator(place).get_by_role("button", name=name, exact=True).first.press("Enter")


def never_remember(phone: Phone, page: Page) -> None:
    """Add a topic and a word, and look at what is stored of them."""
    page.goto(f"{phone.server.url}/portal/remembering")
    page.locator("form:has(input[name=topic][value=health]) button").press("Enter")
    page.wait_for_url("**/remembering?done=never*")
    page.fill("#word", "Heron")
    page.keyboard.press("Enter")
    page.wait_for_url("**/remembering?done=never&of=words")
    assert "Heron" in page.locator("main").inner_text()
    page.goto(f"{phone.server.url}/portal/memories/forget?never=words")
    assert page.locator("main input[type=checkbox]").count() == 0


@in_both_languages
def test_a_person_does_the_tasks_of_every_day(phone: Phone, lang: str, tmp_path: Path) -> None:
    words, key = WORDS[lang], phone.create(f"walker-{lang}")
    with phone.open(key, lang) as (page, observed):
        # find, why, correct, undo the correction
        page.fill("#q", "tea")
        page.keyboard.press("Enter")
        page.locator("main li a").first.press("Enter")
        assert page.get_by_role("heading", name=words["why"]).is_visible()
        page.fill("#text", "I drink black tea.")
        press(page, words["save"])
        assert page.locator("p.mp-big").inner_text() == "I drink black tea."
        page.locator("main details summary").first.press("Enter")
        page.locator("form[action$='/revert'] button").press("Enter")
        assert page.locator("p.mp-big").inner_text() == "I drink green tea."
        # delete, undo
        press(page, words["delete"])
        page.wait_for_url("**/portal/?deleted=*")
        assert "green tea" not in page.locator("main").inner_text()
        press(page, words["undo"])
        assert page.locator("p.mp-big").inner_text() == "I drink green tea."
        # delete by words with preview, undo
        page.goto(f"{phone.server.url}/portal/memories/forget?q=tea")
        assert page.locator("main input[type=checkbox]").count() == 1
        page.locator("button.is-danger-main").press("Enter")
        press(page, words["undo"])
        never_remember(phone, page)
        # profile
        page.goto(f"{phone.server.url}/portal/profile/user")
        page.fill("[name=occupation]", "Gardener")
        page.keyboard.press("Enter")
        page.wait_for_url("**/profile/user?done=saved")
        # revoke, who looked
        page.goto(f"{phone.server.url}/portal/connections")
        page.locator("li", has_text="Old phone").get_by_role("button").press("Enter")
        assert "Old phone" not in page.locator("main").inner_text()
        page.goto(f"{phone.server.url}/portal/looks")
        assert page.locator("main li").count() >= 2
        # download
        page.goto(f"{phone.server.url}/portal/everything")
        with page.expect_download() as downloading:
            page.locator("form[action$='/download'] button").press("Enter")
        downloading.value.save_as(tmp_path / "all.zip")
        with zipfile.ZipFile(tmp_path / "all.zip") as archive:
            assert "I drink green tea." in archive.read("index.html").decode()
        # delete everything, keep the receipt
        page.goto(f"{phone.server.url}/portal/everything/erase")
        page.fill("#id_confirm", f"walker-{lang}")
        page.keyboard.press("Enter")
        with page.expect_download() as downloading:
            page.locator("form[action$='/receipt'] button").press("Enter")
        downloading.value.save_as(tmp_path / "receipt.json")
        assert json.loads((tmp_path / "receipt.json").read_text())["user_id"] == f"walker-{lang}"
        page.goto(f"{phone.server.url}/portal/")
        assert page.locator("main li").count() == 0
        assert observed.foreign(phone.server.url) == []
        assert [error for error in observed.errors if "401" not in error] == []


@in_both_languages
def test_a_person_reads_and_deletes_conversations_and_files(phone: Phone, lang: str, tmp_path: Path) -> None:
    words = WORDS[lang]
    with phone.open(phone.create(f"keeper-{lang}"), lang) as (page, observed):
        # read a conversation, delete it, undo
        page.goto(f"{phone.server.url}/portal/conversations")
        page.locator("main li a", has_text="green tea").first.press("Enter")
        page.wait_for_url("**/portal/conversations/*")
        assert "I drink green tea." in page.locator("main").inner_text()
        page.locator("form[action$='/delete'] button").press("Enter")
        page.wait_for_url("**/portal/conversations?deleted=*")
        assert "green tea" not in page.locator("main").inner_text()
        press(page, words["undo"])
        page.wait_for_url("**/portal/conversations")
        assert "green tea" in page.locator("main").inner_text()
        # open a file, delete it, restore it from the trash
        page.goto(f"{phone.server.url}/portal/files")
        with page.expect_download() as downloading:
            page.locator("main a", has_text=words["open"]).first.press("Enter")
        downloading.value.save_as(tmp_path / "roses.txt")
        assert "roses" in (tmp_path / "roses.txt").read_text()
        page.locator("form[action$='/delete'] button").first.press("Enter")
        page.wait_for_url("**/portal/files?deleted=*")
        page.goto(f"{phone.server.url}/portal/trash")
        assert "roses.txt" in page.locator("main").inner_text()
        page.locator("form[action*='/files/'][action$='/restore'] button").first.press("Enter")
        page.wait_for_url("**/portal/files")
        assert "roses.txt" in page.locator("main").inner_text()
        assert observed.errors == []


@in_both_languages
def test_a_person_pauses(phone: Phone, lang: str) -> None:
    with phone.open(phone.create(f"pauser-{lang}"), lang) as (page, observed):
        page.goto(f"{phone.server.url}/portal/remembering")
        page.locator("form[action$='/files/pause'] button").press("Enter")
        page.wait_for_url("**/remembering?done=paused")
        assert page.locator("form[action$='/files/pause']").count() == 0
        page.locator("form[action$='/all/pause'] button").press("Enter")
        page.wait_for_url("**/remembering?done=paused")
        assert page.locator("form[action*='/pause']").count() == page.locator("form[action*='/resume']").count() == 0
        assert observed.errors == []


@in_both_languages
def test_a_person_resumes_and_what_was_said_meanwhile_stays_forgotten(phone: Phone, lang: str) -> None:
    name = f"resumer-{lang}"
    key = phone.create(name)
    with phone.open(key, lang, personal=name) as (page, observed):
        page.goto(f"{phone.server.url}/portal/remembering")
        page.locator("form[action$='/all/pause'] button").press("Enter")
        page.wait_for_url("**/remembering?done=paused")
        assert phone.say(key, "chat:c1", "My hens sleep in the barn.")["paused"] is True
        page.locator("form[action$='/agents/resume'] button").press("Enter")
        page.wait_for_url("**/remembering?done=resumed")
        assert page.locator("form[action$='/agents/pause']").count() == 1
        page.locator("form[action$='/all/resume'] button").press("Enter")
        page.wait_for_url("**/remembering?done=resumed")
        assert page.locator("form[action*='/resume']").count() == 0
        assert phone.say(key, "chat:c1", "My hens sleep in the barn.")["stored"] == 0
        assert phone.say(key, "chat:c1", "My ducks sleep in the reeds.")["stored"] == 1
        page.goto(f"{phone.server.url}/portal/?q=sleep")
        shown = page.locator("main").inner_text()
        assert "ducks" in shown
        assert "hens" not in shown
        assert observed.errors == []


@in_both_languages
def test_a_person_finds_nothing_of_an_incognito_chat(phone: Phone, lang: str) -> None:
    key = phone.create(f"ghost-{lang}")
    phone.say(key, "chat:hidden", "I hide a heron.", incognito=True)
    pages = ("", "?q=heron", "conversations", "trash", "memories/forget?q=heron")

    def rows() -> int:
        return int(phone.server.rows("SELECT count(*) FROM store_memory WHERE text LIKE '%heron%'")[0][0])

    with phone.open(key, lang) as (page, observed):
        for ended in (False, True):
            for path in pages:
                page.goto(f"{phone.server.url}/portal/{path}")
                assert "hide a heron" not in page.locator("main").inner_text(), (path, ended)
                assert page.locator("main li a", has_text="hidden").count() == 0
            if not ended:
                assert rows() == 1
                phone._call(key, "memories/flush", {"session_id": "chat:hidden", "end": True})
                wait_until(lambda: rows() == 0, 60)
        assert observed.errors == []


def test_a_person_signs_in(phone: Phone) -> None:
    phone.create("maria")
    with open_page(phone.browser) as (page, observed):
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(f"{phone.server.url}/portal/")
        assert axe.violations(page) == []
        page.get_by_role("link", name="Sign in").press("Enter")
        press(page, "Open")
        page.wait_for_url("**/portal/")
        assert "I drink green tea." in page.locator("main").inner_text()
        assert [error for error in observed.errors if "401" not in error] == []


@pytest.mark.slow
@pytest.mark.parametrize(("lang", "theme"), [("en", "light"), ("zh", "dark")])
def test_every_page_is_accessible_and_fits_a_phone(phone: Phone, lang: str, theme: str) -> None:
    key = phone.create(f"reader-{lang}")
    with phone.open(key, lang, theme, script=True) as (page, observed):
        page.goto(f"{phone.server.url}/portal/")
        first = page.locator("main li a").first.get_attribute("href") or ""
        page.goto(f"{phone.server.url}/portal/conversations")
        conversation = page.locator("main li a").first.get_attribute("href") or ""
        for path in (*(f"/portal/{one}" for one in PAGES), first, conversation):
            page.goto(f"{phone.server.url}{path}")
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
            assert axe.violations(page) == [], path
        page.goto(phone.link(key))
        assert axe.violations(page) == []
        assert observed.errors == []


def test_a_page_of_another_origin_frames_nothing(phone: Phone) -> None:
    key = phone.create("framed")
    with phone.open(key) as (page, _observed):
        framed = page.context.new_page()
        framed.set_content(f'<iframe src="{phone.server.url}/portal/"></iframe>')
        frame = framed.frames[1]
        assert frame.locator("main").count() == 0
