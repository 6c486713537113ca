"""More about one user: the transcript of a session, and the timeline of what is known of the user."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django.db.models import Q
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin_base import actor_of
from accounts.audit import record
from accounts.models import MemoryUser
from console import queries
from console.access import VIEW, page, render
from console.filters import TranscriptFilters, UserPageFilters
from console.text import memory_item
from console.views.memories import page_links
from core import readable
from core.errors import existing
from core.times import to_ms
from memories.models import OverrideRevision, Tombstone
from memories.services.links import replaced_among
from store import browse, categories
from store.admission import unwanted
from store.browse import Selection
from store.models import IS_PURGED, Memory, Session, State
from store.table import stored, visible
from store.text.slots import Slot, link_of
from store.text.statements import statements
from store.text.terms import terms
from store.types import NOT_REPLACED, StoredMemory

MESSAGES: Final = 100
EVENTS: Final = 50
MAX_DERIVED: Final = 500
READ_FACTS: Final = 100
SHOWN_FACTS: Final = 20
SHOWN_BEFORE: Final = 3
MENTIONS: Final = 1_000
_USER_ITSELF: Final = frozenset({"me", "user"})


_LABELS: Final = {
    "edited": gettext_lazy("Edited"),
    "superseded": gettext_lazy("Superseded"),
    "deleted": gettext_lazy("Moved to trash"),
}


class TimelineEvent(NamedTuple):
    """`action` is written, edited, superseded or deleted; `before` is the original text of an edit."""

    at: datetime
    action: str
    memory: StoredMemory
    text: str
    by: str = ""
    actor: str = ""
    before: str = ""

    @property
    def label(self) -> Promise | str:
        """Return the label of the action; empty for a new fact, which its category describes."""
        return _LABELS.get(self.action, "")


@page(VIEW, reach="user")
def transcript(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Show the messages of a session in their order, with their speakers and the memories derived from them."""
    filters = TranscriptFilters(reverse("console:transcript", args=[pk]), request.GET)
    values = filters.cleaned_data
    scope = {"app_id": values["app"], "project_id": values["project"], "session_id": values["session"]}
    session = existing(
        Session.objects.select_related("user").filter(~IS_PURGED, user_id=pk, incognito_until=None, **scope),
        _("There is no such session."),
    )
    user = session.user
    record(actor_of(request), "session.view", session.session_id, user_id=user.user_id)
    found = browse.page(
        Selection(user_pk=pk, **scope),
        after=values["after"],
        before=values["before"],
        limit=MESSAGES,
        oldest_first=True,
    )
    edited = queries.edited([memory.row for memory in found.memories])
    derived = _derived(session)
    shown = {one.row for several in derived.values() for one in several}
    context = {
        "title": session.session_id,
        "person": user,
        "session": session,
        "lines": [
            {
                "item": memory_item(memory, is_edited=memory.row in edited),
                "speaker": memory.envelope.get("sender_name") or memory.sender_id or memory.agent_id,
                "derived": derived[memory.memory_id],
            }
            for memory in found.memories
            if memory.row not in shown
        ],
        **page_links(filters, found, oldest_first=True),
    }
    return render(request, "console/transcript.html", context)


def _derived(session: Session) -> defaultdict[str, list[StoredMemory]]:
    """Return the memories that a model derived from the session's messages, by message."""
    rows = Memory.objects.filter(session=session, origin=Memory.Origin.EXTRACTED, state=State.LIVE)
    found: defaultdict[str, list[StoredMemory]] = defaultdict(list)
    for memory in map(stored, visible(rows).order_by("-created_at_ms", "-pk")[:MAX_DERIVED]):
        if memory.sources:
            found[memory.sources[-1]].append(memory)
    return found


def timeline(user: MemoryUser, filters: UserPageFilters) -> list[TimelineEvent]:
    """Return the latest facts, edits, replacements and deletions of a user, newest first. At most five statements."""
    values = filters.cleaned_data
    since, until = values["since"], values["until"]
    kinds = {"written": _written, "edited": _edits, "superseded": _replaced, "deleted": _deletions}
    chosen = [values["what"]] if values["what"] else kinds
    events = [event for kind in chosen for event in kinds[kind](user, since, until)]
    return sorted(events, key=lambda event: event.at, reverse=True)[:EVENTS]


