"""A person pauses and resumes remembering on a running gateway."""

from __future__ import annotations

import secrets
from typing import Final

import requests

PROVISIONING: Final = secrets.token_hex(32)
"""The token of the application, for `MEMORY_GATEWAY_PROVISIONING_TOKEN`."""
APPLICATION: Final = {"Authorization": f"Bearer {PROVISIONING}"}


def pause(url: str, key: str) -> None:
    """Pause everything, by a key that only tightens controls."""
    headers = {"Authorization": f"Bearer {key}"}
    issued = requests.post(f"{url}/users/me/keys", json={"scopes": ["controls"]}, headers=headers, timeout=60)
    headers = {"Authorization": f"Bearer {issued.json()['user_key']}"}
    body = {"paused": ["chats", "files", "agents"]}
    answer = requests.put(f"{url}/users/me/controls", json=body, headers=headers, timeout=60)
    assert answer.ok, answer.text


def resume(url: str, user_id: str) -> None:
    """Resume everything on the person's own pages, by a link that the application makes without a key."""
    browser = requests.Session()
    browser.trust_env = False
    made = browser.post(f"{url}/portal-links", json={"user_id": user_id}, headers=APPLICATION, timeout=60)
    page = browser.post(made.json()["url"], timeout=60)
    form = {"csrfmiddlewaretoken": page.text.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]}
    answer = browser.post(f"{url}/portal/remembering/all/resume", data=form, timeout=60)
    assert answer.ok, answer.text
