from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import orjson
from django.http import HttpResponse
from django.utils.http import parse_etags
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts.api.authentication import caller
from accounts.api.openapi import problems, query_parameters
from accounts.api.schemas import AuthenticatedQuery
from accounts.audit import Actor
from core.errors import NotFound
from core.rest import parse, parse_query
from core.times import isoformat
from profiles import services
from profiles.api import schemas
from profiles.api.openapi import IF_MATCH, KIND, RequiredBody
from profiles.documents import Change, Document, require_match
from profiles.quoting import estimated_tokens
from profiles.schemas import MODELS, Content, Kind, json_schema

MAX_BODY_BYTES = 1_000_000
_READ_PARAMETERS = [IF_MATCH, *query_parameters(AuthenticatedQuery)]
_REFUSALS = problems(400, 401, 404, 409, 412, 413, 422)


class _MemoriesViewSet(ViewSet):
    max_json_bytes = MAX_BODY_BYTES
    schema = RequiredBody()


class _DocumentViewSet(_MemoriesViewSet):
    kind: ClassVar[Kind]

    def read(self, request: Request) -> HttpResponse:
        parse_query(AuthenticatedQuery, request)
        document = services.read(caller(request).user_pk, self.kind)
        require_match(document.etag, _if_match(request))
        return _answer(document)

    def write(self, request: Request, body: schemas.UserMemoryBody | schemas.WorkMemoryBody) -> HttpResponse:
        who = caller(request)
        document = services.write(
            who.user_pk,
            self.kind,
            body.content,
            actor=Actor.key(who),
            agent_id=body.agent_id or "",
            if_match=_if_match(request),
        )
        return _answer(document)

    def merge(self, request: Request, body: schemas.UserMemoryPatch | schemas.WorkMemoryPatch) -> HttpResponse:
        who = caller(request)
        document = services.patch(
            who.user_pk,
            self.kind,
            body.content,
            merge_lists=body.merge_lists,
            actor=Actor.key(who),
            agent_id=body.agent_id or "",
            if_match=_if_match(request),
        )
        return _answer(document)


@extend_schema(tags=["profiles"])
class UserMemoryViewSet(_DocumentViewSet):
    kind = "user"

    @extend_schema(
        operation_id="get_user_memory",
        summary="Who the user is",
        responses={200: schemas.UserMemory, **problems(400, 401, 412, 422)},
        parameters=_READ_PARAMETERS,
    )
    def retrieve(self, request: Request) -> HttpResponse:
        return self.read(request)

    @extend_schema(
        operation_id="put_user_memory",
        summary="Replace who the user is",
        parameters=[IF_MATCH],
        request=schemas.UserMemoryBody,
        responses={200: schemas.UserMemory, **_REFUSALS},
    )
    def update(self, request: Request) -> HttpResponse:
        return self.write(request, parse(schemas.UserMemoryBody, request.data))

    @extend_schema(
        operation_id="patch_user_memory",
        summary="Change a part of who the user is",
        parameters=[IF_MATCH],
        request=schemas.UserMemoryPatch,
        responses={200: schemas.UserMemory, **_REFUSALS},
    )
    def partial_update(self, request: Request) -> HttpResponse:
        return self.merge(request, parse(schemas.UserMemoryPatch, request.data))


@extend_schema(tags=["profiles"])
class WorkMemoryViewSet(_DocumentViewSet):
    kind = "work"

    @extend_schema(
        operation_id="get_work_memory",
        summary="How the user works",
        responses={200: schemas.WorkMemory, **problems(400, 401, 412, 422)},
        parameters=_READ_PARAMETERS,
    )
    def retrieve(self, request: Request) -> HttpResponse:
        return self.read(request)

    @extend_schema(
        operation_id="put_work_memory",
        summary="Replace how the user works",
        parameters=[IF_MATCH],
        request=schemas.WorkMemoryBody,
        responses={200: schemas.WorkMemory, **_REFUSALS},
    )
    def update(self, request: Request) -> HttpResponse:
        return self.write(request, parse(schemas.WorkMemoryBody, request.data))

    @extend_schema(
        operation_id="patch_work_memory",
        summary="Change a part of how the user works",
        parameters=[IF_MATCH],
        request=schemas.WorkMemoryPatch,
        responses={200: schemas.WorkMemory, **_REFUSALS},
    )
    def partial_update(self, request: Request) -> HttpResponse:
        return self.merge(request, parse(schemas.WorkMemoryPatch, request.data))


