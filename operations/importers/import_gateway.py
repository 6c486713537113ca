"""Import the users of the original gateway with their keys, resources, attachments, tombstones and overrides.

A plan is the import in transactions that are rolled back. The memories themselves are at the remote and stay there.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from accounts import services as accounts
from accounts.audit import Actor, record
from accounts.controls import is_paused
from accounts.models import MemoryUser, Pause, UserKey
from core.errors import Conflict, InvalidInput
from core.ids import check_user_id, parse_session_id, session_name, user_of_alias
from core.persistence.file_keys import MESSAGE_FILES, FileKey, file_key, is_key
from core.persistence.files import stored_files
from core.times import to_ms
from documents.mime_types import content_type_of, extension_of
from engines.registry import get_engine
from memories.models import Override, Tombstone
from memories.services import decisions
from operations import files, jobs, tables
from operations.commands import Report, no_report
from operations.importers.gateway_source import TABLES, Left, Row, Source, StoredFile, open_source
from operations.jobs import Handler, Run
from operations.models import Job
from resources import storage
from resources.models import Attachment, Resource
from resources.services import deletion
from store import writes as memory_storage
from store.admission import Offer, admit
from store.admission import Source as AdmissionSource
from store.cover import is_attached
from store.models import Memory, Session, State, owned_by, owner_columns

_PAUSED: Final = "of a user who has paused remembering"
_PAUSED_THEN: Final = "of a time in which the user paused remembering"
KIND: Final = "import_gateway"
_STEP_ROWS: Final = 50
_NAMED_PLACES: Final = 5
_NAMESPACE: Final = uuid.UUID("6d656d6f-7279-4761-8465-6f726967696e")
_RESOURCE_ID: Final = re.compile(r"r_[0-9a-f]{32}")
_DECISION_ID: Final = re.compile(r"[a-z]_[A-Za-z0-9_-]{1,38}")
_EXTENSION: Final = re.compile(r"\.[a-z0-9]{1,8}")
_MAX_URI: Final = 2048
_MAX_OVERRIDE_CHARS: Final = 100_000

Change = list[str]
"""A created row: its kind and primary key."""


@dataclass(slots=True)
class Plan:
    """The content of a source: its rows that are new, that exist already, and those left out with the reason.

    `places` are the first rows of each reason.
    """

    new: Counter[str] = field(default_factory=Counter)
    duplicates: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[int]] = field(default_factory=dict)

    def leave(self, table: str, row: Row, reason: str) -> None:
        """Count a row that cannot be imported."""
        named = f"{table}: {reason}"
        self.left[named] += 1
        self.places[named] = [*self.places.get(named, ()), row.number][:_NAMED_PLACES]

    def as_json(self) -> dict[str, Any]:
        counts = {"new": dict(self.new), "duplicates": dict(self.duplicates), "left": dict(self.left)}
        return {**counts, "at": self.places}


def plan(path: Path, storage_dir: Path, *, actor: Actor, report: Report = no_report) -> Plan:
    """Read the whole source and keep nothing. Raises: `NotFound`, `InvalidInput`, and `Stopped`."""
    planned, done = Plan(), 0
    with open_source(path, storage_dir) as source:
        total, importing = source.count(), _Import(source, actor, is_plan=True)
        for table, rows in source.batches(_STEP_ROWS):
            prepared = [importing.with_file(table, row) for row in rows]
            with transaction.atomic():
                _import_rows(importing, table, prepared, planned)
                transaction.set_rollback(True)
            done += len(rows)
            report("Reading the source", done, total)
    return planned


def start(path: Path, storage_dir: Path, *, total: int, actor: Actor) -> Job:
    """Return the job of the import: the interrupted one, else a new one. `jobs.run_now` runs it."""
    params = {"path": str(path.absolute()), "storage": str(storage_dir.absolute())}
    return jobs.interrupted_or_new(KIND, params, actor=actor, total=total)


def _run(run: Run) -> dict[str, Any]:
    new, duplicates, left = (Counter(run.cursor.get(name, {})) for name in ("new", "duplicates", "left"))
    made = Plan(new, duplicates, left, run.cursor.get("at", {}))
    done, begun, after = run.cursor.get("done", 0), run.cursor.get("table", TABLES[0]), run.cursor.get("after", 0)
    with open_source(Path(run.params["path"]), Path(run.params["storage"])) as source:
        importing = _Import(source, run.actor)
        for table, rows in source.batches(_STEP_ROWS, begun, after):
            prepared = [importing.with_file(table, row) for row in rows]
            done += len(rows)
            with transaction.atomic():
                changes = _import_rows(importing, table, prepared, made)
                cursor = {"table": table, "after": rows[-1].number, "done": done, **made.as_json()}
                run.step(changes, done=done, total=max(run.job.total, done), cursor=cursor)
            run.check()
    return {"made": made.new.total(), "left": made.left.total() + made.duplicates.total(), **made.as_json()}


def _import_rows(
    importing: _Import, table: str, prepared: list[tuple[Row, StoredFile | None]], counts: Plan
) -> list[Change]:
    """Import rows in the transaction of the caller, count them, and return what was created."""
    changes: list[Change] = []
    for row, file in prepared:
        try:
            with transaction.atomic():
                created = importing.add(table, row, file)
        except (Left, InvalidInput) as left:
            counts.leave(table, row, str(left))
            continue
        except IntegrityError:
            created = []
        changes += created
        counts.new.update(f"{kind}s" for kind, _pk in created if kind != "session")
        if not created:
            counts.duplicates[table] += 1
    return changes


class _Import:
    """Creates rows of one source, except those of users with a decision that cannot be stored.

    A plan copies no files, and creates the users that a row needs.
    """

    def __init__(self, source: Source, actor: Actor, *, is_plan: bool = False) -> None:
        self._source, self._actor, self._is_plan = source, actor, is_plan
        self._engine = get_engine()
        self._refused = _refused_users(source)
        self._add: dict[str, Callable[[Row, StoredFile | None], list[Change]]] = {
            "users": self._add_user,
            "user_resources": self._add_resource,
            "memory_attachments": self._add_attachment,
            "memory_tombstones": self._add_tombstone,
            "memory_overrides": self._add_override,
        }

    def add(self, table: str, row: Row, file: StoredFile | None) -> list[Change]:
        """Create what a row describes, and return it; empty if it exists. Raises: `Left`."""
        return self._add[table](row, file)

    def with_file(self, table: str, row: Row) -> tuple[Row, StoredFile | None]:
        """Return a row with its stored file, which an import copies before its transaction."""
        name = {"user_resources": "uri", "memory_attachments": "internal_uri"}.get(table)
        is_left = _is_deleted(row) or str(row.values.get("user_id")) in self._refused
        try:
            if name is None or is_left or (table == "memory_attachments" and self._is_of_resource(row)):
                return row, None
            file = self._source.file(row.text(name, _MAX_URI))
            user = None if self._is_plan else MemoryUser.objects.filter(user_id=row.text("user_id")).first()
            if file is None or user is None:
                return row, file
            if is_paused(user.pk):
                return row, None
            place = _resource_path(user, row) if table == "user_resources" else _attachment_path(user, row, file)
        except Left:
            return row, None  # `add` names the reason
        if not stored_files().exists(place) and not Resource.objects.filter(pk=_resource_id(row)).exists():
            with file.path.open("rb") as opened:
                files.put(place, opened)
        return row, file

    def _user(self, row: Row) -> MemoryUser:
        user_id = row.text("user_id")
        if user_id in self._refused:
            raise Left("of a user that is not imported")
        user = MemoryUser.objects.filter(user_id=user_id).first()
        if user is None and self._is_plan and self._source.has_user(user_id) and _is_name(user_id):
            return MemoryUser.objects.create(user_id=user_id)
        if user is None:
            raise Left("of a user that is not imported")
        if is_paused(user.pk):
            raise Left(_PAUSED)
        return user

    def _add_user(self, row: Row, _file: StoredFile | None) -> list[Change]:
        user_id, created_at = row.text("user_id"), row.time("created_at") or timezone.now()
        if not _is_name(user_id):
            raise Left("a user ID that is too long or has invisible characters")
        if user_id in self._refused:
            raise Left(f"refused, because deleted text would come back: {self._refused[user_id]}")
        if Pause.objects.filter(user__user_id=user_id, ended_at=None).exists():
            raise Left(_PAUSED)
        changes: list[Change] = []
        user, is_new = MemoryUser.objects.get_or_create(user_id=user_id)
        if is_new:
            MemoryUser.objects.filter(pk=user.pk).update(created_at=created_at)
            record(self._actor, "user.create", str(user.pk), user_id=user_id)
            changes.append(["user", str(user.pk)])
        try:
            key = accounts.import_key(user, row.text("user_key"), created_at=created_at, actor=self._actor)
        except InvalidInput:
            if not is_new:
                raise Left("an API key of another format") from None
            key = None  # `POST /users` gives the user a new one
        except Conflict:
            raise Left("an API key of another user") from None
        return [*changes, *([["key", str(key.pk)]] if key else [])]

    def _add_resource(self, row: Row, file: StoredFile | None) -> list[Change]:
        columns, resource_id = self._columns(row), _resource_id(row)
        filename, uri = row.text("filename", 255), row.text("uri", _MAX_URI)
        digest = row.text("sha256").lower()
        deleted_at = row.time("deleted_at") or (timezone.now() if row.text("status") == "deleted" else None)
        is_upload = file is not None or (uri.startswith("file://") and f"/{row.text('resource_id')}/" in uri)
        _require_own_session(columns)
        if not filename:
            raise Left("without a file name")
        _require_admitted(columns, "files", filename, row)
        if is_upload and file is None and deleted_at is None:
            raise Left("its file is missing from the storage folder")
        if file is not None and digest and digest != file.sha256:
            raise Left("its file differs from its SHA-256 digest")
        mime_type = row.text("mime_type", 127) or None
        created_at = row.time("created_at") or timezone.now()
        resource = Resource(
            **columns,
            resource_id=resource_id,
            origin=Resource.Origin.UPLOAD if is_upload else Resource.Origin.EXTERNAL,
            filename=filename,
            title=row.text("title", 500) or None,
            description=row.text("description") or None,
            content_type=content_type_of(mime_type, filename),
            mime_type=mime_type,
            size_bytes=file.size_bytes if file else _size(row),
            sha256=file.sha256 if file else digest if re.fullmatch("[0-9a-f]{64}", digest) else "",
            storage_path=_resource_path(columns["user"], row) if file else "",
            source_uri="" if is_upload else uri,
            created_at=created_at,
            updated_at=row.time("updated_at") or created_at,
            state=State.PURGED if deleted_at else State.LIVE,
            state_since=deleted_at,
        )
        if deleted_at is None:
            self._set_status(resource, row)
        if Resource.objects.filter(pk=resource_id).exists():
            return []
        resource.save_base(raw=True, force_insert=True)  # raw: keep its times
        changes: list[Change] = [["resource", resource_id]]
        if deleted_at is not None:
            deletion.record_deletion(resource, self._actor, deleted_at)
            return changes
        resource.new_attachment().save()
        if is_attached():
            changes += self._add_session(resource)
        return changes

    def _set_status(self, resource: Resource, row: Row) -> None:
        """Keep the status while a remote is attached; otherwise the worker ingests the file again."""
        status = row.text("status")
        if not is_attached():
            resource.status = Resource.Status.PENDING
        elif status == "extracted":
            resource.status, resource.searchable_at = Resource.Status.EXTRACTED, resource.updated_at
        else:
            message = row.text("error_message")[:1000] or "The original gateway did not finish the ingestion."
            resource.status, resource.error_message = Resource.Status.FAILED, message

    def _add_session(self, resource: Resource) -> list[Change]:
        is_done = resource.status == Resource.Status.EXTRACTED
        session, is_new = Session.objects.get_or_create(
            **owner_columns(resource.owner),
            session_id=resource.session_id,
            defaults={
                "engine_session_id": resource.session_id,
                "kind": parse_session_id(resource.session_id).kind,
                "flushed_at": resource.updated_at if is_done else None,
                "searchable_at": resource.updated_at if is_done else None,
            },
        )
        return [["session", str(session.pk)]] if is_new else []

    def _add_attachment(self, row: Row, file: StoredFile | None) -> list[Change]:
        columns = self._columns(row)
        _require_own_session(columns)
        uri, name = row.text("internal_uri", _MAX_URI), row.text("name", 255) or row.text("filename", 255)
        if not uri or not name:
            raise Left("without an address or a name")
        if self._is_of_resource(row):
            return []  # the resource has it
        _require_admitted(columns, "files", name, row)
        place = _attachment_path(columns["user"], row, file) if file else ""
        attachment = Attachment(
            **columns,
            source=Attachment.Source.MEMORY_ADD,
            type=content_type_of(row.text("mime_type", 127) or None, name),
            name=name,
            internal_uri=place or uri,
            sha256=file.sha256 if file else "",
        )
        attachment.created_at = row.time("created_at") or timezone.now()
        attachment.save_base(raw=True, force_insert=True)
        return [["attachment", str(attachment.pk)]]

    def _is_of_resource(self, row: Row) -> bool:
        return bool(self._source.scope_of(row.text("user_id"), row.text("session_id")).values)

    def _columns(self, row: Row) -> dict[str, Any]:
        """Return the user, scope and session of a row; if the table has no scope, that of the session's resource."""
        user, session_id = self._user(row), row.session()
        scoped = row if row.values.get("app_id") else self._source.scope_of(user.user_id, session_id)
        scope = {name: scoped.name(name) for name in ("app_id", "project_id")}
        return {"user": user, **scope, "session_id": session_id}

    def _add_tombstone(self, row: Row, _file: StoredFile | None) -> list[Change]:
        columns, memory_id = self._columns(row), row.text("memory_id", 256)
        if not memory_id and not columns["session_id"]:
            raise Left("without a memory or session")
        tombstone = Tombstone(
            **columns,
            tombstone_id=_decision_id("t", row.text("tombstone_id"), row),
            memory_id=memory_id,
            reason=row.text("reason"),
            actor_kind=self._actor.kind,
            actor=self._actor.name,
            created_at=row.time("created_at") or timezone.now(),
        )
        if Tombstone.objects.filter(pk=tombstone.pk).exists():
            return []
        decisions.reinstate(tombstone.user, [tombstone])
        return [["tombstone", tombstone.pk]] if Tombstone.objects.filter(pk=tombstone.pk).exists() else []

    def _add_override(self, row: Row, _file: StoredFile | None) -> list[Change]:
        columns, memory_id, text = (
            self._columns(row),
            row.text("memory_id", 256),
            row.text("override_text", _MAX_OVERRIDE_CHARS),
        )
        if row.text("status") not in {"", "active"}:
            raise Left("not active")
        if not memory_id or not text.strip():
            raise Left("without a memory or text")
        _require_admitted(columns, "agents", text, row)
        override = Override(
            **columns,
            override_id=_decision_id("o", row.text("override_id"), row),
            memory_id=memory_id,
            actor_kind=self._actor.kind,
            actor=self._actor.name,
        )
        created_at = row.time("updated_at") or row.time("created_at") or timezone.now()
        is_new = not Override.objects.filter(pk=override.pk).exists()
        if is_new and decisions.import_override(override, text=text, created_at=created_at):
            return [["override", override.pk]]
        return []


