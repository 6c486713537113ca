"""Operations on a user's two documents: read, write, merge, restore, disable. Each change creates a version.

A lock on the user's row serializes changes.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Required, TypedDict, Unpack, cast
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts import profile_entries, zones
from accounts.audit import Actor, record
from accounts.models import AuditEvent, MemoryUser
from core.errors import Conflict, existing
from core.messages import Translatable as _
from core.preconditions import require_match
from core.times import isoformat
from profiles import merge, prompts
from profiles.documents import (
    Document,
    Revision,
    Status,
    document_of,
    stored_content,
    validated,
)
from profiles.labels import Language
from profiles.models import ProfileMemory, ProfileRevision
from profiles.prompts import AgentType
from profiles.schemas import (
    MODELS,
    Content,
    EntryMeta,
    Kind,
    MemorySource,
    UserMemoryContent,
    WorkProfileContent,
    item_of,
    model_of,
)

KEPT_REVISIONS = 200
MAX_VERSION = 2**31 - 1
AGENT_CONFIDENCE = 0.7
_SOURCES: dict[str, MemorySource] = {
    AuditEvent.ActorKind.KEY: "user_stated",
    AuditEvent.ActorKind.PERSON: "user_stated",
    AuditEvent.ActorKind.OPERATOR: "operator",
}

Action = ProfileRevision.Action
Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt. `text` is empty if the document is empty or disabled."""

    text: str
    language: Language


class Terms(TypedDict, total=False):
    """The writer of a change, and its conditions: the current ETag is one of `if_match` and none of `if_none_match`."""

    actor: Required[Actor]
    agent_id: str
    if_match: Collection[str] | None
    if_none_match: Collection[str]


def read(user_pk: UUID, kind: Kind) -> Document:
    """Return a document. One statement."""
    row = ProfileMemory.objects.filter(owner_id=user_pk, memory_type=kind).first()
    return document_of(row) if row else Document(kind=kind, content=MODELS[kind]())


def read_both(user_pk: UUID) -> dict[Kind, Document]:
    """Return both documents. One statement."""
    rows = {row.memory_type: row for row in ProfileMemory.objects.filter(owner_id=user_pk)}
    return {
        kind: document_of(rows[kind]) if kind in rows else Document(kind=kind, content=model())
        for kind, model in MODELS.items()
    }


def time_zone_of(user_pk: UUID) -> str:
    """Return the time zone as the profile says it; empty without one, or if the document is disabled. One statement."""
    rows = ProfileMemory.objects.filter(owner_id=user_pk, memory_type="user", status=Status.ACTIVE)
    found = rows.values_list("content__timezone", flat=True).first()
    return found if isinstance(found, str) else ""


def write(user_pk: UUID, kind: Kind, content: Mapping[str, Any] | Content, **terms: Unpack[Terms]) -> Document:
    """Replace a document.

    Raises: `InvalidInput`, `NotFound` for an unknown user, `PreconditionFailed`, `Conflict` if the document is
    disabled, `TooLarge`.
    """
    written = validated(kind, content)
    return _change(user_pk, kind, Action.WRITE, lambda _: written, **terms)


def patch(
    user_pk: UUID,
    kind: Kind,
    changes: Mapping[str, Any],
    *,
    merge_lists: bool = False,
    **terms: Unpack[Terms],
) -> Document:
    """Merge a part into the current document (see `merge.merge`).

    Raises: the errors of `write`; with `merge_lists`, `Conflict` also if several entries have the same name.
    """

    def merged(document: Document) -> Content:
        current = document.content.model_dump()
        return validated(kind, merge.merge(MODELS[kind], current, changes, merge_lists=merge_lists, path="content"))

    return _change(user_pk, kind, Action.PATCH, merged, **terms)


def restore(user_pk: UUID, kind: Kind, version: int, **terms: Unpack[Terms]) -> Document:
    """Restore the content of a version, as a new version.

    Raises: `NotFound`, `PreconditionFailed`, `Conflict` if the document is disabled.
    """

    def former(_: Document) -> Content:
        return revision(user_pk, kind, version).content

    return _change(user_pk, kind, Action.RESTORE, former, {"restored": version}, **terms)


def set_disabled(user_pk: UUID, kind: Kind, is_disabled: bool, *, actor: Actor) -> Document:
    """Disable or enable a document. A disabled document reads as null and cannot be written.

    Raises: `NotFound` for an unknown user.
    """
    action, status = (Action.DISABLE, Status.DISABLED) if is_disabled else (Action.ENABLE, Status.ACTIVE)
    with transaction.atomic():
        user, row = _lock(user_pk, kind)
        if row.status != status:
            row.status = status
            _save(user, row, action, actor, {})
        return document_of(row)


