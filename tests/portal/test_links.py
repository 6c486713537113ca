"""One-time links and sessions: who gets in, once, for how long, and what a foreign site can do (nothing)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts import portal_links, services
from accounts.audit import Actor
from accounts.models import AuditEvent, PortalLink, UserKey
from operations import erase
from tests.conftest import Person
from tests.portal.visits import make_link, visit

pytestmark = pytest.mark.django_db

PROVISIONING = "p" * 32
ACTOR = Actor.command("tests")


def keyed(person: Person, **limits: Any) -> Client:
    key = services.issue_key(person.user_pk, actor=ACTOR, **limits).plaintext
    return Client(headers={"authorization": f"Bearer {key}"})


def test_opening_shows_a_button_and_changes_nothing_however_often(alice: Person) -> None:
    path = make_link(alice)
    scanner, browser = Client(), Client()
    for method in (scanner.get, scanner.head, scanner.get):
        answer = method(path)
        assert answer.status_code == 200
        assert not answer.cookies
    assert "<button" in scanner.get(path).content.decode()
    assert browser.post(path).status_code == 302
    assert browser.get("/portal/").status_code == 200


def test_a_link_works_once(alice: Person) -> None:
    path = make_link(alice)
    assert Client().post(path).status_code == 302
    thief = Client()
    for answer in (thief.get(path), thief.post(path)):
        assert answer.status_code == 401
        assert not answer.cookies
    assert thief.get("/portal/").status_code == 401


def test_link_and_session_are_stored_as_digests_and_expire(alice: Person) -> None:
    path = make_link(alice)
    link = PortalLink.objects.get()
    assert path.rpartition("/")[2] not in str(vars(link))
    PortalLink.objects.update(expires_at=timezone.now())
    assert Client().post(path).status_code == 401
    portal_links.forget_old(timezone.now())
    assert not PortalLink.objects.exists()

    opened = visit(alice)
    left = PortalLink.objects.get().expires_at - timezone.now()
    assert timedelta(minutes=29) < left <= timedelta(minutes=30)
    PortalLink.objects.update(expires_at=timezone.now())
    assert "not signed in" in opened.get("/portal/", 401)


def test_the_trail_has_the_maker_before_the_link_is_used(alice: Person) -> None:
    make_link(alice)
    event = AuditEvent.objects.get(action="portal_link.create")
    assert (event.user_id, event.actor_kind) == (alice.user_id, "key")
    assert "Made a link" in visit(alice).get("/portal/looks")


def test_keys_that_may_do_less_than_everything_make_no_link(alice: Person) -> None:
    for limits in ({"granted": ["search", "add", "decide", "files", "controls"]}, {"app_id": "a"}, {"agent_id": "b"}):
        answer = keyed(alice, **limits).post("/portal-links", {}, "application/json")
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert not PortalLink.objects.exists()


def test_the_provisioning_token_makes_links_for_the_user_that_it_names(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = PROVISIONING
    client = Client(headers={"authorization": f"Bearer {PROVISIONING}"})

    def ask(body: dict[str, str]) -> Any:
        return client.post("/portal-links", body, "application/json")

    assert ask({"user_id": alice.user_id}).status_code == 200
    assert ask({"user_id": "nobody"}).status_code == 404
    refused = ask({})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "user_id")
    assert Client().post("/portal-links", {"user_id": alice.user_id}, "application/json").status_code == 401


def test_a_key_makes_no_link_for_another_user(alice: Person, bob: Person) -> None:
    answer = alice.client.post("/portal-links", {"user_id": bob.user_id}, "application/json")
    assert answer.status_code == 403


def test_the_session_ends_with_the_key_that_made_it(alice: Person) -> None:
    client, spare = Client(), services.issue_key(alice.user_pk, actor=ACTOR)
    issued = portal_links.create(alice.user_pk, key_id=spare.key.pk, actor=ACTOR)
    waiting = portal_links.create(alice.user_pk, key_id=spare.key.pk, actor=ACTOR)
    client.post(f"/portal/open/{issued.plaintext}")
    assert client.get("/portal/").status_code == 200
    services.revoke_key(alice.user_pk, spare.key.pk, actor=ACTOR)
    assert client.get("/portal/").status_code == 401
    assert Client().post(f"/portal/open/{waiting.plaintext}").status_code == 401


def test_the_session_ends_with_its_button_and_with_an_erasure(alice: Person, bob: Person) -> None:
    here, there = visit(alice), visit(bob)
    assert here.post("/portal/leave").status_code == 200
    here.get("/portal/", 401)
    erase.erase(bob.user_pk, actor=ACTOR)
    there.get("/portal/", 401)
    assert not PortalLink.objects.exists()


def test_guessed_links_are_refused_and_counted(alice: Person, settings: Any) -> None:
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 10
    make_link(alice)
    client = Client(REMOTE_ADDR="198.51.100.7")
    answers = [client.get(f"/portal/open/upl_{number:043d}").status_code for number in range(60)]
    assert set(answers) == {401, 429}
    assert answers.count(401) <= 12


def test_a_form_of_another_site_or_session_changes_nothing(alice: Person, bob: Person) -> None:
    here, other = visit(alice), visit(bob)
    target = "/portal/leave"
    for fields, headers in (
        ({}, {}),
        ({"csrfmiddlewaretoken": other.token}, {}),
        ({"csrfmiddlewaretoken": here.token}, {"sec-fetch-site": "cross-site"}),
        ({"csrfmiddlewaretoken": here.token}, {"sec-fetch-site": "same-site"}),
    ):
        answer = here.client.post(target, fields, headers=headers)
        assert answer.status_code in {400, 403}
    here.get("/portal/")


def test_another_site_cannot_open_a_link_in_a_browser(alice: Person) -> None:
    path = make_link(alice)
    answer = Client().post(path, headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403
    assert Client().post(path, headers={"sec-fetch-site": "same-origin"}).status_code == 302


def test_pages_are_not_kept_framed_or_named_to_others(alice: Person) -> None:
    here = visit(alice)
    for path in ("/portal/", "/portal/looks", "/portal/nothing", make_link(alice)):
        answer = here.client.get(path)
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        if path != "/portal/nothing":
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.headers["X-Frame-Options"] == "DENY"
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
            assert "script-src" not in answer.headers["Content-Security-Policy"]
        assert "<script" not in answer.content.decode()


def test_cookies_are_strict_and_not_for_scripts(alice: Person) -> None:
    answer = Client().post(make_link(alice))
    cookie = answer.cookies["memory_gateway_portal"]
    assert (cookie["samesite"], cookie["httponly"], cookie["max-age"]) == ("Strict", True, 1800)
    secure = Client().post(make_link(alice), secure=True).cookies["__Host-memory_gateway_portal"]
    assert (secure["secure"], secure["path"], secure["domain"]) == (True, "/", "")


def test_a_frame_needs_an_origin_of_the_setting(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_PORTAL_ORIGINS = ["https://app.example.org"]
    refused = alice.client.post("/portal-links", {"frame_origin": "https://evil.example"}, "application/json")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "frame_origin")
    client, path = Client(), make_link(alice, frame_origin="https://app.example.org")
    shown = client.get(path)
    assert "frame-ancestors https://app.example.org" in shown.headers["Content-Security-Policy"]
    assert "X-Frame-Options" not in shown.headers
    opened = client.post(path, secure=True)
    assert "SameSite=None; Partitioned" in str(opened.cookies["__Host-memory_gateway_portal"])
    page = client.get("/portal/", secure=True)
    assert "frame-ancestors https://app.example.org" in page.headers["Content-Security-Policy"]
    settings.MEMORY_GATEWAY_PORTAL_ORIGINS = []
    assert "frame-ancestors 'none'" in client.get("/portal/", secure=True).headers["Content-Security-Policy"]


def test_the_provisioning_token_makes_short_keys_for_a_browser(alice: Person, bob: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = PROVISIONING
    client = Client(headers={"authorization": f"Bearer {PROVISIONING}"})

    def ask(by: Client = client, **body: Any) -> Any:
        fields = {"user_id": alice.user_id, "scopes": ["search"]} | body
        return by.post("/browser-keys", fields, "application/json")

    issued = ask()
    assert issued.status_code == 200, issued.content
    key = UserKey.objects.get(pk=issued.json()["key_id"])
    assert key.expires_at is not None
    assert timezone.now() < key.expires_at <= timezone.now() + timedelta(minutes=15)
    assert (key.scopes, key.label) == ("search", "browser")
    event = AuditEvent.objects.filter(action="key.issue").latest("pk")
    assert (event.user_id, event.actor_kind) == (alice.user_id, "provisioning")
    browser = Client(headers={"authorization": f"Bearer {issued.json()['user_key']}"})
    assert browser.get("/memories").status_code == 200
    assert browser.post("/users/me/keys", {"scopes": ["search"]}, "application/json").status_code == 403
    assert "browser" in visit(alice).get("/portal/connections")
    key.revoked_at = timezone.now()
    key.save()
    assert browser.get("/memories").status_code == 401
    refused = {"user_id": {"user_id": "nobody"}, "expires_in": {"expires_in": 3601}, "scopes": {"scopes": []}}
    assert {name: ask(**body).status_code for name, body in refused.items()} == {
        "user_id": 404, "expires_in": 422, "scopes": 422,
    }  # fmt: skip
    assert ask(Client()).status_code == 401
    assert ask(bob.client).status_code == 403
    assert ask(browser).status_code == 401
    assert ask(keyed(alice, granted=["search"])).status_code == 403
    assert ask(alice.client, expires_in=60).status_code == 200
