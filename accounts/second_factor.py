"""The second factor of operators: codes of an authenticator app (TOTP, RFC 6238) and recovery codes.

A code is accepted within one step of 30 seconds before and after the present one, and once. A recovery code is accepted
once; only its digest is stored.
"""

import base64
import hashlib
import hmac
import secrets
from typing import Final
from urllib.parse import quote, urlencode

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import SecondFactor
from accounts.services import digest_of
from core.crypto import Purpose

ISSUER: Final = "Memory Gateway"
STEP_SECONDS: Final = 30
DIGITS: Final = 6
RECOVERY_CODES: Final = 10
_PURPOSE: Final = Purpose("second factor", "accounts.SecondFactor.sealed_secret")


def new_secret() -> str:
    """Return 160 random bits in Base32, as authenticator apps take them."""
    return base64.b32encode(secrets.token_bytes(20)).decode()


def setup_address(username: str, secret: str) -> str:
    """Return the address by which an authenticator app takes a secret."""
    query = urlencode({"secret": secret, "issuer": ISSUER}, quote_via=quote)
    return f"otpauth://totp/{quote(f'{ISSUER}:{username}')}?{query}"


def code_at(secret: str, step: int) -> str:
    """Return the code of a time step (RFC 6238 with HMAC-SHA-1, RFC 4226)."""
    digest = hmac.digest(base64.b32decode(secret), step.to_bytes(8, "big"), hashlib.sha1)
    start = digest[-1] & 15
    number = int.from_bytes(digest[start : start + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def present_step() -> int:
    return int(timezone.now().timestamp()) // STEP_SECONDS


def step_of(secret: str, code: str) -> int | None:
    """Return the time step, near the present one, whose code this is; None for another code."""
    given, now = "".join(code.split()), present_step()
    near = (now, now - 1, now + 1)
    return next((step for step in near if hmac.compare_digest(code_at(secret, step).encode(), given.encode())), None)


def is_on(operator: User) -> bool:
    return SecondFactor.objects.filter(operator=operator).exists()


@transaction.atomic
def turn_on(operator: User, secret: str, step: int, *, actor: Actor) -> list[str]:
    """Require codes of a secret at each sign-in, and return the recovery codes, which are shown once.

    `step` is that of the code by which the operator has shown that the app has the secret.
    """
    codes = [f"{secrets.token_hex(4)}-{secrets.token_hex(4)}" for _ in range(RECOVERY_CODES)]
    values = {
        "sealed_secret": _PURPOSE.encrypt(secret),
        "last_step": step,
        "recovery_digests": [digest_of(code) for code in codes],
    }
    SecondFactor.objects.update_or_create(operator=operator, defaults=values)
    record(actor, "operator.second_factor_on", operator.get_username())
    return codes


@transaction.atomic
def turn_off(operator: User, *, actor: Actor) -> None:
    if SecondFactor.objects.filter(operator=operator).delete()[0]:
        record(actor, "operator.second_factor_off", operator.get_username())


@transaction.atomic
def accept(operator: User, code: str) -> bool:
    """Return True if this code of the app or recovery code may be used, which uses it up."""
    factor = SecondFactor.objects.select_for_update().filter(operator=operator).first()
    if factor is None or not code:
        return False
    step, digest = step_of(_PURPOSE.decrypt(factor.sealed_secret), code), digest_of(code.strip().lower())
    if step is not None and step > factor.last_step:
        factor.last_step = step
    elif digest in factor.recovery_digests:
        factor.recovery_digests = [one for one in factor.recovery_digests if one != digest]
        left = {"recovery_codes_left": len(factor.recovery_digests)}
        name = operator.get_username()
        record(Actor.operator(name), "operator.use_recovery_code", name, detail=left)
    else:
        return False
    factor.save(update_fields=["last_step", "recovery_digests"])
    return True
