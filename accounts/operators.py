"""Operators: the people who sign in to the panel. Their roles are groups, and each change is in the audit trail."""

import secrets

from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone

from accounts.audit import Actor, record


def random_password() -> str:
    return secrets.token_urlsafe(18)


@transaction.atomic
def create(username: str, role: Group | None, *, password: str | None = None, actor: Actor) -> User:
    """Create an operator. Without a password they sign in by OpenID Connect only.

    Raises: `IntegrityError` for a name that exists.
    """
    operator = User.objects.create_user(username, password=password, is_staff=True)
    operator.groups.set([role] if role else [])
    _record(actor, "operator.create", operator, {"roles": [role.name] if role else []})
    return operator


def follow_provider(operator: User, role: Group | None, *, actor: Actor) -> None:
    """Give an operator the role of their groups at the provider. Without one, their sessions end."""
    if roles_of(operator) != ([role.name] if role else []):
        change(operator, role, is_active=operator.is_active, actor=actor)
    if role is None:
        _end_sessions(operator)


@transaction.atomic
def change(operator: User, role: Group | None, *, is_active: bool, actor: Actor) -> None:
    """Give an operator one role or none. An inactive one cannot sign in, and their sessions and RPC tokens end."""
    before = {"roles": roles_of(operator), "active": operator.is_active}
    operator.groups.set([role] if role else [])
    operator.is_active = is_active
    operator.save(update_fields=["is_active"])
    if not is_active:
        _end_sessions(operator)
    after = {"roles": roles_of(operator), "active": is_active}
    _record(actor, "operator.change", operator, {"before": before, "after": after})


@transaction.atomic
def sign_out(operator: User, *, actor: Actor) -> int:
    """End all sessions of an operator and return their number."""
    count = _end_sessions(operator)
    _record(actor, "operator.sign_out", operator, {"sessions": count})
    return count


@transaction.atomic
def reset_password(operator: User, *, actor: Actor) -> str:
    """Give an operator a random password and return it. Sessions that began with the old one end (Django)."""
    password = random_password()
    operator.set_password(password)
    operator.save(update_fields=["password"])
    _record(actor, "operator.reset_password", operator, {})
    return password


def _end_sessions(operator: User) -> int:
    # Django's sessions do not name their user in a column; there is one for each browser of the last hour.
    own = [
        session.pk
        for session in Session.objects.filter(expire_date__gt=timezone.now())
        if session.get_decoded().get("_auth_user_id") == str(operator.pk)
    ]
    return Session.objects.filter(pk__in=own).delete()[0]


def roles_of(operator: User) -> list[str]:
    return sorted(group.name for group in operator.groups.all())


def _record(actor: Actor, action: str, operator: User, detail: dict[str, object]) -> None:
    record(actor, action, operator.get_username(), detail=detail)
