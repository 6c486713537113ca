"""`manage.py create_user`."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from accounts import services
from accounts.models import AuditEvent, MemoryUser

pytestmark = pytest.mark.django_db


def run(user_id: str) -> str:
    output = io.StringIO()
    call_command("create_user", user_id, stdout=output)
    return output.getvalue()


def test_it_prints_a_valid_key_and_the_same_key_again() -> None:
    printed = run("dora")
    assert services.authenticate(printed.strip()).user_id == "dora"
    assert run("dora") == printed


def test_it_is_audited_as_a_command() -> None:
    run("dora")
    event = AuditEvent.objects.get(action="user.create")
    assert (event.actor_kind, event.actor, event.user_id) == ("command", "create_user", "dora")


def test_an_invalid_id_ends_with_an_error_message() -> None:
    with pytest.raises(CommandError, match="must not begin or end with a space"):
        run("a ")
    assert MemoryUser.objects.count() == 0
