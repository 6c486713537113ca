"""Django's own deployment checks under the production profile, and what production changes in the answers."""

from __future__ import annotations

import http.client
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from tests.server import RunningServer, running_server

HOST = "memory.example.org"
PRODUCTION = {
    "MEMORY_GATEWAY_PROFILE": "production",
    "MEMORY_GATEWAY_SECRET_KEY": secrets.token_urlsafe(64),
    "MEMORY_GATEWAY_PROVISIONING_TOKEN": secrets.token_urlsafe(48),
    "MEMORY_GATEWAY_ALLOWED_HOSTS": HOST,
    "MEMORY_GATEWAY_TRUSTED_PROXIES": "127.0.0.1",
    "MEMORY_GATEWAY_SECURITY_CONTACT": "mailto:security@example.org, https://example.org/security",
}
PROXIED = {"Host": HOST, "X-Forwarded-Proto": "https", "X-Forwarded-For": "6.6.6.6, 203.0.113.9"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("production"), **PRODUCTION) as running:
        yield running


def test_the_deployment_checks_find_nothing(server: RunningServer) -> None:
    checked = server.manage("check", "--deploy", "--fail-level", "WARNING")
    assert checked.returncode == 0, checked.stderr
    assert "no issues" in checked.stdout


ADDRESSES = ("/health", "/api/schema/", "/nothing", "/mcp")


def test_an_answer_over_https_tells_to_stay_there_for_this_host_alone(server: RunningServer) -> None:
    for path in ADDRESSES:
        answer = requests.get(server.url + path, headers=PROXIED, timeout=10)
        assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("max-age=600; includeSubDomains", "max-age=600; includeSubDomains"),
        ("max-age=31536000;includesubdomains;preload", "max-age=31536000; includeSubDomains; preload"),
        ("max-age=0", None),
    ],
)
def test_the_policy_for_https_is_a_setting(tmp_path: Path, value: str, sent: str | None) -> None:
    with running_server(tmp_path, **PRODUCTION, MEMORY_GATEWAY_HSTS=value) as server:
        for path in ADDRESSES:
            answer = requests.get(server.url + path, headers=PROXIED, timeout=10)
            assert answer.headers.get("Strict-Transport-Security") == sent
        checked = server.manage("check", "--deploy", "--fail-level", "WARNING")
        assert checked.returncode == 0, checked.stderr


def test_security_txt_names_the_contacts_and_expires_within_a_year(server: RunningServer) -> None:
    answer = requests.get(f"{server.url}/.well-known/security.txt", headers=PROXIED, timeout=10)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    *contacts, expires = answer.text.splitlines()
    assert contacts == ["Contact: mailto:security@example.org", "Contact: https://example.org/security"]
    until = datetime.fromisoformat(expires.removeprefix("Expires: "))
    assert timedelta(days=30) < until - datetime.now(UTC) < timedelta(days=365)


def test_plain_http_is_sent_to_https_but_a_probe_of_health_is_answered(server: RunningServer) -> None:
    answer = requests.get(f"{server.url}/api/schema/", headers={"Host": HOST}, timeout=10, allow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (301, f"https://{HOST}/api/schema/")
    assert requests.get(f"{server.url}/health", timeout=10).status_code == 200


def test_health_answers_for_allowed_hosts_and_addresses_only(server: RunningServer) -> None:
    for host, status in ((HOST, 200), ("10.1.2.3:8010", 200), ("localhost", 200), ("evil.example", 400)):
        answer = requests.get(f"{server.url}/health", headers=PROXIED | {"Host": host}, timeout=10)
        assert (host, answer.status_code) == (host, status)
    assert "backend" not in answer.json()


def test_keys_over_plain_http_are_refused_by_mcp_and_sockets(server: RunningServer) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for headers, status in (({"Host": HOST}, 403), (PROXIED, 401)):
        assert requests.post(f"{server.url}/mcp", json=ping, headers=headers, timeout=10).status_code == status
    address = server.url.replace("http://", "")
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    upgrade["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    for headers, status in (({"Host": HOST}, 403), (PROXIED, 101)):
        connection = http.client.HTTPConnection(address, timeout=10)
        connection.request("GET", "/", headers=headers | upgrade)
        assert connection.getresponse().status == status
        connection.close()


def test_oauth_addresses_are_those_that_the_proxy_serves(server: RunningServer) -> None:
    metadata = f"https://{HOST}/.well-known/oauth-protected-resource/mcp"
    refused = requests.post(f"{server.url}/mcp", json={}, headers=PROXIED, timeout=10)
    assert f'resource_metadata="{metadata}"' in refused.headers["WWW-Authenticate"]
    path = metadata.removeprefix(f"https://{HOST}")
    found = requests.get(server.url + path, headers=PROXIED, timeout=10).json()
    assert (found["resource"], found["authorization_servers"]) == (f"https://{HOST}/mcp", [f"https://{HOST}"])
    assert requests.get(server.url + path, headers=PROXIED | {"Host": "evil.example"}, timeout=10).status_code == 400
    for name in ("authorize", "token", "register"):
        url = f"{server.url}/oauth/{name}"
        answer = requests.post(url, headers={"Host": HOST}, timeout=10, allow_redirects=False)
        assert (answer.status_code, answer.headers["Location"]) == (301, f"https://{HOST}/oauth/{name}")


def test_the_client_is_whom_the_proxy_saw_and_bodies_stay_out_of_the_log(server: RunningServer) -> None:
    body = {"user_id": "secret-person"}
    token = {"Authorization": f"Bearer {PRODUCTION['MEMORY_GATEWAY_PROVISIONING_TOKEN']}"}
    created = requests.post(f"{server.url}/users", json=body, headers=PROXIED | token, timeout=10)
    assert created.status_code == 200
    assert '"client":"203.0.113.9"' in server.log
    assert "6.6.6.6" not in server.log
    assert "secret-person" not in server.log
    assert created.json()["user_key"] not in server.log
    assert PRODUCTION["MEMORY_GATEWAY_PROVISIONING_TOKEN"] not in server.log


def test_reload_is_refused(server: RunningServer) -> None:
    refused = server.manage("serve", "--reload", "--port", "0")
    assert refused.returncode == 1
    assert "RELOAD" in refused.stderr
