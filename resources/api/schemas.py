"""Request and response schemas of `/resources`."""

import re
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Json, WithJsonSchema, model_validator

from accounts.api.schemas import (
    AppId,
    AuthenticatedBody,
    AuthenticatedQuery,
    MomentOrDay,
    ProjectId,
    RemoteView,
    ScopedBody,
    Time,
    UserId,
)
from core.ids import Name
from core.labels import Metadata, Tags
from core.messages import Translatable as _
from core.network.url_policy import MAX_URI_CHARS
from core.rest import WHOLE, Problem
from core.storable import check_text
from documents.mime_types import ContentType
from documents.reading import NoteCode
from store.expiry import ending_of
from store.types import KEPT, METADATA, TAGS, NewExpiry

MAX_TITLE_CHARS = 500
MAX_DESCRIPTION_CHARS = 10_000
MAX_FILENAME_CHARS = 1000
MAX_PAGE = 1000
_MIME_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:;[ -~]*)?")
_SHA256 = re.compile(r"[0-9A-Fa-f]{64}")


def _checked_mime_type(value: str) -> str:
    if not _MIME_TYPE.fullmatch(value):
        raise ValueError(_("must be a MIME type such as application/pdf"))
    return value


MimeType = Annotated[
    str,
    AfterValidator(_checked_mime_type),
    Field(max_length=127, json_schema_extra={"pattern": f"^{_MIME_TYPE.pattern}$"}),
]
Uri = Annotated[str, Field(min_length=1, max_length=MAX_URI_CHARS, json_schema_extra={"format": "uri"})]
Title = Annotated[str, Field(max_length=MAX_TITLE_CHARS), AfterValidator(check_text)]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION_CHARS), AfterValidator(check_text)]


_AS_TEXT = WithJsonSchema({"type": "string"})
_TAGS = "Words to find its passages by, each once."
_METADATA = (
    "Data of your own: at most 16 KiB of JSON, 3 levels deep. Filters of searches compare it; no remote gets it."
)


class _Described(ScopedBody):
    title: Title | None = Field(None, description="A title. Searches find it too.", examples=["Contract"])
    description: Description | None = Field(
        None, description="What the file is about. Searches find it too.", examples=["Payment terms of 2026"]
    )


class UploadFields(_Described):
    """The text fields of an upload."""

    tags: Annotated[Json[Tags], _AS_TEXT] | None = Field(
        None, description=f"{_TAGS} A list as JSON.", examples=['["contract"]']
    )
    metadata: Annotated[Json[Metadata], _AS_TEXT] | None = Field(
        None, description=f"{_METADATA} An object as JSON.", examples=['{"year": 2026}']
    )


