"""The check of an API key's scopes, for every view of Django REST framework."""

from typing import Any

from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request

from accounts.models import Principal
from accounts.scopes import ACCOUNT, require

ANY = ""
"""For views that check scopes themselves."""


class HasScope(IsAuthenticated):
    """Lets authenticated callers pass who have the scope that the view names in `scopes`, by action or method.

    Without a name it is `ACCOUNT`, so that keys with scopes reach no new endpoint by chance. Raises: `MissingScope`.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        action = getattr(view, "action", None) or (request.method or "").lower()
        scope = getattr(view, "scopes", {}).get(action, ACCOUNT)
        if scope != ANY and isinstance(request.user, Principal):
            require(request.user.scopes, scope)
        return True
