"""The endpoints, grouped as on the client. Each method returns a call; its transport sends it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from uuid import UUID

import httpx2
from pydantic import BaseModel

from memory_gateway_client import models
from memory_gateway_client.calls import Call, Page, Upload, call, page_of, parsed_as
from memory_gateway_client.errors import NotFound
from memory_gateway_client.transports import Endpoint, Group, Listing, S, Streaming

V = TypeVar("V", bound=models.Versioned)


class Memories(Group[S]):
    """Stored memories: `client.memories`."""

    @Endpoint
    def search(
        self,
        query: str,
        *,
        scope: Sequence[models.Scope] | None = None,
        conversation_id: str | None = None,
        agent_id: str | None = None,
        method: models.Method | None = None,
        top_k: int | None = None,
        radius: float | None = None,
        include_profile: bool | None = None,
        enable_llm_rerank: bool | None = None,
        filters: Mapping[str, Any] | None = None,
        context: int | None = None,
        explain: bool | None = None,
        raw: bool | None = None,
    ) -> Call[models.SearchAnswer]:
        """Search memories. The default `scope` is `current_chat` and `resources`; `raw=False` shortens the answer."""
        body = {
            "query": query,
            "scope": scope,
            "conversation_id": conversation_id,
            "agent_id": agent_id,
            "method": method,
            "top_k": top_k,
            "radius": radius,
            "include_profile": include_profile,
            "enable_llm_rerank": enable_llm_rerank,
            "filters": filters,
            "context": context,
            "explain": explain,
            "raw": raw,
        }
        answer = parsed_as(models.SearchAnswer)
        return call("POST", "/memories/search", answer, body=body | self._scope, is_idempotent=True)

    @Listing
    def list(
        self,
        *,
        session_id: str | None = None,
        memory_type: models.MemoryType | None = None,
        category: models.Category | None = None,
        agent_id: str | None = None,
        sender_id: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        page_size: int = 100,
    ) -> Call[Page[models.Memory]]:
        """Iterate over the memories, newest first."""
        conditions = {
            "session_id": session_id,
            "memory_type": memory_type,
            "category": category,
            "agent_id": agent_id,
            "sender_id": sender_id,
            "since_ms": since_ms,
            "until_ms": until_ms,
            "limit": page_size,
        }
        return call("GET", "/memories", page_of(models.Memory, "memories"), params=conditions | self._scope)

    @Endpoint
    def get(self, memory_id: str) -> Call[models.MemoryDetail]:
        """Return a memory with its history."""
        return call(
            "GET",
            "/memories/{memory_id}",
            _versioned(parsed_as(models.MemoryDetail)),
            ids={"memory_id": memory_id},
            params=self._scope,
        )

    @Endpoint
    def update(
        self,
        memory_id: str,
        text: str | None = None,
        *,
        category: models.Category | None = None,
        importance: float | None = None,
        session_id: str | None = None,
        if_match: str | None = None,
    ) -> Call[models.Override]:
        """Override the text, category or importance of a memory. `session_id` checks that it is the right one.

        `if_match`, also of other changes, is the `etag` that `get` returned: raises `PreconditionFailed` if the memory
        was changed since.
        """
        body = {"override_text": text, "category": category, "importance": importance, "session_id": session_id}
        return call(
            "PATCH",
            "/memories/{memory_id}",
            _versioned(parsed_as(models.Override)),
            ids={"memory_id": memory_id},
            body=body | self._scope,
            headers={"If-Match": if_match},
        )

    @Endpoint
    def undo_update(self, memory_id: str, *, if_match: str | None = None) -> Call[models.Override]:
        """Remove a memory's override, so that its original text holds again."""
        return call(
            "DELETE",
            "/memories/{memory_id}/override",
            parsed_as(models.Override),
            ids={"memory_id": memory_id},
            params=self._scope,
            headers={"If-Match": if_match},
            is_idempotent=False,
        )

    @Endpoint
    def delete(
        self,
        memory_id: str,
        *,
        reason: str | None = None,
        session_id: str | None = None,
        if_match: str | None = None,
    ) -> Call[models.MemoryDecision]:
        """Move a memory to the trash."""
        return call(
            "DELETE",
            "/memories/{memory_id}",
            parsed_as(models.MemoryDecision),
            ids={"memory_id": memory_id},
            body={"reason": reason, "session_id": session_id} | self._scope,
            headers={"If-Match": if_match},
            is_idempotent=if_match is None,
        )

    @Endpoint
    def delete_of_sender(
        self, sender_id: str, *, session_id: str | None = None, reason: str | None = None
    ) -> Call[models.SenderDeletion]:
        """Move the messages of a sender, of one session or of all, to the trash. Not available with EverOS."""
        body = {"sender_id": sender_id, "session_id": session_id, "reason": reason}
        return call("DELETE", "/memories", parsed_as(models.SenderDeletion), body=body | self._scope)

    @Endpoint
    def restore(
        self, memory_id: str, *, session_id: str | None = None, if_match: str | None = None
    ) -> Call[models.RestoredMemory]:
        """Restore a memory from the trash, or one that a newer memory superseded."""
        return call(
            "POST",
            "/memories/{memory_id}/restore",
            parsed_as(models.RestoredMemory),
            ids={"memory_id": memory_id},
            body={"session_id": session_id} | self._scope,
            headers={"If-Match": if_match},
            is_keyed=True,
        )

    @Listing
    def trash(self, *, page_size: int = 100) -> Call[Page[models.TrashItem]]:
        """Iterate over deleted memories and sessions, newest first."""
        params = {"limit": page_size} | self._scope
        return call("GET", "/memories/trash", page_of(models.TrashItem, "trash"), params=params)


