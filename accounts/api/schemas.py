"""Common parts of request bodies and queries, and the bodies and responses of `/users`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from accounts.services import DEFAULT_GRACE, MAX_GRACE, MAX_LABEL_CHARS
from core.ids import Name
from core.rest import Body

_USER_ID = "Whose key is sent. Needed beside `user_key`, not beside the header `Authorization: Bearer uk_…`."
_USER_KEY = "The user's key, where no header can be sent. Prefer the header `Authorization: Bearer uk_…`."


class _Credentials(BaseModel):
    """Credentials in a body or query. The authentication reads them, views do not."""

    user_id: str | None = Field(None, description=_USER_ID)
    user_key: str | None = Field(None, description=_USER_KEY, json_schema_extra={"deprecated": True})


class _Scope(BaseModel):
    app_id: Name = Field("default", description="The application whose memories these are.")
    project_id: Name = Field("default", description="The project within the application.")


class AuthenticatedBody(Body, _Credentials):
    """A JSON or form body that may contain credentials."""


class ScopedBody(AuthenticatedBody, _Scope):
    """A body that also names a scope."""


class AuthenticatedQuery(_Credentials):
    """Query parameters that may contain credentials: `parse_query(Model, request)`.

    These models are not strict, because numbers are sent as text; unknown names are refused.
    """

    model_config = ConfigDict(extra="forbid")


class ScopedQuery(AuthenticatedQuery, _Scope):
    """Query parameters that also name a scope."""


def _require_text(value: object) -> object:
    """Check that a time is not a number, whose unit would be ambiguous."""
    if isinstance(value, str):
        return value
    raise ValueError("must be a time such as 2027-01-31T12:00:00+00:00")


Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_require_text)]


class CreateUserBody(Body):
    user_id: Name = Field(description="1 to 64 characters of A-Z a-z 0-9 _ . @ + -")


class CreatedUser(BaseModel):
    user_id: str
    user_key: str = Field(description="To be kept by the caller: it proves every further call.")
    created_at: str


class IssueKeyBody(AuthenticatedBody):
    label: str = Field("", max_length=MAX_LABEL_CHARS, description="What the key is for, in your words.")
    expires_at: Moment | None = Field(None, description="When the key ends by itself; never unless given.")


class RotateKeyBody(AuthenticatedBody):
    grace_seconds: int = Field(
        int(DEFAULT_GRACE.total_seconds()),
        ge=0,
        le=int(MAX_GRACE.total_seconds()),
        description="How long the presented key goes on working beside the new one.",
    )


class KeyView(BaseModel):
    """A key without its plaintext."""

    key_id: str
    prefix: str = Field(description="Its first characters, to tell keys apart.")
    label: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None = Field(description="To the minute.")
    is_live: bool
    is_current: bool = Field(description="Whether this request was made with it.")


class KeyList(BaseModel):
    keys: list[KeyView]


class NewKey(BaseModel):
    key_id: str
    user_key: str = Field(description="Shown this once.")
    label: str
    created_at: str
    expires_at: str | None


class RotatedKey(NewKey):
    previous_key_id: str
    previous_expires_at: str = Field(description="Until then the presented key works too.")


class RevokedKey(BaseModel):
    key_id: str
    status: str = Field(description="`revoked`")
