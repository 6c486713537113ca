"""What a document is between the database and whoever reads it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from pydantic import ValidationError

from core.errors import FieldError, InvalidInput, PreconditionFailed, TooLarge
from core.rest import invalid_input
from profiles.models import ProfileMemory
from profiles.schemas import MODELS, Content, Kind

MAX_DOCUMENT_BYTES = 512 * 1024
ANY = "*"

Status = ProfileMemory.MemoryStatus


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


def default_documents() -> dict[Kind, Document]:
    """What every user has from the beginning."""
    return {kind: Document(kind=kind, content=model()) for kind, model in MODELS.items()}


def document_of(row: ProfileMemory) -> Document:
    kind = cast("Kind", row.memory_type)
    return Document(
        kind=kind,
        content=MODELS[kind].model_validate(row.content),
        version=row.version,
        status=row.status,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


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


def require_match(etag: str, if_match: Collection[str] | None) -> None:
    """Errors: `PreconditionFailed` unless the ETag is one of those named (None: unless nothing is asked)."""
    if if_match is not None and ANY not in if_match and etag not in if_match:
        raise PreconditionFailed(f"The document has changed: its ETag is {etag} now. Read it again.")
