"""Permissions of the pages of files, users, trash, jobs, audit and health, and the audit events of reading."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent, MemoryUser
from console.urls import urlpatterns
from memories.models import Tombstone
from memories.services import decisions
from operations import bulk, files, jobs, operator_jobs
from operations.models import Job
from resources.models import Resource
from store import browse
from store.models import Session
from tests.conftest import Person
from tests.console import test_access
from tests.console.people import remember

ACTOR = Actor.operator("op")
NO_ID = uuid.UUID(int=4)
# The permission of each page.
PAGES = {
    "resources": ("get", "resources.view_resource"),
    "resource": ("get", "resources.view_resource"),
    "resource-refused": ("get", "resources.view_resource"),
    "resource-content": ("get", "resources.view_resource"),
    "resource-upload": ("get", "resources.add_resource"),
    "resource-retry": ("post", "resources.change_resource"),
    "resource-delete": ("get", "resources.delete_resource"),
    "resource-trash": ("post", "resources.delete_resource"),
    "import": ("get", "store.add_memory"),
    "import-run": ("post", "store.add_memory"),
    "jobs": ("get", "store.view_memory"),
    "job": ("get", "store.view_memory"),
    "job-stop": ("post", "store.view_memory"),
    "job-download": ("get", "accounts.export_memoryuser"),
    "trash": ("get", "store.view_memory"),
    "trash-resources": ("post", "resources.delete_resource"),
    "trash-sessions": ("post", "store.delete_memory"),
    "demo": ("post", "accounts.add_memoryuser"),
    "connect": ("get", "accounts.view_memoryuser"),
    "users": ("get", "accounts.view_memoryuser"),
    "user": ("get", "accounts.view_memoryuser"),
    "transcript": ("get", "store.view_memory"),
    "users-csv": ("get", "accounts.export_memoryuser"),
    "user-edit": ("get", "store.change_memory"),
    "user-export": ("post", "accounts.export_memoryuser"),
    "user-download": ("post", "accounts.export_memoryuser"),
    "user-receipt": ("post", "accounts.erase_memoryuser"),
    "user-erase": ("get", "accounts.erase_memoryuser"),
    "user-session": ("post", "store.delete_memory"),
    "user-connection-revoke": ("post", "accounts.revoke_userkey"),
    "operators": ("get", "auth.view_user"),
    "operator": ("get", "auth.view_user"),
    "operator-add": ("post", "auth.add_user"),
    "operator-sign-out": ("post", "auth.change_user"),
    "operator-password": ("post", "auth.change_user"),
    "operator-second-factor": ("post", "auth.change_user"),
    "queues": ("get", "store.view_memory"),
    "searches": ("get", "memories.view_loggedsearch"),
    "searches-one": ("get", "memories.view_loggedsearch"),
    "searches-question": ("post", "memories.view_loggedsearch"),
    "webhooks": ("get", "webhooks.view_webhook"),
    "webhook": ("get", "webhooks.view_webhook"),
    "webhook-send": ("post", "webhooks.change_webhook"),
    "remote": ("get", "store.view_memory"),
    "remote-retry": ("post", "store.change_memory"),
    "audit": ("get", "accounts.view_auditevent"),
    "audit-export": ("get", "accounts.view_auditevent"),
    "health": ("get", "store.view_memory"),
}
ALL = {permission for _method, permission in PAGES.values()} | {"memories.delete_tombstone"}


def address(name: str) -> str:
    if name in {"resource", "resource-content", "resource-delete"}:
        return reverse(f"console:{name}", args=["r_none"])
    if name == "user-connection-revoke":
        return reverse(f"console:{name}", args=[NO_ID, NO_ID])
    if name in {
        "operator",
        "operator-sign-out",
        "operator-password",
        "operator-second-factor",
        "searches-one",
        "searches-question",
    }:
        return reverse(f"console:{name}", args=[0])
    plain = {
        "user-receipt",
        "jobs",
        "demo",
        "connect",
        "users",
        "users-csv",
        "operators",
        "operator-add",
        "queues",
        "searches",
        "webhooks",
        "audit",
        "audit-export",
        "health",
    }
    if name in plain or name.startswith(("import", "remote", "resource", "trash")):
        return reverse(f"console:{name}")
    return reverse(f"console:{name}", args=[NO_ID])


def operator_client(*permissions: str) -> Client:
    user = User.objects.create_user(f"op-{uuid.uuid4()}", is_staff=True)
    for permission in permissions:
        app, _, codename = permission.partition(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    client = Client()
    client.force_login(user)
    return client


# Of every operator, or open: see tests/admin and test_operators.
SIGN_IN = {"sign-in", "sign-in-callback", "sign-out", "second-factor", "invitation"}
SAVED_VIEWS = {"views", "view-counts", "view-save", "view-delete"}  # each needs the permission of its list


def test_every_page_has_a_listed_permission() -> None:
    assert {pattern.name for pattern in urlpatterns} == PAGES.keys() | test_access.PAGES.keys() | SIGN_IN | SAVED_VIEWS


@pytest.mark.django_db
@pytest.mark.parametrize("name", PAGES)
def test_each_page_requires_its_permission(name: str) -> None:
    method, permission = PAGES[name]
    refused = getattr(operator_client(*ALL - {permission}), method)(address(name))
    assert refused.status_code == 403
    assert permission in refused.content.decode()
    assert getattr(operator_client(permission), method)(address(name)).status_code != 403
    assert getattr(Client(), method)(address(name)).headers["Location"].startswith("/admin/login/")


@pytest.mark.django_db
@pytest.mark.parametrize("name", [name for name, (method, _needed) in PAGES.items() if method == "post"])
def test_get_requests_change_nothing(admin_client: Client, name: str) -> None:
    assert admin_client.get(address(name)).status_code == 405


@pytest.mark.django_db
def test_actions_without_permission_are_not_offered(alice: Person) -> None:
    row = remember(alice.owner).row
    file = Resource.objects.create(user_id=alice.user_pk, session_id="s", filename="f.pdf", status="failed")
    reader = operator_client("resources.view_resource", "accounts.view_memoryuser", "store.view_memory")
    for path in ("resources/", f"resources/{file.pk}/", f"users/{alice.user_pk}/", "trash/", "list/", f"m/{row}/"):
        page = reader.get(f"/admin/memory/{path}").content.decode()
        content = page[page.index('id="content"') :]
        assert "retry" not in content
        assert "/erase/" not in content
        for action in ('value="purge"', 'value="delete"', "/memory/add/", "/delete/", "/edit/"):
            assert action not in content, (path, action)


@pytest.mark.django_db
def test_stop_purge_and_reingestion_require_their_permissions(alice: Person) -> None:
    row = remember(alice.owner).row
    job = jobs.submit("delete", {"target": bulk.of_rows([row]).as_json(), "reason": ""}, actor=ACTOR)
    reader = operator_client("store.view_memory")
    assert reader.post(reverse("console:job-stop", args=[job.pk])).status_code == 403
    for verb in ("purge", "reread"):
        assert reader.post(reverse("console:bulk"), {"do": verb, "id": row, "confirmed": "1"}).status_code == 403
    remover = operator_client("store.delete_memory", "store.view_memory")
    tombstone = decisions.delete_session(alice.owner, "chat:c1", actor=ACTOR)
    data = {"do": "purge", "id": tombstone.pk, "confirmed": "1"}
    assert remover.post(reverse("console:trash-sessions"), data).status_code == 403
    assert Job.objects.count() == 1
    assert remover.post(reverse("console:job-stop", args=[job.pk])).status_code == 302
    assert jobs.get(job.pk).status == "stopped"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "action"),
    [
        ("resources/?q=secret+words", "resource.list"),
        ("resources/{file}/", "resource.view"),
        ("users/?q=ali", "user.list"),
        ("users/{user}/", "user.view"),
        ("trash/?user=alice", "trash.view"),
        ("trash/?kind=sessions", "trash.view"),
    ],
)
def test_each_read_creates_one_audit_event_without_text(
    admin_client: Client, alice: Person, path: str, action: str
) -> None:
    session_id = "resource:alice:r_1"
    row = remember(alice.owner, "secret words of alice", session_id=session_id).row
    bulk.start("delete", bulk.of_rows([row]), {}, actor=ACTOR)
    file = Resource.objects.create(user_id=alice.user_pk, session_id=session_id, filename="secret.pdf")
    AuditEvent.objects.all().delete()
    assert admin_client.get(f"/admin/memory/{path.format(file=file.pk, user=alice.user_pk)}").status_code == 200
    event = AuditEvent.objects.get()
    assert (event.action, event.actor_kind, event.actor) == (action, "operator", "admin")
    assert "secret" not in str(vars(event))


@pytest.mark.django_db
def test_a_purge_is_previewed_and_run_as_a_job(admin_client: Client, alice: Person) -> None:
    row = remember(alice.owner).row
    bulk.start("delete", bulk.of_rows([row]), {}, actor=ACTOR)
    data = {"do": "purge", "id": row, "in_trash": "1"}
    preview = admin_client.post(reverse("console:bulk"), data, follow=True)
    assert "Purge 1 memory?" in preview.content.decode()
    assert not Job.objects.filter(kind=operator_jobs.PURGE).exists()
    answer = admin_client.post(reverse("console:bulk"), {**data, "confirmed": "1"})
    job = Job.objects.get(kind=operator_jobs.PURGE)
    assert answer.headers["Location"].startswith(reverse("console:job", args=[job.pk]))
    assert jobs.run_now(job).result == {"purged": 1, "left": 0}


@pytest.mark.django_db
def test_a_reingestion_is_previewed_and_run_as_a_job(admin_client: Client, alice: Person) -> None:
    rows = [remember(alice.owner, session_id=f"chat:{number % 2}").row for number in range(4)]
    data = {"do": "reread", "id": rows}
    assert "Re-ingest 2 sessions?" in admin_client.post(reverse("console:bulk"), data, follow=True).content.decode()
    answer = admin_client.post(reverse("console:bulk"), {**data, "confirmed": "1"})
    job = Job.objects.get()
    assert answer.headers["Location"].startswith(reverse("console:job", args=[job.pk]))
    assert jobs.run_now(job).result == {"reread": 0, "failed": 0, "left": 2}  # chats have no file


@pytest.mark.django_db
def test_deleted_sessions_are_restored_or_purged(admin_client: Client, alice: Person) -> None:
    rows = [remember(alice.owner, session_id=f"chat:{name}").row for name in "ab"]
    first, second = (decisions.delete_session(alice.owner, f"chat:{name}", actor=ACTOR) for name in "ab")
    url = reverse("console:trash-sessions")
    admin_client.post(url, {"do": "restore", "id": first.pk})
    assert not browse.get(rows[0]).is_session_hidden
    preview = admin_client.post(url, {"do": "purge", "id": second.pk}).content.decode()
    assert "Purge 1 session<" in preview
    assert "<dd>1 memory</dd>" in preview
    admin_client.post(url, {"do": "purge", "id": second.pk, "confirmed": "1"})
    assert jobs.run_now(Job.objects.get()).result == {"purged": 1, "left": 0}
    assert admin_client.post(url, {"do": "drop", "id": first.pk}).status_code == 302  # nothing is selected now


@pytest.mark.django_db
def test_a_session_is_moved_to_the_trash(admin_client: Client, alice: Person, bob: Person) -> None:
    memory = remember(alice.owner)
    session = Tombstone.objects.count()
    row = str(browse.rows_of(browse.Selection(user_pk=alice.user_pk)).get().session_id)
    of_other_user = admin_client.post(reverse("console:user-session", args=[bob.user_pk]), {"session": row})
    assert of_other_user.status_code == 404
    admin_client.post(reverse("console:user-session", args=[alice.user_pk]), {"session": row})
    assert browse.get(memory.row).is_session_hidden
    assert Tombstone.objects.count() == session + 1
    page = admin_client.get("/admin/memory/list/").content.decode()
    assert "Session with 1 memory moved to trash." in page
    undo = unescape(re.findall('action="(/admin/memory/undo/[^"]+)"', page)[0])
    assert admin_client.get(undo).status_code == 405
    admin_client.post(undo)
    assert not browse.get(memory.row).is_session_hidden


@pytest.mark.django_db
def test_a_session_with_many_memories_is_moved_after_a_preview(admin_client: Client, alice: Person) -> None:
    memories = [remember(alice.owner, session_id="chat:long") for _ in range(26)]
    url = reverse("console:user-session", args=[alice.user_pk])
    given = {"session": str(Session.objects.get(session_id="chat:long").pk), "next": "/admin/memory/list/"}
    preview = admin_client.post(url, given).content.decode()
    assert "the session and its 26 memories" in preview
    assert not browse.get(memories[0].row).is_session_hidden
    assert admin_client.post(url, {**given, "confirmed": "1"}).headers["Location"] == "/admin/memory/list/"
    assert browse.get(memories[0].row).is_session_hidden


@pytest.mark.django_db
def test_an_erasure_requires_typing_the_user_id(admin_client: Client, alice: Person, storage: Path) -> None:
    remember(alice.owner)
    url = reverse("console:user-erase", args=[alice.user_pk])
    for confirmation in ("", "bob", "Alice"):
        assert admin_client.post(url, {"confirm": confirmation}).status_code == 422
    assert MemoryUser.objects.filter(user_id="alice").exists()
    receipt = admin_client.post(url, {"confirm": "alice"}).content.decode()
    assert "alice erased" in receipt
    signed = unescape(re.findall('name="receipt" value="([^"]+)"', receipt)[0])
    download = admin_client.post(reverse("console:user-receipt"), {"receipt": signed})
    assert download.headers["Content-Disposition"].startswith('attachment; filename="erased-')
    assert download.json()["removed"]["memories"] == 1
    assert admin_client.post(reverse("console:user-receipt"), {"receipt": f"{signed}x"}).status_code == 400
    assert not MemoryUser.objects.filter(pk=alice.user_pk).exists()
    assert admin_client.get(url).status_code == 404
    assert "alice" not in str(list(AuditEvent.objects.values()))


@pytest.mark.django_db
def test_downloading_an_archive_requires_the_export_permission(alice: Person, storage: Path) -> None:
    client = operator_client("accounts.export_memoryuser", "store.view_memory")
    client.post(reverse("console:user-export", args=[alice.user_pk]))
    job = jobs.run_now(Job.objects.get())
    assert "Download archive" in client.get(reverse("console:job", args=[job.pk])).content.decode()
    url = reverse("console:job-download", args=[job.pk])
    answer: Any = client.get(url)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="export-alice.tar"'
    assert b"manifest.json" in b"".join(answer.streaming_content)
    assert AuditEvent.objects.filter(action="archive.download", user_id="alice").count() == 1
    page = operator_client("store.view_memory").get(reverse("console:job", args=[job.pk])).content.decode()
    assert "Download archive" not in page
    files.remove_old_archives(timezone.now() + timedelta(days=2))
    assert client.get(url).status_code == 404


@pytest.mark.django_db
def test_invalid_parameters_are_ignored(admin_client: Client, alice: Person) -> None:
    for path in ("resources/", "users/", "trash/", "trash/?kind=sessions", "trash/?kind=resources", "jobs/", "audit/"):
        query = "after=x&before=1.1&cause=zz&state=x&type=x&kind=sessions&from=x&user=a%00b&q=%00"
        answer = admin_client.get(f"/admin/memory/{path}{'&' if '?' in path else '?'}{query}")
        assert answer.status_code == 200
    for resource_id in ("r_none", "x" * 300, "a%00b"):
        assert admin_client.get(f"/admin/memory/resources/{resource_id}/").status_code == 404
    file = Resource.objects.create(user_id=alice.user_pk, session_id="s", filename="f.pdf")
    for position in ("x", "1", "1.x", "%00", "1.1"):
        assert admin_client.get(f"/admin/memory/resources/{file.pk}/?after={position}").status_code == 200
    retried = {"id": ["a\x00b", "r_none"], "cause": "'"}
    for name in ("trash-sessions", "trash-resources", "resource-trash"):
        assert admin_client.post(reverse(f"console:{name}"), {"id": "a\x00b", "do": "purge"}).status_code == 302
    row = remember(alice.owner).row
    assert (
        admin_client.post(reverse("console:bulk"), {"do": "delete", "id": row, "reason": "a\x00b"}).status_code == 302
    )
    assert admin_client.post(reverse("console:resource-retry"), retried).status_code == 302
