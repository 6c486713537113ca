"""Operators who are limited to tenants: each page shows them nothing of users of other tenants.

A page is either closed to them, or open and tried here with the data of two tenants. A new page fails until it is in
one of both.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote, quote_plus
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import services, tenants, tokens
from accounts.audit import Actor, record
from accounts.models import AuditEvent, MemoryUser, OperatorTenant, UserKey
from console.urls import urlpatterns
from memories.models import LoggedSearch
from memories.services import decisions
from memories.services.lookup import MemoryRef
from operations import bulk
from operations.models import Job
from resources.models import RefusedUpload, Resource
from store import browse
from store.browse import Selection
from store.models import State
from tests.conftest import Person
from tests.console.people import remember
from tests.roles import create_roles
from webhooks.models import Webhook, WebhookDelivery

pytestmark = pytest.mark.django_db
ADMIN = Actor.operator("root")
PANEL = "/admin/memory/"
# Everything of the other tenant has this word; numbers of the other tenant are 7 where the own ones are 2.
OTHER, OWN = "Zubrowka", "Quinoa"


def fill(person: Person, word: str, count: int) -> dict[str, Any]:
    """Give a user memories, files, a session, searches and a webhook whose names have the word."""
    for number in range(count):
        row = remember(person.owner, f"{word} tea number {number}", session_id=f"chat:{word}", agent_id=f"{word}-agent")
    trashed = remember(person.owner, f"{word} in the trash")
    decisions.delete(person.user_pk, MemoryRef(trashed.memory_id), actor=ADMIN)
    files = [
        Resource.objects.create(
            user_id=person.user_pk, session_id=f"resource:{word}{number}", filename=f"{word}-{number}.pdf",
            status="failed", error_message=f"{word} is damaged", content_type="pdf", state=state,
        )
        for number, state in enumerate([State.LIVE] * count + [State.TRASHED])
    ]  # fmt: skip
    now = timezone.now()
    searches = [
        LoggedSearch.objects.create(
            user_id=person.user_pk, app_id="default", project_id="default", at=now, interface="rest", method="hybrid",
            scopes="resources", top_k=8, has_filters=False, hits=0, ms=1, query=f"{word}?", query_chars=len(word) + 1,
            agent_id=f"{word}-agent",
        )
        for _ in range(count)
    ]  # fmt: skip
    RefusedUpload.objects.create(user_id=person.user_pk, at=now, status=415, filename=f"{word}.zip")
    hook = Webhook.objects.create(user_id=person.user_pk, url=f"https://{word.lower()}.example/", secret="s")
    WebhookDelivery.objects.create(user_id=person.user_pk, webhook=hook, event_type="memory.deleted", status="failed")
    job = bulk.start("delete", bulk.of_rows([]), {}, actor=Actor.operator(f"{word}-operator"))
    return {"row": row.row, "file": files[0].pk, "search": searches[0].pk, "webhook": hook.pk, "job": job.pk}


@pytest.fixture
def world(alice: Person, bob: Person) -> dict[str, Any]:
    """An operator of the tenant of Alice with every permission, and the data of both tenants."""
    cache.clear()
    create_roles()
    for person, tenant, word in ((alice, "own", OWN), (bob, "other", OTHER)):
        values = {"tenant": tenant, "name": f"{word} Person", "labels": f"{word}-label", "notes": f"{word} note"}
        services.describe_user(person.user_pk, values, actor=ADMIN)
    operator = User.objects.create_user("olga", is_staff=True)
    operator.groups.set(Group.objects.all())
    tenants.limit(operator, ["own"], actor=ADMIN)
    client = Client()
    client.force_login(operator)
    MemoryUser.objects.filter(pk=bob.user_pk).update(user_id=f"{OTHER}.user")
    return {
        "client": client,
        "operator": operator,
        "own": fill(alice, OWN, 2) | {"user": alice.user_pk},
        "other": fill(bob, OTHER, 7) | {"user": bob.user_pk},
    }


CLOSED = {
    "demo", "import", "import-run", "jobs", "remote", "remote-retry", "health", "operators", "operator",
    "operator-add", "operator-sign-out", "operator-password", "operator-second-factor",
}  # fmt: skip
# Pages that show no user.
WITHOUT_USERS = {"language", "sign-in", "sign-in-callback", "sign-out", "invitation", "second-factor"}
LISTS = {
    "dashboard": ["", "?user={user}"],
    "find": ["?q=tea", "?q={word}", "?q={word}&part=1", "?part=1&q=chat:{word}", "?q={row}", "?q={file}", "?q={job}"],
    "find-chosen": [""],
    "memories": [
        "", "?tab=full", "?q=tea", "?q={word}", "?q={word}+tea", "?user={user_id}", "?session=chat:{word}",
        "?mark=edited", "?mark=superseded", "?user={user_id}&mark=replaced", "?agent={word}-agent", "?tab=self&q=tea",
    ],
    "add": ["", "?user={user_id}"],
    "lab": ["", "?q=tea&user={user_id}"],
    "searches": ["", "?hits=none", "?user={user_id}", "?agent={word}-agent"],
    "queues": [""],
    "resources": ["", "?state=failed", "?state=deleted", "?q={word}", "?user={user_id}", "?reading=part"],
    "resource-upload": ["", "?user={user_id}"],
    "resource-refused": ["", "?user={user_id}"],
    "connect": ["", "?user={user_id}", "?user={user_id}&part=1"],
    "users": ["", "?q={word}", "?sort=memories", "?sort=used", "?state=failures", "?q=other"],
    "users-csv": ["", "?q={word}"],
    "trash": ["", "?kind=sessions", "?kind=resources", "?kind=auto-hidden", "?q={word}", "?user={user_id}"],
    "views": [""],
    "view-counts": [""],
    "webhooks": ["", "?state=failed", "?user={user_id}"],
    "audit": ["?tab=all", "?tab=read", "?tab=all&user={user_id}", "?tab=all&subject={row}", "?tab=all&actor={word}"],
    "audit-export": ["?tab=all", "?tab=all&format=json", "?tab=all&user={user_id}"],
    "bulk-preview": ["?do=delete&target={target}"],
}  # fmt: skip
CHANGES = {
    "bulk", "undo", "resource-retry", "resource-trash", "trash-resources", "trash-sessions", "user-receipt",
    "view-save", "view-delete", "case-save",
}  # fmt: skip
OBJECTS = {
    "memory": "row", "memory-text": "row", "memory-raw": "row", "memory-place": "row", "memory-place-image": "row",
    "memory-edit": "row", "memory-revert": "row", "memory-delete": "row", "memory-keep": "row",
    "memory-restore": "row", "searches-one": "search", "searches-question": "search", "resource": "file",
    "resource-content": "file", "resource-delete": "file", "job": "job", "job-undo": "job", "job-stop": "job",
    "job-download": "job", "user": "user", "user-edit": "user", "user-export": "user", "user-download": "user",
    "user-erase": "user",
    "transcript": "user", "user-session": "user", "user-connection-revoke": "user", "webhook": "webhook",
    "webhook-send": "webhook",
}  # fmt: skip


def test_every_page_is_in_one_table() -> None:
    tables = [CLOSED, WITHOUT_USERS, set(LISTS), CHANGES, set(OBJECTS)]
    assert {pattern.name for pattern in urlpatterns} == set().union(*tables)
    assert sum(map(len, tables)) == len(set().union(*tables))


def address(name: str, of: dict[str, Any]) -> str:
    args = [] if name not in OBJECTS else [of[OBJECTS[name]]]
    if name == "user-connection-revoke":
        args.append(uuid4())
    if (name.startswith("operator-") and name != "operator-add") or name == "operator":
        args = [1]
    return reverse(f"console:{name}", args=args)


def text_of(answer: Any) -> str:
    data = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return str(data.decode())


def without(page: str, sent: str) -> str:
    """Return the page without the values of a query, which it repeats."""
    said = [part.partition("=")[2].replace("+", " ") for part in sent.lstrip("?").split("&")]
    forms = {form for value in said if OTHER in value for form in (value, quote(value), quote_plus(value))}
    for form in sorted(forms, key=len, reverse=True):
        page = page.replace(form, "")
    return page


@pytest.mark.parametrize("name", sorted(CLOSED))
def test_pages_of_all_tenants_are_closed(world: dict[str, Any], name: str) -> None:
    for method in ("get", "post"):
        answer = getattr(world["client"], method)(address(name, world["other"]))
        assert answer.status_code in {403, 405}
        assert OTHER not in text_of(answer)


@pytest.mark.parametrize("name", sorted(LISTS))
def test_lists_show_nothing_of_other_tenants(world: dict[str, Any], name: str, bob: Person) -> None:
    other = world["other"]
    target = {"target": ""}
    if name == "bulk-preview":
        page = Client()
        page.force_login(User.objects.create_superuser("root"))
        listed = page.get(f"{PANEL}list/", {"q": "tea"}).content.decode()
        target["target"] = re.findall(r'name="target" value="([^"]+)"', listed)[0]
    values = {**other, **target, "word": OTHER, "user_id": f"{OTHER}.user"}
    for query in LISTS[name]:
        sent = query.format(**values)
        answer = world["client"].get(address(name, other) + sent)
        assert answer.status_code in {200, 302, 404, 405}, (name, sent)
        page = without(text_of(answer), sent)
        assert OTHER.lower() not in page.lower(), (name, sent)
        assert not re.search(r">\s*(7|9|8)\+?\s*<", page), (name, sent)  # a count with the other tenant's rows


@pytest.mark.parametrize(
    "name", ["memories", "find", "searches", "resources", "resource-refused", "users", "users-csv", "trash", "webhooks"]
)
def test_without_the_limit_the_same_lists_show_both_tenants(world: dict[str, Any], name: str) -> None:
    tenants.limit(world["operator"], [], actor=ADMIN)
    values = {**world["other"], "word": OTHER, "user_id": f"{OTHER}.user", "target": ""}
    sent = [query.format(**values) for query in LISTS[name]]
    pages = [
        without(text_of(world["client"].get(address(name, world["other"]) + one, follow=True)), one) for one in sent
    ]
    assert any(OTHER in page for page in pages)


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_objects_of_other_tenants_are_absent(world: dict[str, Any], name: str) -> None:
    for method in ("get", "post"):
        answer = getattr(world["client"], method)(address(name, world["other"]))
        assert answer.status_code in {404, 405}, method
        assert OTHER not in text_of(answer)
    missing = {**world["other"], "row": 10**9, "file": "r_0", "search": 10**9, "user": uuid4(), "webhook": uuid4(),
               "job": uuid4()}  # fmt: skip
    method = "get" if name != "searches-question" else "post"
    absent = getattr(world["client"], method)(address(name, missing))
    present = getattr(world["client"], method)(address(name, world["other"]))
    assert absent.status_code == present.status_code


def test_own_lists_and_objects_are_shown(world: dict[str, Any]) -> None:
    client, own = world["client"], world["own"]
    for name in ("memory", "memory-edit", "searches-one", "resource", "user", "user-edit", "transcript", "webhook"):
        query = f"?session=chat:{OWN}" if name == "transcript" else ""
        answer = client.get(address(name, own) + query)
        assert answer.status_code == 200, name
        assert OTHER not in text_of(answer)
    for name in ("memories", "resources", "searches", "trash", "users", "webhooks", "resource-refused"):
        page = text_of(client.get(address(name, own)))
        assert OWN.lower() in page.lower() or "alice" in page, name
    assert "2 matches" in text_of(client.get(f"{PANEL}list/?q=tea"))
    assert 'name="tenant"' not in text_of(client.get(address("user-edit", own)))


def test_changes_leave_other_tenants_alone(world: dict[str, Any]) -> None:
    client, other = world["client"], world["other"]
    before = browse.get(other["row"])
    for verb in ("delete", "restore", "categorize", "export"):
        form = {"do": verb, "id": other["row"], "category": "user_memory_decision", "confirmed": "1"}
        answer = client.post(f"{PANEL}bulk/", form)
        assert OTHER not in text_of(answer)
    client.post(f"{PANEL}resources/retry/", {"id": other["file"]})
    client.post(f"{PANEL}resources/retry/", {"cause": "all"})
    client.post(f"{PANEL}resources/trash/", {"id": other["file"]})
    client.post(f"{PANEL}trash/resources/", {"do": "restore", "id": Resource.objects.get(
        user=other["user"], state=State.TRASHED).pk})  # fmt: skip
    client.post(f"{PANEL}add/", {"user": f"{OTHER}.user", "category": "user_memory_fact", "text": "Added."})
    client.post(f"{PANEL}users/{other['user']}/edit/", {"name": "Changed"})
    assert browse.get(other["row"]) == before
    files = Resource.objects.filter(user=other["user"])
    assert set(files.values_list("status", "state")) == {("failed", State.LIVE), ("failed", State.TRASHED)}
    assert browse.count(Selection(user_pk=other["user"])) == 7
    assert MemoryUser.objects.get(pk=other["user"]).name == f"{OTHER} Person"


def test_an_operator_of_a_tenant_does_not_move_users_to_another(world: dict[str, Any]) -> None:
    world["client"].post(f"{PANEL}users/{world['own']['user']}/edit/", {"name": "A", "tenant": "other"})
    assert MemoryUser.objects.get(pk=world["own"]["user"]).tenant == "own"


def test_a_job_of_a_filter_changes_the_operators_tenant_alone(world: dict[str, Any]) -> None:
    page = text_of(world["client"].get(f"{PANEL}list/?q=tea"))
    target = re.findall(r'name="target" value="([^"]+)"', page)[0]
    form = {"do": "delete", "matching": "1", "target": target, "confirmed": "1"}
    world["client"].post(f"{PANEL}bulk/", form)
    assert browse.count(Selection(user_pk=world["own"]["user"])) == 0
    assert browse.count(Selection(user_pk=world["other"]["user"])) == 7
    job = Job.objects.get(kind="delete", actor="olga")
    assert text_of(world["client"].get(f"{PANEL}jobs/{job.pk}/")).count("own")


def test_saved_views_of_others_and_their_counts_are_not_shown(world: dict[str, Any], admin_client: Client) -> None:
    shared = {"name": f"{OTHER} view", "page": "memories", "query": "q=tea", "is_shared": "1"}
    admin_client.post(f"{PANEL}views/save/", shared)
    own = {"name": "Tea", "page": "memories", "query": "q=tea", "is_shared": "1"}
    world["client"].post(f"{PANEL}views/save/", own)
    admin_client.get(f"{PANEL}views/counts/")
    counted = text_of(world["client"].get(f"{PANEL}views/counts/"))
    assert OTHER not in counted
    assert re.findall(r'<span class="mg-count">(\d+)</span>', counted) == ["2"]
    assert "9" in re.findall(r'<span class="mg-count">(\d+)</span>', text_of(admin_client.get(f"{PANEL}views/")))


def test_keys_and_profiles_are_those_of_the_tenant(world: dict[str, Any]) -> None:
    client = world["client"]
    keys = {
        whose: services.issue_key(world[whose]["user"], label="laptop", actor=ADMIN).key for whose in ("own", "other")
    }
    for verb in ("rotate", "revoke"):
        assert client.get(f"/admin/accounts/userkey/{keys['own'].pk}/{verb}/").status_code == 200
        for method in ("get", "post"):
            answer = getattr(client, method)(f"/admin/accounts/userkey/{keys['other'].pk}/{verb}/", {"grace_hours": 0})
            assert answer.status_code == 302
            assert OTHER not in text_of(answer)
    refused = client.post("/admin/accounts/userkey/add/", {"user_id": f"{OTHER}.user", "label": "mine"})
    assert "There is no such user." in text_of(refused)
    assert UserKey.objects.filter(user=world["other"]["user"]).exclude(revoked_at=None).count() == 0
    assert UserKey.objects.filter(user=world["other"]["user"], label="mine").count() == 0
    for page, expected in (("", 200), ("versions/", 200), ("status/", 302)):
        path = "/admin/profiles/profilememory/of/{}/user/" + page
        assert client.get(path.format(world["other"]["user"])).status_code == 404
        assert client.get(path.format(world["own"]["user"])).status_code == expected
    versions = client.get(f"/admin/profiles/profilememory/of/{world['other']['user']}/user/versions/1/")
    assert versions.status_code == 404


def test_the_trail_has_what_concerns_the_tenant_and_hides_the_others_part(world: dict[str, Any]) -> None:
    client, own = world["client"], world["own"]
    shared = {"filter": {"user": f"{OTHER}.user"}}
    record(Actor.operator("ina"), "memory.list", users=["alice", f"{OTHER}.user"], detail=shared)
    record(Actor.operator("ina"), "memory.view", str(own["row"]), user_id="alice", detail={"why": "asked"})
    page = text_of(client.get(f"{PANEL}audit/?tab=read"))
    assert page.count("ina") >= 2
    assert "asked" in page
    assert OTHER not in page
    lines = [json.loads(line) for line in text_of(client.get(f"{PANEL}audit/export/?tab=all&format=json")).splitlines()]
    assert {tuple(line["users"]) for line in lines} == {("alice",)}
    assert [line["detail"] for line in lines if line["action"] == "memory.list"] == [{}]
    of_person = text_of(client.get(f"{PANEL}users/{own['user']}/?view=audit"))
    assert "asked" in of_person
    assert OTHER not in of_person


def test_the_django_admin_tokens_and_metrics_are_closed(world: dict[str, Any]) -> None:
    client = world["client"]
    paths = ["/admin/", "/admin/accounts/memoryuser/", "/admin/store/memory/", "/admin/accounts/auditevent/",
             "/admin/accounts/memoryuser/add/", "/admin/profiles/profilememory/"]  # fmt: skip
    assert [client.get(path).status_code for path in paths] == [403] * len(paths)
    assert client.get("/metrics").status_code in {401, 404}
    token = tokens.issue(label="t", operator=world["operator"], actor=ADMIN)
    with pytest.raises(Exception, match=r"token|Token"):
        tokens.authenticate(token.plaintext)


def test_administrators_limit_an_operator(admin_client: Client, alice: Person) -> None:
    create_roles()
    operator = User.objects.create_user("nora", is_staff=True)
    form = {"role": Group.objects.get(name="Viewer").pk, "is_active": "on"}
    address = f"{PANEL}operators/{operator.pk}/"
    assert admin_client.post(address, {**form, "tenants": "a b"}).status_code == 422
    admin_client.post(address, {**form, "tenants": "acme, beta,acme"})
    assert set(OperatorTenant.objects.values_list("tenant", flat=True)) == {"acme", "beta"}
    event = AuditEvent.objects.get(action="operator.limit")
    assert event.detail == {"before": [], "after": ["acme", "beta"]}
    assert "acme, beta" in admin_client.get(address).content.decode()
    admin_client.post(address, {**form, "tenants": ""})
    assert tenants.tenants_of(operator) is None


def test_superusers_and_operators_without_a_tenant_see_all(admin_client: Client, world: dict[str, Any]) -> None:
    assert OTHER in text_of(admin_client.get(f"{PANEL}list/?q={OTHER}+tea"))
    assert tenants.current() is None
