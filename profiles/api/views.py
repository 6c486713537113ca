from collections.abc import Mapping
from typing import Any, ClassVar

import orjson
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts.api.authentication import caller
from accounts.api.idempotency import idempotent
from accounts.api.openapi import (
    NOT_MODIFIED,
    RequiredBodies,
    path_parameter,
    problems,
    query_parameters,
    request_body,
    success,
)
from accounts.api.preconditions import conditional, not_modified
from accounts.api.schemas import AuthenticatedQuery
from accounts.audit import Actor
from accounts.bound_keys import agent_of
from accounts.controls import has_any
from accounts.models import IdempotencyKey
from accounts.scopes import ACCOUNT, DECIDE, SEARCH
from core.errors import NotFound
from core.messages import Translatable as _
from core.preconditions import preconditions_of
from core.rest import parse, parse_query
from core.times import isoformat
from core.token_estimates import estimated_tokens
from profiles import services
from profiles.api import schemas
from profiles.documents import Document
from profiles.models import ProfileRevision
from profiles.schemas import MODELS, Content, Kind, json_schema
from store import topic_model
from store.admission import Offer, require_correction, texts_in

MAX_BODY_BYTES = 1_000_000
KIND = path_parameter("kind", schemas.KindOfDocument)
VERSION = path_parameter("version", schemas.Version)


def _restored_again(request: Request, kept: IdempotencyKey, kind: str, **_: Any) -> HttpResponse:
    """Return the version that a restore made, for a repeated request with its `Idempotency-Key`."""
    etag = kept.headers["ETag"]
    version = int(etag.strip('"').rpartition("-")[2])
    return _content_response(services.revision(caller(request).user_pk, _kind(kind), version).readable, etag)


class _MemoriesViewSet(ViewSet):
    scopes = {
        **dict.fromkeys(("retrieve", "list_both", "history", "version", "json_schema", "prompt"), SEARCH),
        **dict.fromkeys(("update", "partial_update", "restore"), DECIDE),
    }
    max_json_bytes = MAX_BODY_BYTES
    schema = RequiredBodies()


class _DocumentViewSet(_MemoriesViewSet):
    kind: ClassVar[Kind]
    body: ClassVar[type[schemas.UserMemoryBody | schemas.WorkMemoryBody]]
    patch_body: ClassVar[type[schemas.UserMemoryPatch | schemas.WorkMemoryPatch]]

    @conditional
    def retrieve(self, request: Request) -> HttpResponse:
        """Get the document with its `ETag`. It is null while an operator has disabled it."""
        parse_query(AuthenticatedQuery, request)
        document = services.read(caller(request).user_pk, self.kind)
        return not_modified(request, document.etag, document.plain) or _document_response(document)

    @conditional
    def update(self, request: Request) -> HttpResponse:
        """Replace the document. The former version stays in its history."""
        body = parse(self.body, request.data)
        terms = _terms(request, body.agent_id)
        _require_kept(request, self.kind, body.content)
        return _document_response(services.write(caller(request).user_pk, self.kind, body.content, **terms))

    @conditional
    def partial_update(self, request: Request) -> HttpResponse:
        """Change some fields of the document. The former version stays in its history."""
        body, user_pk = parse(self.patch_body, request.data), caller(request).user_pk
        terms = _terms(request, body.agent_id)
        _require_kept(request, self.kind, body.content)
        document = services.patch(user_pk, self.kind, body.content, merge_lists=body.merge_lists, **terms)
        return _document_response(document)


def _documented(kind: Kind, memory: Any, body: Any, patch_body: Any, **patch: Any) -> Any:
    """Return a decorator that describes the endpoints of a document. `patch` is the example of a change."""
    now, errors = "The document as it is now.", problems(409, 412, 413, 422)
    return extend_schema_view(
        retrieve=extend_schema(
            operation_id=f"get_{kind}_memory",
            summary=f"Get the {kind} document",
            parameters=query_parameters(AuthenticatedQuery),
            responses={200: success(memory, "The document."), 304: NOT_MODIFIED, **problems(412, 422)},
        ),
        update=extend_schema(
            operation_id=f"put_{kind}_memory",
            summary=f"Replace the {kind} document",
            request=request_body(body),
            responses={200: success(memory, now), **errors},
        ),
        partial_update=extend_schema(
            operation_id=f"patch_{kind}_memory",
            summary=f"Change the {kind} document",
            request=request_body(patch_body, content=patch),
            responses={200: success(memory, now, **patch), **errors},
        ),
    )


@_documented("user", schemas.UserMemory, schemas.UserMemoryBody, schemas.UserMemoryPatch, timezone="Europe/Paris")
@extend_schema(tags=["profiles"])
class UserMemoryViewSet(_DocumentViewSet):
    kind, body, patch_body = "user", schemas.UserMemoryBody, schemas.UserMemoryPatch


@_documented("work", schemas.WorkMemory, schemas.WorkMemoryBody, schemas.WorkMemoryPatch, expertise=["acoustics"])
@extend_schema(tags=["profiles"])
class WorkMemoryViewSet(_DocumentViewSet):
    kind, body, patch_body = "work", schemas.WorkMemoryBody, schemas.WorkMemoryPatch


