from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone, translation
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts.api.authentication import caller
from accounts.api.idempotency import idempotent
from accounts.api.openapi import path_parameter, problems, query_parameters, request_body, success
from accounts.api.schemas import AuthenticatedBody, AuthenticatedQuery
from core import pagination
from core.localization import language_headers, language_of, localized
from core.rest import parse, parse_query
from core.times import isoformat, isoformat_or_none
from webhooks.api import schemas
from webhooks.models import Webhook, WebhookDelivery
from webhooks.services import configuration
from webhooks.services.configuration import NewSecret

_WEBHOOK_ID = path_parameter("webhook_id", schemas.WebhookId)


@extend_schema(tags=["webhooks"])
class WebhookViewSet(ViewSet):
    """The caller's own webhooks."""

    @extend_schema(
        operation_id="list_webhooks",
        summary="List webhooks",
        parameters=query_parameters(AuthenticatedQuery),
        responses={200: success(schemas.WebhookList, "The caller's webhooks, newest first."), **problems(422)},
    )
    def list_webhooks(self, request: Request) -> Response:
        """List the caller's webhooks without their secrets."""
        parse_query(AuthenticatedQuery, request)
        return Response({"webhooks": [_webhook(one) for one in configuration.of_user(caller(request).user_pk)]})

    @extend_schema(
        operation_id="create_webhook",
        summary="Create a webhook",
        request=request_body(schemas.WebhookBody),
        responses={200: success(schemas.NewWebhook, "The webhook with its secret."), **problems(409, 422)},
    )
    @idempotent(id_field="webhook_id")
    def create(self, request: Request) -> Response:
        """Create a webhook: an address that gets the caller's events, signed as Standard Webhooks specifies.

        Events contain ids, never the text of memories. A user can have at most 10 webhooks.
        """
        body = parse(schemas.WebhookBody, request.data)
        return Response(_new_secret(configuration.create(caller(request), body.url, body.events)))

    @extend_schema(
        operation_id="get_webhook",
        summary="Get a webhook",
        parameters=[_WEBHOOK_ID, *query_parameters(AuthenticatedQuery)],
        responses={200: success(schemas.WebhookView, "The webhook."), **problems(404, 422)},
    )
    def retrieve(self, request: Request, webhook_id: UUID) -> Response:
        """Get one of the caller's webhooks without its secret."""
        parse_query(AuthenticatedQuery, request)
        return Response(_webhook(configuration.get(caller(request).user_pk, webhook_id)))

    @extend_schema(
        operation_id="change_webhook",
        summary="Change a webhook",
        parameters=[_WEBHOOK_ID],
        request=request_body(schemas.WebhookChangeBody, is_enabled=True),
        responses={
            200: success(schemas.WebhookView, "The changed webhook."),
            **problems(404, 422),
        },
    )
    def change(self, request: Request, webhook_id: UUID) -> Response:
        """Change the address or the events of a webhook, or disable or enable it."""
        body = parse(schemas.WebhookChangeBody, request.data)
        changed = configuration.change(
            caller(request), webhook_id, url=body.url, events=body.events, is_enabled=body.is_enabled
        )
        return Response(_webhook(changed))

    @extend_schema(
        operation_id="delete_webhook",
        summary="Delete a webhook",
        parameters=[_WEBHOOK_ID, *query_parameters(AuthenticatedQuery)],
        responses={200: success(schemas.DeletedWebhook, "Nothing is sent any longer."), **problems(404, 422)},
    )
    def destroy(self, request: Request, webhook_id: UUID) -> Response:
        """Delete a webhook with its deliveries."""
        parse_query(AuthenticatedQuery, request)
        configuration.delete(caller(request), webhook_id)
        return Response({"webhook_id": str(webhook_id), "status": "deleted"})

    @extend_schema(
        operation_id="rotate_webhook_secret",
        summary="Rotate the secret of a webhook",
        parameters=[_WEBHOOK_ID],
        request=request_body(schemas.RotateSecretBody),
        responses={
            200: success(
                schemas.NewWebhook,
                "The webhook with its new secret.",
                previous_secret_expires_at="2026-06-10T11:00:00+00:00",  # noqa: S106
            ),
            **problems(404, 409, 422),
        },
    )
    @idempotent(in_transaction=True, id_field="webhook_id")
    def rotate_secret(self, request: Request, webhook_id: UUID) -> Response:
        """Replace the secret of a webhook. Deliveries are signed by both until the grace period ends."""
        body = parse(schemas.RotateSecretBody, request.data)
        grace = timedelta(seconds=body.grace_seconds)
        return Response(_new_secret(configuration.rotate_secret(caller(request), webhook_id, grace=grace)))

    @extend_schema(
        operation_id="test_webhook",
        summary="Test a webhook",
        parameters=[_WEBHOOK_ID],
        request=request_body(AuthenticatedBody),
        responses={
            200: success(schemas.WebhookDeliveryView, "The delivery before its first try."),
            **problems(404, 409, 422),
        },
    )
    @idempotent(in_transaction=True)
    def test(self, request: Request, webhook_id: UUID) -> Response:
        """Send the event `webhook.test` to a webhook. The list of its deliveries shows the result."""
        parse(AuthenticatedBody, request.data)
        return Response(_delivery(configuration.test(caller(request), webhook_id)))


@extend_schema(tags=["webhooks"])
class DeliveryViewSet(ViewSet):
    @extend_schema(
        operation_id="list_webhook_deliveries",
        summary="List deliveries of a webhook",
        parameters=[_WEBHOOK_ID, *query_parameters(schemas.DeliveriesQuery)],
        responses={200: success(schemas.WebhookDeliveryPage, "A page of deliveries."), **problems(404, 422)},
    )
    def list_deliveries(self, request: Request, webhook_id: UUID) -> Response:
        """List the deliveries of a webhook, newest first. They are kept for 30 days."""
        query = parse_query(schemas.DeliveriesQuery, request)
        webhook = configuration.get(caller(request).user_pk, webhook_id)
        before = None if query.cursor is None else pagination.decode_numbers(query.cursor)[0]
        page, following = configuration.deliveries_page(webhook.pk, query.status, before, query.limit)
        language = language_of(request)
        with translation.override(language):
            deliveries = [_delivery(one) for one in page]
        next_cursor = None if following is None else pagination.encode(following, 0)
        return Response({"deliveries": deliveries, "next_cursor": next_cursor}, headers=language_headers(language))


def _webhook(webhook: Webhook) -> dict[str, Any]:
    expires_at = webhook.previous_secret_expires_at
    return {
        "webhook_id": str(webhook.pk),
        "url": webhook.url,
        "events": webhook.events,
        "is_enabled": webhook.is_enabled,
        "created_at": isoformat(webhook.created_at),
        "previous_secret_expires_at": isoformat(expires_at) if expires_at and timezone.now() < expires_at else None,
    }


def _new_secret(new: NewSecret) -> dict[str, Any]:
    return {**_webhook(new.webhook), "secret": new.plaintext}


def _delivery(delivery: WebhookDelivery) -> dict[str, Any]:
    return {
        "delivery_id": delivery.delivery_id,
        "event": delivery.event_type,
        "sequence": delivery.sequence,
        "status": str(delivery.status),
        "attempts": delivery.attempts,
        "status_code": delivery.status_code,
        "error": localized(delivery.error) or None,
        "created_at": isoformat(delivery.created_at),
        "last_tried_at": isoformat_or_none(delivery.last_tried_at),
        "next_try_at": isoformat_or_none(delivery.next_try_at),
    }
