"""What an upstream that cannot delete still holds of erased people and of sessions that moved elsewhere: nobody comes
to it by taking the same names.

Names are kept as digests only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Final

from store.models import LeftUpstream, Session

HOLDS: Final = "SELECT 1 FROM store_leftupstream WHERE digest = %s"
"""`holds_session` as a part of a statement, for `digest_of(session)`."""


def record_user(user_id: str, sessions: Iterable[Session]) -> None:
    """Writes down the names under which an upstream knows an erased user and their sessions."""
    _record({_digest("user", user_id), *map(digest_of, sessions)})


def record_session(session: Session) -> None:
    """Writes down the name under which an upstream knows what a session of a living user has left there."""
    _record({digest_of(session)})


def holds_user(user_id: str) -> bool:
    return LeftUpstream.objects.filter(digest=_digest("user", user_id)).exists()


def holds_session(session: Session) -> bool:
    """Whether the session has the name of one that an erased user wrote to."""
    return LeftUpstream.objects.filter(digest=digest_of(session)).exists()


def digest_of(session: Session) -> str:
    return _digest("session", session.app_id, session.project_id, session.engine_session_id)


def _record(digests: Collection[str]) -> None:
    LeftUpstream.objects.bulk_create([LeftUpstream(digest=digest) for digest in digests], ignore_conflicts=True)


def _digest(*names: str) -> str:
    return hashlib.sha256("\0".join(names).encode()).hexdigest()