def _require_admitted(columns: Mapping[str, Any], source: AdmissionSource, text: str, row: Row) -> None:
    """Raise `Left` for what its user paused at that time, or wants never remembered."""
    created_at = row.time("created_at")
    offer = Offer(source, text, at_ms=to_ms(created_at) if created_at else None)
    refused = admit(columns["user"].pk, [offer], ask_seconds=0).refused  # in a transaction
    if refused:
        raise Left(_PAUSED_THEN if "paused" in refused.values() else "what the user wants never remembered")


def _refused_users(source: Source) -> dict[str, str]:
    """Return the users who are not imported, with the first decision of each that cannot be stored.

    Without these deletions and overrides, search would find what it hides.
    """
    refused: dict[str, str] = {}
    for table, rows in source.batches(_STEP_ROWS):
        for row in rows:
            try:
                _check_decision(table, row)
            except Left as left:
                refused.setdefault(str(row.values.get("user_id")), f"{table}, row {row.number}: {left}")
    return refused


def _check_decision(table: str, row: Row) -> None:
    """Read the parts of a deletion or override. Raises: `Left`."""
    if table == "user_resources" and _is_deleted(row):
        limits = {"resource_id": None, "filename": 255, "uri": _MAX_URI}
    elif table == "memory_tombstones":
        limits = {"tombstone_id": None, "memory_id": 256, "reason": None}
    elif table == "memory_overrides" and row.values.get("status") in {None, "", "active"}:
        limits = {"override_id": None, "memory_id": 256, "override_text": _MAX_OVERRIDE_CHARS}
    else:
        return
    row.session()
    for name in ("app_id", "project_id"):
        row.name(name)
    for name, most in limits.items():
        row.text(name, *([] if most is None else [most]))


