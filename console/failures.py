"""Files that could not be read and are not tried again by themselves, grouped by what was said about them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from django.db.models import Count, Max, QuerySet

from resources.models import Resource

MAX_CAUSES: Final = 20
MAX_NAMES: Final = 200


@dataclass(frozen=True, slots=True)
class Cause:
    """`key` stands for the message in addresses."""

    key: str
    message: str
    count: int
    last: object
    names: tuple[str, ...]


def waiting() -> QuerySet[Resource]:
    """What waits for a person."""
    return Resource.objects.filter(status=Resource.Status.FAILED, retry_at__isnull=True, deleted_at__isnull=True)


def causes() -> list[Cause]:
    """The most frequent causes, with some of their files. Two statements."""
    groups = waiting().order_by().values("error_message").annotate(count=Count("pk"), last=Max("updated_at"))
    found = list(groups.order_by("-count", "error_message")[:MAX_CAUSES])
    names: dict[str, list[str]] = {}
    shown = waiting().filter(error_message__in=[group["error_message"] for group in found]).order_by("-updated_at")
    for message, filename in shown.values_list("error_message", "filename")[:MAX_NAMES] if found else ():
        names.setdefault(message, []).append(filename)
    return [
        Cause(
            key_of(group["error_message"]),
            group["error_message"],
            group["count"],
            group["last"],
            tuple(names.get(group["error_message"], [])[:4]),
        )
        for group in found
    ]


def of_rarer(shown: list[Cause]) -> int:
    """How many wait for causes beyond those. One statement where there may be any."""
    return waiting().count() - sum(cause.count for cause in shown) if len(shown) == MAX_CAUSES else 0


def of_cause(key: str) -> QuerySet[Resource]:
    """What waits for a person for that cause."""
    messages = waiting().order_by().values_list("error_message", flat=True).distinct()
    return waiting().filter(error_message__in=[message for message in messages if key_of(message) == key])


def key_of(message: str) -> str:
    return hashlib.sha256(message.encode()).hexdigest()[:16]
