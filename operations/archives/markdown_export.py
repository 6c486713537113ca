"""Write the memories of users as Markdown: a folder per user, a file per day. `import_from markdown` reads it."""

import json
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Final
from uuid import UUID

from accounts import expiry
from accounts.audit import Actor, record
from accounts.models import MemoryUser
from core import readable
from core.errors import Conflict, NotFound
from core.persistence.sql import consistent_read
from core.times import isoformat
from operations.commands import Report, no_report
from store.models import IS_LIVE, Memory

_BATCH_ROWS: Final = 1000


def export_markdown(
    user_pks: Sequence[UUID] | None, folder: Path, *, actor: Actor, report: Report = no_report
) -> dict[str, int]:
    """Write the memories of some users, or of all, into a new folder; return the number of memories by user id.

    Memories in the trash, by themselves or with their session, are left out. Raises: `Conflict` if the folder exists,
    `NotFound` for the one around it, `Stopped`.
    """
    if not folder.parent.is_dir():
        raise NotFound(f"The folder {folder.parent} does not exist.")
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise Conflict(f"{folder} already exists. Choose another name.") from None
    expiry.end_all_due()
    users = MemoryUser.objects.order_by("user_id")
    done: dict[str, int] = {}
    for user in users if user_pks is None else users.filter(pk__in=user_pks):
        done[user.user_id] = 0
        with consistent_read():
            for day, memories in groupby(_memories(user), key=_day_of):
                file = folder / user.user_id / f"{day.isoformat()}.md"
                file.parent.mkdir(exist_ok=True)
                with file.open("w", encoding="utf-8", newline="\n") as opened:
                    opened.write(f"# {day.isoformat()}\n")
                    for memory in memories:
                        opened.write(_entry(memory))
                        done[user.user_id] += 1
                report("Exporting memories", sum(done.values()), 0)
    detail = {"count": sum(done.values())}
    record(actor, "memory.export", folder.name, subject_type="folder", users=done, detail=detail)
    return done


def _day_of(memory: Memory) -> date:
    return readable.moment(memory.created_at_ms).date()


def _memories(user: MemoryUser) -> Iterator[Memory]:
    found = Memory.objects.filter(IS_LIVE, user=user).select_related("session")
    return found.order_by("created_at_ms", "pk").iterator(_BATCH_ROWS)


def _entry(memory: Memory) -> str:
    head = {
        "id": memory.memory_id,
        "created_at": isoformat(readable.moment(memory.created_at_ms)),
        "category": memory.category,
        "importance": memory.importance,
        "agent_id": memory.agent_id,
        "session_id": memory.session.session_id if memory.session else "",
        **({"covered": True} if memory.is_covered else {}),
    }
    text = memory.text.replace("<!--", "<\\!--")  # a text cannot end its entry
    return f"\n<!-- memory {json.dumps(head, ensure_ascii=False)} -->\n{text}\n<!-- /memory -->\n"
