"""End what moves between engines of older versions left: a hidden session for each, with what was sent to EverOS."""

from remote import deletions, residue
from remote.former_journal import STAGED
from store import writes
from store.models import Session


def end_former_moves() -> int:
    """Remove the hidden sessions, and record what the remote still holds of them; return their number."""
    count = 0
    for session in Session.objects.filter(session_id__startswith=STAGED).select_related("user"):
        residue.note_session(session)
        deletions.queue_session(session.owner, session)
        writes.remove(session.owner, list(session.memories.all()))
        session.delete()
        count += 1
    return count
