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


def is_kept_whole(session_id: str) -> bool:
    """Whether the upstream reads the id back as it was given: it drops white space at both ends, and files what was
    said under another session."""
    return session_id == session_id.strip()


def unique_session_id(session_id: str, user_pk: UUID) -> str:
    """An engine id for a session whose own id another user already holds upstream, or which the upstream would not keep
    whole."""
    return with_mark(session_id, f"+{user_pk.hex}")


def with_mark(session_id: str, mark: str) -> str:
    """An engine id that the upstream takes and keeps: the session's own and the mark, or its digest and the mark."""
    marked = f"{session_id}{mark}"
    if len(marked) <= MAX_SESSION_ID_CHARS and is_kept_whole(marked):
        return marked
    return f"{hashlib.sha256(session_id.encode()).hexdigest()}{mark}"
