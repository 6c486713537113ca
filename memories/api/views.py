from __future__ import annotations

from datetime import datetime

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts.api.authentication import caller
from accounts.api.openapi import problems, query_parameters
from accounts.audit import Actor
from core import pagination
from core.rest import parse, parse_query
from engines.registry import get_engine
from memories import queries
from memories.api import rendering
from memories.api.openapi import BodyOnDelete
from memories.api.schemas import memories as schemas
from memories.api.schemas import search as search_schemas
from memories.api.schemas.common import PageQuery
from memories.models import Tombstone
from memories.services import decisions, lookup
from memories.services.owned import owner_of
from memories.services.search import search


@extend_schema(tags=["memories"])
class MemoryViewSet(ViewSet):
    schema = BodyOnDelete()

    @extend_schema(
        operation_id="search_memories",
        summary="Find memories for a question",
        request=search_schemas.SearchBody,
        responses={200: search_schemas.SearchOut, **problems(400, 401, 413, 422, 502, 503)},
    )
    def search(self, request: Request) -> Response:
        """The caller's best memories, best first, with the files that they speak of."""
        body = parse(search_schemas.SearchBody, request.data)
        answer = search(owner_of(caller(request), body.app_id, body.project_id), body.command())
        return Response(rendering.search_answer(answer, explain=body.explain, context=body.context))

    @extend_schema(
        operation_id="list_memories",
        summary="Your memories, newest first",
        parameters=query_parameters(schemas.MemoryListQuery),
        responses={200: schemas.MemoryPage, **problems(400, 401, 422)},
    )
    def list_memories(self, request: Request) -> Response:
        query = parse_query(schemas.MemoryListQuery, request)
        owner = owner_of(caller(request), query.app_id, query.project_id)
        page = get_engine().list(owner, query.request())
        overrides = queries.override_ids(owner, [stored.memory_id for stored in page.memories])
        return Response(
            {
                "memories": [rendering.memory(stored, overrides) for stored in page.memories],
                "next_cursor": None if page.following is None else pagination.encode(*page.following),
            }
        )

    @extend_schema(
        operation_id="get_memory",
        summary="One of your memories, with everything that was decided about it",
        parameters=query_parameters(schemas.MemoryQuery),
        responses={200: schemas.MemoryDetail, **problems(400, 401, 404, 422)},
    )
    def retrieve(self, request: Request, memory_id: str) -> Response:
        query = parse_query(schemas.MemoryQuery, request)
        stored = lookup.get_memory(caller(request).user_pk, query.which(memory_id), get_engine())
        overrides = queries.override_ids(stored.owner, [stored.memory_id])
        events = [*queries.history(stored.owner, stored.memory_id), *queries.superseded(stored)]
        return Response(
            {
                "memory": rendering.memory(stored, overrides),
                "history": [rendering.event(event) for event in events],
            }
        )

    @extend_schema(
        operation_id="correct_memory",
        summary="Put other words in the place of a memory's",
        request=schemas.CorrectionBody,
        responses={200: schemas.Corrected, **problems(400, 401, 404, 409, 422)},
    )
    def correct(self, request: Request, memory_id: str) -> Response:
        body = parse(schemas.CorrectionBody, request.data)
        who = caller(request)
        override = decisions.override(who.user_pk, body.which(memory_id), body.correction(), actor=Actor.key(who))
        return Response({"memory_id": memory_id, "override_id": override.override_id, "status": "active"})

    @extend_schema(
        operation_id="undo_correction",
        summary="Give a memory its own words back",
        parameters=query_parameters(schemas.MemoryQuery),
        request=None,
        responses={200: schemas.Corrected, **problems(400, 401, 404, 422)},
    )
    def undo_correction(self, request: Request, memory_id: str) -> Response:
        query = parse_query(schemas.MemoryQuery, request)
        who = caller(request)
        override = decisions.undo_override(who.user_pk, query.which(memory_id), actor=Actor.key(who))
        return Response({"memory_id": memory_id, "override_id": override.override_id, "status": "undone"})

    @extend_schema(
        operation_id="delete_memory",
        summary="Put a memory into the trash",
        request=schemas.DeletionBody,
        responses={200: schemas.Deleted, **problems(400, 401, 404, 409, 422)},
    )
    def destroy(self, request: Request, memory_id: str) -> Response:
        body = parse(schemas.DeletionBody, request.data)
        who = caller(request)
        tombstone = decisions.delete(who.user_pk, body.which(memory_id), reason=body.reason or "", actor=Actor.key(who))
        return Response({"memory_id": memory_id, "tombstone_id": tombstone.tombstone_id, "status": "deleted"})

    @extend_schema(
        operation_id="restore_memory",
        summary="Take a memory out of the trash",
        request=schemas.MemoryBody,
        responses={200: schemas.Deleted, **problems(400, 401, 404, 422)},
    )
    def restore(self, request: Request, memory_id: str) -> Response:
        body = parse(schemas.MemoryBody, request.data)
        who = caller(request)
        tombstone = decisions.restore(who.user_pk, body.which(memory_id), actor=Actor.key(who))
        return Response({"memory_id": memory_id, "tombstone_id": tombstone.tombstone_id, "status": "restored"})

    @extend_schema(
        operation_id="list_trash",
        summary="What you deleted and can restore, newest first",
        parameters=query_parameters(PageQuery),
        responses={200: schemas.TrashPage, **problems(400, 401, 422)},
    )
    def list_trash(self, request: Request) -> Response:
        query = parse_query(PageQuery, request)
        owner = owner_of(caller(request), query.app_id, query.project_id)
        found = queries.trash(owner, _trash_position(query.cursor), query.limit + 1)
        page = found[: query.limit]
        return Response(
            {
                "trash": [rendering.trash_item(tombstone) for tombstone in page],
                "next_cursor": _trash_cursor(page[-1]) if len(found) > query.limit else None,
            }
        )


def _trash_position(cursor: str | None) -> tuple[datetime, str] | None:
    if cursor is None:
        return None
    microseconds, tombstone_id = pagination.decode(cursor)
    return pagination.moment(microseconds), tombstone_id


def _trash_cursor(tombstone: Tombstone) -> str:
    return pagination.encode(pagination.microseconds(tombstone.created_at), tombstone.tombstone_id)
