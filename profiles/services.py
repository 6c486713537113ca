"""The two documents of a user: read, written, merged, restored, disabled. Each change is a version of its own.

Everything that changes a document locks its user's row first, so that changes happen one after the other, each on what
the one before left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from pydantic import ValidationError

from accounts.audit import Actor, record
from accounts.models import MemoryUser
from memory_gateway.core.errors import Conflict, FieldError, InvalidInput, NotFound, PreconditionFailed, TooLarge
from memory_gateway.core.rest import invalid_input
from memory_gateway.core.times import isoformat
from profiles import merge, prompts, provenance
from profiles.labels import Language
from profiles.models import ProfileMemory, ProfileRevision
from profiles.prompts import AgentType
from profiles.schemas import MODELS, Content, Kind, UserMemoryContent, WorkProfileContent

MAX_DOCUMENT_BYTES = 512 * 1024
KEPT_REVISIONS = 200
ANY = "*"

Action = ProfileRevision.Action
Status = ProfileMemory.MemoryStatus
Plain = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as it is. Version 0, without times, is the default document that nobody wrote."""

    kind: Kind
    content: Content
    version: int = 0
    status: str = Status.ACTIVE
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def is_disabled(self) -> bool:
        return self.status == Status.DISABLED

    @property
    def readable(self) -> Content | None:
        """What agents and applications get to see."""
        return None if self.is_disabled else self.content

    @property
    def etag(self) -> str:
        return f'"{self.kind}-{self.version}"'


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to a document, and by whom."""

    version: int
    action: str
    actor_kind: str
    actor: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Revision:
    """A document as a change left it. `readable` is None while the document is disabled."""

    change: Change
    content: Content
    readable: Content | None


@dataclass(frozen=True, slots=True)
class Prompt:
    """`text` is empty if nothing is known or the document is disabled."""

    text: str
    language: Language


def default_documents() -> dict[Kind, Document]:
    """What every user has from the beginning."""
    return {kind: Document(kind=kind, content=model()) for kind, model in MODELS.items()}


def read(user_pk: UUID, kind: Kind) -> Document:
    """One statement."""
    row = ProfileMemory.objects.filter(owner_id=user_pk, memory_type=kind).first()
    return _document(row) if row else default_documents()[kind]


def read_both(user_pk: UUID) -> dict[Kind, Document]:
    """One statement."""
    documents = [_document(row) for row in ProfileMemory.objects.filter(owner_id=user_pk)]
    return default_documents() | {document.kind: document for document in documents}


def write(
    user_pk: UUID,
    kind: Kind,
    content: Mapping[str, Any] | Content,
    *,
    actor: Actor,
    agent_id: str = "",
    if_match: Collection[str] | None = None,
) -> Document:
    """Puts a whole document in the place of the present one. `if_match` are the ETags of which one must be the present
    one's.

    Errors: `InvalidInput`, `NotFound` without such a user, `PreconditionFailed`, `Conflict` if the document is
    disabled, `TooLarge`.
    """
    written = validated(kind, content)
    return _change(user_pk, kind, Action.WRITE, lambda _: written, actor=actor, agent_id=agent_id, if_match=if_match)


def patch(
    user_pk: UUID,
    kind: Kind,
    changes: Mapping[str, Any],
    *,
    actor: Actor,
    merge_lists: bool = False,
    agent_id: str = "",
    if_match: Collection[str] | None = None,
) -> Document:
    """Merges a part into the present document (see `merge.merge`). Errors: as of `write`; `Conflict` also where
    `merge_lists` meets several entries of one name.
    """

    def merged(document: Document) -> Content:
        current = document.content.model_dump()
        return validated(kind, merge.merge(MODELS[kind], current, changes, merge_lists=merge_lists, path="content"))

    return _change(user_pk, kind, Action.PATCH, merged, actor=actor, agent_id=agent_id, if_match=if_match)


def restore(
    user_pk: UUID,
    kind: Kind,
    version: int,
    *,
    actor: Actor,
    if_match: Collection[str] | None = None,
) -> Document:
    """Makes the document say again what it said in that version. Errors: `NotFound`, `PreconditionFailed`, `Conflict`
    if the document is disabled.
    """
    return _change(
        user_pk,
        kind,
        Action.RESTORE,
        lambda _: revision(user_pk, kind, version).content,
        actor=actor,
        if_match=if_match,
        detail={"restored": version},
    )


def set_disabled(user_pk: UUID, kind: Kind, is_disabled: bool, *, actor: Actor) -> Document:
    """A disabled document reads as null and cannot be written. Errors: `NotFound` without such a user."""
    action, status = (Action.DISABLE, Status.DISABLED) if is_disabled else (Action.ENABLE, Status.ACTIVE)
    with transaction.atomic():
        user, row = _lock(user_pk, kind)
        if row.status != status:
            row.status = status
            _save(user, row, action, actor, {})
        return _document(row)


def history(user_pk: UUID, kind: Kind, *, before: int | None = None, limit: int = 50) -> list[Change]:
    """What changed the document, newest first; `before` is a version. One statement."""
    rows = _revisions(user_pk, kind)
    if before is not None:
        rows = rows.filter(version__lt=before)
    return [Change(*row) for row in rows.order_by("-version").values_list(*_CHANGE)[:limit]]


def revision(user_pk: UUID, kind: Kind, version: int) -> Revision:
    """One statement. Errors: `NotFound`, also for versions older than the newest 200."""
    found = _revisions(user_pk, kind).filter(version=min(version, _MAX_VERSION))
    row = found.values_list(*_CHANGE, "content", "profile__status").first()
    if row is None:
        raise NotFound("There is no such version.")
    *change, stored, status = row
    content = MODELS[kind].model_validate(stored)
    return Revision(Change(*change), content, None if status == Status.DISABLED else content)


def prompt_for(
    user_pk: UUID, agent: AgentType, *, max_tokens: int | None = None, language: Language | None = None
) -> str:
    """The text of `make_prompt`."""
    return make_prompt(user_pk, agent, max_tokens=max_tokens, language=language).text


def make_prompt(
    user_pk: UUID, agent: AgentType, *, max_tokens: int | None = None, language: Language | None = None
) -> Prompt:
    """What goes into that agent's system prompt. Without `language` it is the user's own. One statement."""
    documents = read_both(user_pk)
    user = cast("UserMemoryContent | None", documents["user"].readable)
    work = cast("WorkProfileContent | None", documents["work"].readable)
    chosen = language or prompts.language_of(user)
    text = prompts.build_system_prompt(
        agent_type=agent, user_memory=user, work_memory=work, max_tokens=max_tokens, language=chosen
    )
    return Prompt(text, chosen)


def all_of(user_pk: UUID) -> list[Plain]:
    """Everything kept of a user's documents, as plain data: for exports. Documents that nobody wrote are not kept."""
    rows = ProfileMemory.objects.filter(owner_id=user_pk).prefetch_related("revisions")
    return [_exported(row) for row in rows]


