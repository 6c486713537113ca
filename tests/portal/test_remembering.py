"""The person's page *Remembering*: who can pause, who can resume, and what others can do about it (nothing)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from accounts import controls, services, tokens
from accounts.audit import Actor
from accounts.models import AuditEvent, MemoryUser
from tests.conftest import Person
from tests.portal.visits import Visit, visit

pytestmark = pytest.mark.django_db

PROVISIONING = "p" * 32
ACTOR = Actor.command("tests")
PAGE = "/portal/remembering"


def personal_link(person: Person, settings: Any) -> str:
    """The path of a link that the application makes with the provisioning token."""
    settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = PROVISIONING
    headers = {"authorization": f"Bearer {PROVISIONING}"}
    answer = Client(headers=headers).post("/portal-links", {"user_id": person.user_id}, "application/json")
    assert answer.status_code == 200, answer.content
    return urlsplit(answer.json()["url"]).path


def personal_visit(person: Person, settings: Any) -> Visit:
    client = Client()
    assert client.post(personal_link(person, settings)).status_code == 302
    return Visit(client)


def paused(person: Person) -> list[str]:
    return list(controls.pauses_of(person.user_pk))


def test_the_person_pauses_and_resumes(alice: Person, settings: Any) -> None:
    at = personal_visit(alice, settings)
    assert at.post(f"{PAGE}/files/pause").status_code == 302
    assert paused(alice) == ["files"]
    shown = at.get(PAGE)
    assert "paused since" in shown
    assert f"{PAGE}/files/resume" in shown
    assert at.post(f"{PAGE}/all/pause").status_code == 302
    assert paused(alice) == list(controls.SOURCES)
    assert at.post(f"{PAGE}/chats/resume").status_code == 302
    assert paused(alice) == ["files", "agents"]
    assert at.post(f"{PAGE}/all/resume").status_code == 302
    assert paused(alice) == []
    assert AuditEvent.objects.filter(action__startswith="controls.", actor_kind="person").count() == 4
    assert "Resumed remembering" in at.get(PAGE)
    assert "Paused remembering" in at.get("/portal/looks")
    assert at.post(f"{PAGE}/thoughts/pause").status_code == 404


def test_a_key_opens_pages_that_only_pause(alice: Person) -> None:
    at = visit(alice)
    assert at.post(f"{PAGE}/all/pause").status_code == 302
    shown = at.get(PAGE)
    assert "/resume" not in shown
    assert "Only you can resume" in shown
    for source in ("all", *controls.SOURCES):
        refused = at.post(f"{PAGE}/{source}/resume")
        assert refused.status_code == 403
        assert "provisioning token" in refused.content.decode()
    assert paused(alice) == list(controls.SOURCES)


def test_keys_tokens_operators_and_used_links_resume_nothing(alice: Person, bob: Person, settings: Any) -> None:
    """Keys, tokens, agents, operators, other people, used links and forms of other pages: all are refused."""
    controls.set_paused(alice.user_pk, controls.SOURCES, actor=ACTOR)
    user = MemoryUser.objects.get(pk=alice.user_pk)
    refused = 0
    for limits in ({}, {"granted": ["controls"]}, {"granted": ["add", "decide", "controls"]}, {"app_id": "a"}):
        key = services.issue_key(alice.user_pk, actor=ACTOR, **limits).plaintext  # type: ignore[arg-type]
        client = Client(headers={"authorization": f"Bearer {key}"})
        for body in ({"paused": []}, {"paused": ["chats"]}):
            answer = client.put("/users/me/controls", body, "application/json")
            refused += answer.status_code == 403
    key = services.issue_key(bob.user_pk, granted=["controls"], actor=ACTOR).plaintext
    bobs = Client(headers={"authorization": f"Bearer {key}"})
    assert bobs.put("/users/me/controls", {"paused": [], "user_id": "alice"}, "application/json").status_code >= 400
    rpc = tokens.issue("t", user=user, actor=ACTOR).plaintext
    for secret in (rpc, PROVISIONING, "uk_" + "x" * 43):
        client = Client(headers={"authorization": f"Bearer {secret}"})
        refused += client.put("/users/me/controls", {"paused": []}, "application/json").status_code in {401, 403}
    path = personal_link(alice, settings)
    first = Client()
    assert first.post(path).status_code == 302
    thief = Client()
    refused += thief.post(path).status_code == 401
    refused += thief.post(f"{PAGE}/all/resume").status_code == 401
    refused += first.post(f"{PAGE}/all/resume").status_code == 400  # without the token of the form
    assert first.get(f"{PAGE}/all/resume").status_code == 405
    token = Visit(first).token
    foreign = first.post(f"{PAGE}/all/resume", {"csrfmiddlewaretoken": token}, headers={"sec-fetch-site": "cross-site"})
    refused += foreign.status_code == 403
    others = personal_visit(bob, settings)
    assert others.post(f"{PAGE}/all/resume").status_code == 302  # that is bob's own
    operator = Client()
    operator.force_login(User.objects.create_superuser("root", password="x" * 12))
    refused += operator.post(f"{PAGE}/all/resume").status_code == 401
    refused += operator.put("/users/me/controls", {"paused": []}, "application/json").status_code == 401
    pause = user.pauses.first()
    assert pause is not None
    for address in (f"/admin/accounts/pause/{pause.pk}/delete/", f"/admin/accounts/pause/{pause.pk}/change/"):
        refused += operator.post(address, {"post": "yes", "ended_at_0": "2026-01-01"}).status_code == 403
    assert refused == 19
    assert paused(alice) == list(controls.SOURCES)
