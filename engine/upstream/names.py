"""Ids that belong to one user here, but lie in one space shared by all users upstream."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID

MAX_SESSION_ID_CHARS = 128


@dataclass(frozen=True, slots=True)
class AgentNames:
    """Two users' agents `main` are two agents: upstream each carries its user's key, which nobody else can guess.

    64 + 1 + 32 characters at most, below EverOS's limit of 128.
    """

    suffix: str

    @classmethod
    def of(cls, user_pk: UUID) -> AgentNames:
        return cls(f"+{user_pk.hex}")

    def engine_id(self, agent_id: str) -> str:
        return f"{agent_id}{self.suffix}"

    def restore(self, text: str) -> str:
        """The agent's own name again, also at the beginning of a longer id."""
        return text.replace(self.suffix, "")


def unique_session_id(session_id: str, user_pk: UUID) -> str:
    """An engine id for a session whose own id another user already holds upstream."""
    unique = f"{session_id}+{user_pk.hex}"
    if len(unique) <= MAX_SESSION_ID_CHARS:
        return unique
    return f"{hashlib.sha256(session_id.encode()).hexdigest()}+{user_pk.hex}"
