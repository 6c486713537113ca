"""What request bodies and queries of every endpoint share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from memory_gateway.core.ids import Name
from memory_gateway.core.rest import Body

_USER_ID = "Whose key is sent. Needed beside `user_key`, not beside the header `Authorization: Bearer uk_…`."
_USER_KEY = "The user's key, where no header can be sent. Prefer the header `Authorization: Bearer uk_…`."


class _Credentials(BaseModel):
    """Read by the authentication; views never look at them."""

    user_id: str | None = Field(None, description=_USER_ID)
    user_key: str | None = Field(None, description=_USER_KEY, json_schema_extra={"deprecated": True})


class _Scope(BaseModel):
    app_id: Name = Field("default", description="The application whose memories these are.")
    project_id: Name = Field("default", description="The project within the application.")


class AuthenticatedBody(Body, _Credentials):
    """A JSON or form body that may carry credentials."""


class ScopedBody(AuthenticatedBody, _Scope):
    """A body that names a scope as well."""


class AuthenticatedQuery(_Credentials):
    """Query parameters that may carry credentials: `parse(Model, request.query_params.dict())`.

    Numbers come as text there, so these models are not strict; unknown names are refused all the same.
    """

    model_config = ConfigDict(extra="forbid")


class ScopedQuery(AuthenticatedQuery, _Scope):
    """Query parameters that name a scope as well."""
