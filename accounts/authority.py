"""Permissions of operators at this moment. They are read at every use, because sessions and tokens outlive roles."""

from typing import Final

from django.contrib.auth.models import User
from django.db.models import QuerySet

VIEW: Final = "store.view_memory"
ADD: Final = "store.add_memory"
CHANGE: Final = "store.change_memory"
DELETE: Final = "store.delete_memory"
CONNECT: Final = "accounts.add_userkey"
"""The permission to connect an application to any user."""
SIGN_IN: Final = "sign in"
"""A permission of every active operator, also without a role. It is none of Django's."""


def holders(permission: str) -> QuerySet[User]:
    """Return the operators who have a permission now.

    Operators who may not sign in have none, nor have those whom the identity provider does not confirm any longer.
    """
    return User.objects.with_perm(permission).filter(is_staff=True, identity__ended_at__isnull=True)


def permissions_of(operator_pk: int) -> frozenset[str]:
    """Return all permissions of an operator; none for one who may not sign in."""
    operator = User.objects.filter(pk=operator_pk, is_active=True, is_staff=True).first()
    return frozenset({SIGN_IN, *operator.get_all_permissions()}) if operator else frozenset()
