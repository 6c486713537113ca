"""Delete the memories that a filter matches: after a dry run, with frozen ids, as one job that can be undone once."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac

from accounts.audit import SAME_FOR, Actor, record
from accounts.models import AuditEvent, Principal
from core.errors import CountChanged, InvalidInput, NotFound
from core.messages import Translatable as _
from memories.services.zones import filters_now
from operations import jobs
from operations.bulk import Target
from operations.models import Job
from store import filters, table
from store.browse import Selection
from store.models import Memory
from store.types import ListRequest, Owner

MAX_MEMORIES: Final = 20_000
"""The most memories of one deletion."""
AT_ONCE: Final = 1_000
"""The most memories that the request itself deletes; more are left to a worker."""
_PREVIEW: Final = "memory.preview"


class Chosen(NamedTuple):
    """The memories of an owner that a filter of the caller chooses, without those of other agents than `reader`."""

    owner: Owner
    filters: Mapping[str, Any]
    reader: str = ""

    def rows(self) -> QuerySet[Memory]:
        """Return the live memories, as a list shows them. Raises: `InvalidInput` for the filters."""
        if not filters.has_condition(filters.parse(self.filters)):
            raise InvalidInput.of_field("filters", _("must hold at least one condition"))
        now = filters_now(self.filters, self.owner.user_pk)
        return table.listed(self.owner, ListRequest(filters=now, reader=self.reader or None))

    @property
    def digest(self) -> str:
        """Return a keyed digest of the choice: its words must not be guessed from the audit trail."""
        written = json.dumps([str(self.owner.user_pk), self.owner.scope, self.filters, self.reader], sort_keys=True)
        return salted_hmac("operations.filtered_deletion", written, algorithm="sha256").hexdigest()[:32]


def preview(chosen: Chosen, *, actor: Actor) -> dict[str, int]:
    """Return the number of chosen memories by category, and note it: a deletion must name it within ten minutes."""
    found = chosen.rows().order_by().values_list("category").annotate(number=Count("pk"))
    counts = dict(found.order_by("-number", "category"))
    detail = {"count": sum(counts.values())}
    record(actor, _PREVIEW, chosen.digest, user_id=chosen.owner.user_id, detail=detail)
    return counts


def delete(chosen: Chosen, *, expected_count: int, reason: str, actor: Actor) -> Job:
    """Delete the chosen memories; return the job, which is over if they are few.

    Raises: `CountChanged` unless a dry run of the last ten minutes and the memories now have the expected count;
    `InvalidInput` for too many.
    """
    rows = sorted(chosen.rows().order_by().values_list("pk", flat=True)[: MAX_MEMORIES + 1])
    if len(rows) > MAX_MEMORIES:
        message = _("match more than %(number)s memories: add a condition, such as a time", number=MAX_MEMORIES)
        raise InvalidInput.of_field("filters", message)
    if len(rows) != expected_count or not _was_previewed(chosen, expected_count, timezone.now()):
        raise CountChanged(
            _(
                "%(count)s memories match now. Send the request with dry_run, and within ten minutes the count that it "
                "returns as expected_count.",
                count=len(rows),
            ),
            count=len(rows),
        )
    owner = chosen.owner
    selection = Selection(user_pk=owner.user_pk, app_id=owner.app_id, project_id=owner.project_id)
    target = Target(selection=selection, at=timezone.now(), up_to_row=max(rows, default=0), rows=tuple(rows))
    params = {"target": target.as_json(), "reason": reason}
    is_small = len(rows) <= AT_ONCE
    job = jobs.submit("delete", params, actor=actor, total=len(rows), is_for_worker=not is_small)
    return jobs.run_now(job) if is_small else job


def _was_previewed(chosen: Chosen, count: int, now: datetime) -> bool:
    recent = Q(at__gt=now - SAME_FOR) | Q(last_at__gt=now - SAME_FOR)
    events = AuditEvent.objects.filter(
        recent,
        at__gt=now - 2 * SAME_FOR,  # by which the index finds them
        user_id=chosen.owner.user_id,
        action=_PREVIEW,
        subject_id=chosen.digest,
    )
    return any(event.detail.get("count") == count for event in events)


def get(principal: Principal, job_id: UUID) -> Job:
    """Return a deletion that a key of the user started, for a bound key only its own. Raises: `NotFound`."""
    jobs_of_keys = Job.objects.filter(pk=job_id, kind="delete", actor_kind=AuditEvent.ActorKind.KEY)
    if principal.app_id or principal.agent_id:
        jobs_of_keys = jobs_of_keys.filter(actor=str(principal.key_id))
    found = jobs_of_keys.first()
    if found is None or found.params["target"]["selection"].get("user_pk") != str(principal.user_pk):
        raise NotFound(_("There is no such deletion."))
    return found


def undoing(job: Job) -> Job | None:
    """Return the job that undoes a deletion; None without one."""
    if job.undone_at is None:
        return None
    return Job.objects.filter(kind=jobs.UNDO, params__job=str(job.pk)).order_by("-created_at").first()


def undo(principal: Principal, job_id: UUID) -> Job:
    """Restore what a deletion moved to the trash and is still there. Raises: `NotFound`, `Conflict`."""
    job = get(principal, job_id)
    if job.is_over and job.undone_at is None and not job.steps.exists():
        return job  # it deleted nothing
    is_small = job.total <= AT_ONCE
    started = jobs.undo(job.pk, actor=Actor.key(principal), is_for_worker=not is_small)
    if is_small:
        jobs.run_now(started)
    return get(principal, job_id)
