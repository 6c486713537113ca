from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts.api.authentication import caller
from accounts.api.openapi import problems, query_parameters
from accounts.audit import Actor
from core import pagination
from core.rest import parse, parse_query
from memories import queries
from memories.api import rendering
from memories.api.openapi import BodyOnDelete
from memories.api.schemas import sessions as schemas
from memories.services import decisions
from memories.services.owned import owner_of


@extend_schema(tags=["sessions"])
class SessionViewSet(ViewSet):
    schema = BodyOnDelete()

    @extend_schema(
        operation_id="list_sessions",
        summary="Your sessions, newest first",
        parameters=query_parameters(schemas.SessionListQuery),
        responses={200: schemas.SessionPage, **problems(400, 401, 422)},
    )
    def list_sessions(self, request: Request) -> Response:
        query = parse_query(schemas.SessionListQuery, request)
        owner = owner_of(caller(request), query.app_id, query.project_id)
        after = None if query.cursor is None else pagination.decode_numbers(query.cursor)[0]
        found = list(queries.sessions(owner, is_hidden=query.deleted, after=after, limit=query.limit + 1))
        page = found[: query.limit]
        counts = queries.counts(page)
        return Response(
            {
                "sessions": [rendering.session(session, counts.get(session.pk, {})) for session in page],
                "next_cursor": pagination.encode(page[-1].pk, 0) if len(found) > query.limit else None,
            }
        )

    @extend_schema(
        operation_id="delete_session",
        summary="Put a whole session into the trash",
        request=schemas.SessionDeletionBody,
        responses={200: schemas.SessionDecided, **problems(400, 401, 404, 422)},
    )
    def destroy(self, request: Request, session_id: str) -> Response:
        body = parse(schemas.SessionDeletionBody, request.data)
        who = caller(request)
        owner = owner_of(who, body.app_id, body.project_id)
        tombstone = decisions.delete_session(owner, session_id, reason=body.reason or "", actor=Actor.key(who))
        return Response({"session_id": session_id, "tombstone_id": tombstone.tombstone_id, "status": "deleted"})

    @extend_schema(exclude=True)
    def destroy_one_named_restore(self, request: Request, session_id: str) -> Response:
        """An id may end like the address at which sessions are restored."""
        return self.destroy(request, f"{session_id}/restore")

    @extend_schema(
        operation_id="restore_session",
        summary="Take a session out of the trash",
        request=schemas.SessionBody,
        responses={200: schemas.SessionDecided, **problems(400, 401, 404, 422)},
    )
    def restore(self, request: Request, session_id: str) -> Response:
        body = parse(schemas.SessionBody, request.data)
        who = caller(request)
        owner = owner_of(who, body.app_id, body.project_id)
        tombstone = decisions.restore_session(owner, session_id, actor=Actor.key(who))
        return Response({"session_id": session_id, "tombstone_id": tombstone.tombstone_id, "status": "restored"})
