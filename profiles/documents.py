"""Data types of documents, between the database and the API."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from pydantic import ValidationError

from core.errors import FieldError, InvalidInput, TooLarge
from core.messages import Translatable as _
from core.readable import log_once
from core.rest import invalid_input
from profiles.models import ProfileMemory, ProfileRevision
from profiles.schemas import MODELS, Content, Kind

MAX_DOCUMENT_BYTES = 512 * 1024

Status = ProfileMemory.MemoryStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document in its current version. Version 0, without times, is the default before the first write."""

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
        """The content visible to agents and applications."""
        return None if self.is_disabled else self.content

    @property
    def plain(self) -> dict[str, Any] | None:
        """The readable content as JSON data."""
        return None if self.readable is None else self.readable.model_dump()

    @property
    def etag(self) -> str:
        return f'"{self.kind}-{self.version}"'


@dataclass(frozen=True, slots=True)
class Revision:
    """A version of a document. `readable` is None while the document is disabled."""

    change: ProfileRevision
    content: Content
    readable: Content | None


def document_of(row: ProfileMemory) -> Document:
    kind = cast("Kind", row.memory_type)
    return Document(
        kind=kind,
        content=stored_content(kind, row.content),
        version=row.version,
        status=row.status,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def stored_content(kind: Kind, content: Mapping[str, Any]) -> Content:
    """Return stored content; fields that no write accepts are left out, and logged once.

    An import, or another program, may have stored them.
    """
    try:
        return MODELS[kind].model_validate(content)
    except ValidationError as error:
        wrong = {item["loc"][0] for item in error.errors() if item["loc"]}
        rest = {name: value for name, value in content.items() if name not in wrong}
        log_once(repr(content), f"profile {kind}", f"not valid: {', '.join(map(str, wrong))}")
        return MODELS[kind].model_validate(rest)


def validated(kind: Kind, content: Mapping[str, Any] | Content) -> Content:
    """Return the validated content.

    Raises: `InvalidInput` with every wrong field, named with the prefix `content.`; `TooLarge`.
    """
    try:
        document = MODELS[kind].model_validate(content)
    except ValidationError as error:
        errors = [FieldError(f"content.{item.field}", item.message) for item in invalid_input(error).errors]
        raise InvalidInput.of_fields(errors) from None
    if len(document.model_dump_json().encode()) > MAX_DOCUMENT_BYTES:
        raise TooLarge(_("A document must be at most %(number)s bytes of JSON.", number=MAX_DOCUMENT_BYTES))
    return document
