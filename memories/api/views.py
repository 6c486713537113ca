from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts.api.authentication import caller
from accounts.api.openapi import problems
from memories.api import rendering, schemas
from memories.services.search import search
from memory_gateway.core.rest import parse


@extend_schema(tags=["memories"])
class SearchViewSet(ViewSet):
    @extend_schema(
        operation_id="search_memories",
        summary="Find memories for a question",
        request=schemas.SearchBody,
        responses={200: schemas.SearchOut, **problems(400, 401, 413, 422, 502, 503)},
    )
    def search(self, request: Request) -> Response:
        """The caller's best memories, best first, with the files that they speak of."""
        body = parse(schemas.SearchBody, request.data)
        answer = search(caller(request), body.command())
        return Response(rendering.search_answer(answer, explain=body.explain))
