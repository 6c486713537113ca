"""The endpoints that are more than a request of their fields: `endpoints` adds the others to these groups."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import httpx2

from memory_gateway_client import models
from memory_gateway_client.calls import Call, Page, Upload, call, parsed_as
from memory_gateway_client.errors import NotFound
from memory_gateway_client.transports import Endpoint, Group, Listing, S, Streaming


class FileEndpoints(Group[S]):
    """Endpoints that send and return files, and the one whose list has one file."""

    @Endpoint
    def upload(
        self,
        file: str | Path | BinaryIO,
        *,
        filename: str | None = None,
        title: str | None = None,
        description: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        wait: bool = True,
    ) -> Call[models.ResourceStatus]:
        """Upload a file, and wait until it can be searched; with `wait=False`, return before its ingestion.

        `file` is a path, or an object open for reading bytes. It is streamed, never read into memory as a whole.
        """
        source = Path(file) if isinstance(file, str | Path) else file
        name = filename or Path(str(getattr(source, "name", "file"))).name
        labels = {"tags": tags and json.dumps(tags), "metadata": metadata and json.dumps(metadata)}
        return call(
            "POST",
            "/resources",
            parsed_as(models.ResourceStatus),
            body={"title": title, "description": description, **labels} | self._scope,
            headers={"Prefer": None if wait else "respond-async"},
            upload=Upload(source, name),
            is_keyed=True,
        )

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


class UserEndpoints(Group[S]):
    """The endpoint that returns an archive."""

    @Streaming
    def export(self) -> Call[None]:
        """Iterate over the bytes of a ZIP archive of all data of the user. Needs a key without limits."""
        return call("GET", "/users/me/export", _nothing)


class ProfileEndpoints(Group[S]):
    """Endpoints of both documents, whose version is a header."""

    @Endpoint
    def get(self, kind: models.Kind) -> Call[models.Profile]:
        """Return a document."""
        return call("GET", "/api/v1/memories/{kind}", _profile, ids={"kind": kind})

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
    def restore(self, kind: models.Kind, version: int, *, if_match: str | None = None) -> Call[models.Profile]:
        """Make a former version of a document the current one."""
        ids, headers = {"kind": kind, "version": version}, {"If-Match": if_match}
        path = "/api/v1/memories/{kind}/restore/{version}"
        return call("POST", path, _profile, ids=ids, body={}, headers=headers, is_keyed=True)


def _nothing(_: httpx2.Response) -> None:
    """Parse nothing: the bytes are the answer."""


def _profile(response: httpx2.Response) -> models.Profile:
    content = parsed_as(dict[str, Any] | None)(response)  # type: ignore[arg-type]
    return models.Profile(content=content, etag=response.headers.get("ETag", ""))
