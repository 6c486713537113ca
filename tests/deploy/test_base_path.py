"""A gateway that a proxy serves below a path, over https and on another port."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
import requests

from tests.server import RunningServer, free_port, running_server, wait_until
from tests.store.test_fetching import tls_contexts

pytestmark = pytest.mark.skipif(not shutil.which("haproxy"), reason="needs haproxy")

BASE = "/memory"
TOKEN = secrets.token_urlsafe(48)
PASSWORD = secrets.token_urlsafe(24)
PRODUCTION = {
    "MEMORY_GATEWAY_PROFILE": "production",
    "MEMORY_GATEWAY_SECRET_KEY": secrets.token_urlsafe(64),
    "MEMORY_GATEWAY_PROVISIONING_TOKEN": TOKEN,
    "MEMORY_GATEWAY_ALLOWED_HOSTS": "localhost",
    "MEMORY_GATEWAY_TRUSTED_PROXIES": "127.0.0.1",
    "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
}
CONFIGURATION = """
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend public
  bind 127.0.0.1:{port} ssl crt {chain}
  http-request set-header X-Forwarded-Proto https
  option forwardfor
  {rule}
  use_backend gateway if {{ path_beg /memory/ }} or {{ path /memory }} or {{ var(txn.below) -m bool }}
backend gateway
  server one 127.0.0.1:{gateway}
"""
REMOVED = (
    "http-request set-var(txn.below) bool(true) if { path_beg /memory/ }\n"
    "  http-request set-header X-Forwarded-Prefix /memory\n"
    "  http-request replace-path /memory(/.*) \\1"
)


class Site:
    """The address below which the proxy serves a gateway, and what a browser keeps of it."""

    def __init__(self, server: RunningServer, url: str, chain: Path) -> None:
        self.server = server
        self.url = url
        self.chain = chain
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = str(chain)

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.session.get(f"{self.url}{path}", timeout=20, **options)

    def post(self, path: str, **options: Any) -> requests.Response:
        return self.session.post(f"{self.url}{path}", timeout=20, **options)

    def key(self, user_id: str) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = self.post("/users", json={"user_id": user_id}, headers=headers)
        assert answer.status_code in {200, 201}, answer.text
        return {"Authorization": f"Bearer {answer.json()['user_key']}"}


@pytest.fixture(scope="module", params=["passed on", "removed"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder, port = tmp_path_factory.mktemp("base"), free_port()
    tls_contexts(folder, "localhost")
    is_passed_on = request.param == "passed on"
    env = {**PRODUCTION, **({"MEMORY_GATEWAY_BASE_PATH": f"{BASE}/"} if is_passed_on else {})}
    with running_server(folder, **env) as server:
        configuration = folder / "haproxy.cfg"
        gateway = server.url.rpartition(":")[2]
        rule = "" if is_passed_on else REMOVED
        configuration.write_text(
            CONFIGURATION.format(port=port, chain=folder / "chain.pem", gateway=gateway, rule=rule), encoding="utf-8"
        )
        with subprocess.Popen(["haproxy", "-db", "-f", str(configuration)]) as process:
            try:
                started = Site(server, f"https://localhost:{port}{BASE}", folder / "chain.pem")
                wait_until(lambda: _answers(started))
                yield started
            finally:
                process.terminate()


def _answers(site: Site) -> bool:
    try:
        return site.get("/health").status_code == 200
    except requests.ConnectionError:
        return False


def test_memories_are_stored_found_and_named_below_the_path(site: Site) -> None:
    key = site.key("ann")
    stored = site.post("/memories", json={"text": "I prefer green tea."}, headers=key)
    assert stored.status_code == 201, stored.text
    address = urljoin(site.url, stored.headers["Location"])
    assert site.session.get(address, headers=key, timeout=20).json()["memory"]["text"] == "I prefer green tea."
    found = site.post("/memories/search", json={"query": "tea", "scope": ["all_user_memory"]}, headers=key)
    assert [one["text"] for one in found.json()["results"]] == ["I prefer green tea."]
    lost = site.get("/openapi.json/")
    assert lost.status_code == 404
    assert f"Use {BASE}/openapi.json." in lost.json()["detail"]


def test_operators_sign_in_and_every_address_of_their_pages_is_below_the_path(site: Site) -> None:
    made = site.server.manage("createsuperuser", "--noinput", "--username", "ops", "--email", "ops@example.org")
    assert made.returncode == 0, made.stderr
    form = site.get("/admin/memory/")
    assert urlsplit(form.url).path == f"{BASE}/admin/login/"
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
    assert token is not None
    page = site.post(
        "/admin/login/",
        data={
            "username": "ops",
            "password": PASSWORD,
            "csrfmiddlewaretoken": token[1],
            "next": f"{BASE}/admin/memory/",
        },
        headers={"Referer": form.url},
    )
    assert page.status_code == 200
    assert urlsplit(page.url).path == f"{BASE}/admin/memory/"
    addresses = {
        urlsplit(urljoin(page.url, found)).path for found in re.findall(r'(?:href|src|action)="([^"#?]+)', page.text)
    }
    assert len(addresses) > 10
    assert {one for one in addresses if not one.startswith(f"{BASE}/")} == set()
    static = [one for one in addresses if "/static/" in one]
    assert len(static) > 2
    for one in static:
        assert site.get(one.removeprefix(BASE)).status_code == 200, one


def test_cookies_are_for_the_path_if_the_gateway_knows_it(site: Site) -> None:
    site.get("/admin/login/")
    [cookie] = [one for one in site.session.cookies if "csrftoken" in one.name]
    is_known = "MEMORY_GATEWAY_BASE_PATH" in site.server.env
    assert (cookie.path, cookie.name.split("memory")[0]) == ((BASE, "__Secure-") if is_known else ("/", "__Host-"))
    assert cookie.secure


def test_clients_of_mcp_find_the_authorization_below_the_path(site: Site) -> None:
    refused = site.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert refused.status_code == 401
    metadata = re.search(r'resource_metadata="([^"]+)"', refused.headers["WWW-Authenticate"])
    assert metadata is not None
    resource = site.session.get(metadata[1], timeout=20).json()
    assert resource["resource"] == f"{site.url}/mcp"
    [issuer] = resource["authorization_servers"]
    assert issuer == site.url
    server = site.session.get(f"{issuer}/.well-known/openid-configuration", timeout=20).json()
    assert server["issuer"] == issuer
    assert server["token_endpoint"] == f"{site.url}/oauth/token"
    tools = site.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers={**site.key("bob")})
    assert tools.status_code == 200, tools.text


def test_the_schema_names_the_path_if_the_gateway_knows_it(site: Site) -> None:
    servers = site.get("/openapi.json").json().get("servers")
    assert servers == ([{"url": BASE}] if "MEMORY_GATEWAY_BASE_PATH" in site.server.env else None)


def test_probes_need_no_path_and_others_cannot_name_one(site: Site) -> None:
    health = requests.get(f"{site.server.url}/health", headers={"Host": "localhost"}, timeout=10)
    assert health.status_code == 200
    form = requests.get(
        f"{site.server.url}/admin/login/",
        headers={"Host": "localhost", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "//evil.example"},
        timeout=10,
    )
    assert form.status_code == 200
    assert "evil" not in form.text
