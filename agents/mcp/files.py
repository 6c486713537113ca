"""The user's resources for MCP clients: their files, and the texts extracted from them."""

import base64
from collections.abc import Sequence
from typing import Final

import mcp_types as types

from core.errors import NotFound, TooLarge, existing
from core.persistence.files import stored_files
from documents.decoding import decode
from documents.mime_types import charset_of
from resources import queries
from resources.models import Resource
from store import browse
from store.browse import Selection
from store.types import Owner

PAGE: Final = 50
MAX_FILE_BYTES: Final = 8 * 2**20
MAX_CHARS: Final = 20_000
_SEPARATOR: Final = "\n\n"
_BATCH: Final = 500
_TEXT_TYPES: Final = ("text/", "application/json", "application/xml")


def page(owner: Owner, cursor: str | None, limit: int = PAGE) -> tuple[list[Resource], str | None]:
    """Return resources, newest first, and the cursor of the next page. Raises: `InvalidInput` for the cursor."""
    after = queries.decode_cursor(cursor) if cursor else None
    own = queries.live_resources(owner.user_pk).filter(**owner.scope)
    rows, following = queries.page_after(own, after, limit)
    return rows, queries.encode_cursor(following) if following else None


def as_mcp(resource: Resource) -> types.Resource:
    return types.Resource(
        uri=resource.uri,
        name=resource.filename,
        title=resource.title,
        description=resource.description,
        mime_type=resource.mime_type,
        size=resource.size_bytes,
    )


def find(owner: Owner, resource_id: str) -> Resource:
    """Return the owner's resource. Raises: `NotFound`."""
    own = queries.live_resource(owner.user_pk, resource_id).filter(**owner.scope)
    return existing(own, "There is no such resource.")


def contents(owner: Owner, uri: str) -> types.TextResourceContents | types.BlobResourceContents:
    """Return an uploaded file, or the extracted text of a registered one. Raises: `NotFound`, `TooLarge`."""
    resource = find(owner, uri.rpartition("/")[2])
    if resource.uri != uri:
        raise NotFound("There is no such resource.")
    if not resource.storage_path:
        return types.TextResourceContents(uri=uri, mime_type="text/plain", text=extracted_text(owner, resource))
    try:
        with stored_files().open_key(resource.file_key) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise NotFound("The stored file is missing: upload it again.") from None
    if len(data) > MAX_FILE_BYTES:
        raise TooLarge(f"Files of more than {MAX_FILE_BYTES} bytes come over GET /resources/<id>/content only.")
    mime_type = resource.mime_type or "application/octet-stream"
    if mime_type.startswith(_TEXT_TYPES):
        return types.TextResourceContents(
            uri=uri, mime_type=mime_type, text=decode(data, declared=charset_of(mime_type))
        )
    return types.BlobResourceContents(uri=uri, mime_type=mime_type, blob=base64.b64encode(data).decode())


def extracted_text(owner: Owner, resource: Resource) -> str:
    """Return the text extracted from a resource, in document order, with the user's overrides."""
    return _text_of([row for row, _ in browse.lengths(_passages(owner, resource))])


def part(owner: Owner, resource: Resource, offset: int) -> tuple[str, int]:
    """Return `MAX_CHARS` characters of `extracted_text()` from `offset`, and its length. Read only those passages."""
    rows: list[int] = []
    start = first_start = 0
    for row, characters in browse.lengths(_passages(owner, resource)):
        end = start + characters + len(_SEPARATOR)
        if end > offset and start < offset + MAX_CHARS + len(_SEPARATOR):
            first_start = first_start if rows else start
            rows.append(row)
        start = end
    text = _text_of(rows)[max(offset - first_start, 0) :][:MAX_CHARS]
    return text, max(start - len(_SEPARATOR), 0)


def _passages(owner: Owner, resource: Resource) -> Selection:
    return Selection(
        user_pk=owner.user_pk,
        app_id=owner.app_id,
        project_id=owner.project_id,
        session_id=resource.session_id,
        is_shown=True,
    )


def _text_of(rows: Sequence[int]) -> str:
    batches = (browse.get_many(rows[start : start + _BATCH]) for start in range(0, len(rows), _BATCH))
    return _SEPARATOR.join(passage.text for passages in batches for passage in passages)
