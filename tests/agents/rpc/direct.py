"""Calls of RPC methods without a socket."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission, User

from accounts import tokens
from accounts.audit import Actor
from accounts.models import MemoryUser
from accounts.tokens import ADMIN, TokenPrincipal
from agents.rpc import methods
from agents.rpc.failures import Failure
from agents.rpc.frames import Request
from agents.rpc.handshake import Peer
from store import writes
from store.index.keyword import entry_of
from store.models import Memory, Session
from tests.conftest import Person

ACTOR = Actor.command("tests")
NOON_MS = 1_781_172_000_000  # 2026-06-11T10:00:00Z


def of_user(person: Person) -> TokenPrincipal:
    """Return the principal of a new token of the person."""
    user = MemoryUser.objects.get(pk=person.user_pk)
    return tokens.authenticate(tokens.issue("own", user=user, actor=ACTOR).plaintext)


def of_operator() -> TokenPrincipal:
    operator, is_new = User.objects.get_or_create(username="olga", defaults={"is_staff": True})
    if is_new:
        operator.user_permissions.set(Permission.objects.filter(content_type__app_label="store"))
    return tokens.authenticate(tokens.issue("desk", operator=operator, actor=ACTOR).plaintext)


def call(principal: TokenPrincipal, method: str, **params: Any) -> Any:
    """Call a method. Raises: `Failure`."""
    return methods.call(Peer(principal, (ADMIN,), 4), Request("1", method, params))


def refusal(principal: TokenPrincipal, method: str, **params: Any) -> dict[str, Any]:
    try:
        answer = call(principal, method, **params)
    except Failure as failure:
        return {"error": failure.error, "payload": failure.payload}
    raise AssertionError(f"{method} answered {answer}")


def add(principal: TokenPrincipal, text: str, *, agent: str = "main", category: str = "user_memory_fact") -> str:
    return str(call(principal, "memory.admin.add", agentId=agent, text=text, category=category)["id"])


def listed(principal: TokenPrincipal, **params: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = call(principal, "memory.admin.list", **{"agentId": "main", **params})["items"]
    return items


def texts(principal: TokenPrincipal, **params: Any) -> list[str]:
    return [item["text"] for item in listed(principal, **params)]


def row(person: Person, text: str, at_ms: int, **fields: Any) -> Memory:
    """Insert a memory with a given time."""
    session, _ = Session.objects.get_or_create(
        user_id=person.user_pk,
        session_id=fields.pop("session_id", "chat:c1"),
        defaults={"engine_session_id": "chat:c1", "kind": "chat"},
    )
    memory = Memory(
        **{
            "memory_id": f"id-of-{text}",
            "session": session,
            "agent_id": "main",
            "memory_type": "episode",
            "category": "full_context_user",
            "text": text,
            "created_at_ms": at_ms,
            **fields,
        }
    )
    writes.insert(person.owner, [memory], [entry_of(memory)])
    return memory