@extend_schema(tags=["profiles"])
class MemoriesViewSet(_MemoriesViewSet):
    @extend_schema(
        operation_id="get_profiles",
        summary="Both documents of the user",
        responses={200: schemas.BothMemories, **problems(400, 401, 412, 422)},
        parameters=_READ_PARAMETERS,
    )
    def list_both(self, request: Request) -> Response:
        parse_query(AuthenticatedQuery, request)
        documents = services.read_both(caller(request).user_pk)
        etag = '"' + "-".join(str(document.version) for document in documents.values()) + '"'
        require_match(etag, _if_match(request))
        content = {f"{kind}_memory": _plain(document.readable) for kind, document in documents.items()}
        return Response(content, headers={"ETag": etag})

    @extend_schema(
        operation_id="list_profile_history",
        summary="What changed a document, and who did it",
        parameters=[KIND, *query_parameters(schemas.HistoryQuery)],
        responses={200: schemas.History, **problems(400, 401, 404, 422)},
    )
    def history(self, request: Request, kind: str) -> Response:
        query = parse_query(schemas.HistoryQuery, request)
        changes = services.history(caller(request).user_pk, _kind(kind), before=query.before, limit=query.limit)
        return Response({"changes": [_change(change) for change in changes]})

    @extend_schema(
        operation_id="get_profile_version",
        summary="What a document said once",
        parameters=[KIND, *query_parameters(AuthenticatedQuery)],
        responses={200: schemas.Revision, **problems(400, 401, 404, 422)},
    )
    def version(self, request: Request, kind: str, version: int) -> Response:
        parse_query(AuthenticatedQuery, request)
        revision = services.revision(caller(request).user_pk, _kind(kind), version)
        return Response({**_change(revision.change), "content": _plain(revision.readable)})

    @extend_schema(
        operation_id="restore_profile",
        summary="Let a document say again what it said once",
        parameters=[KIND, IF_MATCH],
        request=schemas.RestoreBody,
        responses={200: schemas.AnyMemory, **problems(400, 401, 404, 409, 412, 422)},
    )
    def restore(self, request: Request, kind: str, version: int) -> HttpResponse:
        parse(schemas.RestoreBody, request.data)
        who = caller(request)
        restored = services.restore(
            who.user_pk, _kind(kind), version, actor=Actor.key(who), if_match=_if_match(request)
        )
        return _answer(restored)

    @extend_schema(
        operation_id="get_profile_schema",
        summary="The JSON Schema of a document",
        parameters=[KIND, *query_parameters(AuthenticatedQuery)],
        responses={200: OpenApiTypes.OBJECT, **problems(400, 401, 404, 422)},
    )
    def json_schema(self, request: Request, kind: str) -> Response:
        parse_query(AuthenticatedQuery, request)
        return Response(json_schema(_kind(kind)))

    @extend_schema(
        operation_id="get_profile_prompt",
        summary="What goes into an agent's system prompt",
        parameters=query_parameters(schemas.PromptQuery),
        responses={200: schemas.Prompt, **problems(400, 401, 422)},
    )
    def prompt(self, request: Request) -> Response:
        query = parse_query(schemas.PromptQuery, request)
        made = services.make_prompt(
            caller(request).user_pk, query.agent, max_tokens=query.max_tokens, language=query.language
        )
        return Response(
            {
                "agent": query.agent,
                "language": made.language,
                "prompt": made.text,
                "estimated_tokens": estimated_tokens(made.text),
            }
        )


def _kind(word: str) -> Kind:
    if word not in MODELS:
        raise NotFound("There are two documents: user and work.")
    return word


def _if_match(request: Request) -> Collection[str] | None:
    header = request.META.get("HTTP_IF_MATCH")
    return None if header is None else set(parse_etags(header))


def _answer(document: Document) -> HttpResponse:
    """Return the document alone, null if it is disabled; `Response` would omit null."""
    body = orjson.dumps(_plain(document.readable))
    return HttpResponse(body, content_type="application/json", headers={"ETag": document.etag})


def _plain(content: Content | None) -> dict[str, Any] | None:
    return None if content is None else content.model_dump()


def _change(change: Change) -> dict[str, Any]:
    return {
        "version": change.version,
        "action": change.action,
        "by": change.actor_kind,
        "at": isoformat(change.created_at),
    }
