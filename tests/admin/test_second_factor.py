"""Operators' second factor: codes of RFC 6238, each accepted once, recovery codes, and who turns it off."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from accounts import second_factor, sign_in
from accounts.audit import Actor
from accounts.models import AuditEvent, SecondFactor

PASSWORD = "Lantern-4711-x"
PAGE = "/admin/memory/second-factor/"
# Appendix B of RFC 6238, whose secret is "12345678901234567890"; its codes have eight digits.
RFC_SECRET = base64.b32encode(b"12345678901234567890").decode()
RFC_CODES = {59: "287082", 1111111109: "081804", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(django_user_model: Any) -> Any:
    return django_user_model.objects.create_superuser("olga", password=PASSWORD)


def present_code(secret: str, later: int = 0) -> str:
    return second_factor.code_at(secret, second_factor.present_step() + later)


def is_signed_in(code: str) -> bool:
    form = {"username": "olga", "password": PASSWORD, "code": code, "next": "/admin/"}
    return bool(Client().post("/admin/login/", form).status_code == 302)


def turned_on(olga: User, secret: str = RFC_SECRET) -> list[str]:
    return second_factor.turn_on(olga, secret, 0, actor=Actor.operator("olga"))


@pytest.mark.parametrize("seconds", RFC_CODES)
def test_codes_are_those_of_rfc_6238(seconds: int) -> None:
    assert second_factor.code_at(RFC_SECRET, seconds // 30) == RFC_CODES[seconds]


def test_an_operator_turns_it_on_signs_in_with_codes_and_turns_it_off(olga: User) -> None:
    client = Client()
    client.force_login(olga)
    form: Any = client.get(PAGE).context
    secret, sealed = form["secret"], form["sealed"]
    assert f"secret={secret}" in form["setup_address"]
    assert client.post(PAGE, {"sealed": sealed, "code": "12345x"}).status_code == 422
    assert is_signed_in("")  # it is not on yet
    shown: Any = client.post(PAGE, {"sealed": sealed, "code": present_code(secret, -1)})
    codes = shown.context["codes"]
    assert len(set(codes)) == second_factor.RECOVERY_CODES
    row = SecondFactor.objects.get()
    assert not {secret, *codes} & set(re.findall(r"[\w-]+", f"{row.sealed_secret} {row.recovery_digests}"))
    assert not is_signed_in("")
    assert not is_signed_in("000000")
    assert is_signed_in(present_code(secret))
    assert client.post(PAGE, {"code": "000000"}).status_code == 422
    assert client.post(PAGE, {"code": codes[0]}).status_code == 302
    assert is_signed_in("")
    actions = ["second_factor_on", "use_recovery_code", "second_factor_off"]
    found = AuditEvent.objects.filter(action__in=[f"operator.{one}" for one in actions]).order_by("pk")
    assert [event.action for event in found] == [f"operator.{one}" for one in actions]


def test_a_code_is_accepted_once_and_only_near_its_time(olga: User) -> None:
    codes = turned_on(olga)
    assert not second_factor.accept(olga, present_code(RFC_SECRET, -2))
    assert not second_factor.accept(olga, present_code(RFC_SECRET, 2))
    spaced = present_code(RFC_SECRET)
    assert second_factor.accept(olga, f"{spaced[:3]} {spaced[3:]}")
    assert not second_factor.accept(olga, spaced)
    assert not second_factor.accept(olga, present_code(RFC_SECRET, -1))  # it is older than the last
    assert second_factor.accept(olga, codes[3].upper())
    assert not second_factor.accept(olga, codes[3])
    assert len(SecondFactor.objects.get().recovery_digests) == second_factor.RECOVERY_CODES - 1


def test_guesses_of_codes_lock_the_name(olga: User) -> None:
    codes = turned_on(olga)
    for _number in range(sign_in.FAILURES_PER_NAME):
        assert not is_signed_in("000000")
    assert not is_signed_in(codes[0])  # a genuine one


def test_guesses_on_the_page_lock_the_name_too(olga: User) -> None:
    turned_on(olga)
    client = Client()
    client.force_login(olga)
    statuses = [client.post(PAGE, {"code": "000000"}).status_code for _number in range(sign_in.FAILURES_PER_NAME + 1)]
    assert statuses == [422] * sign_in.FAILURES_PER_NAME + [429]


def test_an_administrator_turns_off_what_another_operator_has_lost(olga: User, admin_client: Client) -> None:
    turned_on(olga)
    assert "Turn second factor off" in admin_client.get(reverse("console:operator", args=[olga.pk])).content.decode()
    assert admin_client.post(reverse("console:operator-second-factor", args=[olga.pk])).status_code == 302
    assert is_signed_in("")
    event = AuditEvent.objects.get(action="operator.second_factor_off")
    assert (event.actor, event.subject_id) == ("admin", "olga")


def test_operators_without_a_password_have_no_second_factor_here(olga: User) -> None:
    client = Client()
    client.force_login(olga)
    olga.set_unusable_password()
    olga.save()
    client.force_login(olga)
    assert client.get(PAGE).status_code == 409


def test_a_secret_that_was_shown_long_ago_is_not_taken(olga: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    client.force_login(olga)
    form: Any = client.get(PAGE).context
    late = (datetime.now(UTC) + timedelta(hours=2)).timestamp()
    monkeypatch.setattr("django.core.signing.time.time", lambda: late)
    assert client.post(PAGE, {"sealed": form["sealed"], "code": present_code(form["secret"])}).status_code == 422
    assert not SecondFactor.objects.exists()
