"""`manage.py ensure_operator`."""

from __future__ import annotations

import io
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from accounts.audit import Actor
from accounts.management.commands.ensure_operator import ensure_operator
from accounts.models import AuditEvent

pytestmark = pytest.mark.django_db


def run() -> str:
    output = io.StringIO()
    call_command("ensure_operator", stdout=output)
    return output.getvalue()


def test_it_prints_an_operator_who_can_sign_in() -> None:
    printed = run()
    assert "http://127.0.0.1:8010/admin/" in printed
    user, password = re.findall(r"(?:user|password) +(\S+)", printed)[-2:]
    response = Client().post("/admin/login/", {"username": user, "password": password, "next": "/admin/"})
    assert response.status_code == 302
    assert User.objects.get().is_superuser
    assert password not in str(list(AuditEvent.objects.values()))
    assert len(password) >= 24


def test_a_second_run_prints_nothing() -> None:
    run()
    assert run() == ""
    assert User.objects.count() == 1


def test_it_creates_no_operator_if_a_superuser_exists() -> None:
    User.objects.create_superuser("olga")
    assert run() == ""


def test_an_inactive_superuser_does_not_count() -> None:
    User.objects.create_superuser("admin", is_active=False)
    assert "gateway-admin" in run()


def test_it_fails_if_both_names_are_taken() -> None:
    User.objects.create_user("admin")
    User.objects.create_user("gateway-admin")
    with pytest.raises(CommandError, match="createsuperuser"):
        run()


@pytest.mark.parametrize(
    ("names", "url"),
    [
        ({"MEMORY_GATEWAY_HOST": "::1", "MEMORY_GATEWAY_PORT": 9000}, "http://[::1]:9000/admin/"),
        ({"MEMORY_GATEWAY_HOST": "0.0.0.0"}, "http://127.0.0.1:8010/admin/"),  # noqa: S104  only shown
        ({"IS_PRODUCTION": True, "ALLOWED_HOSTS": ["memory.example.org"]}, "https://memory.example.org/admin/"),
    ],
)
def test_it_prints_the_sign_in_url(settings: Any, names: dict[str, Any], url: str) -> None:
    for name, value in names.items():
        setattr(settings, name, value)
    assert url in run()


@pytest.mark.django_db(transaction=True)
def test_concurrent_runs_create_one_operator() -> None:
    def start(_: int) -> bool:
        try:
            return ensure_operator(actor=Actor.command("tests")) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        created = list(pool.map(start, range(8)))
    assert created.count(True) == User.objects.filter(is_superuser=True).count() == 1