class LabelsBody(AuthenticatedBody):
    """The tags or the metadata of a resource, in the place of the former."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["tags"], "properties": {"tags": {"type": ["array", "null"]}}},
                {"required": ["metadata"], "properties": {"metadata": {"type": ["object", "null"]}}},
            ]
        }
    )

    tags: Tags | None = Field(
        None, description="The new tags; null for none. Absent: as before.", examples=[["contract", "signed"]]
    )
    metadata: Metadata | None = Field(
        None, description="The new metadata; null for none. Absent: as before.", examples=[{"year": 2026}]
    )

    @model_validator(mode="after")
    def _require_any(self) -> Self:
        if not labels_given(self):
            raise ValueError(_("tags or metadata is required"))
        return self


class ResourceRestoreBody(AuthenticatedBody):
    """When the resource expires after it is restored."""

    expires_at: MomentOrDay | None = Field(
        None,
        description="When it expires again, a time or the last day; null for never. Required for one that has "
        "expired. Absent: as before.",
        examples=[None],
    )

    def new_expiry(self, user_pk: UUID) -> NewExpiry:
        """Return when it expires; `KEPT` if absent. Raises: `InvalidInput` for what has passed."""
        return ending_of(self.expires_at, user_pk) if "expires_at" in self.model_fields_set else KEPT


class UploadForm(UploadFields):
    """A file to upload, with its title and description."""

    # Only for the API documentation: the parser streams the file, and no view validates this model.
    file: Annotated[str, WithJsonSchema({"type": "string", "format": "binary"})] = Field(
        description="The file. Its size and its media types are limited; ask the operator.",
        examples=["Payment is due within 30 days after receipt of the invoice."],
    )


class ExternalBody(_Described):
    """A file at an external address."""

    tags: Tags | None = Field(None, description=_TAGS, examples=[["contract"]])
    metadata: Metadata | None = Field(None, description=_METADATA, examples=[{"year": 2026}])

    filename: Annotated[str, Field(min_length=1, max_length=MAX_FILENAME_CHARS)] = Field(
        description="The file's name. Memories that mention it return the file as an attachment.",
        examples=["delivery.txt"],
    )
    mime_type: MimeType | None = Field(
        None, description="The file's MIME type. Absent: inferred from the name's extension.", examples=["text/plain"]
    )
    content_type: ContentType | None = Field(
        None, description="The kind of content. Used only if neither the MIME type nor the name tells it."
    )
    size_bytes: Annotated[int, Field(ge=0, le=2**63 - 1), WHOLE] | None = Field(
        None, description="The file's size in bytes, if you know it."
    )
    sha256: str | None = Field(
        None,
        description="The SHA-256 of the content in hex. A file with the same digest in the same scope is one resource. "
        "Anything but 64 hex digits is ignored with a warning.",
    )
    source_uri: Uri = Field(
        description="The permanent address: `https://`, `http://`, or, in buckets and folders that the operator "
        "allows, `minio://`, `s3://` and `file://`. It is stored, and returned by searches as `internal_uri`.",
        examples=["minio://documents/u_123/delivery.txt"],
    )
    ingest_uri: Uri | None = Field(
        None,
        description="An address to read the file from once, such as a presigned `https://` one. It is not stored. "
        "Absent: `source_uri` is read; with a remote it is required for `minio://` and `s3://`.",
        examples=["https://files.example.com/u_123/delivery.txt"],
    )

    @property
    def digest(self) -> str:
        """Return `sha256` in lower case, or an empty string if it is no SHA-256."""
        return self.sha256.lower() if self.sha256 and _SHA256.fullmatch(self.sha256) else ""


class ListQuery(AuthenticatedQuery):
    """The scope and the page of a list of resources."""

    app_id: Name | None = Field(None, description="Only resources of this application. Absent: of all.")
    project_id: Name | None = Field(None, description="Only resources of this project. Absent: of all.")
    deleted: bool = Field(False, description="List the resources in the trash instead.")
    limit: int | None = Field(None, ge=1, le=MAX_PAGE, description="The size of a page. Absent: all resources.")
    cursor: str | None = Field(
        None, max_length=200, description="The `next_cursor` of the page before. Requires `limit`."
    )


ResourceId = Annotated[
    str, Field(description="The id of the resource.", examples=["r_9f2c41d07b8e4a6f93d1c5e2a7b40868"])
]
ResourceUri = Annotated[
    str,
    Field(
        description="The public address: `resource://{user_id}/{resource_id}`.",
        examples=["resource://u_123/r_9f2c41d07b8e4a6f93d1c5e2a7b40868"],
    ),
]
ResourceSessionId = Annotated[
    str,
    Field(
        description="The session of the file's memories: `resource:{user_id}:{resource_id}`.",
        examples=["resource:u_123:r_9f2c41d07b8e4a6f93d1c5e2a7b40868"],
    ),
]
_STATUS = "`ingesting` (waiting or running), `extracted` (searchable), `empty` (no text found), `failed`"


class ReadingNote(BaseModel):
    """Something that was left out of a file's text, or is doubtful."""

    code: NoteCode = Field(description="The kind of note, for programs.", examples=["pages_without_text"])
    count: int = Field(
        description="The number of pages, parts, images or words; of a text that was cut, the limit.", examples=[1]
    )
    names: list[str] = Field(description="Page numbers or names of parts, at most 20.", examples=[["2"]])
    message: str = Field(description="The note in words.", examples=["Pages whose pictures were not read: 1 (2)."])