def _is_deleted(row: Row) -> bool:
    """Return True for a resource in the trash."""
    return bool(row.values.get("deleted_at")) or row.values.get("status") == "deleted"


def _require_own_session(columns: Mapping[str, Any]) -> None:
    """Raise `Left` unless the row has a session, and it names no other user."""
    session_id: str = columns["session_id"]
    user = columns["user"]
    if not session_id or parse_session_id(session_id).user_id not in {None, session_name(user.pk, user.user_id)}:
        raise Left("an invalid session_id")


def _is_name(user_id: str) -> bool:
    try:
        return check_user_id(user_id) == user_id and user_of_alias(user_id) is None
    except ValueError:
        return False


def _resource_id(row: Row) -> str:
    """Return the id of a resource; one of another form becomes a digest of it."""
    given = row.text("resource_id")
    digest = sha256(f"{row.text('user_id')}/{given}".encode()).hexdigest()[:32]
    return given if _RESOURCE_ID.fullmatch(given) else f"r_{digest}"


def _decision_id(kind: str, given: str, row: Row) -> str:
    """Return the id of a tombstone or override; one of another form becomes a UUID of it."""
    if _DECISION_ID.fullmatch(given):
        return given
    of = ":".join([kind, given, *(row.text(name) for name in ("user_id", "memory_id", "session_id"))])
    return f"{kind}_{uuid.uuid5(_NAMESPACE, of).hex}"


