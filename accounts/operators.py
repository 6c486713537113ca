"""Creation of the first operator."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from accounts.audit import Actor, record

# The second name is for a database where a user without permissions has the first.
_NAMES = ("admin", "gateway-admin")


@dataclass(frozen=True, slots=True)
class NewOperator:
    """The credentials of a new operator, shown once in the terminal that started the gateway."""

    username: str
    password: str


def ensure_operator(*, actor: Actor) -> NewOperator | None:
    """Create an operator with all permissions and a random password of 144 bits; return None if an active one exists.

    Concurrent calls create one operator: the names are unique, and the losing call finds the other's.

    Raises: `RuntimeError` if both names belong to users without permissions.
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
