"""Request and response schemas of `/webhooks`."""

from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

from accounts.api.schemas import AuthenticatedBody, AuthenticatedQuery, NextCursor, Time
from core.events import EventType
from core.messages import Translatable as _
from core.network.url_policy import MAX_URI_CHARS
from core.rest import WHOLE
from webhooks.models import TEST_EVENT
from webhooks.services.configuration import DEFAULT_GRACE, MAX_GRACE

MAX_PAGE = 1000
_EVENTS = "The types of events to send. An empty list stands for all, also for types of later versions."


def _without_repetition(value: list[Any]) -> list[Any]:
    if len(set(value)) < len(value):
        raise ValueError(_("must not repeat an item"))
    return value


Url = Annotated[str, Field(min_length=1, max_length=MAX_URI_CHARS, json_schema_extra={"format": "uri"})]
Events = Annotated[
    list[EventType],
    AfterValidator(_without_repetition),
    Field(max_length=len(get_args(EventType)), json_schema_extra={"uniqueItems": True}),
]
WebhookId = Annotated[
    UUID, Field(description="The id of the webhook.", examples=["7d1f0c52-93d4-4a57-8f2e-1f9c6d2b0a34"])
]
Secret = Annotated[
    str,
    Field(
        description="The secret in plain text, with which deliveries are signed. Store it: it is not shown again.",
        examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="],
    ),
]


class WebhookBody(AuthenticatedBody):
    """The webhook to create."""

    url: Url = Field(
        description="The `https://` address that gets the events. Private addresses are refused.",
        examples=["https://hooks.example.com/memory"],
    )
    events: Events = Field([], description=_EVENTS, examples=[["memory.deleted", "resource.extracted"]])


class WebhookChangeBody(AuthenticatedBody):
    """The parts of a webhook to change. Absent parts stay."""

    url: Url | None = Field(
        None,
        description="The new address. Pending deliveries go there too.",
        examples=["https://hooks.example.com/memory"],
    )
    events: Events | None = Field(None, description=_EVENTS, examples=[["memory.deleted", "resource.extracted"]])
    is_enabled: bool | None = Field(
        None, description="False stops deliveries: events of this time are not reported, pending deliveries wait."
    )


class RotateSecretBody(AuthenticatedBody):
    """The grace period of the old secret."""

    grace_seconds: Annotated[int, Field(ge=0, le=int(MAX_GRACE.total_seconds())), WHOLE] = Field(
        int(DEFAULT_GRACE.total_seconds()),
        description="Seconds for which deliveries are signed by the old secret too.",
        examples=[3600],
    )


class DeliveriesQuery(AuthenticatedQuery):
    """The status and the page of a list of deliveries."""

    status: Literal["pending", "delivered", "failed"] | None = Field(
        None, description="Only deliveries of this status. Absent: all."
    )
    limit: int = Field(100, ge=1, le=MAX_PAGE, description="The size of a page.")
    cursor: str | None = Field(None, max_length=200, description="The `next_cursor` of the page before.")


class WebhookView(BaseModel):
    """A webhook without its secret."""

    webhook_id: WebhookId
    url: str = Field(description="The address that gets the events.", examples=["https://hooks.example.com/memory"])
    events: list[str] = Field(
        description="The types of events that are sent; empty for all.",
        examples=[["memory.deleted", "resource.extracted"]],
    )
    is_enabled: bool = Field(
        description="False if nothing is sent. The gateway disables a webhook whose address answers 410.",
        examples=[True],
    )
    created_at: Time = Field(description="When the webhook was created.")
    previous_secret_expires_at: Time | None = Field(
        description="Until when deliveries are signed by the previous secret too; null if they are not.",
        examples=[None],
    )


class WebhookList(BaseModel):
    """The caller's webhooks."""

    webhooks: list[WebhookView] = Field(description="The webhooks, newest first.")


class NewWebhook(WebhookView):
    """A webhook with its new secret."""

    secret: Secret


class DeletedWebhook(BaseModel):
    """A deleted webhook."""

    webhook_id: WebhookId
    status: Literal["deleted"] = Field(description="Always `deleted`.", examples=["deleted"])


class WebhookDeliveryView(BaseModel):
    """A delivery of an event to a webhook."""

    delivery_id: str = Field(
        description="The id of the delivery, in the header `webhook-id` of every try.",
        examples=["msg_5f0c2a9d8e7b4c6196f3d2e1a0b7c8d9"],
    )
    event: str = Field(description="The type of the event.", examples=[TEST_EVENT])
    sequence: int | None = Field(
        description="The number of the event among those of the webhook, from 1; null until the first try.",
        examples=[None],
    )
    status: Literal["pending", "delivered", "failed"] = Field(
        description="Whether the receiver accepted it, or is tried again.", examples=["pending"]
    )
    attempts: int = Field(description="How often the delivery was tried.", examples=[0])
    status_code: int | None = Field(
        description="The HTTP status of the last response; null without a response.", examples=[None]
    )
    error: str | None = Field(description="Why the last try got no response; null if it got one.", examples=[None])
    created_at: Time = Field(description="When the event occurred.")
    last_tried_at: Time | None = Field(description="When the delivery was last tried; null before.", examples=[None])
    next_try_at: Time | None = Field(description="When it is tried next; null unless `status` is `pending`.")


class WebhookDeliveryPage(BaseModel):
    """A page of a webhook's deliveries."""

    deliveries: list[WebhookDeliveryView] = Field(description="The deliveries, newest first, of the last 30 days.")
    next_cursor: NextCursor