def _size(row: Row) -> int | None:
    size = row.values.get("size_bytes")
    return size if isinstance(size, int) and 0 <= size < 2**63 else None


def _resource_path(user: MemoryUser, row: Row) -> FileKey:
    mime_type = row.text("mime_type", 127)
    return storage.storage_path(user.pk, _resource_id(row), extension_of(mime_type) if mime_type else ".bin")


def _attachment_path(user: MemoryUser, row: Row, file: StoredFile) -> FileKey:
    suffix = Path(row.text("name", 255) or row.text("filename", 255)).suffix.lower()
    extension = suffix if _EXTENSION.fullmatch(suffix) else ""
    return file_key(f"{user.pk}/{MESSAGE_FILES}/{file.sha256}/content{extension}")


def _undo(_run: Run, _job: Job, changes: list[Change]) -> tuple[int, int]:
    """Remove what a step created, newest first. Users with other data, their last keys, and edited overrides stay."""
    # The users of a step go before their keys: a key of a user who stays may be the last one.
    newest_first = [*reversed(changes)]
    newest_first.sort(key=lambda change: change[0] == "key")
    removed = [_remove(kind, pk) for kind, pk in newest_first]
    return removed.count(True), removed.count(False)


def _remove(kind: str, pk: str) -> bool:
    """Remove a row unless it is in use; return False if it stays."""
    model, remove = _REMOVERS[kind]
    row = QuerySet(model).filter(pk=pk).first()
    return row is None or remove(row)


