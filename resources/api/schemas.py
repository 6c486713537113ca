"""Bodies and answers of `/resources`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema

from accounts.api.schemas import AuthenticatedQuery, ScopedBody
from memory_gateway.core.ids import Name

MAX_TITLE_CHARS = 500
MAX_DESCRIPTION_CHARS = 10_000
MAX_PAGE = 1000


def _without_nul(value: str) -> str:
    if "\x00" in value:
        raise ValueError("must not hold NUL characters")
    return value


Text = Annotated[str, AfterValidator(_without_nul)]


class UploadFields(ScopedBody):
    """The text fields beside the file."""

    title: Text | None = Field(None, max_length=MAX_TITLE_CHARS, description="What to call it; found by search too.")
    description: Text | None = Field(None, max_length=MAX_DESCRIPTION_CHARS, description="What it is about.")


class UploadForm(UploadFields):
    """The form as documented: the file arrives as a stream and is never a field of a model."""

    file: Annotated[str, WithJsonSchema({"type": "string", "format": "binary"})] = Field(description="The file itself.")


class ListQuery(AuthenticatedQuery):
    app_id: Name | None = Field(None, description="Only resources of this application.")
    project_id: Name | None = Field(None, description="Only resources of this project.")
    limit: int | None = Field(None, ge=1, le=MAX_PAGE, description="Answer a page of so many; without it, all.")
    cursor: str | None = Field(None, max_length=200, description="`next_cursor` of the page before.")


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
