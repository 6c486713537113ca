"""Import memories of other stores: a plan, a job that can be stopped, resumed and run again, and its undo."""

import hashlib
import sqlite3
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from accounts.audit import Actor
from accounts.controls import require_not_paused
from accounts.models import MemoryUser
from accounts.zones import zone_of_user
from core.errors import InvalidInput, NotFound, existing
from core.events import publish
from core.ids import check_name
from core.messages import Translatable as _
from core.persistence.checked_rows import check_row
from core.persistence.file_keys import FileKey
from core.persistence.files import require_free, stored_files, temporary_file, write_all
from memories.models import Override
from memories.services import manual
from memories.services.hygiene import own_text
from memories.services.lookup import require_own_session
from memories.services.zones import offset_of
from operations import files, jobs
from operations.commands import Report, no_report
from operations.importers.sources import READERS, Found, Left, read
from operations.jobs import Handler, Run
from operations.models import Job
from store import topic_model, writes
from store.admission import Offer, Source, admit, texts_in
from store.categories import CATEGORIES
from store.models import IS_PURGED, Memory, Session, owned_by
from store.types import Owner

KIND: Final = "import_from"
_STEP_ROWS: Final = 500
_MODEL_SECONDS: Final = 60.0
_NAMED_PLACES: Final = 5
New = tuple[str, Memory]
"""A memory that is not saved, and its session."""
_NAMESPACE: Final = uuid.UUID("6d656d6f-7279-4761-8465-776179696d70")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A source, and whose memories it becomes. `category` is for memories that have none.

    An upload in the storage has a `key` instead of a `path`.
    """

    source: str
    path: Path = Path()
    key: FileKey | None = None
    owner: Owner
    of_user: str | None = None
    category: str = "user_memory_fact"

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "path": "" if self.key else str(self.path.absolute()),
            "key": self.key or "",
            "user": str(self.owner.user_pk),
            "app_id": self.owner.app_id,
            "project_id": self.owner.project_id,
            "of_user": self.of_user,
            "category": self.category,
        }

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Self:
        """Return the request of a job. Raises: `NotFound` for a user who was erased."""
        user = existing(MemoryUser.objects.filter(pk=given["user"]), _("There is no such user."))
        owner = Owner(user.pk, user.user_id, given["app_id"], given["project_id"])
        kept = {name: given[name] for name in ("source", "of_user", "category")}
        return cls(path=Path(given["path"]), key=given.get("key") or None, owner=owner, **kept)

    @property
    def session_id(self) -> str:
        """Return the session of imported memories without one."""
        return f"import_{self.source}"

    def memories(self) -> Iterator[New]:
        """Yield the memories of the source with their sessions. Raises: as `items`."""
        return (item for item in self.items() if not isinstance(item, Left))

    def items(self) -> Iterator[New | Left]:
        """Yield what the source has; of equal facts the first. Raises: as `sources.read` and `require_upload`."""
        first: dict[bytes, str] = {}
        with ExitStack() as opened:
            path = self.path
            if self.key:
                self.require_upload()
                path = opened.enter_context(stored_files().local_copy(self.key))
            for item in read(self.source, path, self.of_user):
                new = item if isinstance(item, Left) else self._new(item)
                if isinstance(new, tuple) and not new[1].category.startswith("full_context_"):
                    memory = new[1]
                    said = "\0".join([new[0], memory.category, memory.agent_id, memory.text.casefold()])
                    digest = hashlib.sha256(" ".join(said.split()).encode()).digest()[:16]
                    if first.setdefault(digest, memory.memory_id) != memory.memory_id:
                        new = Left("the text of another memory", str(memory.payload["source_id"])[:100])
                yield new

    def require_upload(self) -> None:
        """Check that the upload exists. Raises: `NotFound` if it is older than a day, or used."""
        if self.key and not stored_files().exists(self.key):
            raise NotFound(_("The uploaded file has expired. Upload it again."))

    def _new(self, found: Found) -> New | Left:
        memory = self._memory(found)
        if not memory.text:
            return Left(_("contains only recalled memories"), found.source_id)
        try:
            check_row(memory)
        except InvalidInput as error:
            return Left(error.detail, found.source_id)
        return self._session_of(found), memory

    def _session_of(self, found: Found) -> str:
        try:
            require_own_session(self.owner, found.session_id)
        except NotFound:
            return self.session_id
        return found.session_id

    def _memory(self, found: Found) -> Memory:
        agent_id = _name(found.agent_id)
        said_by = self.owner.user_id if found.category == "full_context_user" else agent_id or self.owner.user_id
        speaker = found.speaker or said_by
        payload = {"imported_from": self.source, "source_id": found.source_id, **found.details}
        if found.unread_date:
            payload["unread_date"] = found.unread_date
        if found.agent_id != agent_id:
            payload["agent_id"] = found.agent_id
        payload |= offset_of(zone_of_user(self.owner.user_pk), found.created_at_ms)
        return Memory(
            memory_id=found.memory_id or str(uuid.uuid5(_NAMESPACE, f"{self.source}:{found.source_id}")),
            agent_id=agent_id,
            memory_type=Memory.Type.EPISODE,
            category=found.category if found.category in CATEGORIES else self.category,
            sender_id=speaker,
            speaker=speaker[: manual.MAX_SPEAKER_CHARS],
            text=own_text(found.text).strip(),
            importance=found.importance,
            batch_id=found.batch_id,
            payload=payload,
            created_at_ms=found.created_at_ms,
            origin=Memory.Origin.PANEL,
        )


@dataclass(slots=True)
class Plan:
    """The content of a source: new memories, those that exist already or occur twice, and the others by reason.

    `places` are the first of each reason. `undated` are the memories whose date could not be read: they get the file's.
    """

    new: int = 0
    duplicates: int = 0
    left: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)
    undated: int = 0
    unread_dates: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.new + self.duplicates + self.left.total()

    def note_date(self, memory: Memory) -> None:
        """Count a memory whose date could not be read."""
        if date := memory.payload.get("unread_date"):
            self.undated += 1
            if len(self.unread_dates) < _NAMED_PLACES:
                self.unread_dates.append(f"{memory.payload['source_id']}: {date}")

    def leave(self, item: Left) -> None:
        """Count a part that cannot be imported."""
        self.left[item.reason] += 1
        known = self.places.setdefault(item.reason, [])
        if item.place not in known and len(known) < _NAMED_PLACES:
            known.append(item.place)


def submit(request: Request, *, total: int, actor: Actor) -> Job:
    """Start a job that the worker runs. Raises: `Paused`, `NotFound` for an upload that is too old, or used."""
    require_not_paused(request.owner.user_pk)
    request.require_upload()
    return jobs.submit(KIND, request.as_json(), actor=actor, total=total)


def plan(request: Request, *, report: Report = no_report) -> Plan:
    """Read the whole source without writing anything.

    Raises: as `sources.read`, `Paused` and `Stopped`.
    """
    require_not_paused(request.owner.user_pk)
    if request.source not in READERS:
        raise InvalidInput.of_field("source", f"must be one of {', '.join(READERS)}")
    if request.category not in CATEGORIES:
        raise InvalidInput.of_field("category", f"must be one of {', '.join(CATEGORIES)}")
    planned, items, done = Plan(), request.items(), 0
    # A temporary file: a source may have more ids than memory has room for.
    with closing(sqlite3.connect("")) as seen:
        seen.execute("CREATE TABLE seen (id BLOB PRIMARY KEY) WITHOUT ROWID")
        while batch := list(islice(items, _STEP_ROWS)):
            found = []
            for item in batch:
                if isinstance(item, Left):
                    planned.leave(item)
                else:
                    planned.note_date(item[1])
                    found.append(item[1].memory_id)
            ids = set(found)
            fresh = [(hashlib.sha256(one.encode()).digest()[:16],) for one in ids - writes.known(request.owner, ids)]
            added = seen.executemany("INSERT OR IGNORE INTO seen VALUES (?)", fresh).rowcount
            planned.new += added
            planned.duplicates += len(found) - added
            done += len(found)
            report("Reading the source", done, 0)
    return planned


def keep_upload(user_pk: UUID, chunks: Iterable[bytes], *, is_archive: bool) -> FileKey:
    """Store an uploaded source for a day, and return its key. Raises: `Paused`, `NoSpace`, `StorageUnavailable`."""
    require_not_paused(user_pk)
    key = files.archive_key(user_pk, f"{uuid.uuid4()}{'.zip' if is_archive else '.json'}")
    with temporary_file() as (descriptor, temporary):
        for chunk in chunks:
            require_free(len(chunk))
            write_all(descriptor, chunk)
        stored_files().put(temporary, key)
    return key


def _name(agent_id: str) -> str:
    try:
        return check_name(agent_id) if agent_id else ""
    except ValueError:
        return ""


def _run(run: Run) -> dict[str, Any]:
    """Import in steps. A resumed job reads the source from its beginning.

    What exists is left out, also in the trash; a purge leaves an empty row, so that nothing purged returns. So is what
    was said during a pause.
    """
    request = Request.from_json(run.params)
    memories, seen, added = request.memories(), 0, run.cursor.get("added", 0)
    while batch := list(islice(memories, _STEP_ROWS)):
        unique = {memory.memory_id: (session, memory) for session, memory in reversed(batch)}
        if topic_model.is_set():  # and asked before the transaction
            offers = [_offer(unique[name][1]) for name in _unknown(request.owner, unique)]
            admit(request.owner.user_pk, offers, ask_seconds=_MODEL_SECONDS)
        with transaction.atomic():
            unknown = [unique[name] for name in _unknown(request.owner, unique)]
            require_not_paused(request.owner.user_pk)
            refused = admit(
                request.owner.user_pk, [_offer(memory) for _session, memory in unknown], ask_seconds=0
            ).refused
            new = [one for place, one in enumerate(unknown) if place not in refused]
            sessions = _add(request.owner, new)
            seen, added = seen + len(batch), added + len(new)
            changes = [*(memory.pk for _session, memory in new), *({"session": pk} for pk in sessions)]
            run.step(changes, done=seen, total=max(run.job.total, seen), cursor={"added": added})
        run.check()
    return {"made": added, "left": seen - added}


def _unknown(owner: Owner, memory_ids: Collection[str]) -> list[str]:
    """Return the ids of memories that do not exist yet, in the order of the source."""
    known = writes.known(owner, set(memory_ids))
    return [name for name in reversed(list(memory_ids)) if name not in known]


def _offer(memory: Memory) -> Offer:
    source: Source = "chats" if memory.category.startswith("full_context_") else "agents"
    ids = {"imported_from", "source_id", "agent_id"}
    kept_with_it = tuple(texts_in([value for name, value in memory.payload.items() if name not in ids]))
    names = [memory.speaker, memory.payload.get("agent_id") or memory.agent_id, memory.payload["source_id"]]
    return Offer(source, memory.text, str(memory.payload.get("role", "")), memory.created_at_ms, kept_with_it, names)


def _add(owner: Owner, new: Sequence[tuple[str, Memory]]) -> list[int]:
    """Save memories in their sessions; return the row ids of sessions that this created."""
    by_session: dict[str, list[Memory]] = {}
    for session_id, memory in new:
        by_session.setdefault(session_id, []).append(memory)
    sessions = Session.objects.filter(owned_by(owner), session_id__in=by_session)
    existing = set(sessions.values_list("pk", flat=True))
    for session_id, memories in by_session.items():
        manual.add_imported(owner, memories, session_id=session_id)
    return sorted(set(sessions.values_list("pk", flat=True)) - existing)


def _undo(_run: Run, job: Job, changes: list[Any]) -> tuple[int, int]:
    """Remove the memories of a step, except those that the user edited since."""
    owner = Request.from_json(job.params).owner
    added = [one for one in changes if not isinstance(one, dict)]
    sessions = [one["session"] for one in changes if isinstance(one, dict)]
    edited = Override.objects.filter(row__in=added, undone_at__isnull=True)
    kept = IS_PURGED | Q(pk__in=edited.values("row"))
    removed = list(Memory.objects.filter(owned_by(owner), pk__in=added).exclude(kept))
    writes.remove(owner, removed)
    if removed:
        ids = [memory.memory_id for memory in removed]
        publish("memory.deleted", owner.user_pk, **owner.scope, memory_ids=ids)
    Session.objects.filter(owned_by(owner), pk__in=sessions, memories__isnull=True).delete()
    return len(removed), len(added) - len(removed)


def _finish(job: Job) -> None:
    if key := job.params.get("key"):
        stored_files().remove(key)
    users = MemoryUser.objects.filter(pk=job.params["user"]).values_list("user_id", flat=True)
    jobs.record_end(job, f"job.{KIND}", {**job.params, "count": job.cursor.get("added", 0)}, users=users)


jobs.KINDS[KIND] = Handler(_run, finish=_finish, undo=_undo)
