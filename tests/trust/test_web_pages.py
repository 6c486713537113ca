"""Test what a web page can do in a signed-in operator's browser, and what a stored file can do when opened."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Error, Page

from tests.browser import chromium, open_page
from tests.memory_gateway.routes import all_routes
from tests.resources.people import RemotePerson
from tests.server import RunningServer, running_server
from tests.web import page as web_page
from tests.web import web_server

pytestmark = pytest.mark.browser

TABLES = ("accounts_memoryuser", "accounts_userkey", "auth_user", "store_memory", "store_session", "resources_resource")
OPERATORS = {"/admin/logout/", "/admin/accounts/memoryuser/add/", "/admin/auth/user/add/", "/admin/memory/add/"}
SCRIPT = "<script>document.title = 'script ran'; alert(document.domain)</script>"

# Requests as any page can send them; what it can read comes back. The fields would create a user and add a memory.
ATTACK = """
async ([base, gets, posts]) => {
  const fields = {user_id: 'evil', text: 'evil', username: 'evil', action: 'delete_selected'};
  const json = JSON.stringify({user_id: 'evil'});
  const read = [];
  const attempt = async (url, options) => {
    try {
      const answer = await fetch(base + url, {credentials: 'include', ...options});
      if (answer.type !== 'opaque') read.push([url, answer.status]);
    } catch (error) {}
  };
  const inTurns = async (items, act) => {
    for (let first = 0; first < items.length; first += 10) await Promise.all(items.slice(first, first + 10).map(act));
  };
  await inTurns(gets, (url) => attempt(url, {}));
  await inTurns(gets, (url) => new Promise((done) => {
    const image = new Image();
    image.onload = image.onerror = done;
    image.src = base + url;
  }));
  await inTurns(posts, async (url) => {
    await attempt(url, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: json});
    await attempt(url, {method: 'POST', mode: 'no-cors', headers: {'Content-Type': 'text/plain'}, body: json});
    for (const method of ['PUT', 'PATCH', 'DELETE']) await attempt(url, {method});
  });
  await inTurns(posts, (url) => new Promise((done) => {
    const frame = document.createElement('iframe');
    frame.name = 'frame' + Math.random();
    const form = document.createElement('form');
    Object.assign(form, {method: 'POST', action: base + url, target: frame.name});
    for (const [name, value] of Object.entries(fields)) {
      const input = document.createElement('input');
      Object.assign(input, {name, value});
      form.append(input);
    }
    document.body.append(frame, form);
    frame.onload = frame.onerror = done;
    form.submit();
    setTimeout(done, 1000);
  }));
  return read;
}
"""
SOCKET = """
(url) => new Promise((done) => {
  const frames = [], socket = new WebSocket(url);
  const connect = {minProtocol: 4, maxProtocol: 4, role: 'operator', scopes: ['operator.admin'],
    client: {id: 'test', version: '1', platform: 'web', mode: 'webchat'}};
  socket.onopen = () => socket.send(JSON.stringify({type: 'req', id: '1', method: 'connect', params: connect}));
  socket.onmessage = (event) => frames.push(JSON.parse(event.data));
  socket.onclose = () => done(frames);
})
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("pages")) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def credentials(server: RunningServer) -> tuple[str, str]:
    printed = server.manage("ensure_operator", timeout_seconds=600).stdout
    user, password = re.findall(r"(?:user|password) +(\S+)", printed)[-2:]
    return user, password


def sign_in(page: Page, server: RunningServer, credentials: tuple[str, str]) -> None:
    page.goto(f"{server.url}/admin/")
    page.fill("#id_username", credentials[0])
    page.fill("#id_password", credentials[1])
    page.click("input[type=submit]")
    page.wait_for_selector("#user-tools")


def content(server: RunningServer) -> dict[str, list[str]]:
    """All rows of the tables that an attack could change."""
    return {table: sorted(map(repr, server.rows(f"SELECT * FROM {table}"))) for table in TABLES}


@pytest.mark.slow
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"], ids=["another site", "another port of this site"])
def test_a_page_of_another_origin_reads_and_changes_nothing(
    server: RunningServer, browser: Browser, credentials: tuple[str, str], host: str
) -> None:
    routes = [route for route in all_routes() if not route.pattern.startswith("/admin/") or route.address in OPERATORS]
    gets = sorted({route.address for route in routes if not route.methods or "GET" in route.methods})
    posts = sorted({route.address for route in routes if not route.methods or route.methods - {"GET"}})
    assert {"/users", *OPERATORS} <= set(posts)
    RemotePerson.create(server, f"alice.{len(host)}").upload("notes.txt", b"A note.").raise_for_status()
    with web_server() as foreign, open_page(browser) as (page, _):
        foreign.pages["/"] = web_page(b"<!doctype html><body>", content_type="text/html")
        sign_in(page, server, credentials)
        before = content(server)
        page.goto(foreign.url("/", host))
        assert page.evaluate(ATTACK, [server.url, gets, posts]) == []
        frames = page.evaluate(SOCKET, server.url.replace("http", "ws", 1))
        assert [frame for frame in frames if frame["type"] == "res" and frame["ok"]] == []
        assert content(server) == before
        page.goto(f"{server.url}/admin/")
        assert page.locator("#user-tools").count() == 1


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("page.html", f"<!doctype html><html><body>{SCRIPT}</body></html>"),
        ("page.md", f"# Title\n\n{SCRIPT}\n"),
        ("page.txt", SCRIPT),
        ("page.json", f'{{"a": "{SCRIPT}"}}'),
        ("page.csv", f"a,b\n{SCRIPT},1\n"),
        ("page.xml", f'<?xml version="1.0"?><a xmlns="http://www.w3.org/1999/xhtml">{SCRIPT}</a>'),
        ("picture.gif", f"GIF89a/*{SCRIPT}*/=1;"),
    ],
    ids=["html", "md", "txt", "json", "csv", "xml", "gif"],
)
def test_an_opened_file_is_downloaded_and_runs_no_script(
    server: RunningServer, browser: Browser, name: str, data: str
) -> None:
    person = RemotePerson.create(server, "bob")
    uploaded = person.upload(name, data.encode(), Prefer="respond-async")
    if uploaded.status_code == 415:
        return  # never stored
    url = f"{server.url}/resources/{uploaded.json()['resource_id']}/content"
    with open_page(browser) as (page, observed):
        page.goto(f"{server.url}/api/docs/")
        page.set_extra_http_headers(person.headers)
        with page.expect_download() as download, pytest.raises(Error, match="Download is starting"):
            page.goto(url)
        assert download.value.url == url
        assert page.title() != "script ran"
        assert observed.errors == []