def _between(column: str, since: datetime | None, until: datetime | None) -> Q:
    bounds = {f"{column}__gte": since, f"{column}__lt": until}
    return Q(**{name: value for name, value in bounds.items() if value is not None})


def _written(user: MemoryUser, since: datetime | None, until: datetime | None) -> list[TimelineEvent]:
    since_ms, until_ms = (None if at is None else to_ms(at) for at in (since, until))
    selection = Selection(user_pk=user.pk, tab="user", since_ms=since_ms, until_ms=until_ms)
    facts = browse.page(selection, limit=EVENTS).memories
    return [TimelineEvent(readable.moment(memory.created_at_ms), "written", memory, memory.text) for memory in facts]


def _edits(user: MemoryUser, since: datetime | None, until: datetime | None) -> list[TimelineEvent]:
    revisions = OverrideRevision.objects.select_related("override__row__session", "override__row__user")
    of_user = revisions.filter(_between("created_at", since, until), override__user=user, number__gt=0)
    edits = list(of_user.order_by("-pk")[:EVENTS])
    withheld = unwanted(user.pk, [text for one in edits for text in (one.text, one.override.original_text)])
    events = []
    for one in edits:
        if (row := one.override.row) and not stored(row).is_incognito:
            by = one.actor_kind, one.actor
            text, original = ("" if given in withheld else given for given in (one.text, one.override.original_text))
            events.append(TimelineEvent(one.created_at, "edited", stored(row), text, *by, before=original))
    return events


def _replaced(user: MemoryUser, since: datetime | None, until: datetime | None) -> list[TimelineEvent]:
    replaced = Memory.objects.filter(
        _between("state_since", since, until), user=user, state=State.SUPERSEDED, category__in=categories.TABS["user"]
    )
    return [
        TimelineEvent(memory.state_since, "superseded", memory, memory.text)
        for memory in map(stored, visible(replaced).order_by("-state_since")[:EVENTS])
        if memory.state_since is not None
    ]


def _deletions(user: MemoryUser, since: datetime | None, until: datetime | None) -> list[TimelineEvent]:
    deletions = Tombstone.objects.select_related("row__session", "row__user")
    of_user = deletions.filter(_between("created_at", since, until), user=user, undone_at__isnull=True)
    return [
        TimelineEvent(one.created_at, "deleted", stored(one.row), one.row.text, one.actor_kind, one.actor)
        for one in of_user.order_by("-created_at")[:EVENTS]
        if one.row and not stored(one.row).is_incognito
    ]


class CurrentFact(NamedTuple):
    """The newest statement of a slot; `subject` is empty for the user. `before` are memories that it replaces."""

    relation: str
    subject: str
    value: str
    memory: StoredMemory
    before: tuple[StoredMemory, ...] = ()


def current_facts(latest: Sequence[StoredMemory], edited: Collection[int]) -> list[CurrentFact]:
    """Return what facts, newest first, say by subject and relation, those of the user first.

    `edited` are the row ids of edited ones. Statements marked as not replaced are listed next to the newest one.
    """
    replaced = replaced_among(latest, edited)
    found: dict[tuple[Slot, int], CurrentFact | None] = {}
    before: defaultdict[Slot, list[StoredMemory]] = defaultdict(list)
    for memory in latest:
        newer = statements(replaced[memory.row].text) if memory.row in replaced else ()
        kept = memory.row if memory.payload.get(NOT_REPLACED) else 0
        for one in statements(memory.text):
            if (other := next((new for new in newer if link_of(one, new)), None)) is not None:
                before[other.slot].append(memory)
                continue
            subject = "" if one.subject in _USER_ITSELF else one.subject
            fact = CurrentFact(one.relation, subject, one.value, memory)
            found.setdefault((one.slot, kept), None if one.signal == "negation" else fact)
    facts = [
        one._replace(before=() if kept else tuple(before[slot][:SHOWN_BEFORE]))
        for (slot, kept), one in found.items()
        if one
    ]
    return sorted(facts, key=lambda one: (one.subject, one.relation))[:SHOWN_FACTS]


def mentions(user: MemoryUser) -> tuple[str, int]:
    """Return the search for a person's name, or id, in memories of all users, and how many others' have it.

    The number is at most `MENTIONS`.
    """
    query = f'"{user.name or user.user_id}"'
    words = terms(query)
    if not words:
        return query, 0
    return query, browse.count_in_others(words, user.pk, at_most=MENTIONS)