class FileReading(BaseModel):
    """The report on the reading of a file."""

    parser: str = Field(description="The name of the parser that read the file.", examples=["xberg"])
    characters: int = Field(description="The length of its text.", examples=[5120])
    pages: int | None = Field(description="The number of its pages or slides; null if it has none.", examples=[3])
    pages_read: int | None = Field(description="The number of pages that were read.", examples=[2])
    encoding: str | None = Field(None, description="The encoding of a text; null for other formats.", examples=[None])
    certainty: float | None = Field(
        None,
        description="The certainty of the encoding or the recognized text, from 0 to 1; 1 if nothing else is possible.",
        examples=[None],
    )
    is_partial: bool = Field(description="True if text of the file is missing.", examples=[True])
    notes: list[ReadingNote] = Field(description="The gaps and doubts.")


LabelTags = Annotated[list[str] | None, Field(description="The tags. Absent without any.", examples=[None])]
LabelMetadata = Annotated[
    dict[str, Any] | None, Field(description="The metadata. Absent without any.", examples=[None])
]


class ResourceAnswer(BaseModel):
    """A resource and the status of its ingestion."""

    resource_id: ResourceId
    session_id: ResourceSessionId
    uri: ResourceUri
    status: str = Field(description=f"{_STATUS} or `deleted`.", examples=["extracted"])
    tags: LabelTags = None
    metadata: LabelMetadata = None
    reading: FileReading | None = Field(
        None,
        description="The report on the reading, if text of the file is missing; else absent.",
        examples=[None],
    )


class RegisteredAnswer(ResourceAnswer):
    """A registered file and the status of its ingestion."""

    warnings: list[Problem.FieldProblem] | None = Field(
        None, description="The fields of the request that were ignored, and why; absent if there are none."
    )


class ResourceItem(BaseModel):
    """A resource."""

    resource_id: ResourceId
    user_id: UserId
    filename: str = Field(description="The file's name.", examples=["contract.txt"])
    content_type: str = Field(
        description="The kind of content: `image`, `audio`, `pdf`, `html`, `text` or `doc`.", examples=["text"]
    )
    mime_type: str | None = Field(description="The MIME type; null if unknown.", examples=["text/plain"])
    uri: ResourceUri
    session_id: ResourceSessionId
    status: str = Field(description=f"{_STATUS} or `deleted`.", examples=["extracted"])
    title: str | None = Field(description="The title; null if none was given.", examples=["Contract"])
    description: str | None = Field(
        description="The description; null if none was given.", examples=["Payment terms of 2026"]
    )
    tags: LabelTags = None
    metadata: LabelMetadata = None
    created_at: Time = Field(description="When the file was uploaded or registered.")
    updated_at: Time = Field(description="When the resource last changed.")
    deleted_at: Time | None = Field(
        description="When the resource was moved to the trash; null if it was not.", examples=[None]
    )
    expires_at: Time | None = Field(
        None,
        description="When the file and its memories end, or ended, by the default for one of its tags. Absent if they "
        "do not.",
        examples=[None],
    )
    error_message: str | None = Field(
        description="Why the ingestion failed, or what a PDF without readable text needs; null otherwise.",
        examples=[None],
    )
    size_bytes: int | None = Field(description="The size in bytes; null if unknown.", examples=[59])
    sha256: str | None = Field(
        description="The SHA-256 of the content in hex; null if unknown.",
        examples=["ff86c2f4ccc3e346e151339894c0c33b17a57c2f549763799e341708a85c128e"],
    )
    app_id: AppId
    project_id: ProjectId
    remote: RemoteView = Field(description="How far the file is at the remote.")
    reading: FileReading | None = Field(
        None,
        description="The report on the reading; null before it, or if a remote or an older version read the file.",
        examples=[
            {
                "parser": "text",
                "characters": 59,
                "pages": None,
                "pages_read": None,
                "encoding": "utf-8",
                "certainty": 1.0,
                "is_partial": False,
                "notes": [],
            }
        ],
    )


def labels_given(body: UploadFields | ExternalBody | LabelsBody) -> dict[str, Any]:
    """Return the tags and the metadata that a body has, by name."""
    return {name: getattr(body, name) for name in (TAGS, METADATA) if name in body.model_fields_set}


class ResourceList(BaseModel):
    """Resources of the caller."""

    resources: list[ResourceItem] = Field(description="The resources, newest first.")


class ResourcePage(ResourceList):
    """A page of the caller's resources, or all of them."""

    next_cursor: str | None = Field(
        None, description="The `cursor` of the next page; null on the last page, absent without `limit`."
    )
