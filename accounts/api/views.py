from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts import services
from accounts.api import rendering, schemas
from accounts.api.authentication import ProvisioningAuthentication, caller
from accounts.api.openapi import problems, query_parameters
from accounts.audit import Actor
from core.rest import parse, parse_query


@extend_schema(tags=["users"])
class UserViewSet(ViewSet):
    authentication_classes = [ProvisioningAuthentication]
    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="create_user",
        summary="Create a user, or get an existing one's key again",
        request=schemas.CreateUserBody,
        responses={200: schemas.CreatedUser, **problems(400, 401, 409, 422)},
    )
    def create(self, request: Request) -> Response:
        body = parse(schemas.CreateUserBody, request.data)
        return Response(rendering.created_user(services.create_user(body.user_id, actor=Actor.provisioning())))


@extend_schema(tags=["keys"])
class KeyViewSet(ViewSet):
    """The caller's own keys."""

    @extend_schema(
        operation_id="list_keys",
        summary="Your keys, newest first, without their plaintext",
        parameters=query_parameters(schemas.AuthenticatedQuery),
        responses={200: schemas.KeyList, **problems(400, 401, 422)},
    )
    def list_keys(self, request: Request) -> Response:
        parse_query(schemas.AuthenticatedQuery, request)
        principal = caller(request)
        keys = services.keys_of(principal.user_pk)
        return Response({"keys": [rendering.key(key, current=principal.key_id) for key in keys]})

    @extend_schema(
        operation_id="issue_key",
        summary="Make one more key",
        request=schemas.IssueKeyBody,
        responses={200: schemas.NewKey, **problems(400, 401, 409, 422)},
    )
    def create(self, request: Request) -> Response:
        body = parse(schemas.IssueKeyBody, request.data)
        principal = caller(request)
        issued = services.issue_key(
            principal.user_pk, label=body.label, expires_at=body.expires_at, actor=Actor.key(principal)
        )
        return Response(rendering.new_key(issued))

    @extend_schema(
        operation_id="rotate_key",
        summary="Put a new key in the place of the one you present",
        request=schemas.RotateKeyBody,
        responses={200: schemas.RotatedKey, **problems(400, 401, 409, 422)},
    )
    def rotate(self, request: Request) -> Response:
        body = parse(schemas.RotateKeyBody, request.data)
        principal = caller(request)
        grace = timedelta(seconds=body.grace_seconds)
        rotation = services.rotate_key(principal.user_pk, principal.key_id, grace=grace, actor=Actor.key(principal))
        return Response(rendering.rotated_key(rotation))

    @extend_schema(
        operation_id="revoke_key",
        summary="End one of your keys at once",
        parameters=query_parameters(schemas.AuthenticatedQuery),
        responses={200: schemas.RevokedKey, **problems(400, 401, 404, 409)},
    )
    def destroy(self, request: Request, key_id: UUID) -> Response:
        principal = caller(request)
        key = services.revoke_key(principal.user_pk, key_id, actor=Actor.key(principal))
        return Response({"key_id": str(key.pk), "status": "revoked"})
