"""More data for the pages of files, users, trash and jobs: deleted sessions, jobs of each kind, hostile names."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from accounts.audit import Actor, record
from accounts.models import MemoryUser
from core.messages import Message as _
from memories.services import decisions
from operations import bulk
from operations.models import Job
from resources.models import Resource
from store.models import Session
from store.types import Owner
from tests.console.payloads import PAYLOADS
from webhooks.models import Webhook, WebhookDelivery

ACTOR = Actor.operator("chen.yu")


def seed_data_pages(owner: Owner, rows: list[int], now: datetime) -> dict[str, Any]:
    """Add the data and return the ids that tests use. `rows` are memories that may be moved to the trash."""
    deleted = bulk.start("delete", bulk.of_rows(rows), {"reason": "out of date"}, actor=ACTOR)
    running = Job.objects.create(
        kind="delete", params={"target": {"selection": {"tab": "self"}, "at": now.isoformat(), "up_to_row": 1}},
        actor_kind="operator", actor="chen.yu", status="running", done=6400, total=10_000,
        started_at=now - timedelta(seconds=9), lease_holder="another process", leased_until=now + timedelta(days=1),
    )  # fmt: skip
    tombstones = [decisions.delete_session(owner, name, reason="moved", actor=ACTOR) for name in ("chat:warehouse",)]
    for number, payload in enumerate(PAYLOADS):
        user = MemoryUser.objects.get(user_id=f"{number}{payload}"[:64])
        Resource.objects.create(
            user=user, app_id=payload[:64], project_id=payload[:64], session_id=f"resource:{payload}"[:128],
            filename=payload, title=payload, description=payload, content_type="pdf", mime_type=payload[:127],
            source_uri="javascript:alert(4)", status="failed", error_message=payload if number % 2 else "One cause.",
        )  # fmt: skip
        if number % 5 == 0:
            name = f"chat:{payload}"[:128]
            scoped = Owner(user.pk, user.user_id, payload[:64], payload[:64])
            decisions.delete_session(scoped, name, reason=payload, actor=Actor.operator(payload[:150]))
        record(
            Actor.operator(payload[:150]), payload[:64], subject_type=payload[:32], subject_id=payload,
            user_id=user.user_id, detail={payload: payload},
        )  # fmt: skip
        Job.objects.create(
            kind=payload[:32], params={"reason": payload, "target": {"selection": {payload: payload}}}, error=payload,
            actor_kind="operator", actor=payload[:150], status="failed",
        )  # fmt: skip
        hostile = Webhook.objects.create(user=user, url=f"https://{payload}", events=[payload])
        WebhookDelivery.objects.create(webhook=hostile, user=user, event_type=payload[:32], error=payload)
    last = Job.objects.filter(status="failed").first()
    found = Resource.objects.filter(user_id=owner.user_pk)
    return {
        "user": str(owner.user_pk),
        "hostile_user": str(user.pk),
        "webhook": str(seed_webhooks(owner, now).pk),
        "hostile_webhook": str(hostile.pk),
        "job": str(deleted.pk),
        "running": str(running.pk),
        "hostile_job": str(last.pk) if last else "",
        "session": Session.objects.get(session_id=tombstones[0].session_id, user=owner.user_pk).pk,
        "hostile_file": str(Resource.objects.filter(user=user).get().pk),
        **{f"file_{one.status}": one.pk for one in found},
    }


def seed_webhooks(owner: Owner, now: datetime) -> Webhook:
    """Create an enabled webhook with deliveries of each status, and a disabled one."""
    user = MemoryUser.objects.get(pk=owner.user_pk)
    Webhook.objects.create(user=user, url="https://old.example.com/hook", is_enabled=False)
    events = ["memory.deleted", "resource.extracted", "resource.failed", "session.flushed"]
    webhook = Webhook.objects.create(user=user, url="https://hooks.example.com/memory", events=events)
    made = {"webhook": webhook, "user": user}
    tried = now - timedelta(minutes=4)
    for sequence, event in enumerate(events, 1):
        WebhookDelivery.objects.create(
            **made, event_type=event, sequence=sequence, status="delivered", attempts=1, status_code=204,
            next_try_at=None, last_tried_at=tried, created_at=tried,
        )  # fmt: skip
    WebhookDelivery.objects.create(
        **made, event_type="resource.failed", sequence=5, status="failed", attempts=8, status_code=503,
        next_try_at=None, last_tried_at=tried, created_at=now - timedelta(days=2),
    )  # fmt: skip
    WebhookDelivery.objects.create(
        **made, event_type="session.flushed", sequence=6, attempts=2, error=_("The response timed out"),
        next_try_at=now + timedelta(days=1), last_tried_at=tried, created_at=now,
    )  # fmt: skip
    return webhook