class Sessions(Group[S]):
    """Conversations: `client.sessions`."""

    @Endpoint
    def add(
        self,
        session_id: str,
        messages: Iterable[models.Message | Mapping[str, Any]],
        *,
        participants: Iterable[models.Participant | Mapping[str, Any]] = (),
    ) -> Call[models.Added]:
        """Add messages, which can be searched at once. The session is created if it does not exist.

        `participants` are the other people of a group chat who wrote some of the messages. The gateway stores a message
        with the same timestamp once.
        """
        checked = [models.Message.model_validate(message) for message in messages]
        people = [models.Participant.model_validate(person) for person in participants]
        body = {"session_id": session_id, "messages": [_plain(message) for message in checked]}
        if people:
            body["participants"] = [_plain(person) for person in people]
        return call("POST", "/memories/add", parsed_as(models.Added), body=body | self._scope, is_keyed=True)

    @Endpoint
    def flush(self, session_id: str) -> Call[models.Flushed]:
        """Turn the session's messages into memories, at the end of a conversation."""
        body = {"session_id": session_id} | self._scope
        return call("POST", "/memories/flush", parsed_as(models.Flushed), body=body, is_keyed=True)

    @Listing
    def list(self, *, deleted: bool | None = None, page_size: int = 100) -> Call[Page[models.Session]]:
        """Iterate over the sessions, or over those in the trash, newest first."""
        params = {"deleted": deleted, "limit": page_size} | self._scope
        return call("GET", "/sessions", page_of(models.Session, "sessions"), params=params)

    @Endpoint
    def get(self, session_id: str) -> Call[models.Session]:
        """Return a session, also one in the trash."""
        return call(
            "GET",
            "/sessions/{session_id}",
            _versioned(parsed_as(models.Session)),
            ids={"session_id": session_id},
            params=self._scope,
        )

    @Endpoint
    def delete(
        self, session_id: str, *, reason: str | None = None, if_match: str | None = None
    ) -> Call[models.SessionDecision]:
        """Move a session with all its memories to the trash."""
        return call(
            "DELETE",
            "/sessions/{session_id}",
            parsed_as(models.SessionDecision),
            ids={"session_id": session_id},
            body={"reason": reason} | self._scope,
            headers={"If-Match": if_match},
            is_idempotent=if_match is None,
        )

    @Endpoint
    def restore(self, session_id: str, *, if_match: str | None = None) -> Call[models.SessionDecision]:
        """Restore a session from the trash."""
        return call(
            "POST",
            "/sessions/{session_id}/restore",
            parsed_as(models.SessionDecision),
            ids={"session_id": session_id},
            body=self._scope,
            headers={"If-Match": if_match},
            is_keyed=True,
        )


