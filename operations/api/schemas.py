"""The wire shapes of `DELETE /users/{user_id}`."""

from __future__ import annotations

from pydantic import BaseModel, Field

from accounts.api.schemas import AuthenticatedQuery


class ErasureQuery(AuthenticatedQuery):
    confirm: str = Field(description="`erase:` and the user id, such as `erase:u_123`. It cannot be undone.")


class LeftUpstream(BaseModel):
    """The names under which the upstream knows what it still holds."""

    base_url: str | None
    user_id: str
    agents: str
    sessions: list[str]
    messages: int
    memories: int


class StoredFiles(BaseModel):
    count: int
    bytes: int


class ErasedBy(BaseModel):
    kind: str
    name: str


class ErasureReceipt(BaseModel):
    """What was erased, and what the gateway could not reach."""

    receipt_id: str
    user_id: str
    begun_at: str
    erased_at: str
    by: ErasedBy
    removed: dict[str, int] = Field(description="How many rows of each table.")
    files: StoredFiles
    upstream: LeftUpstream | None
    residue: list[str] = Field(description="What still exists elsewhere, in sentences.")
