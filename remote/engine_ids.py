"""Ids of one user's sessions and agents in EverOS, where all users share one id space."""

import hashlib
from uuid import UUID

MAX_SESSION_ID_CHARS = 128


class AgentNames:
    """Agent ids with the user's key as a suffix, so that two users' agents `main` stay separate in EverOS.

    64 + 1 + 32 characters at most, below EverOS's limit of 128.
    """

    def __init__(self, user_pk: UUID) -> None:
        self._suffix = f"+{user_pk.hex}"

    def engine_id(self, agent_id: str) -> str:
        return f"{agent_id}{self._suffix}"

    def restore(self, text: str) -> str:
        """Return the text without the suffix, also where the agent id is the start of a longer id."""
        return text.replace(self._suffix, "")


def is_kept_whole(session_id: str) -> bool:
    """Return True if EverOS keeps the id unchanged.

    EverOS strips white space at both ends, and files the messages under another session.
    """
    return session_id == session_id.strip()


def unique_session_id(session_id: str, user_pk: UUID) -> str:
    """Return an engine id for a session whose id another user holds in EverOS, or which EverOS would change."""
    return with_mark(session_id, f"+{user_pk.hex}")


def with_mark(session_id: str, mark: str) -> str:
    """Return an engine id that EverOS keeps: the session id, or its digest if that is too long, and the mark."""
    marked = f"{session_id}{mark}"
    if len(marked) <= MAX_SESSION_ID_CHARS and is_kept_whole(marked):
        return marked
    return f"{hashlib.sha256(session_id.encode()).hexdigest()}{mark}"
