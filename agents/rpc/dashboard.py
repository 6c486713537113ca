"""`memory.admin.dashboard`: memory counts by kind and by time."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from accounts.tokens import TokenPrincipal
from agents.rpc.failures import plugin_failure
from agents.rpc.memory_admin import SHARED_AGENT, agent_of, importance_or_default, record_read
from agents.rpc.params import Params, moment_ms, text
from core.times import from_ms, to_ms
from store import browse
from store.browse import Selection

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MAX_SPAN_MS = 100 * 366 * DAY_MS
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bar of the chart, from `since_ms` to the start of the next one."""

    key: str
    label: str
    since_ms: int


def dashboard(principal: TokenPrincipal, params: Params) -> dict[str, Any]:
    """Return the dashboard of an agent. Raises: `Failure` without an agent or without both times."""
    since_ms, until_ms = moment_ms(params, "timeFrom"), moment_ms(params, "timeTo")
    if since_ms is None or until_ms is None:
        raise plugin_failure(400, "timeFrom and timeTo are required (ISO 8601)")
    agent_id = agent_of(params)
    if until_ms - since_ms > MAX_SPAN_MS:
        raise plugin_failure(400, "timeFrom and timeTo must lie within a hundred years")
    bars = buckets(since_ms, until_ms)
    selection = Selection(
        user_pk=principal.user_pk,
        agent_id=agent_id,
        session_id=text(params, "sessionId") or None,
        since_ms=since_ms,
        until_ms=until_ms + 1,  # the end is inclusive
    )
    edges = [*(bar.since_ms for bar in bars), max(since_ms, until_ms) + 1]
    found = browse.dashboard(selection, edges, tops=["sessions"])
    record_read(principal, "dashboard.view", {one.user_id for one in found.top_sessions}, subject_type="memory")
    sessions = Counter[str]()  # two users' sessions with one id are counted together
    for session in found.top_sessions:
        sessions[session.key] += session.count
    low, mid, high = (count for _, _, count in found.importance_bands)
    unrated = found.total - low - mid - high  # counts with the default importance
    sum_of_rated = (found.average_importance or 0.0) * (low + mid + high)
    average = (sum_of_rated + unrated * importance_or_default(None)) / found.total if found.total else 0
    return {
        "total": found.total,
        "timeFromMs": since_ms,
        "timeToMs": until_ms,
        "byKind": {
            **{tab: found.by_tab.get(tab, 0) for tab in ("user", "self", "full")},
            "other": found.by_tab.get("", 0),
        },
        "byCategory": {category or OTHER: count for category, count in found.by_category.items()},
        "byBucket": [
            {"key": bar.key, "label": bar.label, "count": sum(counts.values())}
            for bar, counts in zip(bars, found.buckets, strict=True)
        ],
        "topAgents": [{"agentId": agent_id or SHARED_AGENT, "count": found.total}] if found.total else [],
        "topSessions": [{"sessionId": key, "count": count} for key, count in sessions.most_common()],
        "importance": {"low": low, "mid": mid, "high": high + unrated, "avg": average},
        "uniqueAgents": min(found.total, 1),
        "uniqueSessions": found.unique_sessions,
    }


def buckets(since_ms: int, until_ms: int) -> list[Bucket]:
    """Return hours up to two days, days up to sixty, else calendar months. Hours and days start at `since_ms`."""
    span_ms = max(1, until_ms - since_ms)
    if span_ms > 60 * DAY_MS:
        return _months(since_ms, until_ms)
    step_ms, form = (HOUR_MS, "%m-%d %H:00") if span_ms <= 48 * HOUR_MS else (DAY_MS, "%Y-%m-%d")
    starts = range(since_ms, since_ms + span_ms, step_ms)
    return [Bucket(str(number), _local(start).strftime(form), start) for number, start in enumerate(starts)]


def _months(since_ms: int, until_ms: int) -> list[Bucket]:
    month = _local(since_ms).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    found: list[Bucket] = []
    while to_ms(month) <= until_ms:
        name = f"{month.year:04}-{month.month:02}"
        found.append(Bucket(name, name, max(since_ms, to_ms(month))))
        if (month.year, month.month) == (9999, 12):
            break
        month = month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
    return found


def _local(at_ms: int) -> datetime:
    """Return the time in the server's time zone, in UTC if the zone shifts it out of the years 1 to 9999."""
    moment = from_ms(at_ms)
    try:
        return moment.astimezone(timezone.get_default_timezone())
    except OverflowError:
        return moment
