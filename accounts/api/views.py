from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts import controls, services
from accounts.api import schemas
from accounts.api.authentication import ProvisioningAuthentication, caller
from accounts.api.idempotency import idempotent
from accounts.api.openapi import path_parameter, problems, query_parameters, request_body, success
from accounts.audit import Actor
from accounts.models import UserKey
from accounts.scopes import CONTROLS
from accounts.services import IssuedKey
from core.errors import InvalidInput
from core.messages import Translatable as _
from core.rest import parse, parse_query
from core.times import isoformat, isoformat_or_none


def _end_of(body: schemas.IssueKeyBody) -> datetime | None:
    """Return when a new key expires. Raises: `InvalidInput` for a key of a browser without scopes."""
    if body.expires_in is None:
        return body.expires_at
    if body.expires_at is not None:
        raise InvalidInput.of_field("expires_in", _("cannot be combined with expires_at: send one of them"))
    if body.scopes is None:
        raise InvalidInput.of_field("scopes", _("is required with expires_in: name what the page may do"))
    return timezone.now() + timedelta(seconds=body.expires_in)


@extend_schema(tags=["users"])
class UserViewSet(ViewSet):
    authentication_classes = [ProvisioningAuthentication]
    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="create_user",
        summary="Create a user",
        request=request_body(schemas.CreateUserBody),
        responses={200: success(schemas.CreatedUser, "The user and an API key."), **problems(409, 422)},
    )
    def create(self, request: Request) -> Response:
        """Create a user with an API key, or return the newest valid key of an existing user.

        Ask the operator whether the gateway requires the provisioning token for this request.
        """
        body = parse(schemas.CreateUserBody, request.data)
        issued = services.create_user(body.user_id, actor=Actor.provisioning())
        user = issued.key.user
        return Response(
            {"user_id": user.user_id, "user_key": issued.plaintext, "created_at": isoformat(user.created_at)}
        )

    @extend_schema(
        operation_id="describe_user",
        summary="Describe a user for operators",
        request=request_body(schemas.DescribeUserBody),
        responses={200: success(schemas.DescribedUser, "The fields that changed."), **problems(404, 422)},
    )
    def describe(self, request: Request) -> Response:
        """Set the name, e-mail address, labels, notes and tenant by which operators know and find a user.

        No agent reads them. They are exported and erased with the user.
        """
        body = parse(schemas.DescribeUserBody, request.data)
        given = body.model_dump(exclude_none=True, exclude={"user_id"})
        if body.labels is not None:
            given["labels"] = services.labels_of(body.labels)
        user = services.find_user(body.user_id)
        changed = services.describe_user(user.pk, given, actor=Actor.provisioning())
        return Response({"user_id": user.user_id, "changed": changed})


@extend_schema(tags=["keys"])
class KeyViewSet(ViewSet):
    """The caller's own keys."""

    @extend_schema(
        operation_id="list_keys",
        summary="List API keys",
        parameters=query_parameters(schemas.AuthenticatedQuery),
        responses={200: success(schemas.KeyList, "The caller's keys, newest first."), **problems(422)},
    )
    def list_keys(self, request: Request) -> Response:
        """List the caller's API keys without their plain text."""
        parse_query(schemas.AuthenticatedQuery, request)
        principal = caller(request)
        keys = services.keys_of(principal.user_pk)
        return Response({"keys": [_key(key, current=principal.key_id) for key in keys]})

    @extend_schema(
        operation_id="issue_key",
        summary="Create an API key",
        request=request_body(schemas.IssueKeyBody),
        responses={200: success(schemas.NewKey, "The new key."), **problems(409, 422)},
    )
    @idempotent(in_transaction=True, id_field="key_id")
    def create(self, request: Request) -> Response:
        """Create a further API key for the caller, for example for another device. At most 100 keys are valid.

        A page that calls the API from a browser gets one with `scopes` and `expires_in`, of at most an hour.
        """
        body = parse(schemas.IssueKeyBody, request.data)
        principal = caller(request)
        issued = services.issue_key(
            principal.user_pk,
            label=body.label,
            expires_at=_end_of(body),
            granted=body.scopes,
            app_id=body.app_id or "",
            agent_id=body.agent_id or "",
            actor=Actor.key(principal),
        )
        return Response(new_key(issued))

    @extend_schema(
        operation_id="rotate_key",
        summary="Rotate the API key of this request",
        request=request_body(schemas.RotateKeyBody),
        responses={200: success(schemas.RotatedKey, "The new key.", label=""), **problems(409, 422)},
    )
    @idempotent(in_transaction=True, id_field="key_id")
    def rotate(self, request: Request) -> Response:
        """Replace the API key of this request by a new one. The old key works until the grace period ends."""
        body = parse(schemas.RotateKeyBody, request.data)
        principal = caller(request)
        grace = timedelta(seconds=body.grace_seconds)
        rotation = services.rotate_key(principal.user_pk, principal.key_id, grace=grace, actor=Actor.key(principal))
        return Response(
            {
                **new_key(rotation.new),
                "previous_key_id": str(rotation.old.pk),
                "previous_expires_at": isoformat_or_none(rotation.old.expires_at),
            }
        )

    @extend_schema(
        operation_id="revoke_key",
        summary="Revoke an API key",
        parameters=[path_parameter("key_id", schemas.KeyId), *query_parameters(schemas.AuthenticatedQuery)],
        responses={200: success(schemas.RevokedKey, "The key does not work any longer."), **problems(404, 409)},
    )
    def destroy(self, request: Request, key_id: UUID) -> Response:
        """Revoke one of the caller's API keys at once. The last valid key cannot be revoked."""
        principal = caller(request)
        key = services.revoke_key(principal.user_pk, key_id, actor=Actor.key(principal))
        return Response({"key_id": str(key.pk), "status": "revoked"})


