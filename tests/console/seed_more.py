"""More data for the pages of files, users, trash and jobs: deleted sessions, jobs of each kind, hostile names."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User

from accounts import oauth, services
from accounts.audit import Actor, record
from accounts.models import Case, MemoryUser
from core.messages import Translatable as _
from memories.models import LoggedSearch, Override, ReturnedMemory, SearchCount
from memories.services import decisions
from memories.services.search_log import DURATION_BASE
from operations import bulk
from operations.models import Job
from profiles import services as profiles
from remote.models import OutboxEntry
from resources.models import RefusedUpload, Resource
from store.models import Memory, Residue, Session
from store.types import Owner
from tests.agents.oauth.flow import REDIRECT, connect
from tests.console.payloads import PAYLOADS
from tests.profiles.documents import FULL
from webhooks.models import Webhook, WebhookDelivery

ACTOR = Actor.operator("chen.yu")
NOON_MS = 1_781_172_177_000


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
        actor, kind = Actor.operator(payload[:150]), payload[:32]
        record(actor, payload[:64], payload, subject_type=kind, user_id=user.user_id, detail={payload: payload})
        Job.objects.create(
            kind=payload[:32], params={"reason": payload, "target": {"selection": {payload: payload}}}, error=payload,
            actor_kind="operator", actor=payload[:150], status="failed",
        )  # fmt: skip
        connect(user.pk, services.issue_key(user.pk, actor=ACTOR).key.pk, payload)
        Case.objects.create(subject_type="user", subject_id=str(user.pk), user=user, note=payload)
        log_search(
            Owner(user.pk, user.user_id),
            payload,
            now - timedelta(hours=4),
            agent_id=payload[:64],
            conversation_id=payload[:128],
        )
        hostile = Webhook.objects.create(user=user, url=f"https://{payload}", events=[payload])
        WebhookDelivery.objects.create(webhook=hostile, user=user, event_type=payload[:32], error=payload)
    last = Job.objects.filter(status="failed").first()
    found = Resource.objects.filter(user_id=owner.user_pk)
    for number, (name, size, status, reason) in enumerate(REFUSED):
        RefusedUpload.objects.create(
            user_id=owner.user_pk, at=now - timedelta(hours=5 * number), filename=name, size_bytes=size, status=status,
            reason=reason,
        )  # fmt: skip
    RefusedUpload.objects.create(user=user, filename=PAYLOADS[0][:255], status=422, reason=PAYLOADS[0])
    seed_searches(owner, now)
    seed_outbox(owner, now)
    for version in ("Purchasing", "Hardware purchasing"):
        profiles.write(owner.user_pk, "user", {**FULL["user"], "occupation": version}, actor=ACTOR)
    return {
        "user": str(owner.user_pk),
        "hostile_user": str(user.pk),
        "webhook": str(seed_webhooks(owner, now).pk),
        "hostile_webhook": str(hostile.pk),
        "connect": urlencode(seed_connections(owner)),
        "job": str(deleted.pk),
        "running": str(running.pk),
        "hostile_job": str(last.pk) if last else "",
        **(returned := seed_returned(owner)),
        "case": seed_case(owner, returned["used"]),
        "session": Session.objects.get(session_id=tombstones[0].session_id, user=owner.user_pk).pk,
        "hostile_file": str(Resource.objects.filter(user=user).get().pk),
        **{f"file_{one.public_status}": one.pk for one in found},
    }


REFUSED = (
    (
        "fair-2026.mov",
        2_400_000_000,
        413,
        _("must be at most %(number)s bytes; ask the operator for a higher limit", number=10**8),
    ),
    (
        "合同.rar",
        40_000,
        415,
        _("is of type %(type)s, which is not accepted; accepted types are %(types)s", type="a/b", types="x"),
    ),
    ("", None, 422, _("is required")),
)  # fmt: skip
CAUSES = (
    "The memory engine refused the request: the content is not accepted.",
    "The memory engine refused the request: the file's type is unknown, or there is no file at its address.",
)


def seed_outbox(owner: Owner, now: datetime) -> None:
    """Record refused and waiting messages, data at a former remote, and residue. No remote is attached."""
    sessions = list(Session.objects.exclude(state="purged").select_related("user").order_by("pk"))
    for number, session in enumerate(sessions):
        state = ("refused", "pending", "unconfirmed", "buffered", "withheld", "flushed")[number % 6]
        hostile = "<" in session.session_id
        OutboxEntry.objects.create(
            user=session.user, app_id=session.app_id, project_id=session.project_id, session=session,
            base_url="http://10.0.0.7:1995" if state == "flushed" else "", message_id=f"msg_{number}", state=state,
            cause=(session.session_id if hostile else CAUSES[number // 6 % 2]) if state == "refused" else "",
            time_ms=NOON_MS + number, recorded_at=now - timedelta(minutes=7 * number + 3),
        )  # fmt: skip
    Residue.objects.bulk_create(Residue(digest=f"{number:064x}") for number in range(3))


def seed_connections(owner: Owner) -> dict[str, str]:
    """Connect two applications. Return the parameters with which one asks for another connection."""
    key = services.keys_of(owner.user_pk)[0]
    client = connect(owner.user_pk, key.pk, "Desk assistant")
    connect(owner.user_pk, None, "笔记助手", (oauth.READ,))
    return {
        "client_id": str(client.pk),
        "redirect_uri": REDIRECT,
        "response_type": "code",
        "code_challenge": "x" * 43,
        "code_challenge_method": "S256",
    }


SEARCHES = (
    ("rest", "", "Where is the LT-40 gripper delivered?", 4),
    ("mcp", "sales-copilot", "付款条件", 2),
    ("tools", "main", "favorite color of the warehouse", 0),
    ("rpc", "hr-helper", "", 3),
)


def seed_searches(owner: Owner, now: datetime) -> None:
    for number in range(60):
        interface, agent_id, query, hits = SEARCHES[number % len(SEARCHES)]
        at = now - timedelta(hours=number * number / 7, minutes=3)
        log_search(owner, query, at, interface=interface, agent_id=agent_id, hits=hits, ms=3 + number % 11)


def seed_case(owner: Owner, row: int) -> int:
    """Give the operator of the screenshots a case about a memory; return its key."""
    operator = User.objects.filter(username="chen.yu").first()
    note = "Lin Wei asked on the phone why the agent named the old price. Call back on Monday."
    user = MemoryUser.objects.get(pk=owner.user_pk)
    about = {"subject_type": "memory", "subject_id": str(row)}
    return Case.objects.create(**about, user=user, note=note, assignee=operator).pk


def _edited(owner: Owner) -> list[int]:
    return [one.row_id for one in Override.objects.filter(user_id=owner.user_pk)[:1] if one.row_id]


def seed_returned(owner: Owner) -> dict[str, int]:
    """Let the latest search return live, deleted, superseded and edited memories, and one that was purged since."""
    asked = LoggedSearch.objects.filter(user_id=owner.user_pk).exclude(query="")
    found = asked.filter(interface="rest", hits=4).latest("at")
    rows = Memory.objects.filter(user_id=owner.user_pk, text__contains="LT-40").order_by("pk")
    chosen = [
        *rows.filter(state="live", session__state="live")[:3],
        *Memory.objects.filter(user_id=owner.user_pk).exclude(state="live")[:3],
    ]
    pks = list(dict.fromkeys([*(one.pk for one in chosen), *_edited(owner)]))
    for number, pk in enumerate([*pks, 10**9, None], 1):
        ReturnedMemory.objects.create(search=found, rank=number, row=pk)
    mcp = asked.filter(interface="mcp").latest("at")
    ReturnedMemory.objects.create(search=mcp, rank=1, row=pks[0], version=1)
    return {"search": found.pk, "search_without_hits": asked.filter(hits=0).latest("at").pk, "used": pks[0]}


def log_search(owner: Owner, query: str, at: datetime, **fields: Any) -> None:
    values = {"interface": "rest", "hits": 1, "ms": 4.2, **fields}
    LoggedSearch.objects.create(
        user_id=owner.user_pk, app_id="default", project_id="default", at=at, scopes="resources all_user_memory",
        method="hybrid", top_k=8, has_filters=False, query=query, query_chars=len(query) or 21, **values,
    )  # fmt: skip
    hour, duration = int(at.timestamp() // 3600), int(math.log(values["ms"], DURATION_BASE))
    count, _is_new = SearchCount.objects.get_or_create(
        hour=hour, duration=duration, defaults={"searches": 0, "without_hits": 0}
    )
    count.searches, count.without_hits = count.searches + 1, count.without_hits + (not values["hits"])
    count.save()


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