class Resources(Group[S]):
    """Files: `client.resources`."""

    @Endpoint
    def upload(
        self,
        file: str | Path | BinaryIO,
        *,
        filename: str | None = None,
        title: str | None = None,
        description: str | None = None,
        wait: bool = True,
    ) -> Call[models.ResourceStatus]:
        """Upload a file, and wait until it can be searched; with `wait=False`, return before its ingestion.

        `file` is a path, or an object open for reading bytes. It is streamed, never read into memory as a whole.
        """
        source = Path(file) if isinstance(file, str | Path) else file
        name = filename or Path(str(getattr(source, "name", "file"))).name
        return call(
            "POST",
            "/resources",
            parsed_as(models.ResourceStatus),
            body={"title": title, "description": description} | self._scope,
            headers={"Prefer": None if wait else "respond-async"},
            upload=Upload(source, name),
            is_keyed=True,
        )

    @Endpoint
    def register(
        self,
        filename: str,
        source_uri: str,
        *,
        ingest_uri: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        content_type: models.ContentType | None = None,
        size_bytes: int | None = None,
        sha256: str | None = None,
        wait: bool = True,
    ) -> Call[models.RegisteredResource]:
        """Register a file that is stored elsewhere: at `source_uri`, to be read once from `ingest_uri`."""
        body = {
            "filename": filename,
            "source_uri": source_uri,
            "ingest_uri": ingest_uri,
            "title": title,
            "description": description,
            "mime_type": mime_type,
            "content_type": content_type,
            "size_bytes": size_bytes,
            "sha256": sha256,
        }
        headers = {"Prefer": None if wait else "respond-async"}
        answer = parsed_as(models.RegisteredResource)
        return call("POST", "/resources/external", answer, body=body | self._scope, headers=headers, is_keyed=True)

    @Listing
    def list(self, *, deleted: bool = False, page_size: int = 100) -> Call[Page[models.Resource]]:
        """Iterate over the files, or with `deleted` over those in the trash, newest first."""
        params = {"deleted": deleted or None, "limit": page_size} | self._scope
        return call("GET", "/resources", page_of(models.Resource, "resources"), params=params)

    @Endpoint
    def get(self, resource_id: str) -> Call[models.Resource]:
        """Return a file's metadata. Raises: `NotFound`."""
        listed = parsed_as(list[models.Resource], "resources")

        def parse(response: httpx2.Response) -> models.Resource:
            if found := listed(response):
                return found[0].of_version(response.headers.get("ETag", ""))
            request_id = response.headers.get("X-Request-ID")
            raise NotFound(404, "not_found", "There is no such resource.", request_id=request_id)

        return call("GET", "/resources/{resource_id}", parse, ids={"resource_id": resource_id})

    @Streaming
    def content(self, resource_id: str) -> Call[None]:
        """Iterate over the bytes of an uploaded file."""
        return call("GET", "/resources/{resource_id}/content", _nothing, ids={"resource_id": resource_id})

    @Endpoint
    def delete(self, resource_id: str, *, if_match: str | None = None) -> Call[models.ResourceStatus]:
        """Move a file to the trash, with its memories."""
        return call(
            "DELETE",
            "/resources/{resource_id}",
            parsed_as(models.ResourceStatus),
            ids={"resource_id": resource_id},
            headers={"If-Match": if_match},
            is_idempotent=False,
        )

    @Endpoint
    def restore(self, resource_id: str) -> Call[models.ResourceStatus]:
        """Restore a file from the trash. Raises: `Conflict` if the same file was added again meanwhile."""
        path, answer = "/resources/{resource_id}/restore", parsed_as(models.ResourceStatus)
        return call("POST", path, answer, ids={"resource_id": resource_id}, body={}, is_keyed=True)


