"""Authenticate tool calls over HTTP: a user's API key, or an OpenClaw token."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts import tokens
from accounts.api import limits
from accounts.api.authentication import UserKeyAuthentication, address_of
from accounts.audit import Actor
from accounts.principal import Principal
from agents.rpc.memory_admin import owner_for
from core.errors import Unauthenticated
from core.rest import Forbidden

_NO_KEY: Final = UUID(int=0)


class ToolAuthentication(BaseAuthentication):
    """Set `request.user` to the user whose memories are used, and `request.auth` to the actor.

    Raises: `Unauthenticated`, `Forbidden` for a token without write scope, `TooManyRequests`.
    """

    def authenticate(self, request: Request) -> tuple[Principal, Actor] | None:
        token = _token_of(request)
        if token is None:
            found = UserKeyAuthentication().authenticate(request)
            return None if found is None else (found[0], Actor.key(found[0]))
        try:
            holder = tokens.authenticate(token)
        except Unauthenticated:
            limits.count_failure(address_of(request))
            raise
        if not tokens.implied(holder.scopes, tokens.WRITE):
            raise Forbidden(f"missing scope: {tokens.WRITE}")
        owner = owner_for(holder)
        return Principal(owner.user_pk, owner.user_id, holder.token_id or _NO_KEY), holder.actor

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def _token_of(request: Request) -> str | None:
    """Return a bearer value that is not an API key, or None. Configured tokens have no common prefix."""
    scheme, _, bearer = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    bearer = bearer.strip()
    return bearer if scheme.lower() == "bearer" and bearer and not bearer.startswith("uk_") else None
