"""Who reads people's memories leaves a trace: one line for each page, with its filters, never with any text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.http import HttpRequest

from accounts.admin_base import actor_of
from accounts.audit import record
from console.state import State
from store.types import StoredMemory

_TEXTS = frozenset({"q"})


def listed(
    request: HttpRequest, action: str, state: State, user_ids: Iterable[str] = (), *, subject_type: str = "memory"
) -> None:
    """A page of many: its filters in the words of its address, the words that were looked for only by their length."""
    users = sorted(set(user_ids))
    given = dict(state.parameters())
    detail: dict[str, object] = {"filter": {name: value for name, value in given.items() if name not in _TEXTS}}
    detail |= {f"{name}_chars": len(given[name]) for name in _TEXTS & given.keys()}
    if users:
        detail["users"] = users[:100]
    user_id = users[0] if len(users) == 1 else ""
    record(actor_of(request), action, subject_type=subject_type, subject_id="", user_id=user_id, detail=detail)


def opened(request: HttpRequest, action: str, memory: StoredMemory, detail: Mapping[str, object] | None = None) -> None:
    """One memory."""
    record(
        actor_of(request),
        action,
        subject_type="memory",
        subject_id=memory.memory_id,
        user_id=memory.owner.user_id,
        detail=detail,
    )
