"""Names of erased users and moved sessions whose data an external engine cannot delete.

A new user or session with the same name must not reach that data. Names are stored as digests only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Final

from store.models import LeftUpstream, Session

HOLDS: Final = "SELECT 1 FROM store_leftupstream WHERE digest = %s"
"""SQL of `holds_session`, for the parameter `digest_of(session)`."""


def record_user(user_id: str, sessions: Iterable[Session]) -> None:
    """Record the names under which the engine knows an erased user and their sessions."""
    _record({_digest("user", user_id), *map(digest_of, sessions)})


def record_session(session: Session) -> None:
    """Record the name of a living user's session that left data in the engine."""
    _record({digest_of(session)})


def holds_user(user_id: str) -> bool:
    return LeftUpstream.objects.filter(digest=_digest("user", user_id)).exists()


def holds_session(session: Session) -> bool:
    """Return True if the session has the name of a recorded one."""
    return LeftUpstream.objects.filter(digest=digest_of(session)).exists()


def digest_of(session: Session) -> str:
    return _digest("session", session.app_id, session.project_id, session.engine_session_id)


def _record(digests: Collection[str]) -> None:
    LeftUpstream.objects.bulk_create([LeftUpstream(digest=digest) for digest in digests], ignore_conflicts=True)


def _digest(*names: str) -> str:
    return hashlib.sha256("\0".join(names).encode()).hexdigest()
