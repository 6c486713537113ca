from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO
from uuid import UUID

from accounts.principal import Principal
from core.errors import NotFound
from resources import queries, storage


@dataclass(frozen=True, slots=True)
class StoredContent:
    """An open file with the name and the type to give it back under. Who takes it closes the file."""

    file: BinaryIO
    filename: str
    mime_type: str


def open_content(principal: Principal, resource_id: str) -> StoredContent:
    """The bytes of one of the caller's uploads. Errors: `NotFound`, also for what lies elsewhere."""
    return content_of(principal.user_pk, resource_id)


def content_of(user_pk: UUID, resource_id: str) -> StoredContent:
    """The same of a user's. Errors: `NotFound`."""
    resource = queries.live_resource(user_pk, resource_id).first()
    if resource is None:
        raise NotFound("There is no such resource.")
    if not resource.storage_path:
        raise NotFound("This file was registered where it lies elsewhere: the gateway keeps no copy of it.")
    try:
        file = storage.open_stored(resource.storage_path)
    except FileNotFoundError:
        raise NotFound("The file of this resource is gone: upload it again.") from None
    return StoredContent(file, resource.filename, resource.mime_type or "application/octet-stream")
