from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import get_script_prefix
from django.utils import translation
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts.api.authentication import bearer, caller, check_credentials, reads
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
from accounts.api.preconditions import conditional, if_unchanged, with_etag
from accounts.api.schemas import AuthenticatedQuery
from accounts.audit import Actor
from accounts.bound_keys import app_of
from accounts.models import Principal
from accounts.scopes import ACCOUNT, FILES
from core.errors import InvalidInput, UnsupportedType, existing
from core.localization import language_headers, language_of, localized
from core.messages import Translatable as _
from core.preconditions import etag_of
from core.rest import JsonParser, parse, parse_query
from core.times import isoformat, isoformat_or_none
from remote import queries as remote
from remote.queries import RemoteState
from resources import queries, services
from resources.api import schemas
from resources.api.downloads import download
from resources.api.multipart import FILE_FIELD, UploadParser
from resources.models import Resource
from store.admission import Offer, require_correction, texts_in
from store.types import Owner, labels_of

_PREFER = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description="`respond-async` returns 202 before the ingestion. Absent: the response waits for it.",
)
_CONDITIONS = [
    OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description)
    for name, description in (
        ("Range", "One range of bytes, such as `bytes=0-1023`. Others are ignored."),
        ("If-Range", "The ETag of an earlier response. If the file is not the same, `Range` is ignored."),
    )
]
_RESOURCE_ID = path_parameter("resource_id", schemas.ResourceId)


def _accepted_responses(model: type[schemas.ResourceAnswer]) -> dict[int, Any]:
    return {
        200: success(model, "The resource after its ingestion. See `status` for the result."),
        202: success(model, "The resource before its ingestion. Poll it for its `status`.", status="ingesting"),
    }


