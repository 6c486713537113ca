"""The query and the response of `DELETE /users/{user_id}`."""

from pydantic import BaseModel, Field

from accounts.api.schemas import AuthenticatedQuery, Time, UserId


class ErasureQuery(AuthenticatedQuery):
    """The confirmation of an erasure."""

    confirm: str = Field(
        description="`erase:` followed by the user id, as a confirmation. An erasure cannot be undone.",
        examples=["erase:u_123"],
    )


class NamedErasureQuery(ErasureQuery):
    """The user to erase, and the confirmation."""

    user_id: str = Field(
        description="The id of the user to erase: with an API key, the caller's own.", examples=["u_123"]
    )


class RemoteDeletions(BaseModel):
    """The deletions that the remote was asked for. The gateway repeats those that are pending."""

    accepted: int = Field(description="The number of deletions that the remote accepted.")
    entries: int = Field(description="The number of entries that the remote deleted, by its own count.")
    pending: int = Field(description="The number of deletions that the remote has not accepted yet.")


class RemoteResidue(BaseModel):
    """The data at remotes, by the names there. `deletions` says what the attached one was asked to delete."""

    base_urls: list[str] = Field(description="The addresses of the remotes.")
    user_id: str = Field(description="The user id there.")
    agents: str = Field(description="A pattern of the agent ids there; `*` stands for the id of an agent.")
    sessions: list[str] = Field(description="The session ids there.")
    withdrawn: int = Field(description="The number of messages that waited for a remote and are no longer sent.")
    sent: int = Field(description="The number of messages that were sent.")
    memories: int = Field(description="The number of memories that remotes derived.")
    deletions: RemoteDeletions | None = Field(
        description="The deletions there; null if the operator has not enabled them."
    )


class StoredFiles(BaseModel):
    """Files removed from the storage."""

    count: int = Field(description="The number of files.", examples=[1])
    bytes: int = Field(description="Their total size in bytes.", examples=[59])


class ErasedBy(BaseModel):
    """The actor who erased the user."""

    kind: str = Field(description="`key`, `provisioning`, `operator`, `command` or `system`.", examples=["key"])
    name: str = Field(
        description="The id of the API key, or the name of the actor.",
        examples=["0b6f3f0e-6f0c-4d6e-9a51-2f4f5a8f0c11"],
    )


class ErasureReceipt(BaseModel):
    """The receipt of an erasure. Keep it: it is the only record that still names the user."""

    receipt_id: str = Field(description="The id of the receipt.", examples=["e4c9e00a-5f9c-4a9c-87ea-2f5894383f7e"])
    user_id: UserId
    begun_at: Time = Field(description="When the erasure began.")
    erased_at: Time = Field(description="When the erasure ended.")
    by: ErasedBy = Field(description="Who erased the user.")
    removed: dict[str, int] = Field(
        description="The number of removed rows by table.", examples=[{"user": 1, "keys": 3, "memories": 2}]
    )
    files: StoredFiles = Field(description="The removed files.")
    remote: RemoteResidue | None = Field(
        description="The data that remotes held; null if none was ever attached.", examples=[None]
    )
    residue: list[str] = Field(
        description="Sentences about copies that the gateway cannot remove, such as backups.",
        examples=[
            [
                "The request log contains the user id and paths until it is rotated.",
                "Backups and archives that were made before still contain the user's data.",
            ]
        ],
    )
