"""The record of refused uploads: what it keeps, of whom, for how long, and who sees it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent
from operations import erase
from resources.models import RefusedUpload, Resource
from resources.services import refused
from tests.conftest import Person
from tests.console.people import remember
from tests.resources.forms import CONTENT_TYPE, upload

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/admin/memory/resources/refused/"


def kept() -> list[tuple[str, str, int | None, int]]:
    rows = RefusedUpload.objects.select_related("user").order_by("pk")
    return [(one.user.user_id, one.filename, one.size_bytes, one.status) for one in rows]


def test_refusals_are_kept_with_name_size_and_reason_and_without_the_file(
    alice: Person, storage: Path, settings: Any
) -> None:
    settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES = 1000
    settings.MEMORY_GATEWAY_ALLOWED_MIME_TYPES = ["text/plain"]
    assert upload(alice, b"y" * 1001, "big.txt").status_code == 413
    assert upload(alice, b"%PDF-1.7 the secret plan", "C:\\docs\\plan.pdf").status_code == 415
    assert upload(alice, b"Some text.", "notes.txt", title="x" * 501).status_code == 422
    assert upload(alice, b"Some text.").status_code == 200
    (_user, big, size, status), *others = kept()
    assert (big, size is not None and size > 1000, status) == ("big.txt", True, 413)
    assert others == [("alice", "plan.pdf", 24, 415), ("alice", "notes.txt", 10, 422)]
    reasons = [str(one.reason) for one in RefusedUpload.objects.order_by("pk")]
    assert "at most 1000 bytes" in reasons[0]
    assert "application/pdf" in reasons[1]
    assert "secret plan" not in str(list(RefusedUpload.objects.values()))


def test_a_length_above_the_limit_is_kept_without_a_name(alice: Person) -> None:
    alice.client.generic("POST", "/resources", b"x", content_type=CONTENT_TYPE, CONTENT_LENGTH=str(100 * 2**20))
    assert kept() == [("alice", "", 100 * 2**20, 413)]


def test_a_user_in_a_loop_fills_no_disk(alice: Person, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_MIME_TYPES = ["application/pdf"]
    monkeypatch.setattr(refused, "MAX_OF_A_DAY", 2)
    for _ in range(3):
        assert upload(alice).status_code == 415
    assert len(kept()) == 2


def test_refusals_are_deleted_after_thirty_days_and_with_their_user(alice: Person, bob: Person) -> None:
    now = timezone.now()
    for person, days in ((alice, 31), (alice, 29), (bob, 1)):
        RefusedUpload.objects.create(
            user_id=person.owner.user_pk, at=now - timedelta(days=days), status=415, reason="x"
        )
    refused.delete_old(now)
    assert [user for user, *_ in kept()] == ["alice", "bob"]
    receipt = erase.erase(alice.owner.user_pk, actor=Actor.command("tests"))
    assert receipt["removed"]["refused_uploads"] == 1
    assert [user for user, *_ in kept()] == ["bob"]


def test_operators_list_them_by_user_reason_and_time(admin_client: Client, alice: Person, bob: Person) -> None:
    now = timezone.now()
    for person, days, status in ((alice, 1, 415), (alice, 10, 413), (bob, 2, 422)):
        RefusedUpload.objects.create(
            user_id=person.owner.user_pk,
            at=now - timedelta(days=days),
            status=status,
            reason="because",
            filename="a.rar",
        )

    def shown(query: str) -> list[int]:
        return [one.status for one in admin_client.get(f"{URL}?{query}").context["rows"]]

    assert shown("") == [415, 422, 413]
    assert (shown("user=alice"), shown("status=422")) == ([415, 413], [422])
    assert shown(f"from={now - timedelta(days=7):%Y-%m-%d}") == [415, 422]
    events = AuditEvent.objects.filter(action="resource.refused")
    assert {name for one in events for name in one.subjects.values_list("user_id", flat=True)} == {"alice", "bob"}
    operator = User.objects.create_user("ann", is_staff=True)
    operator.user_permissions.add(Permission.objects.get(codename="view_memory"))
    client = Client()
    client.force_login(operator)
    assert client.get(URL).status_code == 403


def test_a_file_that_the_panel_refuses_is_listed_too(admin_client: Client, alice: Person) -> None:
    file = SimpleUploadedFile("plan.zip", b"PK\x03\x04" + bytes(200), "application/zip")
    answer = admin_client.post("/admin/memory/resources/upload/", {"user": "alice", "file": file})
    assert answer.status_code == 415
    assert kept() == [("alice", "plan.zip", 204, 415)]


def test_failed_uploads_of_the_week_are_one_click_from_the_dashboard(admin_client: Client, alice: Person) -> None:
    now = timezone.now()
    remember(alice.owner)
    for days in (1, 20):
        made = Resource.objects.create(
            user_id=alice.owner.user_pk, filename=f"{days}.pdf", session_id=f"resource:{days}", content_type="pdf",
            mime_type="application/pdf", status="failed", error_message="One cause.",
        )  # fmt: skip
        Resource.objects.filter(pk=made.pk).update(created_at=now - timedelta(days=days))
    week = admin_client.get("/admin/memory/").context["uploads"]["week"]
    page = admin_client.get(f"/admin/memory/resources/?state=failed&from={week}")
    assert [one.filename for one in page.context["rows"]] == ["1.pdf"]
    assert f"state=failed&amp;from={week}" in admin_client.get("/admin/memory/").content.decode()