@extend_schema(tags=["resources"])
class ResourceViewSet(ViewSet):
    schema = RequiredBodies()
    scopes = dict.fromkeys(("create", "list_resources", "retrieve", "label", "destroy", "content"), FILES)
    parser_classes = [UploadParser, JsonParser]

    @extend_schema(
        operation_id="upload_resource",
        summary="Upload a file",
        parameters=[_PREFER],
        request={UploadParser.media_type: request_body(schemas.UploadForm)},
        responses={**_accepted_responses(schemas.ResourceAnswer), **problems(408, 409, 413, 415, 422, 507)},
    )
    @idempotent()
    def create(self, request: Request) -> Response:
        """Upload a file and ingest it, so that searches find its content.

        The same bytes in the same scope are one resource: a second upload returns the first.
        """
        if not (request.content_type or "").startswith(UploadParser.media_type):
            raise UnsupportedType(
                _("Send multipart/form-data with the file in the field '%(field)s'.", field=FILE_FIELD)
            )
        principal = caller(request)
        app_id = principal.app_id or "default"
        refused = services.Incoming()
        (request.parser_context or {})["incoming"] = refused
        with services.recorded_refusals(Owner(principal.user_pk, principal.user_id, app_id), refused):
            return self._create(request, principal)

    def _create(self, request: Request, principal: Principal) -> Response:
        fields = parse(schemas.UploadFields, request.POST.dict())
        if key := bearer(request):  # checked before the form was read
            check_credentials(request._request, request.POST, principal=principal, key=key)  # noqa: SLF001
        incoming = request.FILES.get(FILE_FIELD)
        if not isinstance(incoming, services.IncomingFile):
            raise InvalidInput.of_field(FILE_FIELD, _("is required"))
        is_async = _wants_async(request)
        app_id = app_of(principal, fields.app_id) or fields.app_id
        owner = Owner(principal.user_pk, principal.user_id, app_id, fields.project_id)
        metadata = services.Upload(
            title=fields.title or None,
            description=fields.description or None,
            labels=schemas.labels_given(fields),
            wait_seconds=0.0 if is_async else None,
        )
        resource = services.upload(owner, incoming, metadata, actor=Actor.key(principal))
        return _accepted(resource, is_async=is_async)

    @extend_schema(
        operation_id="list_resources",
        summary="List resources",
        parameters=query_parameters(schemas.ListQuery),
        responses={200: success(schemas.ResourcePage, "The resources, newest first."), **problems(422)},
    )
    @reads
    def list_resources(self, request: Request) -> Response:
        """List the caller's resources, or those in the trash."""
        query = parse_query(schemas.ListQuery, request)
        found = queries.trash_of if query.deleted else queries.live_resources
        principal = caller(request)
        resources = found(principal.user_pk)
        if (app_id := app_of(principal, query.app_id)) is not None:
            resources = resources.filter(app_id=app_id)
        if query.project_id is not None:
            resources = resources.filter(project_id=query.project_id)
        if query.limit is None:
            if query.cursor is not None:
                raise InvalidInput.of_field("limit", _("is required with cursor"))
            return Response({"resources": _items(resources)})
        after = None if query.cursor is None else queries.decode_cursor(query.cursor)
        page, following = queries.page_after(resources, after, query.limit)
        next_cursor = None if following is None else queries.encode_cursor(following)
        return Response({"resources": _items(page), "next_cursor": next_cursor})

    @extend_schema(
        operation_id="get_resource",
        summary="Get a resource",
        parameters=[_RESOURCE_ID, *query_parameters(AuthenticatedQuery)],
        responses={
            200: success(schemas.ResourceList, "A list of this resource, or an empty list."),
            304: NOT_MODIFIED,
            **problems(412, 422),
        },
    )
    @conditional
    def retrieve(self, request: Request, resource_id: str) -> HttpResponse:
        """Get a resource in a list with its `ETag`. The list is empty if the caller has no such resource."""
        parse_query(AuthenticatedQuery, request)
        principal = caller(request)
        found = queries.live_resource(principal.user_pk, resource_id)
        if principal.app_id:
            found = found.filter(app_id=principal.app_id)
        return with_etag(request, {"resources": _items(found)})

    @extend_schema(
        operation_id="label_resource",
        summary="Change tags and metadata of a resource",
        parameters=[_RESOURCE_ID],
        request={JsonParser.media_type: request_body(schemas.LabelsBody)},
        responses={200: success(schemas.ResourceAnswer, "The resource."), **problems(404, 409, 412, 422)},
    )
    @conditional
    def label(self, request: Request, resource_id: str) -> Response:
        """Replace the tags or the metadata of a resource and of its memories."""
        body = parse(schemas.LabelsBody, request.data)
        principal, labels = caller(request), schemas.labels_given(body)
        _require_in_app(principal, resource_id)
        offer = Offer("files", others=tuple(texts_in(labels)))
        require_correction(principal.user_pk, offer, is_of_person=ACCOUNT in principal.scopes)
        read = partial(_existing, principal.user_pk, resource_id)
        with if_unchanged(request, read, is_read_after=True):
            resource = services.set_labels(
                principal.user_pk, principal.user_id, resource_id, labels, actor=Actor.key(principal)
            )
            etag = etag_of(read())
        return Response(_summary(resource), headers={"ETag": etag})

    @extend_schema(
        operation_id="delete_resource",
        summary="Delete a resource",
        parameters=[_RESOURCE_ID, *query_parameters(AuthenticatedQuery)],
        request=None,
        responses={
            200: success(schemas.ResourceAnswer, "The deleted resource.", status="deleted"),
            **problems(404, 412, 422),
        },
    )
    @conditional
    def destroy(self, request: Request, resource_id: str) -> Response:
        """Move a resource to the trash, with its file and its memories. Searches and lists stop returning it at once.

        It can be restored until it is purged. Until then it counts toward the quota.
        """
        parse_query(AuthenticatedQuery, request)
        principal = caller(request)
        _require_in_app(principal, resource_id)
        actor = Actor.key(principal)
        with if_unchanged(request, partial(_existing, principal.user_pk, resource_id)):
            deleted = services.delete_as(principal.user_pk, principal.user_id, resource_id, actor=actor)
        return Response(_summary(deleted))

    @extend_schema(
        operation_id="get_resource_content",
        summary="Download a file",
        parameters=[_RESOURCE_ID, *_CONDITIONS, *query_parameters(AuthenticatedQuery)],
        responses={
            # Some generators of clients know no `*/*`.
            **dict.fromkeys(
                ((200, "application/octet-stream"), (200, "*/*")),
                OpenApiResponse(
                    OpenApiTypes.BINARY,
                    "The file, with its own media type.",
                    [OpenApiExample("Example", "Payment is due within 30 days after receipt of the invoice.")],
                ),
            ),
            **dict.fromkeys(
                ((206, "application/octet-stream"), (206, "*/*")),
                OpenApiResponse(
                    OpenApiTypes.BINARY,
                    "The range of the file that `Range` asks for.",
                    [OpenApiExample("Example", "Payment is due")],
                ),
            ),
            304: NOT_MODIFIED,
            **problems(404, 412, 416, 422),
        },
    )
    @conditional
    def content(self, request: Request, resource_id: str) -> HttpResponseBase:
        """Download an uploaded file or a range of its bytes.

        Files at external addresses are not stored, so they return 404.
        """
        parse_query(AuthenticatedQuery, request)
        principal = caller(request)
        _require_in_app(principal, resource_id)
        stored = services.content_of(principal.user_pk, resource_id)
        return download(request._request, stored)  # noqa: SLF001 - `Request` has no public way to it

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Ignore `Accept` for downloads, which have the file's own type."""
        return super().perform_content_negotiation(request, force=force or self.action == "content")


@extend_schema(tags=["resources"])
class TrashViewSet(ViewSet):
    scopes = {"restore": FILES}

    @extend_schema(
        operation_id="restore_resource",
        summary="Restore a resource",
        parameters=[_RESOURCE_ID],
        request=request_body(schemas.ResourceRestoreBody),
        responses={200: success(schemas.ResourceAnswer, "The restored resource."), **problems(404, 409, 422)},
    )
    @idempotent(in_transaction=True)
    def restore(self, request: Request, resource_id: str) -> Response:
        """Restore a resource from the trash, with its file and its memories.

        If the same file was added again meanwhile, the answer is 409 and names that resource.
        """
        body = parse(schemas.ResourceRestoreBody, request.data)
        principal = caller(request)
        _require_in_app(principal, resource_id)
        resource = services.restore_as(
            principal.user_pk,
            principal.user_id,
            resource_id,
            expires_at=body.new_expiry(principal.user_pk),
            actor=Actor.key(principal),
        )
        return Response(_summary(resource))