@extend_schema(tags=["profiles"])
class MemoriesViewSet(_MemoriesViewSet):
    @conditional
    @extend_schema(
        operation_id="get_profiles",
        summary="Get both documents",
        parameters=query_parameters(AuthenticatedQuery),
        responses={200: success(schemas.BothMemories, "Both documents."), 304: NOT_MODIFIED, **problems(412, 422)},
    )
    def list_both(self, request: Request) -> HttpResponse:
        """Get the user document and the work document, with one `ETag` for both."""
        parse_query(AuthenticatedQuery, request)
        documents = services.read_both(caller(request).user_pk)
        etag = '"' + "-".join(str(document.version) for document in documents.values()) + '"'
        content = {f"{kind}_memory": document.plain for kind, document in documents.items()}
        return not_modified(request, etag, content) or Response(content, headers={"ETag": etag})

    @extend_schema(
        operation_id="list_profile_history",
        summary="List the versions of a document",
        parameters=[KIND, *query_parameters(schemas.HistoryQuery)],
        responses={200: success(schemas.History, "A page of changes, newest first."), **problems(404, 422)},
    )
    def history(self, request: Request, kind: str) -> Response:
        """List the changes of a document. Each made a version."""
        query = parse_query(schemas.HistoryQuery, request)
        changes = services.history(caller(request).user_pk, _kind(kind), before=query.before, limit=query.limit)
        return Response({"changes": [_change(change) for change in changes]})

    @extend_schema(
        operation_id="get_profile_version",
        summary="Get a version of a document",
        parameters=[KIND, VERSION, *query_parameters(AuthenticatedQuery)],
        responses={200: success(schemas.Revision, "The version."), **problems(404, 422)},
    )
    def version(self, request: Request, kind: str, version: int) -> Response:
        """Get a document as it was after one of its changes."""
        parse_query(AuthenticatedQuery, request)
        revision = services.revision(caller(request).user_pk, _kind(kind), version)
        return Response({**_change(revision.change), "content": _plain(revision.readable)})

    @extend_schema(
        operation_id="restore_profile",
        summary="Restore a version of a document",
        parameters=[KIND, VERSION],
        request=request_body(schemas.RestoreBody),
        responses={
            200: success(schemas.AnyMemory, "The document as it is now."),
            **problems(404, 409, 412, 422),
        },
    )
    @idempotent(in_transaction=True, render=_restored_again)
    @conditional
    def restore(self, request: Request, kind: str, version: int) -> HttpResponse:
        """Make a former version of a document the current one, as a new version."""
        parse(schemas.RestoreBody, request.data)
        terms = _terms(request)
        former = services.revision(caller(request).user_pk, _kind(kind), version)
        _require_kept(request, _kind(kind), former.content, ask_seconds=0)
        restored = services.restore(caller(request).user_pk, _kind(kind), version, **terms)
        return _document_response(restored)

    @extend_schema(
        operation_id="get_profile_schema",
        summary="Get the JSON Schema of a document",
        parameters=[KIND, *query_parameters(AuthenticatedQuery)],
        responses={
            200: success(OpenApiTypes.OBJECT, "The JSON Schema.", title="UserMemoryContent", type="object"),
            **problems(404, 422),
        },
    )
    def json_schema(self, request: Request, kind: str) -> Response:
        """Get the JSON Schema (2020-12) of a document, for example to validate one before it is sent."""
        parse_query(AuthenticatedQuery, request)
        return Response(json_schema(_kind(kind)))

    @extend_schema(
        operation_id="get_profile_prompt",
        summary="Get the profile for a system prompt",
        parameters=query_parameters(schemas.PromptQuery),
        responses={200: success(schemas.Prompt, "The text for the system prompt."), **problems(422)},
    )
    def prompt(self, request: Request) -> Response:
        """Get a document as text for the system prompt of an agent."""
        query = parse_query(schemas.PromptQuery, request)
        prompt = services.make_prompt(
            caller(request).user_pk, query.agent, max_tokens=query.max_tokens, language=query.language
        )
        return Response(
            {
                "agent": query.agent,
                "language": prompt.language,
                "prompt": prompt.text,
                "estimated_tokens": estimated_tokens(prompt.text),
            }
        )


def _kind(word: str) -> Kind:
    if word not in MODELS:
        raise NotFound(_("There is no such document. Use user or work."))
    return word


def _terms(request: Request, agent_id: str | None = None) -> services.Terms:
    conditions = preconditions_of(request.headers)
    return {
        "actor": Actor.key(caller(request)),
        "agent_id": agent_of(caller(request), agent_id) or "",
        "if_match": conditions.if_match,
        "if_none_match": conditions.if_none_match,
    }


def _require_kept(
    request: Request,
    kind: Kind,
    content: Content | Mapping[str, Any],
    *,
    ask_seconds: float = topic_model.SECONDS,
) -> None:
    """Raise `NotKept` if the person's controls refuse a text that the document does not have yet."""
    principal = caller(request)
    if not has_any(principal.user_pk):
        return
    given = content.model_dump() if isinstance(content, Content) else content
    known = set(texts_in(services.read(principal.user_pk, kind).content.model_dump()))
    if new := [text for text in texts_in(given) if text not in known]:
        offer, is_of_person = Offer("agents", others=new), ACCOUNT in principal.scopes
        require_correction(principal.user_pk, offer, is_of_person=is_of_person, ask_seconds=ask_seconds)


def _document_response(document: Document) -> HttpResponse:
    return _content_response(document.readable, document.etag)


def _content_response(content: Content | None, etag: str) -> HttpResponse:
    """Return a document alone, null if it is disabled; `Response` would omit null."""
    return HttpResponse(orjson.dumps(_plain(content)), content_type="application/json", headers={"ETag": etag})


def _plain(content: Content | None) -> dict[str, Any] | None:
    return None if content is None else content.model_dump()


def _change(change: ProfileRevision) -> dict[str, Any]:
    return {
        "version": change.version,
        "action": change.action,
        "by": change.actor_kind,
        "agent_id": change.agent_id or None,
        "at": isoformat(change.created_at),
    }
