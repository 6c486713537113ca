"""The operator of the first start."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from accounts.audit import Actor, record

# The second name is for a database where somebody without rights already holds the first.
_NAMES = ("admin", "gateway-admin")


@dataclass(frozen=True, slots=True)
class NewOperator:
    """Goes to the terminal of whoever started the gateway, once."""

    username: str
    password: str


def ensure_operator(*, actor: Actor) -> NewOperator | None:
    """Makes an operator with all rights and a random password of 144 bits; None if an active one exists.

    Two calls at once make one: the names are unique, and whoever loses finds the other's.
    Errors: `RuntimeError` if both names belong to people without rights.
    """
    for username in _NAMES:
        if User.objects.filter(is_superuser=True, is_active=True).exists():
            return None
        password = secrets.token_urlsafe(18)
        try:
            with transaction.atomic():
                User.objects.create_superuser(username, password=password)
                record(actor, "operator.create", subject_type="operator", subject_id=username)
        except IntegrityError:
            continue
        return NewOperator(username, password)
    if User.objects.filter(is_superuser=True, is_active=True).exists():
        return None
    raise RuntimeError("The names admin and gateway-admin are taken: run manage.py createsuperuser.")