def validated(kind: Kind, content: Mapping[str, Any] | Content) -> Content:
    """Errors: `InvalidInput` with every wrong field, its name beginning with `content.`; `TooLarge`."""
    try:
        document = MODELS[kind].model_validate(content)
    except ValidationError as error:
        refused = invalid_input(error)
        named = [FieldError(f"content.{item.field}", item.message) for item in refused.errors]
        raise InvalidInput("; ".join(f"{item.field}: {item.message}" for item in named[:5]), errors=named) from None
    if len(document.model_dump_json().encode()) > MAX_DOCUMENT_BYTES:
        raise TooLarge(f"A document must be at most {MAX_DOCUMENT_BYTES} bytes of JSON.")
    return document


_MAX_VERSION = 2**31 - 1
_CHANGE = ("version", "action", "actor_kind", "actor", "created_at")


def _revisions(user_pk: UUID, kind: Kind) -> QuerySet[ProfileRevision]:
    return ProfileRevision.objects.filter(profile__owner_id=user_pk, profile__memory_type=kind)


def _change(
    user_pk: UUID,
    kind: Kind,
    action: Action,
    make: Callable[[Document], Content],
    *,
    actor: Actor,
    agent_id: str = "",
    if_match: Collection[str] | None,
    detail: Plain | None = None,
) -> Document:
    """What says the same as before is no change and no new version."""
    with transaction.atomic():
        user, row = _lock(user_pk, kind)
        document = _document(row)
        require_match(document.etag, if_match)
        if document.is_disabled:
            raise Conflict("This document is disabled: an operator has to enable it first.")
        content = make(document)
        provenance.fill_in(content, document.content, provenance.meta_of(actor, agent_id, timezone.now()))
        if content == document.content:
            return document
        row.content = content.model_dump()
        _save(user, row, action, actor, {**(detail or {}), **({"agent_id": agent_id} if agent_id else {})})
        return _document(row)


def require_match(etag: str, if_match: Collection[str] | None) -> None:
    """Errors: `PreconditionFailed` unless the ETag is one of those named (None: unless nothing is asked)."""
    if if_match is not None and ANY not in if_match and etag not in if_match:
        raise PreconditionFailed(f"The document has changed: its ETag is {etag} now. Read it again.")


def _lock(user_pk: UUID, kind: Kind) -> tuple[MemoryUser, ProfileMemory]:
    """The user, locked, and the document's row, a new one if nobody wrote it yet."""
    user = MemoryUser.objects.select_for_update(no_key=True).filter(pk=user_pk).first()
    if user is None:
        raise NotFound("There is no such user.")
    row = ProfileMemory.objects.filter(owner=user, memory_type=kind).first()
    return user, row or ProfileMemory(owner=user, memory_type=kind, content=MODELS[kind]().model_dump(), version=0)


def _save(user: MemoryUser, row: ProfileMemory, action: Action, actor: Actor, detail: Plain) -> None:
    row.version += 1
    row.save()
    row.revisions.create(
        version=row.version, action=action, content=row.content, actor_kind=actor.kind, actor=actor.name[:150]
    )
    row.revisions.filter(version__lte=row.version - KEPT_REVISIONS).delete()
    record(
        actor,
        f"profile.{action}",
        subject_type="profile",
        subject_id=row.memory_type,
        user_id=user.user_id,
        detail={"version": row.version, **detail},
    )


def _document(row: ProfileMemory) -> Document:
    kind = cast("Kind", row.memory_type)
    return Document(
        kind=kind,
        content=MODELS[kind].model_validate(row.content),
        version=row.version,
        status=row.status,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _exported(row: ProfileMemory) -> Plain:
    return {
        "memory_type": row.memory_type,
        "status": row.status,
        "version": row.version,
        "created_at": isoformat(row.created_at),
        "updated_at": isoformat(row.updated_at),
        "content": row.content,
        "revisions": [
            {
                "version": revision.version,
                "action": revision.action,
                "actor_kind": revision.actor_kind,
                "actor": revision.actor,
                "created_at": isoformat(revision.created_at),
                "content": revision.content,
            }
            for revision in row.revisions.all()
        ],
    }
