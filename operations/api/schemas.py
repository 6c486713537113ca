"""The requests and responses of erasures and of deletions by filter."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from accounts.api.schemas import AuthenticatedBody, AuthenticatedQuery, ScopedBody, Time, UserId
from core.rest import WHOLE
from memories.api.schemas.memories import DEFAULT_PAGE_SIZE, Cursor, MemoryId, PageSize, Reason, SessionKey
from memories.api.schemas.search import MAX_QUERY_CHARS, FilterTree
from operations.filtered_deletion import MAX_MEMORIES, PREVIEWED

DeletionId = Annotated[
    UUID, Field(description="The id of the deletion.", examples=["b0a4f9d2-6f0c-4d6e-9a51-2f4f5a8f0c11"])
]


class PreviewedBody(ScopedBody):
    """A deletion of many memories: a dry run first, then with its count."""

    dry_run: bool = Field(False, description="True deletes nothing and returns what would be deleted.")
    expected_count: Annotated[int, Field(ge=0, le=MAX_MEMORIES), WHOLE] | None = Field(
        None,
        description="The number that a dry run of the same choice returned in the last ten minutes. Required "
        "without `dry_run`; if another number matches now, nothing is deleted (409 `count_changed`).",
        examples=[0],
    )
    reason: Reason | None = Field(
        None, description="Why they are deleted, for the trash and the history.", examples=["outdated"]
    )


class FilteredDeletionBody(PreviewedBody):
    """The memories to delete, and how many they are."""

    filters: Annotated[dict[str, Any], FilterTree] = Field(
        description="Conditions that the memories must meet, as in `POST /memories/search`: at least one.",
        examples=[{"tags": ["draft"]}],
    )


class ForgetBody(PreviewedBody):
    """The words of the memories to delete, and how many they are."""

    words: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS)] = Field(
        description="The memories that have all of these words, in any form, are deleted, with their copies.",
        examples=["green tea"],
    )


class UndoneDeletionBody(AuthenticatedBody):
    """No fields but credentials."""


class AuditQuery(AuthenticatedQuery):
    """A page of the audit trail."""

    limit: PageSize = Field(DEFAULT_PAGE_SIZE, description="The size of a page.")
    cursor: Cursor = None


class AuditActor(BaseModel):
    """The actor. Operators have a role and a number that stays; their name only if an administrator entered one."""

    kind: Literal["key", "token", "operator", "command", "provisioning", "system"] = Field(
        description="The kind of actor; `token`: OpenClaw's token of an operator.", examples=["key"]
    )
    key_id: str | None = Field(
        description="The id of the user's key; null for other actors.",
        examples=["0b6f3f0e-6f0c-4d6e-9a51-2f4f5a8f0c11"],
    )
    role: str | None = Field(description="The operator's role.", examples=[None])
    number: int | None = Field(description="The operator's number; null for one who was deleted.", examples=[None])
    name: str | None = Field(description="The operator's full name, if one is entered.", examples=[None])


class AuditEventOut(BaseModel):
    """An event about the user's data."""

    event_id: int = Field(description="The id of the event.", examples=[1042])
    at: Time = Field(description="When it happened.")
    action: str = Field(description="The action, such as `memory.delete`.", examples=["user.export"])
    kind: Literal["change", "read", "sign_in"] = Field(description="The kind of the action.", examples=["change"])
    by: AuditActor = Field(description="The actor.")
    subject_type: str = Field(description="The type of what it was done to.", examples=["user"])
    subject_id: str | None = Field(
        description="Its id; null if the event also concerns other users.",
        examples=["u_123"],
    )
    count: int = Field(description="The number of times that it happened until `last_at`.", examples=[1])
    last_at: Time | None = Field(description="When it happened last; null if only once.", examples=[None])
    address: str | None = Field(description="The network address of the user's key; else null.", examples=["127.0.0.1"])
    detail: dict[str, Any] = Field(description="More about it, without texts; empty for operators.", examples=[{}])


class AuditPage(BaseModel):
    """A page of the audit trail."""

    events: list[AuditEventOut] = Field(description="The events, newest first.")
    next_cursor: str | None = Field(description="The cursor of the next page; null on the last one.", examples=[None])


class PreviewedMemory(BaseModel):
    """A memory that would be deleted."""

    id: MemoryId
    session_id: SessionKey
    text: str = Field(description="The text, of a long one the beginning.", examples=["I drink green tea."])
    category: str = Field(description="The category.", examples=["user_memory_fact"])
    created_at: Time = Field(description="When it was said or stored.")
    copies: list[str] = Field(description="The ids of its copies, which are deleted with it.", examples=[[]])


class FilteredDeletion(BaseModel):
    """A dry run, or a deletion of memories by a filter or by words."""

    deletion_id: str | None = Field(
        description="The id by which the deletion is undone; null for a dry run.",
        examples=["b0a4f9d2-6f0c-4d6e-9a51-2f4f5a8f0c11"],
    )
    status: Literal["dry_run", "running", "deleted", "undoing", "undone", "failed"] = Field(
        description="`running` and `undoing`: a worker continues, also after a restart.", examples=["deleted"]
    )
    count: int = Field(description="The number of memories that match.", examples=[1])
    deleted: int = Field(description="The number of memories that were moved to the trash.", examples=[1])
    by_category: dict[str, int] | None = Field(
        None, description="Only of a dry run: the number of memories by category.", examples=[None]
    )
    memories: list[PreviewedMemory] | None = Field(
        None,
        description=f"Only of a dry run: the newest {PREVIEWED} of the memories, newest first, each once.",
        examples=[None],
    )


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

    kind: str = Field(
        description="`key`, `provisioning`, `operator`, `person`, `command` or `system`.", examples=["key"]
    )
    name: str = Field(
        description="The id of the API key, or the name of the actor.",
        examples=["0b6f3f0e-6f0c-4d6e-9a51-2f4f5a8f0c11"],
    )


class ReceiptSignature(BaseModel):
    """The gateway's signature over the receipt without it: JSON with sorted keys, without spaces, in UTF-8."""

    algorithm: Literal["Ed25519"] = Field(description="The algorithm (RFC 8032).", examples=["Ed25519"])
    public_key: str = Field(
        description="The gateway's public key, in Base64.", examples=["NN5o4dCTKDJ1q2PSFmt/rYVZmEB2pM0nZSa8Xv3IhTk="]
    )
    value: str = Field(
        description="The signature, in Base64.",
        examples=["qUEkSmnNE6lqzcXTFbiZ4eUH3Gr5lrwxJpfoIQ9kG8DBcoQhMNuO7g9u3fE0pKIGbR3PrX1rBPcwFeN9TQmCCA=="],
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
    signature: ReceiptSignature = Field(description="The signature, which `manage.py verify_receipt` checks.")
