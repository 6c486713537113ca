"""Names under which a remote still holds data: of erased users, and of sessions that were sent again.

Digests of the names are kept for ever: a new user or session of such a name must not reach that data.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, Q

from accounts.models import MemoryUser
from core.ids import remote_name
from core.messages import Translatable as _
from remote.models import OutboxEntry
from store.models import IS_PURGED, Memory, Residue, Session

IS_HELD: Final = "SELECT 1 FROM store_residue WHERE digest = %s"
"""SQL with a digest as its parameter."""
_KEPT = _("EverOS cannot delete data and keeps the data listed in `remote`. No user of this gateway can read it.")
_WAS_NOT_SENT: Final = Q(state__in=[OutboxEntry.State.REFUSED, OutboxEntry.State.WITHHELD])


def note_user(name: str, sessions: Iterable[Session]) -> None:
    """Record the names that the remote still has of an erased user and their sessions."""
    _record({_digest("user", name), *map(digest_of, sessions)})


def note_session(session: Session) -> None:
    """Record the name of a living user's session that left data at the remote."""
    _record({digest_of(session)})


def holds_user(name: str) -> bool:
    """Return True if an erased user had this name."""
    return Residue.objects.filter(digest=_digest("user", name)).exists()


def holds_session(session: Session) -> bool:
    """Return True if a session that was sent again, or one of an erased user, had this name."""
    return Residue.objects.filter(digest=digest_of(session)).exists()


def digest_of(session: Session) -> str:
    """Return the digest of the session's name at the remote."""
    return _digest("session", session.app_id, session.project_id, session.engine_session_id)


def of_user(user: MemoryUser) -> dict[str, Any] | None:
    """Return what an erased user leaves at remotes, by the names there; None if none was ever used.

    The names are recorded. The result goes into the receipt, with the deletions there.
    """
    derived = Memory.objects.filter(user=user, origin=Memory.Origin.REMOTE).exclude(IS_PURGED).count()
    entries = OutboxEntry.objects.filter(user=user).exclude(_WAS_NOT_SENT)
    by_remote = dict(entries.order_by().values_list("base_url").annotate(Count("pk")))
    withdrawn = entries.filter(state=OutboxEntry.State.PENDING).count()
    attached = settings.MEMORY_GATEWAY_BACKEND_BASE_URL
    if not (attached or by_remote or derived):
        return None
    sessions = list(Session.objects.filter(user=user))
    name = remote_name(user.pk, user.user_id)
    note_user(name, sessions)
    return {
        "base_urls": sorted({attached, *by_remote} - {""}),
        "user_id": name,
        "agents": f"*+{user.pk.hex}",
        "sessions": sorted({session.engine_session_id for session in sessions}),
        "withdrawn": withdrawn,
        "sent": sum(by_remote.values()) - withdrawn,
        "memories": derived,
    }


def sentences(deleted: Mapping[str, int] | None) -> list[str]:
    """Return sentences about what stays. `deleted` are the counts of deletions at the remote, if it can delete."""
    if deleted is None:
        return [_KEPT]
    accepted = _(
        "Accepted by EverOS: %(accepted)s deletions of %(entries)s entries. A profile, which belongs to no session, "
        "stays there.",
        **deleted,
    )
    pending = _(
        "EverOS has not accepted %(pending)s deletions yet. The gateway keeps their ids and repeats them.", **deleted
    )
    said: list[str] = [accepted if deleted["accepted"] else _KEPT]
    return [*said, pending] if deleted["pending"] else said


def _record(digests: Collection[str]) -> None:
    Residue.objects.bulk_create([Residue(digest=digest) for digest in digests], ignore_conflicts=True)


def _digest(*names: str) -> str:
    return hashlib.sha256("\0".join(names).encode()).hexdigest()