def _remove_user(user: MemoryUser) -> bool:
    kept = {tables.USER, tables.KEYS, tables.AUDIT}
    if any(table.rows(user).exists() for table in tables.PORTABLE if table not in kept):
        return False
    tables.remove_rows(user)
    tables.remove_user(user)
    return True


def _remove_resource(resource: Resource) -> bool:
    """Remove a resource with its file, and the memories that an ingestion made of it here."""
    if not is_attached():
        for session in Session.objects.filter(owned_by(resource.owner), session_id=resource.session_id):
            _remove_session(session)
    if resource.storage_path:
        transaction.on_commit(partial(stored_files().remove, resource.file_key))
    Tombstone.ledger.filter(resource_id=resource.pk).delete()
    resource.delete()
    return True


def _remove_session(session: Session) -> bool:
    memory_storage.remove(session.owner, list(Memory.objects.filter(session=session)))
    session.delete()
    return True


def _remove_attachment(attachment: Attachment) -> bool:
    uri, others = attachment.internal_uri, Attachment.objects.filter(user=attachment.user_id).exclude(pk=attachment.pk)
    if attachment.sha256 and is_key(uri) and not others.filter(internal_uri=uri).exists():
        transaction.on_commit(partial(stored_files().remove, uri))
    attachment.delete()
    return True


def _remove_tombstone(tombstone: Tombstone) -> bool:
    decisions.remove_tombstone(tombstone)
    return True


_REMOVERS: Final[Mapping[str, tuple[type[Model], Callable[[Any], bool]]]] = {
    "user": (MemoryUser, _remove_user),
    "key": (UserKey, accounts.remove_key),
    "resource": (Resource, _remove_resource),
    "session": (Session, _remove_session),
    "attachment": (Attachment, _remove_attachment),
    "tombstone": (Tombstone, _remove_tombstone),
    "override": (Override, decisions.remove_override),
}


def _finish(job: Job) -> None:
    made = job.cursor.get("new", {})
    jobs.record_end(job, f"job.{KIND}", {**job.params, "count": sum(made.values())})


jobs.KINDS[KIND] = Handler(_run, finish=_finish, undo=_undo)
