"""Request and response schemas of `/resources`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema

from accounts.api.schemas import AuthenticatedQuery, ScopedBody
from core.ids import Name
from core.rest import WHOLE
from core.url_policy import MAX_URI_CHARS
from documents.mime_types import ContentType

MAX_TITLE_CHARS = 500
MAX_DESCRIPTION_CHARS = 10_000
MAX_FILENAME_CHARS = 1000
MAX_PAGE = 1000
_MIME_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:;[ -~]*)?")
_SHA256 = re.compile(r"[0-9A-Fa-f]{64}")


def _without_nul(value: str) -> str:
    if "\x00" in value:
        raise ValueError("must not hold NUL characters")
    return value


def _checked_mime_type(value: str) -> str:
    if not _MIME_TYPE.fullmatch(value):
        raise ValueError("must be a MIME type such as application/pdf")
    return value


def _checked_sha256(value: str) -> str:
    if not _SHA256.fullmatch(value):
        raise ValueError("must be the 64 hex digits of a SHA-256")
    return value.lower()


MimeType = Annotated[
    str,
    AfterValidator(_checked_mime_type),
    Field(max_length=127, json_schema_extra={"pattern": f"^{_MIME_TYPE.pattern}$"}),
]
Sha256 = Annotated[str, AfterValidator(_checked_sha256), Field(json_schema_extra={"pattern": f"^{_SHA256.pattern}$"})]
Uri = Annotated[str, Field(min_length=1, max_length=MAX_URI_CHARS, json_schema_extra={"format": "uri"})]
Title = Annotated[str, Field(max_length=MAX_TITLE_CHARS), AfterValidator(_without_nul)]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION_CHARS), AfterValidator(_without_nul)]


class UploadFields(ScopedBody):
    """The text fields of an upload."""

    title: Title | None = Field(None, description="What to call it; found by search too.")
    description: Description | None = Field(None, description="What it is about.")


class UploadForm(UploadFields):
    """The upload form for the API documentation. The file is streamed and never a field of a model."""

    file: Annotated[str, WithJsonSchema({"type": "string", "format": "binary"})] = Field(description="The file itself.")


class ExternalBody(ScopedBody):
    """A file at an external address."""

    filename: Annotated[str, Field(min_length=1, max_length=MAX_FILENAME_CHARS)] = Field(
        description="Its name: memories that speak of it are tied to it by this, and its ending tells its type."
    )
    mime_type: MimeType | None = Field(None, description="Such as `image/png`; wins over the name's ending.")
    content_type: ContentType | None = Field(
        None, description="Inferred from MIME type and name; this counts only where they say nothing."
    )
    size_bytes: Annotated[int, Field(ge=0, le=2**63 - 1), WHOLE] | None = None
    sha256: Sha256 | None = Field(
        None, description="Of its content, in hex: the same digest in the same scope is the same resource."
    )
    source_uri: Uri = Field(
        description="Where it lies for good: minio://, s3://, https://, http://, and file:// below "
        "MEMORY_GATEWAY_FILE_URI_ROOTS. Kept, and given back with what search finds."
    )
    ingest_uri: Uri | None = Field(
        None,
        description="Where it can be read this once, such as a presigned https:// address; never kept. Without it "
        "`source_uri` is read, and minio:// and s3:// cannot be.",
    )
    title: Title | None = Field(None, description="What to call it; found by search too.")
    description: Description | None = Field(None, description="What it is about.")


class ListQuery(AuthenticatedQuery):
    app_id: Name | None = Field(None, description="Only resources of this application.")
    project_id: Name | None = Field(None, description="Only resources of this project.")
    limit: int | None = Field(None, ge=1, le=MAX_PAGE, description="Answer a page of so many; without it, all.")
    cursor: str | None = Field(None, max_length=200, description="`next_cursor` of the page before; goes with `limit`.")


class ResourceAnswer(BaseModel):
    resource_id: str
    session_id: str
    uri: str = Field(description="resource://{user_id}/{resource_id}")
    status: str = Field(description="ingesting, extracted, empty, failed or deleted")


class ResourceItem(BaseModel):
    resource_id: str
    user_id: str
    filename: str
    content_type: str = Field(description="image, audio, pdf, html, text or doc")
    mime_type: str | None
    uri: str
    session_id: str
    status: str = Field(description="ingesting, extracted, empty or failed")
    title: str | None
    description: str | None
    created_at: str
    updated_at: str
    error_message: str | None = Field(description="Why it failed.")
    size_bytes: int | None
    sha256: str | None
    app_id: str
    project_id: str


class ResourceList(BaseModel):
    resources: list[ResourceItem]


class ResourcePage(ResourceList):
    next_cursor: str | None = Field(None, description="Present when `limit` was given; null on the last page.")
