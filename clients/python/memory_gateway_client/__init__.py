"""Python client of Memory Gateway: `Client`, and `AsyncClient` for asyncio."""

from memory_gateway_client.calls import NEVER
from memory_gateway_client.client import AsyncClient, Client
from memory_gateway_client.errors import (
    Conflict,
    FieldProblem,
    Forbidden,
    InvalidAnswer,
    InvalidInput,
    MemoryGatewayError,
    NoAnswer,
    NoSpace,
    NotFound,
    PreconditionFailed,
    Problem,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    UnsupportedType,
)
from memory_gateway_client.models import ContentItem, Message
from memory_gateway_client.transports import Retries
from memory_gateway_client.webhooks import InvalidWebhook, WebhookEvent, verify_webhook

__version__ = "0.1.0"

__all__ = [
    "NEVER",
    "AsyncClient",
    "Client",
    "Conflict",
    "ContentItem",
    "FieldProblem",
    "Forbidden",
    "InvalidAnswer",
    "InvalidInput",
    "InvalidWebhook",
    "MemoryGatewayError",
    "Message",
    "NoAnswer",
    "NoSpace",
    "NotFound",
    "PreconditionFailed",
    "Problem",
    "Retries",
    "TooLarge",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "UnsupportedType",
    "WebhookEvent",
    "verify_webhook",
]
