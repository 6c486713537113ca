"""Attacks on the pages: forms without session or token, of another person or site; rows of others; links."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.core import serializers
from django.test import Client

from accounts.models import AuditEvent, MemoryUser, PortalLink, UserKey
from portal.urls import urlpatterns
from store.models import Memory, Session
from tests.conftest import Person
from tests.memories.calls import call, say, upload
from tests.portal.visits import Visit, make_link, visit

pytestmark = pytest.mark.django_db(transaction=True)

NOT_FORMS = {"open", "receipt", "sign-in", "sign-in-callback"}
"""They have no session: a link is used by its own POST, a receipt is signed, a sign-in is not a form."""
FIELDS = {
    "text": "Bob owns this.", "before": "Alice lives in Lyon.", "word": "tea", "topic": "health", "confirm": "alice",
    "q": "tea", "occupation": "thief",
}  # fmt: skip


def forms_of(person: Person) -> list[str]:
    """Return the path of every page of the person's rows that a form may be sent to."""
    resource = upload(person)["resource_id"]
    values = {
        "memories": Memory.objects.filter(user=person.user_pk, text="Alice lives in Lyon.").get().pk,
        "conversations": Session.objects.get(user=person.user_pk, session_id="chat:c1").pk,
        "files": resource,
        "profile": "user",
        "remembering": "chats",
    }
    key = UserKey.objects.filter(user=person.user_pk).latest("created_at").pk
    paths = []
    for pattern in urlpatterns:
        route = str(pattern.pattern)
        if not route.startswith("portal/") or pattern.name in NOT_FORMS:
            continue
        value = str(values.get(route.split("/")[1], ""))
        route = route.replace("<str:kind>/<uuid:pk>", f"key/{key}")
        paths.append("/" + re.sub("<[^>]+>", value, route))
    return paths


def kept() -> str:
    """Return everything that is stored, but for uses and events."""
    left_out = {AuditEvent, PortalLink}
    models = [one for one in apps.get_models() if one not in left_out and one.__module__.split(".")[0] in OWN]
    return "".join(serializers.serialize("json", one._default_manager.order_by("pk")) for one in models)


OWN = {"accounts", "memories", "profiles", "resources", "store"}


@pytest.fixture
def paths(alice: Person, bob: Person) -> list[str]:
    say(alice, "chat:c1", "I drink green tea.")
    say(bob, "chat:c1", "I drink beer.")
    call(alice, "post", "/memories", status=201, text="Alice lives in Lyon.")
    call(alice, "post", "/users/me/keys", label="Old phone")
    return forms_of(alice)


def test_no_form_is_taken_but_the_persons_own(alice: Person, bob: Person, paths: list[str]) -> None:
    here, of_bob = visit(alice), visit(bob)
    attacks: list[tuple[str, Client, dict[str, Any], dict[str, str], set[int]]] = [
        ("no session", Client(), {"csrfmiddlewaretoken": here.token}, {}, {401}),
        ("no token", here.client, {}, {}, {400}),
        ("another person's token", here.client, {"csrfmiddlewaretoken": of_bob.token}, {}, {400}),
        ("another site", here.client, {"csrfmiddlewaretoken": here.token}, {"Sec-Fetch-Site": "cross-site"}, {403}),
        ("another origin", here.client, {"csrfmiddlewaretoken": here.token}, {"Sec-Fetch-Site": "same-site"}, {403}),
    ]
    before, tried = kept(), 0
    for name, client, token, headers, statuses in attacks:
        for path in paths:
            answer = client.post(path, {**FIELDS, **token}, headers=headers)
            assert answer.status_code in statuses, (name, path, answer.status_code)
            tried += 1
    assert kept() == before
    assert tried >= 60


def test_another_persons_rows_are_neither_read_nor_changed(alice: Person, bob: Person, paths: list[str]) -> None:
    of_bob, before = visit(bob), kept()
    named = [path for path in paths if re.search(r"\d", path)]
    assert len(named) >= 10
    for path in named:
        for answer in (of_bob.client.get(path), of_bob.post(path, **FIELDS)):
            assert answer.status_code in {404, 405}, (path, answer.status_code)
            assert "Lyon" not in answer.content.decode()
            assert "green tea" not in answer.content.decode()
    assert kept() == before


def test_links_are_neither_guessed_nor_used_by_scanners(alice: Person, bob: Person) -> None:
    path = make_link(alice)
    for _scan in range(3):
        assert Client().get(path).status_code == 200
        assert Client().head(path).status_code == 200
    person = Client()
    assert person.post(path).status_code == 302
    for replayed in (Client().get(path), Client().post(path), Client().post(path.upper()), Client().post(path[:-1])):
        assert replayed.status_code in {401, 404}
    for guessed in (f"upl_{'A' * 43}", str(uuid4()), "upl_", "%00", "x" * 4_000):
        assert Client().post(f"/portal/open/{guessed}").status_code in {401, 404}
    for cookie in ("", "x", path.rsplit("/", 1)[1], f"ups_{'A' * 43}", "uk_" + "A" * 43):
        client = Client()
        client.cookies["memory_gateway_portal"] = cookie
        assert client.get("/portal/").status_code == 401
    assert MemoryUser.objects.count() == 2
    assert Visit(person).get("/portal/")
