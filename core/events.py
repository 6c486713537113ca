"""Events: changes of a user's data that other apps react to, in the transaction of the change.

An app connects its receiver to `changed` in its `tasks.py`. A receiver that raises undoes the change.
"""

from typing import Any, Literal
from uuid import UUID

from django.db import transaction
from django.dispatch import Signal

EventType = Literal[
    "resource.created",
    "resource.extracted",
    "resource.empty",
    "resource.failed",
    "resource.deleted",
    "resource.expired",
    "resource.restored",
    "remote.refused",
    "session.flushed",
    "session.deleted",
    "session.restored",
    "session.expired",
    "memory.added",
    "memory.deleted",
    "memory.expired",
    "memory.restored",
    "memory.overridden",
    "memory.override_undone",
    "memory.corrected_by_user",
    "user.paused",
    "user.resumed",
]

changed = Signal()
"""Sent with `event_type`, `user_pk` and `data`: plain JSON with ids and our own causes, never with stored text."""


def publish(event_type: EventType, user_pk: UUID, **data: Any) -> None:
    """Send an event to all receivers.

    Raises: `TransactionManagementError` outside a transaction.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(f"{event_type} must be published in the transaction of its change")
    changed.send(sender=None, event_type=event_type, user_pk=user_pk, data=data)
