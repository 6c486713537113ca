"""`manage.py rotate_key` and `manage.py revoke_key`."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from accounts import services
from accounts.audit import Actor
from accounts.models import AuditEvent
from core.errors import Unauthenticated
from tests.conftest import Person

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


def test_a_new_key_is_printed_and_the_old_one_works_for_the_grace_period(alice: Person) -> None:
    new = run("rotate_key", "alice")
    assert services.authenticate(new).user_id == "alice"
    assert services.authenticate(alice.user_key).user_id == "alice"
    assert AuditEvent.objects.get(action="key.rotate").actor == "rotate_key"


def test_without_a_grace_period_the_old_key_ends_immediately(alice: Person) -> None:
    answer = json.loads(run("rotate_key", "alice", "--grace-hours", "0", "--json"))
    assert services.authenticate(answer["user_key"]).user_id == "alice"
    with pytest.raises(Unauthenticated):
        services.authenticate(alice.user_key)


def test_a_revoked_key_does_not_authenticate(alice: Person) -> None:
    other = services.issue_key(alice.user_pk, label="phone", actor=Actor.command("tests"))
    assert "Revoked uk_" in run("revoke_key", "alice", "--key", str(other.key.pk))
    with pytest.raises(Unauthenticated):
        services.authenticate(other.plaintext)
    assert services.authenticate(alice.user_key).user_id == "alice"


def test_a_key_can_be_given_in_full(alice: Person) -> None:
    services.issue_key(alice.user_pk, label="phone", actor=Actor.command("tests"))
    run("revoke_key", "alice", "--key", alice.user_key)
    with pytest.raises(Unauthenticated):
        services.authenticate(alice.user_key)


def test_the_last_key_is_revoked_only_with_an_option(alice: Person) -> None:
    with pytest.raises(CommandError, match="last active API key") as refused:
        run("revoke_key", "alice")
    assert refused.value.returncode == 2
    run("revoke_key", "alice", "--last")
    with pytest.raises(Unauthenticated):
        services.authenticate(alice.user_key)


@pytest.mark.parametrize("command", ["rotate_key", "revoke_key"])
def test_unknown_and_ambiguous_keys_are_rejected(command: str, alice: Person) -> None:
    with pytest.raises(CommandError, match="no such user"):
        run(command, "nobody")
    with pytest.raises(CommandError, match="no such active API key"):
        run(command, "alice", "--key", "uk_ZZZZ")
    services.issue_key(alice.user_pk, label="phone", actor=Actor.command("tests"))
    with pytest.raises(CommandError, match=r"Several active API keys match.*phone"):
        run(command, "alice")


@pytest.mark.parametrize("hours", ["-1", "100000", "9" * 30])
def test_an_invalid_grace_period_is_rejected(hours: str, alice: Person) -> None:
    with pytest.raises(CommandError, match="--grace-hours: must be a whole number from 0 to 720"):
        run("rotate_key", "alice", "--grace-hours", hours)
