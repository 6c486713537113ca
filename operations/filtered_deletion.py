"""Delete the memories that a filter matches, or that have all of some words, as one job that can be undone once.

An application must preview them first, and name their number. A person sees and ticks them (`delete_ticked`).
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac

from accounts.audit import SAME_FOR, Actor, record
from accounts.controls import Never
from accounts.models import AuditEvent, Principal
from core.errors import CountChanged, InvalidInput, NotFound
from core.messages import Translatable as _
from memories.services.zones import filters_now
from operations import jobs
from operations.bulk import Target
from operations.models import Job
from store import browse, filters, table
from store.admission import is_never_kept, kept_reason, offer_of
from store.browse import Selection
from store.index import keyword
from store.models import IndexStatistics, Memory
from store.search.copies import grouped
from store.table import stored
from store.text import terms
from store.text.tokens import required_tokens
from store.types import ListRequest, Owner, StoredMemory

MAX_MEMORIES: Final = 20_000
"""The most memories of one deletion."""
AT_ONCE: Final = 1_000
"""The most memories that the request itself deletes; more are left to a worker."""
PREVIEWED: Final = 50
"""The most memories that a dry run returns."""
_PREVIEW: Final = "memory.preview"


class Chosen(NamedTuple):
    """The live memories of an owner that a filter matches or that have all `words`, as lists show them.

    Those of other agents than `reader` are left out. `is_everywhere`: the words are looked up in all of the user's
    scopes. With `never`, the memories of all scopes that would not be stored now.
    """

    owner: Owner
    filters: Mapping[str, Any] | None = None
    words: str = ""
    reader: str = ""
    is_everywhere: bool = False
    never: Never = Never()

    @property
    def selection(self) -> Selection:
        """Return the scope, or all of the user's."""
        if self.is_everywhere or self.never:
            return Selection(user_pk=self.owner.user_pk)
        return Selection(user_pk=self.owner.user_pk, app_id=self.owner.app_id, project_id=self.owner.project_id)

    def rows(self) -> QuerySet[Memory]:
        """Return the memories, unordered. Raises: `InvalidInput` for the filters or the words."""
        if self.never:
            return self._never_kept()
        if self.filters is None:
            return self._with_words()
        if not filters.has_condition(filters.parse(self.filters)):
            raise InvalidInput.of_field("filters", _("must hold at least one condition"))
        now = filters_now(self.filters, self.owner.user_pk)
        return table.listed(self.owner, ListRequest(filters=now, reader=self.reader or None))

    def _with_words(self) -> QuerySet[Memory]:
        tokens = required_tokens(self.words)
        if not tokens:
            raise InvalidInput.of_field("words", _("must contain a word"))
        scope = {} if self.is_everywhere else {"app_id": self.owner.app_id, "project_id": self.owner.project_id}
        indexed = IndexStatistics.objects.filter(user_id=self.owner.user_pk, **scope).values_list(
            "app_id", "project_id"
        )
        owners = [Owner(self.owner.user_pk, self.owner.user_id, *of_scope) for of_scope in indexed]
        if not owners:
            return Memory.objects.none()
        wanted = terms.among([keyword.prefix_of(one) for one in owners], tokens)
        found = browse.rows_of(replace(self.selection, words=wanted, is_shown=True), begins_with_words=True)
        return found.filter(table.readable_by(self.reader)) if self.reader else found

    def _never_kept(self) -> QuerySet[Memory]:
        shown = browse.rows_of(replace(self.selection, is_shown=True))
        rows = shown.select_related(None).only("pk", "text", "origin", "chunk_index", "payload").order_by("-pk")
        found = (row.pk for row in rows.iterator() if is_never_kept(self.never, offer_of(row)))
        return shown.filter(pk__in=list(islice(found, MAX_MEMORIES + 1)))

    def newest(self, limit: int) -> list[list[StoredMemory]]:
        """Return the newest of the memories, at most `limit`, each in a list with its copies among them."""
        return grouped(map(stored, self.rows().order_by("-created_at_ms", "-pk")[:limit]))

    @property
    def digest(self) -> str:
        """Return a keyed digest of the choice: its words must not be guessed from the audit trail."""
        choice = [str(self.owner.user_pk), self.owner.scope, self.filters, self.words, self.reader]
        written = json.dumps(choice, sort_keys=True)
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
    _require_few(chosen, rows)
    if len(rows) != expected_count or not _was_previewed(chosen, expected_count, timezone.now()):
        raise CountChanged(
            _(
                "%(count)s memories match now. Send the request with dry_run, and within ten minutes the count that it "
                "returns as expected_count.",
                count=len(rows),
            ),
            count=len(rows),
        )
    return _start(chosen, rows, reason=reason, actor=actor)


def delete_ticked(chosen: Chosen, ticked: Collection[int], *, actor: Actor) -> Job:
    """Delete those of the chosen memories that have these row ids, and their copies among the chosen.

    Raises: `InvalidInput` if too many are chosen.
    """
    rows = list(chosen.rows().order_by("pk")[: MAX_MEMORIES + 1])
    _require_few(chosen, rows)
    copies = [[one.row for one in memories] for memories in grouped(map(stored, rows))]
    wanted = [row for of_one in copies if not set(ticked).isdisjoint(of_one) for row in of_one]
    return _start(chosen, sorted(wanted), reason="", actor=actor)


def _require_few(chosen: Chosen, rows: Sequence[object]) -> None:
    if len(rows) > MAX_MEMORIES:
        field = "words" if chosen.filters is None else "filters"
        message = _("match more than %(number)s memories: add a condition, such as a time", number=MAX_MEMORIES)
        if chosen.filters is None:
            message = _("are in more than %(number)s memories: add a word", number=MAX_MEMORIES)
        raise InvalidInput.of_field(field, message)


def _start(chosen: Chosen, rows: Sequence[int], *, reason: str, actor: Actor) -> Job:
    """Delete the memories with these row ids; return the job, which is over if they are few."""
    target = Target(selection=chosen.selection, at=timezone.now(), up_to_row=max(rows, default=0), rows=tuple(rows))
    reason = kept_reason(chosen.owner.user_pk, reason, is_of_person=False)
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
    key = {"actor": str(principal.key_id)} if principal.app_id or principal.agent_id else {}
    return _of_user(principal.user_pk, job_id, actor_kind=AuditEvent.ActorKind.KEY, **key)


def get_of_person(user_pk: UUID, job_id: UUID) -> Job:
    """Return a deletion that the person started. Raises: `NotFound`."""
    return _of_user(user_pk, job_id, actor_kind=AuditEvent.ActorKind.PERSON)


def _of_user(user_pk: UUID, job_id: UUID, **by: str) -> Job:
    found = Job.objects.filter(pk=job_id, kind="delete", **by).first()
    if found is None or found.params["target"]["selection"].get("user_pk") != str(user_pk):
        raise NotFound(_("There is no such deletion."))
    return found


def undoing(job: Job) -> Job | None:
    """Return the job that undoes a deletion; None without one."""
    if job.undone_at is None:
        return None
    return Job.objects.filter(kind=jobs.UNDO, params__job=str(job.pk)).order_by("-created_at").first()


def undo(job: Job, *, actor: Actor) -> Job:
    """Restore what a deletion moved to the trash and is still there; return the deletion. Raises: `Conflict`."""
    if job.is_over and job.undone_at is None and not job.steps.exists():
        return job  # it deleted nothing
    is_small = job.total <= AT_ONCE
    started = jobs.undo(job.pk, actor=actor, is_for_worker=not is_small)
    if is_small:
        jobs.run_now(started)
    return jobs.get(job.pk)
