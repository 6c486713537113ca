"""Audit trail of changes and reads: actor, action and subject, without memory text and keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from accounts.models import AuditEvent, Principal
from core.logs import request_id
from core.persistence.checked_rows import repair_row

# The kind of an event follows from the verb of its action. Exports are changes: they take data out.
_KINDS: Final = {
    **dict.fromkeys(("download", "find", "list", "search", "view"), AuditEvent.Kind.READ),
    **dict.fromkeys(("lock_out", "refuse", "sign_in", "sign_out", "unlock"), AuditEvent.Kind.SIGN_IN),
}


@dataclass(frozen=True, slots=True)
class Actor:
    """The actor of an event.

    `kind` is one of `AuditEvent.ActorKind`; `name` is the id of a key or token, an operator's name or a command.
    """

    kind: str
    name: str

    @classmethod
    def key(cls, principal: Principal) -> Self:
        return cls(AuditEvent.ActorKind.KEY, str(principal.key_id))

    @classmethod
    def operator(cls, username: str) -> Self:
        return cls(AuditEvent.ActorKind.OPERATOR, username)

    @classmethod
    def command(cls, name: str) -> Self:
        return cls(AuditEvent.ActorKind.COMMAND, name)

    @classmethod
    def provisioning(cls) -> Self:
        """Return the actor that creates users: anyone under `local`, else the bearer of the provisioning token."""
        return cls(AuditEvent.ActorKind.PROVISIONING, "")

    @classmethod
    def system(cls, name: str) -> Self:
        return cls(AuditEvent.ActorKind.SYSTEM, name)


def record(
    actor: Actor,
    action: str,
    subject_id: str = "",
    *,
    subject_type: str = "",
    user_id: str = "",
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Record an event in the caller's transaction, so that both are committed or rolled back together.

    An action is named `subject.verb`; `subject_type` is needed only if its subject is of another type. `user_id` is the
    user whose data it concerns; `detail` is small plain JSON.
    """
    subject, _dot, verb = action.rpartition(".")
    event = AuditEvent(
        actor_kind=actor.kind,
        actor=actor.name[:150],
        action=action,
        kind=_KINDS.get(verb, AuditEvent.Kind.CHANGE),
        subject_type=subject_type or subject,
        subject_id=subject_id[:256],
        user_id=user_id[:64],
        request_id=request_id.get()[:64],
        detail=dict(detail or {}),
    )
    repair_row(event)  # a name or path that cannot be stored must not stop what is recorded
    event.save()
