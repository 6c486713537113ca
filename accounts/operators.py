"""Operators: the people who sign in to the panel. Their roles are groups, and each change is in the audit trail."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import default_token_generator
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts import authority, oauth, tokens
from accounts.audit import Actor, record
from core.errors import Conflict
from core.messages import Translatable as _


def random_password() -> str:
    return secrets.token_urlsafe(18)


@transaction.atomic
def create(username: str, role: Group | None, *, password: str | None = None, actor: Actor) -> User:
    """Create an operator. Without a password they sign in by OpenID Connect, or set one by an invitation.

    Raises: `IntegrityError` for a name that exists.
    """
    operator = User.objects.create_user(username, password=password, is_staff=True)
    operator.groups.set([role] if role else [])
    _record(actor, "operator.create", operator, {"roles": [role.name] if role else []})
    return operator


def follow_provider(operator: User, role: Group | None, *, actor: Actor) -> None:
    """Give an operator the role of their groups at the provider. Without one, their sessions and tokens end."""
    if roles_of(operator) != ([role.name] if role else []):
        change(operator, role, is_active=operator.is_active, actor=actor)
    if role is None:
        _end_what_exceeds(operator, before=authority.permissions_of(operator.pk), now=frozenset(), actor=actor)


@contextmanager
def changing_permissions(operators: QuerySet[User], *, actor: Actor) -> Iterator[None]:
    """Change permissions of operators, or delete them, in the block, in one transaction.

    Afterwards the sessions of those who may do less than before end, and so do their tokens and the connections that
    they approved, if these exceed what is left.
    """
    with transaction.atomic():
        before = {operator: authority.permissions_of(operator.pk) for operator in operators}
        yield
        for operator, permissions in before.items():
            now = authority.permissions_of(operator.pk)
            if not permissions <= now:
                _end_what_exceeds(operator, before=permissions, now=now, actor=actor)


def _end_what_exceeds(operator: User, *, before: frozenset[str], now: frozenset[str], actor: Actor) -> None:
    end_sessions(operator)
    tokens.revoke_exceeding(operator, before=before, now=now, actor=actor)
    if authority.CONNECT in before - now:
        oauth.revoke_approved_by(operator, actor=actor)


@transaction.atomic
def change(operator: User, role: Group | None, *, is_active: bool, actor: Actor) -> None:
    """Give an operator one role or none. An inactive one cannot sign in. What exceeds the permissions ends."""
    before = {"roles": roles_of(operator), "active": operator.is_active}
    with changing_permissions(User.objects.filter(pk=operator.pk), actor=actor):
        operator.groups.set([role] if role else [])
        operator.is_active = is_active
        operator.save(update_fields=["is_active"])
    after = {"roles": roles_of(operator), "active": is_active}
    _record(actor, "operator.change", operator, {"before": before, "after": after})


@transaction.atomic
def sign_out(operator: User, *, actor: Actor) -> int:
    """End all sessions of an operator and return their number."""
    count = end_sessions(operator)
    _record(actor, "operator.sign_out", operator, {"sessions": count})
    return count


def invitation_path(operator: User) -> str:
    """Return the path of the page on which an operator sets the own password.

    It works once, until `PASSWORD_RESET_TIMEOUT`, and until another invitation.
    """
    key = urlsafe_base64_encode(force_bytes(operator.pk))
    return reverse("console:invitation", args=[key, default_token_generator.make_token(operator)])


def may_have_password(operator: User | None) -> bool:
    """Return True for an active operator who does not sign in by the identity provider."""
    return operator is not None and operator.is_active and operator.is_staff and not hasattr(operator, "identity")


def is_invited(operator: User) -> bool:
    """Return True for an operator who has not set a password yet."""
    return may_have_password(operator) and not operator.has_usable_password()


def accept_invitation(operator: User) -> None:
    """Record that an operator has set a password by the link of an invitation."""
    _record(Actor.operator(operator.get_username()), "operator.set_password", operator, {})


@transaction.atomic
def reset_password(operator: User, *, actor: Actor) -> None:
    """Take the password from an operator, for another invitation. Sessions that began with it end (Django).

    Raises: `Conflict` for an operator of the identity provider.
    """
    if hasattr(operator, "identity"):
        raise Conflict(_("This operator has no password and signs in by single sign-on."))
    operator.set_unusable_password()
    operator.save(update_fields=["password"])
    _record(actor, "operator.reset_password", operator, {})


def end_sessions(operator: User) -> int:
    """End all sessions of an operator and return their number."""
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
