"""Operators' sign-in: limits on failed attempts, and the length of a session."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import sign_in
from accounts.models import AuditEvent, SignInThrottle
from core.errors import TooManyRequests

PASSWORD = "Lantern-4711-x"
URL = "/admin/login/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(django_user_model: Any) -> Iterator[Any]:
    return django_user_model.objects.create_superuser("olga", password=PASSWORD)


def attempt(password: str, username: str = "olga", address: str = "192.0.2.1") -> Any:
    form = {"username": username, "password": password, "next": "/admin/"}
    return Client(REMOTE_ADDR=address).post(URL, form)


def is_signed_in(response: Any) -> bool:
    return bool(response.status_code == 302 and response.cookies.get("memory_gateway_sessionid"))


def pass_time(**time: float) -> None:
    """Move the counted failures into the past."""
    for row in SignInThrottle.objects.all():
        row.counted_since -= timedelta(**time)
        if row.locked_until:
            row.locked_until -= timedelta(**time)
        row.save()


def test_a_sign_in_is_audited(operator: Any) -> None:
    assert is_signed_in(attempt(PASSWORD))
    event = AuditEvent.objects.get()
    assert (event.action, event.actor_kind, event.actor) == ("operator.sign_in", "operator", "olga")


@pytest.mark.parametrize("hours", [12, 3])
def test_a_session_ends_some_hours_after_the_sign_in_whatever_the_activity(
    operator: Any, settings: Any, hours: int
) -> None:
    settings.MEMORY_GATEWAY_SESSION_MAX_HOURS = hours
    client = Client()
    form = {"username": "olga", "password": PASSWORD, "next": "/admin/"}
    client.post(URL, form)
    signed_in_at = client.session["signed_in_at"]

    def work(age_seconds: int) -> int:
        session = client.session
        session["signed_in_at"] = signed_in_at - age_seconds
        session.save()
        return client.get("/admin/memory/").status_code

    assert [work(minutes * 60) for minutes in range(0, hours * 60, 30)] == [200] * (2 * hours)
    assert work(hours * 3600) == 302
    assert not Session.objects.exists()
    client.post(URL, form)
    assert client.get("/admin/memory/").status_code == 200


def test_a_sign_in_over_a_session_begins_its_time_again(operator: Any) -> None:
    client = Client()
    form = {"username": "olga", "password": PASSWORD, "next": "/admin/"}
    client.post(URL, form)
    session = client.session
    session["signed_in_at"] -= 11 * 3600
    session.save()
    client.post(URL, form)
    assert client.session["signed_in_at"] > session["signed_in_at"] + 10 * 3600


def test_five_failures_lock_a_name_for_fifteen_minutes(operator: Any) -> None:
    for _ in range(5):
        assert "correct username and password" in attempt("wrong").content.decode()
    refused = attempt(PASSWORD)
    assert not is_signed_in(refused)
    assert "Try again in 15 minutes" in refused.content.decode()
    pass_time(minutes=14)
    assert not is_signed_in(attempt(PASSWORD))
    pass_time(minutes=2)
    assert is_signed_in(attempt(PASSWORD))


def test_further_attempts_do_not_prolong_the_lock(operator: Any) -> None:
    for _ in range(20):
        attempt("wrong")
    pass_time(minutes=15, seconds=1)
    assert is_signed_in(attempt(PASSWORD))


def test_a_sign_in_resets_the_failures(operator: Any) -> None:
    for _ in range(3):
        for _ in range(4):
            attempt("wrong")
        assert is_signed_in(attempt(PASSWORD))


def test_failures_older_than_the_window_do_not_count(operator: Any) -> None:
    for _ in range(4):
        attempt("wrong")
    pass_time(minutes=16)
    for _ in range(4):
        attempt("wrong")
    assert is_signed_in(attempt(PASSWORD))


def test_a_lock_does_not_apply_to_other_names_and_addresses(operator: Any, django_user_model: Any) -> None:
    django_user_model.objects.create_superuser("igor", password=PASSWORD)
    for _ in range(6):
        attempt("wrong")
    assert is_signed_in(attempt(PASSWORD, username="igor"))
    assert is_signed_in(attempt(PASSWORD, address="192.0.2.2"))


def test_an_ipv6_network_counts_as_one_address(operator: Any) -> None:
    for number in range(5):
        attempt("wrong", address=f"2001:db8:1:2::{number + 1}")
    assert not is_signed_in(attempt(PASSWORD, address="2001:db8:1:2:aaaa::1"))
    assert is_signed_in(attempt(PASSWORD, address="2001:db8:1:3::1"))


def test_existing_and_unknown_names_are_locked_alike(operator: Any) -> None:
    def error_lines(username: str) -> list[str]:
        answers = [attempt("wrong", username=username).content.decode() for _ in range(7)]
        return [answer.split('class="errornote">')[1].split("</p>")[0] for answer in answers]

    assert error_lines("olga") == error_lines("nobody")


def test_many_names_from_one_network_lock_the_network(operator: Any) -> None:
    for number in range(sign_in.FAILURES_PER_NETWORK):
        attempt("wrong", username=f"name{number}")
    assert not is_signed_in(attempt(PASSWORD))
    assert is_signed_in(attempt(PASSWORD, address="192.0.2.2"))


def test_typed_names_are_not_stored(operator: Any) -> None:
    for _ in range(6):
        attempt("wrong", username=PASSWORD)
    stored = str(list(AuditEvent.objects.values())) + str(list(SignInThrottle.objects.values()))
    assert PASSWORD not in stored


def test_a_lock_out_is_audited_once(operator: Any) -> None:
    for _ in range(10):
        attempt("wrong")
    event = AuditEvent.objects.get(action="operator.lock_out")
    assert (event.subject_type, event.subject_id) == ("network", "192.0.2.1")


def test_an_operator_can_lift_a_lock(operator: Any, admin_client: Client) -> None:
    for _ in range(6):
        attempt("wrong")
    for row in SignInThrottle.objects.all():
        admin_client.post(f"/admin/accounts/signinthrottle/{row.pk}/delete/", {"post": "yes"})
    assert is_signed_in(attempt(PASSWORD))
    assert AuditEvent.objects.filter(action="operator.unlock", actor="admin").count() == 2


def test_old_throttles_are_deleted(operator: Any) -> None:
    for number in range(10):
        attempt("wrong", username=f"name{number}")
    SignInThrottle.objects.update(counted_since=timezone.now() - timedelta(hours=1))
    attempt("wrong")
    assert SignInThrottle.objects.count() == 2


def test_a_session_ends_one_hour_after_the_last_page(admin_client: Client) -> None:
    session = Session.objects.get()
    Session.objects.update(expire_date=timezone.now() + timedelta(minutes=1))
    assert admin_client.get("/admin/").status_code == 200
    session.refresh_from_db()
    remaining = session.expire_date - timezone.now()
    assert timedelta(minutes=59) < remaining <= timedelta(hours=1)
    Session.objects.update(expire_date=timezone.now())
    assert admin_client.get("/admin/").status_code == 302


@pytest.mark.django_db(transaction=True)
def test_concurrent_attempts_are_counted() -> None:
    def guess(_: int) -> bool:
        try:
            sign_in.begin("olga", "192.0.2.1")
        except TooManyRequests:
            return False
        else:
            return True
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        allowed = sum(pool.map(guess, range(24)))
    assert allowed == sign_in.FAILURES_PER_NAME


@pytest.mark.django_db
def test_the_sign_in_page_changes_its_language_and_helps_at_the_first_start_only(client: Client) -> None:
    assert "createsuperuser" in client.get("/admin/login/").content.decode()
    User.objects.create_user("ana", is_staff=True)
    answer = client.post("/admin/memory/language/", {"language": "zh-hans", "next": "/admin/login/"})
    assert answer.headers["Location"] == "/admin/login/"
    page = client.get("/admin/login/").content.decode()
    assert "登录" in page
    assert "createsuperuser" not in page