def history(user_pk: UUID, kind: Kind, *, before: int | None = None, limit: int = 50) -> list[ProfileRevision]:
    """Return the changes of a document, newest first; `before` is a version. One statement."""
    rows = _revisions(user_pk, kind)
    if before is not None:
        rows = rows.filter(version__lt=before)
    return list(rows.order_by("-version").defer("content")[:limit])


def revision(user_pk: UUID, kind: Kind, version: int) -> Revision:
    """Return a version of a document. One statement.

    Raises: `NotFound`, also for versions older than the newest 200.
    """
    found = _revisions(user_pk, kind).filter(version=min(version, MAX_VERSION))
    row = existing(found.select_related("profile"), _("There is no such version."))
    content = stored_content(kind, row.content)
    return Revision(row, content, None if row.profile.status == Status.DISABLED else content)


def make_prompt(
    user_pk: UUID, agent: AgentType, *, max_tokens: int | None = None, language: Language | None = None
) -> Prompt:
    """Return the prompt for an agent's system prompt, by default in the user's language. One statement."""
    documents = read_both(user_pk)
    user = cast("UserMemoryContent | None", documents["user"].readable)
    work = cast("WorkProfileContent | None", documents["work"].readable)
    chosen = language or prompts.language_of(user)
    text = prompts.build_system_prompt(
        agent_type=agent, user_memory=user, work_memory=work, max_tokens=max_tokens, language=chosen
    )
    return Prompt(text, chosen)


def _revisions(user_pk: UUID, kind: Kind) -> QuerySet[ProfileRevision]:
    return ProfileRevision.objects.filter(profile__owner_id=user_pk, profile__memory_type=kind)


def _change(
    user_pk: UUID,
    kind: Kind,
    action: Action,
    make: Callable[[Document], Content],
    detail: Plain | None = None,
    *,
    actor: Actor,
    agent_id: str = "",
    if_match: Collection[str] | None = None,
    if_none_match: Collection[str] = (),
) -> Document:
    """Change a document in a transaction. Unchanged content creates no version."""
    with transaction.atomic():
        user, row = _lock(user_pk, kind)
        document = document_of(row)
        require_match(document.etag, if_match, if_none_match, current=document.plain)
        if document.is_disabled:
            raise Conflict(_("This document is disabled. Ask the operator to enable it."))
        content = make(document)
        _fill_in_provenance(content, document.content, actor, agent_id)
        if content == document.content:
            return document
        row.content = content.model_dump()
        _save(user, row, action, actor, detail or {}, agent_id=agent_id)
        return document_of(row)


def _fill_in_provenance(content: Content, before: Content, actor: Actor, agent_id: str) -> None:
    """Set the missing `meta` of entries: the previous one of an unchanged entry, else that of the writer."""
    now = isoformat(timezone.now())
    meta = EntryMeta(source=_SOURCES.get(actor.kind, "import"), confidence=1.0, last_updated_at=now)
    if agent_id:
        meta = EntryMeta(source="agent_inferred", confidence=AGENT_CONFIDENCE, last_updated_at=now)
    for field, info in type(content).model_fields.items():
        model = model_of(item_of(info.annotation))
        if model is not None and "meta" in model.model_fields:
            known = {entry.model_dump_json(exclude={"meta"}): entry.meta for entry in getattr(before, field)}
            for entry in getattr(content, field):
                if "meta" not in entry.model_fields_set:
                    entry.meta = known.get(entry.model_dump_json(exclude={"meta"}), meta)


def _lock(user_pk: UUID, kind: Kind) -> tuple[MemoryUser, ProfileMemory]:
    """Return the user, locked, and the document's row, which is new and unsaved if there was none."""
    user = existing(MemoryUser.objects.select_for_update(no_key=True).filter(pk=user_pk), _("There is no such user."))
    row = ProfileMemory.objects.filter(owner=user, memory_type=kind).first()
    return user, row or ProfileMemory(owner=user, memory_type=kind, content=MODELS[kind]().model_dump(), version=0)


def _save(
    user: MemoryUser, row: ProfileMemory, action: Action, actor: Actor, detail: Plain, *, agent_id: str = ""
) -> None:
    row.version += 1
    row.save()
    transaction.on_commit(partial(zones.forget, user.pk))
    transaction.on_commit(partial(profile_entries.forget, user.pk))
    row.revisions.create(
        version=row.version,
        action=action,
        content=row.content,
        actor_kind=actor.kind,
        actor=actor.name[:150],
        agent_id=agent_id,
    )
    row.revisions.filter(version__lte=row.version - KEPT_REVISIONS).delete()
    record(
        actor,
        f"profile.{action}",
        row.memory_type,
        user_id=user.user_id,
        detail={"version": row.version, **detail, **({"agent_id": agent_id} if agent_id else {})},
    )
