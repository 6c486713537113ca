"""The page with the settings of agents and applications, and the sign that the first call arrived."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from django.test import Client

from accounts.models import AuditEvent
from tests.conftest import Person

pytestmark = pytest.mark.django_db
CONNECT = "/admin/memory/connect/"


def settings_on(client: Client, **query: str) -> dict[str, str]:
    page = client.get(CONNECT, query).content.decode()
    return {
        name: unescape(text)
        for name, text in re.findall(r'<pre class="mg-pre"[^>]* id="(\w+)-text">(.*?)</pre>', page, re.DOTALL)
    }


def test_the_settings_are_those_of_this_installation(admin_client: Client, alice: Person) -> None:
    found = settings_on(admin_client, user="alice")
    assert set(found) == {"claude", "mcp", "openclaw_install", "openclaw", "curl", "python"}
    assert all("http://testserver" in text for name, text in found.items() if name != "openclaw_install")
    assert json.loads(found["mcp"])["mcpServers"]["memory"]["url"] == "http://testserver/mcp"
    plugin = json.loads(found["openclaw"])["plugins"]["entries"]["memory-gateway"]["config"]
    assert plugin == {
        "url": "http://testserver",
        "users": {"*": {"userId": "alice", "apiKey": "${MEMORY_GATEWAY_USER_KEY}"}},
    }
    compile(found["python"], "example", "exec")
    assert not any("uk_" in text for text in found.values())


def test_ids_in_settings_are_escaped(admin_client: Client, alice: Person) -> None:
    hostile = 'a"b<c>'
    assert json.loads(settings_on(admin_client, user=hostile)["openclaw"])  # valid JSON
    page = admin_client.get(CONNECT, {"user": hostile}).content.decode()
    assert "<c>" not in page
    assert "There is no user" in page


def test_the_sign_turns_green_when_the_first_call_arrives(admin_client: Client, alice: Person) -> None:
    waiting = admin_client.get(CONNECT, {"user": "alice", "part": "1"}).content.decode()
    assert "Waiting for the first call" in waiting
    assert f'hx-get="{CONNECT}?user=alice&amp;part=1"' in waiting
    assert alice.client.get("/memories").status_code == 200
    connected = admin_client.get(CONNECT, {"user": "alice", "part": "1"}).content.decode()
    assert "Connected" in connected
    assert "hx-get" not in connected
    admin_client.get(CONNECT, {"user": "alice"})
    assert AuditEvent.objects.get(action="user.view", user_id="alice").detail == {"view": "connect"}


def test_the_page_is_reached_from_a_user_and_from_a_new_key(admin_client: Client, alice: Person) -> None:
    link = f'href="{CONNECT}?user=alice"'
    assert link in admin_client.get(f"/admin/memory/users/{alice.user_pk}/").content.decode()
    made = admin_client.post("/admin/accounts/userkey/add/", {"user_id": "alice", "label": "laptop"}, follow=True)
    assert link in made.content.decode()
