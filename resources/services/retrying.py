"""Retry failed ingestions on request."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.audit import Actor, record
from resources.models import Resource

MAX_AT_ONCE: Final = 1000


def retry(resources: QuerySet[Resource], *, actor: Actor) -> int:
    """Reset at most 1,000 failed ones of these resources to pending, and return how many."""
    failed = resources.filter(status=Resource.Status.FAILED, deleted_at__isnull=True)
    with transaction.atomic():
        found = dict(failed.order_by("created_at").values_list("resource_id", "user__user_id")[:MAX_AT_ONCE])
        count = Resource.objects.filter(pk__in=found, status=Resource.Status.FAILED).update(
            status=Resource.Status.PENDING,
            attempts=0,
            error_message="",
            retry_at=None,
            first_failed_at=None,
            updated_at=timezone.now(),
        )
        if count:
            users = sorted(set(found.values()))
            record(
                actor,
                "resource.retry",
                subject_type="resource",
                subject_id=next(iter(found)) if len(found) == 1 else "",
                user_id=users[0] if len(users) == 1 else "",
                detail={"count": count, "resources": list(found)[:100], "users": users[:100]},
            )
    return count