@extend_schema(tags=["users"])
class ControlsViewSet(ViewSet):
    """The controls of a person over remembering. A key can only tighten them."""

    scopes = dict.fromkeys(("retrieve", "tighten"), CONTROLS)

    @extend_schema(
        operation_id="get_controls",
        summary="Get the controls over remembering",
        parameters=query_parameters(schemas.AuthenticatedQuery),
        responses={200: success(schemas.ControlsView, "The controls."), **problems(422)},
    )
    def retrieve(self, request: Request) -> Response:
        """Get what the person lets the gateway keep. Needs a key with the scope `controls`."""
        parse_query(schemas.AuthenticatedQuery, request)
        return Response(_controls(caller(request).user_pk))

    @extend_schema(
        operation_id="tighten_controls",
        summary="Tighten the controls over remembering",
        request=request_body(schemas.ControlsBody),
        responses={200: success(schemas.ControlsView, "The controls."), **problems(422)},
    )
    def tighten(self, request: Request) -> Response:
        """Pause sources, and add words and topics that are never remembered. Needs a key with the scope `controls`.

        A key resumes nothing and takes nothing away: that is refused (403). Only the person does, on their own pages,
        opened by a link that was made with the provisioning token.
        """
        body = parse(schemas.ControlsBody, request.data)
        principal = caller(request)
        actor = Actor.key(principal)
        with transaction.atomic():
            if body.paused is not None:
                controls.set_paused(principal.user_pk, body.paused, actor=actor)
            if body.words is not None or body.topics is not None:
                controls.set_never(principal.user_pk, words=body.words, topics=body.topics, actor=actor)
        return Response(_controls(principal.user_pk))


def _controls(user_pk: UUID) -> dict[str, Any]:
    pauses = controls.pauses_of(user_pk)
    told = [{"source": one.source, "since": isoformat(one.began_at), "by": one.actor_kind} for one in pauses.values()]
    never = controls.never_of(user_pk)
    return {"paused": list(pauses), "pauses": told, "words": list(never.words), "topics": list(never.topics)}


def _key(item: UserKey, *, current: UUID) -> dict[str, Any]:
    return {
        "key_id": str(item.pk),
        "prefix": item.prefix,
        "label": item.label,
        **_limits(item),
        "created_at": isoformat(item.created_at),
        "expires_at": isoformat_or_none(item.expires_at),
        "revoked_at": isoformat_or_none(item.revoked_at),
        "last_used_at": isoformat_or_none(item.last_used_at),
        "is_live": services.is_live(item),
        "is_current": item.pk == current,
    }


def _limits(key: UserKey) -> dict[str, Any]:
    """Return what the key may do, each null for no limit."""
    return {
        "scopes": key.scopes.split() or None,
        "app_id": key.app_id or None,
        "agent_id": key.agent_id or None,
    }


def new_key(issued: IssuedKey) -> dict[str, Any]:
    """Return a new key as responses show it, once with its plain text."""
    return {
        "key_id": str(issued.key.pk),
        "user_key": issued.plaintext,
        "label": issued.key.label,
        **_limits(issued.key),
        "created_at": isoformat(issued.key.created_at),
        "expires_at": isoformat_or_none(issued.key.expires_at),
    }
