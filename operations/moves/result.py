"""What both ways of moving a session share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from core.errors import EngineUnavailable
from operations.moves.decision_transfer import Carried
from store.models import Session
from store.types import Owner


class Changed(EngineUnavailable):
    """Somebody wrote to the session or decided about it meanwhile: begin it again."""


@dataclass(slots=True)
class Moved:
    """What became of one session: `messages` were told again, `replaced` old memories are gone, `made` are new,
    `stayed` are still those of before."""

    messages: int = 0
    made: int = 0
    replaced: int = 0
    stayed: int = 0
    decisions: Carried = field(default_factory=Carried)


Note = Callable[[Moved], None]
"""Runs inside the transaction that moves a session."""


def owner_of(session: Session) -> Owner:
    """Needs `user` loaded."""
    return Owner(session.user_id, session.user.user_id, session.app_id, session.project_id)
