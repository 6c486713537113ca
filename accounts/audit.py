"""The audit trail: who did what to which subject. Memory text and keys never go in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accounts.models import AuditEvent
from accounts.principal import Principal
from core.request_context import request_id


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: `kind` is one of `AuditEvent.ActorKind`, `name` the id of a key or token, an operator's name
    or a command."""

    kind: str
    name: str

    @classmethod
    def key(cls, principal: Principal) -> Actor:
        return cls(AuditEvent.ActorKind.KEY, str(principal.key_id))

    @classmethod
    def operator(cls, username: str) -> Actor:
        return cls(AuditEvent.ActorKind.OPERATOR, username)

    @classmethod
    def command(cls, name: str) -> Actor:
        return cls(AuditEvent.ActorKind.COMMAND, name)

    @classmethod
    def provisioning(cls) -> Actor:
        """Whoever may create users: anyone under `local`, the bearer of the provisioning token otherwise."""
        return cls(AuditEvent.ActorKind.PROVISIONING, "")

    @classmethod
    def system(cls, name: str) -> Actor:
        return cls(AuditEvent.ActorKind.SYSTEM, name)


def record(
    actor: Actor,
    action: str,
    *,
    subject_type: str,
    subject_id: str,
    user_id: str = "",
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Writes one event into the caller's transaction, so that the trail and the deed stand or fall together.

    `user_id` is whose data it is about; `detail` is small plain JSON.
    """
    AuditEvent.objects.create(
        actor_kind=actor.kind,
        actor=actor.name[:150],
        action=action,
        subject_type=subject_type,
        subject_id=subject_id[:256],
        user_id=user_id[:64],
        request_id=request_id.get()[:64],
        detail=dict(detail or {}),
    )