class Profiles(Group[S]):
    """The documents `user` and `work`: `client.profiles`. `profiles.schema` describes their content."""

    @Endpoint
    def get(self, kind: models.Kind) -> Call[models.Profile]:
        """Return a document."""
        return call("GET", "/api/v1/memories/{kind}", _profile, ids={"kind": kind})

    @Endpoint
    def get_both(self) -> Call[models.Profiles]:
        """Return both documents."""
        return call("GET", "/api/v1/memories/", parsed_as(models.Profiles))

    @Endpoint
    def update(
        self,
        kind: models.Kind,
        changes: Mapping[str, Any],
        *,
        merge_lists: bool | None = None,
        agent_id: str | None = None,
        if_match: str | None = None,
    ) -> Call[models.Profile]:
        """Change some fields of a document (JSON Merge Patch). `merge_lists` merges lists of entries by `name`."""
        body = {"content": changes, "merge_lists": merge_lists, "agent_id": agent_id}
        headers = {"If-Match": if_match}
        return call("PATCH", "/api/v1/memories/{kind}", _profile, ids={"kind": kind}, body=body, headers=headers)

    @Endpoint
    def replace(
        self,
        kind: models.Kind,
        content: Mapping[str, Any],
        *,
        agent_id: str | None = None,
        if_match: str | None = None,
    ) -> Call[models.Profile]:
        """Replace a document. Absent fields take their defaults."""
        body = {"content": content, "agent_id": agent_id}
        return call(
            "PUT",
            "/api/v1/memories/{kind}",
            _profile,
            ids={"kind": kind},
            body=body,
            headers={"If-Match": if_match},
            is_idempotent=if_match is None,  # the first attempt may have changed the ETag
        )

    @Listing
    def history(self, kind: models.Kind, *, page_size: int = 100) -> Call[Page[models.ProfileChange]]:
        """Iterate over the changes of a document, newest first."""
        listed = parsed_as(list[models.ProfileChange], "changes")

        def parse(response: httpx2.Response) -> Page[models.ProfileChange]:
            changes = listed(response)
            return Page(changes, {"before": changes[-1].version} if len(changes) == page_size else None)

        return call("GET", "/api/v1/memories/{kind}/history", parse, ids={"kind": kind}, params={"limit": page_size})

    @Endpoint
    def version(self, kind: models.Kind, version: int) -> Call[models.ProfileVersion]:
        """Return a document as it was after a change."""
        ids = {"kind": kind, "version": version}
        return call("GET", "/api/v1/memories/{kind}/history/{version}", parsed_as(models.ProfileVersion), ids=ids)

    @Endpoint
    def restore(self, kind: models.Kind, version: int, *, if_match: str | None = None) -> Call[models.Profile]:
        """Make a former version of a document the current one."""
        ids, headers = {"kind": kind, "version": version}, {"If-Match": if_match}
        path = "/api/v1/memories/{kind}/restore/{version}"
        return call("POST", path, _profile, ids=ids, body={}, headers=headers, is_keyed=True)

    @Endpoint
    def prompt(self, agent: str, *, language: str | None = None, max_tokens: int | None = None) -> Call[models.Prompt]:
        """Return the documents as a text for the system prompt of a `router` or a `worker`."""
        params = {"agent": agent, "language": language, "max_tokens": max_tokens}
        return call("GET", "/api/v1/memories/prompt", parsed_as(models.Prompt), params=params)

    @Endpoint
    def schema(self, kind: models.Kind) -> Call[dict[str, Any]]:
        """Return the JSON Schema of a document."""
        return call("GET", "/api/v1/memories/schema/{kind}", parsed_as(dict[str, Any]), ids={"kind": kind})


class Users(Group[S]):
    """Users: `client.users`."""

    @Endpoint
    def create(self, user_id: str, *, provisioning_token: str | None = None) -> Call[models.NewUser]:
        """Create a user with an API key. The production profile requires the provisioning token."""
        headers = _bearer(provisioning_token)
        return call("POST", "/users", parsed_as(models.NewUser), body={"user_id": user_id}, headers=headers)

    @Endpoint
    def erase(
        self, user_id: str, *, confirm: str, provisioning_token: str | None = None
    ) -> Call[models.ErasureReceipt]:
        """Erase a user with all data. It cannot be undone. `confirm` is `erase:` and the user's id."""
        return call(
            "DELETE",
            "/users/{user_id}",
            parsed_as(models.ErasureReceipt),
            ids={"user_id": user_id},
            params={"confirm": confirm},
            headers=_bearer(provisioning_token),
            is_idempotent=False,
        )


class Keys(Group[S]):
    """The user's API keys: `client.keys`."""

    @Endpoint
    def list(self) -> Call[list[models.Key]]:
        """Return all keys, without their plaintext."""
        return call("GET", "/users/me/keys", parsed_as(list[models.Key], "keys"))

    @Endpoint
    def create(self, *, label: str | None = None, expires_at: datetime | None = None) -> Call[models.NewKey]:
        """Create a key, for one device or application."""
        expires = None if expires_at is None else expires_at.isoformat()
        body = {"label": label, "expires_at": expires}
        return call("POST", "/users/me/keys", parsed_as(models.NewKey), body=body, is_keyed=True)

    @Endpoint
    def rotate(self, *, grace_seconds: int | None = None) -> Call[models.RotatedKey]:
        """Create a key in place of this client's key, which ends after the grace period. Continue with a new client."""
        body = {"grace_seconds": grace_seconds}
        return call("POST", "/users/me/keys/rotate", parsed_as(models.RotatedKey), body=body, is_keyed=True)

    @Endpoint
    def revoke(self, key_id: UUID | str) -> Call[models.RevokedKey]:
        """End a key at once."""
        return call(
            "DELETE",
            "/users/me/keys/{key_id}",
            parsed_as(models.RevokedKey),
            ids={"key_id": key_id},
            is_idempotent=False,
        )


