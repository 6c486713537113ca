"""Tokens for OpenClaw clients: the service and its two commands."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.utils import timezone

from accounts import tokens
from accounts.audit import Actor
from accounts.models import AuditEvent, MemoryUser, RpcToken
from accounts.tokens import ADMIN, READ, WRITE, TokenPrincipal
from core.errors import InvalidInput, NotFound, Unauthenticated
from tests.conftest import Person

ACTOR = Actor.command("tests")

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> User:
    return User.objects.create_user("olga", is_staff=True)


def principal(plaintext: str) -> TokenPrincipal | None:
    try:
        return tokens.authenticate(plaintext)
    except Unauthenticated:
        return None


def of_user(person: Person, **options: Any) -> tokens.IssuedToken:
    return tokens.issue("laptop", user=MemoryUser.objects.get(pk=person.user_pk), actor=ACTOR, **options)


def test_the_principal_has_the_holder_and_scopes_of_its_token(alice: Person, operator: User) -> None:
    of_alice = tokens.authenticate(of_user(alice, scopes=[WRITE, READ]).plaintext)
    assert (of_alice.user_pk, of_alice.user_id, of_alice.operator) == (alice.user_pk, "alice", None)
    assert of_alice.scopes == (READ, WRITE)
    of_operator = tokens.authenticate(tokens.issue("desk", operator=operator, actor=ACTOR).plaintext)
    assert (of_operator.user_pk, of_operator.operator, of_operator.scopes) == (None, "olga", (ADMIN,))


def test_only_the_digest_of_a_token_is_stored(alice: Person) -> None:
    issued = of_user(alice)
    row = RpcToken.objects.values().get()
    assert issued.plaintext not in str(row)
    assert issued.plaintext not in repr(issued)
    assert row["prefix"] == issued.plaintext[:8]


@pytest.mark.parametrize("wrong", ["", "rpc_", "rpc_" + "x" * 43, "uk_" + "x" * 43, "x" * 10_000, "\ud800"])
def test_unknown_tokens_do_not_authenticate(alice: Person, wrong: str, settings: Any) -> None:
    of_user(alice)
    for configured in ("", "the-token-of-the-setting"):
        settings.MEMORY_GATEWAY_RPC_TOKEN = configured
        assert principal(wrong) is None


def test_the_token_of_the_setting_authenticates_an_operator(settings: Any) -> None:
    assert not tokens.is_any_configured()
    settings.MEMORY_GATEWAY_RPC_TOKEN = "the-token-of-the-setting"
    found = tokens.authenticate("the-token-of-the-setting")
    assert (found.token_id, found.user_pk, found.scopes) == (None, None, (ADMIN,))
    assert found.operator == "MEMORY_GATEWAY_RPC_TOKEN"
    assert tokens.is_still_valid(found)
    assert tokens.is_any_configured()


def test_a_token_is_invalid_from_its_expiry_on(alice: Person) -> None:
    issued = of_user(alice, expires_at=timezone.now() + timedelta(hours=1))
    known = tokens.authenticate(issued.plaintext)
    assert tokens.is_still_valid(known)
    RpcToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert principal(issued.plaintext) is None
    assert not tokens.is_still_valid(known)


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_staff": False}])
def test_a_token_is_invalid_once_its_operator_may_not_sign_in(operator: User, change: dict[str, bool]) -> None:
    issued = tokens.issue("desk", operator=operator, actor=ACTOR)
    known = tokens.authenticate(issued.plaintext)
    User.objects.update(**change)
    assert principal(issued.plaintext) is None
    assert not tokens.is_still_valid(known)
    assert not tokens.is_any_configured()


def test_a_revoked_token_is_invalid_and_revoking_again_has_no_effect(alice: Person) -> None:
    issued = of_user(alice)
    for _ in range(2):
        tokens.revoke(issued.token.pk, actor=ACTOR)
    assert principal(issued.plaintext) is None
    events = AuditEvent.objects.filter(subject_id=str(issued.token.pk)).order_by("pk")
    assert [(event.action, event.user_id) for event in events] == [("token.issue", "alice"), ("token.revoke", "alice")]


def test_the_last_use_is_recorded(alice: Person) -> None:
    issued = of_user(alice)
    tokens.authenticate(issued.plaintext)
    assert RpcToken.objects.get().last_used_at is not None


def test_authentication_takes_two_statements(alice: Person, django_assert_num_queries: Any) -> None:
    issued = of_user(alice)
    with django_assert_num_queries(2):
        tokens.authenticate(issued.plaintext)
    with django_assert_num_queries(0):
        principal("rpc_wrong")


def test_a_token_has_exactly_one_holder(alice: Person, operator: User) -> None:
    user = MemoryUser.objects.get()
    with pytest.raises(InvalidInput):
        tokens.issue("both", operator=operator, user=user, actor=ACTOR)
    with pytest.raises(InvalidInput):
        tokens.issue("none", actor=ACTOR)
    with pytest.raises(IntegrityError):
        RpcToken.objects.create(operator=operator, user=user, digest="x")


def test_invalid_scopes_expiries_and_operators_are_refused(alice: Person) -> None:
    for options in (
        {"scopes": []},
        {"scopes": ["operator.everything"]},
        {"expires_at": timezone.now() - timedelta(days=1)},
    ):
        with pytest.raises(InvalidInput):
            of_user(alice, **options)
    with pytest.raises(InvalidInput):
        tokens.issue("helper", operator=User.objects.create_user("helper"), actor=ACTOR)


@pytest.mark.parametrize(
    ("scopes", "scope", "is_implied"),
    [
        ((ADMIN,), READ, True),
        ((ADMIN,), "operator.approvals", True),
        ((ADMIN,), "node.anything", False),
        ((WRITE,), READ, True),
        ((WRITE,), ADMIN, False),
        ((READ,), WRITE, False),
        ((), READ, False),
    ],
)
def test_wider_scopes_include_narrower_ones(scopes: tuple[str, ...], scope: str, is_implied: bool) -> None:
    assert tokens.includes_scope(scopes, scope) is is_implied


def run(*arguments: str) -> tuple[str, str]:
    output, errors = io.StringIO(), io.StringIO()
    call_command(*arguments, stdout=output, stderr=errors)
    return output.getvalue().strip(), errors.getvalue().strip()


def test_the_commands_issue_and_revoke(alice: Person, operator: User) -> None:
    plaintext, how_to_revoke = run("issue_token", "laptop", "--user", "alice", "--scope", WRITE, "--days", "7")
    found = tokens.authenticate(plaintext)
    assert (found.user_id, found.scopes) == ("alice", (WRITE,))
    assert plaintext not in how_to_revoke
    run("revoke_token", how_to_revoke.split()[-1])
    assert principal(plaintext) is None
    assert tokens.authenticate(run("issue_token", "desk", "--operator", "olga")[0]).operator == "olga"


def test_the_commands_fail_with_an_error_message(alice: Person) -> None:
    for arguments, sentence in (
        (("issue_token", "x", "--user", "nobody"), "no such user"),
        (("issue_token", "x", "--operator", "nobody"), "no such operator"),
        (("issue_token", "x", "--user", "alice", "--days", "0"), "--days must be 1 to 3650"),
        (("issue_token", "x", "--user", "alice", "--days", "99999999999"), "--days must be 1 to 3650"),
        (("revoke_token", "00000000-0000-4000-8000-000000000000"), "no such token"),
    ):
        with pytest.raises(CommandError, match=sentence):
            run(*arguments)
    with pytest.raises(NotFound):
        tokens.find_operator("nobody")
