"""Operators' reads of memories and files are audited; the lists neither show nor search their text."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Model
from django.test import Client

from accounts.models import AuditEvent, MemoryUser, UserKey
from operations.models import Job, JobStep
from resources.models import Attachment, Resource
from store.models import DayCount, Memory, Session, SessionCount
from tests.admin.rows import MAKERS, SECRET_TEXT
from tests.admin.test_pages import url
from tests.console import shown

PERSONAL: list[type[Model]] = [Session, Memory, Resource, Attachment]

pytestmark = pytest.mark.django_db

each_personal_table = pytest.mark.parametrize("model", PERSONAL, ids=[model.__name__ for model in PERSONAL])


def events(model: type[Model]) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(actor_kind="operator", subject_type=model._meta.model_name).order_by("id"))


def users_of(event: AuditEvent) -> list[str]:
    return sorted(event.subjects.values_list("user_id", flat=True))


@each_personal_table
def test_viewing_a_row_is_audited(admin_client: Client, model: type[Model]) -> None:
    row = MAKERS[model](1)
    admin_client.get(url(model, "change", row.pk))
    (event,) = events(model)
    assert event.action == f"{model._meta.model_name}.view"
    assert (event.actor, event.user_id, event.subject_id) == ("admin", "user1", str(row.pk))
    assert event.request_id


@each_personal_table
def test_viewing_a_list_is_audited_with_its_users(admin_client: Client, model: type[Model]) -> None:
    for number in (1, 2):
        MAKERS[model](number)
    admin_client.get(url(model, "changelist"))
    (event,) = events(model)
    assert (event.action, event.user_id) == (f"{model._meta.model_name}.list", "")
    assert users_of(event) == ["user1", "user2"]
    admin_client.get(url(model, "changelist"), {"q": "user2"})
    assert (events(model)[1].user_id, users_of(events(model)[1])) == ("user2", ["user2"])


@each_personal_table
def test_an_empty_list_and_a_refused_view_are_not_audited(
    client: Client, django_user_model: Any, admin_client: Client, model: type[Model]
) -> None:
    admin_client.get(url(model, "changelist"))
    row = MAKERS[model](1)
    client.force_login(django_user_model.objects.create_user("helper", is_staff=True))
    client.get(url(model, "change", row.pk))
    client.get(url(model, "changelist"))
    assert events(model) == []


@each_personal_table
def test_the_audit_trail_holds_no_memory_text(admin_client: Client, model: type[Model]) -> None:
    row = MAKERS[model](1)
    admin_client.get(url(model, "change", row.pk))
    admin_client.get(url(model, "changelist"), {"q": SECRET_TEXT})
    assert SECRET_TEXT not in str(list(AuditEvent.objects.values()))


@pytest.mark.parametrize("model", [Memory, Resource], ids=["Memory", "Resource"])
def test_lists_neither_show_nor_search_text(admin_client: Client, model: type[Model]) -> None:
    MAKERS[model](1)
    assert SECRET_TEXT not in admin_client.get(url(model, "changelist")).content.decode()
    found = admin_client.get(url(model, "changelist"), {"q": SECRET_TEXT.split()[1]})
    assert found.context["cl"].result_count == 0


@pytest.mark.parametrize("model", MAKERS, ids=[model.__name__ for model in MAKERS])
def test_every_user_that_a_page_of_the_admin_shows_has_it_in_the_trail(
    admin_client: Client, model: type[Model]
) -> None:
    row, _other = MAKERS[model](1), MAKERS[model](2)
    shown_on_pages = []
    for address in (url(model, "changelist"), url(model, "change", row.pk), url(model, "history", row.pk)):
        answer = admin_client.get(address)
        users = shown.users_shown(shown.visible_text(answer.content.decode()), {"user1": (), "user2": ()})
        request = AuditEvent.objects.filter(request_id=answer.headers["X-Request-Id"])
        assert users <= set(request.values_list("subjects__user_id", flat=True)), address
        shown_on_pages.append(users)
    if any(field.related_model is MemoryUser for field in model._meta.fields):
        assert shown_on_pages[0] == {"user1", "user2"}


def test_a_row_that_names_a_user_by_key_or_in_its_data_is_in_the_trail(admin_client: Client) -> None:
    """Counts have the key of their user or session; jobs have ids and keys in their parameters and steps."""
    session = MAKERS[Session](1)
    user = MemoryUser.objects.get(user_id="user1")
    DayCount.objects.all().delete()
    SessionCount.objects.all().delete()
    day = DayCount.objects.create(owner=user.pk.hex, day=1, memories=1, low=0, mid=0, high=0, weight=0)
    count = SessionCount.objects.create(session_row=session.pk, of_agent=False, memories=1, first_ms=0, last_ms=0)
    params = {"target": {"selection": {"user_pk": str(user.pk)}}}
    job = Job.objects.create(kind="delete", actor_kind="operator", params=params, result={"failed": ["user2"]})
    MAKERS[Session](2)
    step = JobStep.objects.create(job=job, number=1, changes=[["user", str(user.pk)], [5, "x"]])
    for row, users in ((day, ["user1"]), (count, ["user1"]), (job, ["user1", "user2"]), (step, ["user1"])):
        answer = admin_client.get(url(type(row), "change", row.pk))
        assert users_of(AuditEvent.objects.get(request_id=answer.headers["X-Request-Id"])) == users
    for model, is_shown in ((DayCount, True), (SessionCount, True), (Job, False), (JobStep, False)):
        answer = admin_client.get(url(model, "changelist"))
        event = AuditEvent.objects.filter(request_id=answer.headers["X-Request-Id"])
        assert set(event.values_list("subjects__user_id", flat=True)) == ({"user1"} if is_shown else set())


def test_the_pages_of_a_key_are_audited(admin_client: Client) -> None:
    key = MAKERS[UserKey](1)
    for page in ("rotate", "revoke"):
        answer = admin_client.get(url(UserKey, page, key.pk))
        event = AuditEvent.objects.get(request_id=answer.headers["X-Request-Id"])
        assert (event.action, users_of(event)) == ("userkey.view", ["user1"])