class Webhooks(Group[S]):
    """Addresses that get the user's events: `client.webhooks`. `verify_webhook` checks what they receive."""

    @Endpoint
    def create(self, url: str, *, events: Sequence[models.EventType] = ()) -> Call[models.NewWebhook]:
        """Create a webhook for these types of events, or for all."""
        body = {"url": url, "events": [*events]}
        return call("POST", "/webhooks", parsed_as(models.NewWebhook), body=body, is_keyed=True)

    @Endpoint
    def list(self) -> Call[list[models.Webhook]]:
        """Return all webhooks, without their secrets."""
        return call("GET", "/webhooks", parsed_as(list[models.Webhook], "webhooks"))

    @Endpoint
    def get(self, webhook_id: UUID | str) -> Call[models.Webhook]:
        """Return a webhook without its secret."""
        return call("GET", "/webhooks/{webhook_id}", parsed_as(models.Webhook), ids={"webhook_id": webhook_id})

    @Endpoint
    def update(
        self,
        webhook_id: UUID | str,
        *,
        url: str | None = None,
        events: Sequence[models.EventType] | None = None,
        is_enabled: bool | None = None,
    ) -> Call[models.Webhook]:
        """Change the given parts of a webhook."""
        body = {"url": url, "events": None if events is None else [*events], "is_enabled": is_enabled}
        answer = parsed_as(models.Webhook)
        return call("PATCH", "/webhooks/{webhook_id}", answer, ids={"webhook_id": webhook_id}, body=body)

    @Endpoint
    def delete(self, webhook_id: UUID | str) -> Call[models.DeletedWebhook]:
        """Delete a webhook with its deliveries."""
        return call(
            "DELETE",
            "/webhooks/{webhook_id}",
            parsed_as(models.DeletedWebhook),
            ids={"webhook_id": webhook_id},
            is_idempotent=False,
        )

    @Endpoint
    def rotate_secret(self, webhook_id: UUID | str, *, grace_seconds: int | None = None) -> Call[models.NewWebhook]:
        """Replace the secret. Events are signed by the old one too until the grace period ends."""
        path, answer = "/webhooks/{webhook_id}/rotate-secret", parsed_as(models.NewWebhook)
        body = {"grace_seconds": grace_seconds}
        return call("POST", path, answer, ids={"webhook_id": webhook_id}, body=body, is_keyed=True)

    @Endpoint
    def test(self, webhook_id: UUID | str) -> Call[models.WebhookDelivery]:
        """Send the event `webhook.test`. `deliveries` shows the result."""
        path, answer = "/webhooks/{webhook_id}/test", parsed_as(models.WebhookDelivery)
        return call("POST", path, answer, ids={"webhook_id": webhook_id}, body={}, is_keyed=True)

    @Listing
    def deliveries(
        self, webhook_id: UUID | str, *, status: models.DeliveryStatus | None = None, page_size: int = 100
    ) -> Call[Page[models.WebhookDelivery]]:
        """Iterate over the deliveries of the last 30 days, newest first."""
        return call(
            "GET",
            "/webhooks/{webhook_id}/deliveries",
            page_of(models.WebhookDelivery, "deliveries"),
            ids={"webhook_id": webhook_id},
            params={"status": status, "limit": page_size},
        )


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True)


def _bearer(token: str | None) -> dict[str, str | None]:
    return {"Authorization": token and f"Bearer {token}"}


def _nothing(_: httpx2.Response) -> None:
    """Parse nothing: the bytes are the answer."""


def _versioned(parse: Callable[[httpx2.Response], V]) -> Callable[[httpx2.Response], V]:
    """Return a parser that adds the `ETag` of the answer."""
    return lambda response: parse(response).of_version(response.headers.get("ETag", ""))


def _profile(response: httpx2.Response) -> models.Profile:
    content = parsed_as(dict[str, Any] | None)(response)  # type: ignore[arg-type]
    return models.Profile(content=content, etag=response.headers.get("ETag", ""))