@extend_schema(tags=["resources"])
class ExternalViewSet(ViewSet):
    scopes = {"register": FILES}

    @extend_schema(
        operation_id="register_resource",
        summary="Register an external file",
        parameters=[_PREFER],
        request=request_body(schemas.ExternalBody, title="Delivery", description="Delivery terms of 2026"),
        responses={**_accepted_responses(schemas.RegisteredAnswer), **problems(409, 413, 415, 422)},
    )
    @idempotent()
    def register(self, request: Request) -> Response:
        """Register a file that is stored elsewhere and ingest it. The gateway keeps its address, not its bytes."""
        body = parse(schemas.ExternalBody, request.data)
        is_async, principal = _wants_async(request), caller(request)
        registration = services.Registration(
            filename=body.filename,
            source_uri=body.source_uri,
            ingest_uri=body.ingest_uri,
            mime_type=body.mime_type,
            content_type=body.content_type,
            size_bytes=body.size_bytes,
            sha256=body.digest,
            title=body.title or None,
            description=body.description or None,
            labels=schemas.labels_given(body),
            app_id=app_of(principal, body.app_id) or body.app_id,
            project_id=body.project_id,
            wait_seconds=0.0 if is_async else None,
        )
        response = _accepted(services.register(principal, registration), is_async=is_async)
        if body.sha256 is not None and not body.digest:
            language = language_of(request)
            with translation.override(language):
                message = localized(_("was ignored: it is not the 64 hex digits of a SHA-256"))
            response.data["warnings"] = [{"field": "sha256", "message": message}]
            for name, value in language_headers(language).items():
                response[name] = value
        return response


def _require_in_app(principal: Principal, resource_id: str) -> None:
    """Raise `NotFound` if the key is bound to an application that has no such resource."""
    if principal.app_id:
        own = Resource.objects.filter(user=principal.user_pk, resource_id=resource_id, app_id=principal.app_id)
        existing(own, _("There is no such resource."))


def _accepted(resource: Resource, *, is_async: bool) -> Response:
    summary = _summary(resource)
    if not is_async:
        return Response(summary)
    headers = {
        "Preference-Applied": "respond-async",
        "Location": f"{get_script_prefix()}resources/{resource.resource_id}",
    }
    return Response(summary, status=202, headers=headers)


def _wants_async(request: Request) -> bool:
    preferences = request.headers.get("Prefer", "").split(",")
    return any(item.partition(";")[0].strip().lower() == "respond-async" for item in preferences)


def _summary(resource: Resource) -> dict[str, Any]:
    """Return the response body of upload, register, delete and restore."""
    return {
        "resource_id": resource.resource_id,
        "session_id": resource.session_id,
        "uri": resource.uri,
        "status": _status_of(resource),
        **labels_of(resource.labels or {}),
        **({"reading": resource.reading_in_words} if resource.is_read_in_part else {}),
    }


def _existing(user_pk: UUID, resource_id: str) -> dict[str, Any]:
    """Return what a GET of the resource returns, and lock its row. Raises: `NotFound`."""
    found = queries.live_resource(user_pk, resource_id).select_for_update(of=("self",), no_key=True)
    return {"resources": _items([existing(found, _("There is no such resource."))])}


def _items(resources: Iterable[Resource]) -> list[dict[str, Any]]:
    """Return list entries. With a remote, four more statements for each thousand."""
    found = list(resources)
    states = remote.states_of_files([(resource.owner, resource.session_id) for resource in found])
    return [_item(resource, states[resource.owner, resource.session_id]) for resource in found]


def _item(resource: Resource, state: RemoteState) -> dict[str, Any]:
    """Return a list entry: the documented fields, then the additional ones."""
    expires_at = queries.expires_at_of(resource)
    return {
        "resource_id": resource.resource_id,
        "user_id": resource.user.user_id,
        "filename": resource.filename,
        "content_type": resource.content_type,
        "mime_type": resource.mime_type,
        "uri": resource.uri,
        "session_id": resource.session_id,
        "status": _status_of(resource),
        "title": resource.title,
        "description": resource.description,
        **labels_of(resource.labels or {}),
        "created_at": isoformat(resource.created_at),
        "updated_at": isoformat(resource.updated_at),
        "deleted_at": isoformat_or_none(resource.state_since),
        **({"expires_at": isoformat(expires_at)} if expires_at else {}),
        "error_message": resource.error_message or None,
        "size_bytes": resource.size_bytes,
        "sha256": resource.sha256 or None,
        "app_id": resource.app_id,
        "project_id": resource.project_id,
        "remote": state.as_json(),
        "reading": resource.reading_in_words,
    }


def _status_of(resource: Resource) -> str:
    """Return the status of the API, which has one value for pending and ingesting."""
    return str(Resource.Status.INGESTING if resource.is_pending else resource.public_status)
