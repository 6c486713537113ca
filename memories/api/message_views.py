from __future__ import annotations

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts.api.authentication import caller
from accounts.api.openapi import problems
from core.rest import MAX_JSON_BYTES, parse
from memories.api import rendering
from memories.api.schemas import messages as schemas
from memories.services.add import add
from memories.services.flush import flush


@extend_schema(tags=["memories"])
class MessageViewSet(ViewSet):
    @property
    def max_json_bytes(self) -> int:
        """Room for one file of the largest size as base64, and for the words around it."""
        return MAX_JSON_BYTES + -(-settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES // 3) * 4

    @extend_schema(
        operation_id="add_messages",
        summary="Append messages to a session",
        request=schemas.AddBody,
        responses={200: schemas.AddOut, **problems(400, 401, 404, 409, 413, 415, 422, 502, 503, 507)},
    )
    def add(self, request: Request) -> Response:
        """They can be found at once as unprocessed messages; a flush makes memories of them."""
        body = parse(schemas.AddBody, request.data)
        result = add(caller(request), body.command())
        return Response(rendering.added(body.session_id, result))

    @extend_schema(
        operation_id="flush_session",
        summary="Make memories of a session's messages",
        request=schemas.FlushBody,
        responses={200: schemas.FlushOut, **problems(400, 401, 404, 422, 502, 503)},
    )
    def flush(self, request: Request) -> Response:
        body = parse(schemas.FlushBody, request.data)
        result = flush(caller(request), body.session_id, app_id=body.app_id, project_id=body.project_id)
        return Response(rendering.flushed(body.session_id, result))
