"""The queues of the panel: their names, lists and counts, and alerts when they grow."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import orjson
from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from accounts import tenants
from accounts.models import QueueLevel
from console import queries
from core.network.http_client import Deadline, HttpClient, HttpError
from core.network.url_policy import base_and_path
from core.times import isoformat
from memories.models import LoggedSearch
from resources.models import RefusedUpload, Resource
from resources.queries import READ_IN_PART
from store import browse
from store.browse import Mark, Selection
from store.models import State
from webhooks.models import Webhook, WebhookDelivery

logger = logging.getLogger("memory_gateway.worker")
MOST: Final = 1_000
"""The number up to which a queue is counted."""
VIEW: Final = "store.view_memory"
VIEW_FILES: Final = "resources.view_resource"
VIEW_WEBHOOKS: Final = "webhooks.view_webhook"
VIEW_SEARCHES: Final = "memories.view_loggedsearch"
_SHARE, _FEW_SEARCHES, _SECONDS = "searches_without_results_share", 20, 10.0
_SHARE_OVER: Final = timedelta(days=1)


class Queue(NamedTuple):
    """A queue: what it holds, what a person can do there, its list, and how many wait, at most `MOST` + 1."""

    name: str
    label: Promise
    act: Promise
    permission: str
    url: Callable[[datetime], str]
    count: Callable[[datetime], int]


def _of_mark(name: str, label: Promise, act: Promise, mark: Mark) -> Queue:
    return Queue(
        name,
        label,
        act,
        VIEW,
        lambda _since: reverse("console:memories", query={"tab": "all", "mark": mark}),
        lambda _since: browse.count(Selection(mark=mark), at_most=MOST + 1),
    )


def _listed(page: str, **query: str) -> Callable[[datetime], str]:
    """Return the address of a list; `since` in the query stands for the day since which the queue counts."""

    def address(since: datetime) -> str:
        day = f"{timezone.localtime(since):%Y-%m-%d}"
        return reverse(f"console:{page}", query={name: value or day for name, value in query.items()})

    return address


def _counted(rows: QuerySet[Any]) -> int:
    return rows.order_by()[: MOST + 1].count()


def failing() -> QuerySet[Webhook]:
    """Return the webhooks with failed deliveries."""
    failed = WebhookDelivery.objects.filter(webhook=OuterRef("pk"), status=WebhookDelivery.Status.FAILED)
    return tenants.reachable(Webhook.objects.filter(Exists(failed)))


def _in_part() -> QuerySet[Resource]:
    return tenants.reachable(Resource.objects.filter(READ_IN_PART, state=State.LIVE))


def _refused(since: datetime) -> QuerySet[RefusedUpload]:
    return tenants.reachable(RefusedUpload.objects.filter(at__gte=since))


def _without_hits(since: datetime) -> QuerySet[LoggedSearch]:
    return tenants.reachable(LoggedSearch.objects.filter(at__gte=since, hits=0))


QUEUES: Final = (
    _of_mark(
        "possible_instructions",
        _("Possible instructions"),
        _("Read who wrote them, and move to the trash what tries to steer agents."),
        "instruction",
    ),
    _of_mark(
        "superseded",
        _("Superseded memories"),
        _("A newer memory took their place. If both are true, restore the older one."),
        "superseded",
    ),
    _of_mark(
        "expiring",
        _("Memories that expire within 7 days"),
        _("Give those that stay true a later time."),
        "expiring",
    ),
    Queue(
        "failed_files",
        _("Failed files"),
        _("Retry them, or upload another file."),
        VIEW_FILES,
        _listed("resources", state="failed"),
        lambda _since: _counted(queries.waiting()),
    ),
    Queue(
        "files_read_in_part",
        _("Files read in part"),
        _("Compare the reading with the file."),
        VIEW_FILES,
        _listed("resources", reading="part"),
        lambda _since: _counted(_in_part()),
    ),
    Queue(
        "refused_uploads",
        _("Uploads refused in the last 7 days"),
        _("Tell their users what is accepted, or change the limits."),
        VIEW_FILES,
        _listed("resource-refused", **{"from": ""}),
        lambda since: _counted(_refused(since)),
    ),
    Queue(
        "failing_webhooks",
        _("Webhooks with failed deliveries"),
        _("Repair the address and send them again."),
        VIEW_WEBHOOKS,
        _listed("webhooks", state="failed"),
        lambda _since: _counted(failing()),
    ),
    Queue(
        "searches_without_results",
        _("Searches without results in the last 7 days"),
        _("Add what is missing, or make questions of them."),
        VIEW_SEARCHES,
        _listed("searches", hits="none", **{"from": ""}),
        lambda since: _counted(_without_hits(since)),
    ),
)


def alert(now: datetime) -> list[str]:
    """Send an alert for what has grown to a new level since the last look; return the names.

    Levels of a queue are 1, 10, 100 and 1,000, of the share of searches without results within a day 25, 50 and 75 %.
    A level that could not be sent is sent at the next look.
    """
    counts = {one.name: one.count(now - timedelta(days=7)) for one in QUEUES}
    levels = {name: len(str(count)) if count else 0 for name, count in counts.items()}
    recent = LoggedSearch.objects.filter(at__gte=now - _SHARE_OVER)
    if (total := recent.count()) >= _FEW_SEARCHES:
        counts[_SHARE] = 100 * recent.filter(hits=0).count() // total
        levels[_SHARE] = counts[_SHARE] // 25
    known = dict(QueueLevel.objects.values_list("name", "level"))
    grown = [name for name, level in levels.items() if level > known.get(name, 0)]
    if grown and not _send(now, {name: counts[name] for name in grown}):
        levels = {name: level for name, level in levels.items() if name not in grown}
        grown = []
    for name, level in levels.items():
        if level != known.get(name, 0):
            QueueLevel.objects.update_or_create(name=name, defaults={"level": level})
    return grown


def _send(now: datetime, waiting: dict[str, int]) -> bool:
    """Post what has grown to the address of alerts; return False if that failed."""
    body = orjson.dumps({"type": "queue.grown", "timestamp": isoformat(now), "data": {"waiting": waiting}})
    base_url, path = base_and_path(settings.MEMORY_GATEWAY_ALERT_URL)
    try:
        with (
            HttpClient(base_url, headers={"Content-Type": "application/json", "Connection": "close"}) as http,
            http.send("POST", path, body, Deadline.after(_SECONDS)) as response,
        ):
            if response.status < 300:
                return True
            logger.warning("The address of alerts answered %s", response.status)
    except HttpError as error:
        logger.warning("No alert could be sent: %s", error)
    return False
