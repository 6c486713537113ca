from __future__ import annotations

from typing import Any

from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts.api.authentication import authenticate_credentials, bearer, caller, credentials_from
from accounts.api.openapi import problems, query_parameters
from accounts.api.schemas import AuthenticatedQuery
from accounts.services import REFUSAL
from core.errors import InvalidInput, Unauthenticated, UnsupportedType
from core.rest import JsonParser, parse, parse_query
from resources import queries, services
from resources.api import rendering, schemas
from resources.api.multipart import FILE_FIELD, UploadParser
from resources.models import Resource

_PREFER = OpenApiParameter(
    "Prefer", str, OpenApiParameter.HEADER, description="`respond-async` answers 202 at once, before the ingestion."
)


class _Download(FileResponse):
    """Send blocks of 256 KiB: each block costs a thread switch, which makes Django's 4 KiB ten times slower."""

    block_size = 256 * 1024


@extend_schema(tags=["resources"])
class ResourceViewSet(ViewSet):
    parser_classes = [UploadParser, JsonParser]

    @extend_schema(
        operation_id="upload_resource",
        summary="Upload a file and have it remembered",
        parameters=[_PREFER],
        request={UploadParser.media_type: schemas.UploadForm},
        responses={
            200: schemas.ResourceAnswer,
            202: schemas.ResourceAnswer,
            **problems(400, 401, 408, 409, 413, 415, 422, 507),
        },
    )
    def create(self, request: Request) -> Response:
        if not (request.content_type or "").startswith(UploadParser.media_type):
            raise UnsupportedType(f"Send multipart/form-data with the file in the field '{FILE_FIELD}'.")
        fields = parse(schemas.UploadFields, request.POST.dict())
        _require_same_caller(request)
        incoming = request.FILES.get(FILE_FIELD)
        if not isinstance(incoming, services.IncomingFile):
            raise InvalidInput.of_field(FILE_FIELD, "is required")
        is_async = _wants_async(request)
        metadata = services.Upload(
            app_id=fields.app_id,
            project_id=fields.project_id,
            title=fields.title or None,
            description=fields.description or None,
            wait_seconds=0.0 if is_async else None,
        )
        return _accepted(services.upload(caller(request), incoming, metadata), is_async=is_async)

    @extend_schema(
        operation_id="list_resources",
        summary="Your resources, newest first",
        parameters=query_parameters(schemas.ListQuery),
        responses={200: schemas.ResourcePage, **problems(400, 401, 422)},
    )
    def list_resources(self, request: Request) -> Response:
        query = parse_query(schemas.ListQuery, request)
        resources = queries.live_resources(caller(request).user_pk)
        if query.app_id is not None:
            resources = resources.filter(app_id=query.app_id)
        if query.project_id is not None:
            resources = resources.filter(project_id=query.project_id)
        if query.limit is None:
            if query.cursor is not None:
                raise InvalidInput.of_field("limit", "is required beside cursor")
            return Response({"resources": [rendering.item(resource) for resource in resources]})
        after = None if query.cursor is None else queries.decode_cursor(query.cursor)
        page, following = queries.page_after(resources, after, query.limit)
        next_cursor = None if following is None else queries.encode_cursor(following)
        return Response({"resources": [rendering.item(resource) for resource in page], "next_cursor": next_cursor})

    @extend_schema(
        operation_id="get_resource",
        summary="One of your resources, in a list; an empty list if it is not yours or not there",
        parameters=query_parameters(AuthenticatedQuery),
        responses={200: schemas.ResourceList, **problems(400, 401, 422)},
    )
    def retrieve(self, request: Request, resource_id: str) -> Response:
        parse_query(AuthenticatedQuery, request)
        found = queries.live_resource(caller(request).user_pk, resource_id)
        return Response({"resources": [rendering.item(resource) for resource in found]})

    @extend_schema(
        operation_id="delete_resource",
        summary="Delete a resource for good, with its file and its memories",
        parameters=query_parameters(AuthenticatedQuery),
        responses={200: schemas.ResourceAnswer, **problems(400, 401, 404, 422)},
    )
    def destroy(self, request: Request, resource_id: str) -> Response:
        parse_query(AuthenticatedQuery, request)
        return Response(rendering.answer(services.delete(caller(request), resource_id)))

    @extend_schema(
        operation_id="get_resource_content",
        summary="The file as it was uploaded",
        parameters=query_parameters(AuthenticatedQuery),
        responses={(200, "*/*"): OpenApiTypes.BINARY, **problems(400, 401, 404, 422)},
    )
    def content(self, request: Request, resource_id: str) -> FileResponse:
        parse_query(AuthenticatedQuery, request)
        stored = services.open_content(caller(request), resource_id)
        return _Download(
            stored.file,
            as_attachment=True,
            filename=stored.filename,
            content_type=stored.mime_type,
            headers={
                # Uploaded content must never run as a page of this site.
                "Content-Security-Policy": "sandbox; default-src 'none'",
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "private, no-store",
            },
        )

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Ignore `Accept` for downloads, which have the file's own type."""
        return super().perform_content_negotiation(request, force=force or self.action == "content")


@extend_schema(tags=["resources"])
class ExternalViewSet(ViewSet):
    @extend_schema(
        operation_id="register_resource",
        summary="Register a file that lies elsewhere and have it remembered",
        parameters=[_PREFER],
        request=schemas.ExternalBody,
        responses={
            200: schemas.ResourceAnswer,
            202: schemas.ResourceAnswer,
            **problems(400, 401, 409, 413, 415, 422),
        },
    )
    def register(self, request: Request) -> Response:
        body = parse(schemas.ExternalBody, request.data)
        is_async = _wants_async(request)
        registration = services.Registration(
            filename=body.filename,
            source_uri=body.source_uri,
            ingest_uri=body.ingest_uri,
            mime_type=body.mime_type,
            content_type=body.content_type,
            size_bytes=body.size_bytes,
            sha256=body.sha256 or "",
            title=body.title or None,
            description=body.description or None,
            app_id=body.app_id,
            project_id=body.project_id,
            wait_seconds=0.0 if is_async else None,
        )
        return _accepted(services.register(caller(request), registration), is_async=is_async)


def _accepted(resource: Resource, *, is_async: bool) -> Response:
    answer = rendering.answer(resource)
    if not is_async:
        return Response(answer)
    headers = {"Preference-Applied": "respond-async", "Location": f"/resources/{answer['resource_id']}"}
    return Response(answer, status=202, headers=headers)


def _require_same_caller(request: Request) -> None:
    """Check that form credentials, if any, name the caller of the `Authorization` header.

    The header is checked before the body is read. Raises: `Unauthenticated`.
    """
    if bearer(request) is None:
        return
    form = credentials_from(request.POST)
    named = authenticate_credentials(request._request, form)  # noqa: SLF001
    principal = caller(request)
    if (named and named.user_pk != principal.user_pk) or form.user_id not in {None, principal.user_id}:
        raise Unauthenticated(REFUSAL)


def _wants_async(request: Request) -> bool:
    return "respond-async" in _preferences(request)


def _preferences(request: Request) -> set[str]:
    """Return the names of the RFC 7240 preferences."""
    return {item.partition(";")[0].strip().lower() for item in request.headers.get("Prefer", "").split(",")}
