from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO
from uuid import UUID

from accounts.principal import Principal
from core.errors import NotFound
from resources import queries, storage


@dataclass(frozen=True, slots=True)
class StoredContent:
    """An open file with its name and MIME type. The receiver closes the file."""

    file: BinaryIO
    filename: str
    mime_type: str


def open_content(principal: Principal, resource_id: str) -> StoredContent:
    """Open one of the caller's uploads. Raises: `NotFound`, also for registered external files."""
    return content_of(principal.user_pk, resource_id)


def content_of(user_pk: UUID, resource_id: str) -> StoredContent:
    """Open a user's upload. Raises: `NotFound`."""
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
