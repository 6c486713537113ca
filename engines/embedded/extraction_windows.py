"""Choose the messages of one extraction call, with known memories and earlier messages as context."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q

from core import readable
from store.models import IS_LIVE, Memory, PendingExtraction, owned_by
from store.search.retrieval import rank
from store.types import MAX_TOP_K, Owner, SearchRequest

WINDOW_MESSAGES: Final = 40
WINDOW_CHARS: Final = 8000
MAX_MESSAGE_CHARS: Final = 2000
MAX_CALLS: Final = 8
MAX_CALL_CHARS: Final = 250
"""The tool calls of a message that the model reads, and of each its arguments: together a message's text again."""
CONTEXT_MESSAGES: Final = 4
MAX_KNOWN: Final = 30
KNOWN_ORIGINS: Final = (Memory.Origin.EXTRACTED, Memory.Origin.TOOL, Memory.Origin.PANEL)

IS_MESSAGE: Final = IS_LIVE & Q(origin=Memory.Origin.EMBEDDED, chunk_index=None)
"""Messages that are not deleted. Memories are not extracted from documents."""


@dataclass(frozen=True, slots=True)
class Window:
    """Messages to extract from and known memories, both numbered from 1, and earlier messages (`before`) as context."""

    messages: Sequence[Memory]
    known: Sequence[Memory]
    before: Sequence[Memory]

    def is_current(self) -> bool:
        """Return True if no message or memory in it was deleted or overridden meanwhile.

        All lines count, because the model may have used others than those that it names as sources.
        """
        shown = {row.pk: row.text for row in (*self.messages, *self.known, *self.before)}
        live = Memory.objects.filter(IS_LIVE, pk__in=list(shown))
        return dict(live.values_list("pk", "text")) == shown


def next_window(owner: Owner, pending: PendingExtraction) -> Window | None:
    """Return the next window of an extraction, with at least one message; None if no messages are left."""
    session_messages = Memory.objects.filter(IS_MESSAGE, session=pending.session)
    rows = session_messages.filter(batch_id=pending.batch_id, seq__gt=pending.after_seq)
    if pending.until_seq is not None:
        rows = rows.filter(seq__lte=pending.until_seq)
    messages: list[Memory] = []
    chars = 0
    for row in rows.order_by("seq")[:WINDOW_MESSAGES]:
        chars += min(len(row.text), MAX_MESSAGE_CHARS)
        if messages and chars > WINDOW_CHARS:
            break
        messages.append(row)
    if not messages:
        return None
    before: list[Memory] = []
    if not pending.refusals:  # after a refusal without context, which may be the refused part
        before = list(session_messages.filter(seq__lt=messages[0].seq).order_by("-seq")[:CONTEXT_MESSAGES])[::-1]
    return Window(messages, _known(owner, messages), before)


def _known(owner: Owner, messages: Sequence[Memory]) -> list[Memory]:
    """Return the memories that match the messages, then the latest ones."""
    text = "\n".join(row.text[:MAX_MESSAGE_CHARS] for row in messages)
    [best], _degraded = rank(owner, [SearchRequest(text, method="keyword", top_k=MAX_TOP_K, min_relevance=0)])
    is_known = Q(origin__in=KNOWN_ORIGINS, chunk_index=None, session__incognito_until=None)
    memories = Memory.objects.filter(IS_LIVE, is_known, owned_by(owner)).exclude(memory_type=Memory.Type.PROFILE)
    by_pk = {row.pk: row for row in memories.filter(pk__in=[pk for pk, _score in best])}
    ranked = {pk: by_pk[pk] for pk, _score in best if pk in by_pk}
    latest = {row.pk: row for row in memories.order_by("-created_at_ms", "-pk")[:MAX_KNOWN]}
    return list((ranked | latest).values())[:MAX_KNOWN]


def lines_of(owner: Owner, window: Window) -> Iterator[Mapping[str, Any]]:
    """Yield the window as lines of a prompt."""
    yield {"person": owner.user_id}
    for number, row in enumerate(window.known, start=1):
        yield {"known": number, "kind": row.category.rpartition("_")[2], "text": row.text[:500]}
    for row in window.before:
        yield {"context": True, **_line(row)}
    for number, row in enumerate(window.messages, start=1):
        yield {"message": number, **_line(row)}


def role_of(row: Memory) -> str:
    """Return the role of a message; `participant` for people other than the user."""
    return "participant" if row.payload.get("is_participant") else row.payload.get("role", "user")


def _line(row: Memory) -> dict[str, Any]:
    line: dict[str, Any] = {
        "role": role_of(row),
        "speaker": row.speaker,
        "at": readable.moment(row.created_at_ms).isoformat(timespec="minutes"),
        "text": row.text[:MAX_MESSAGE_CHARS],
    }
    if calls := row.payload.get("tool_calls"):
        line["tool_calls"] = [
            {
                "id": call["id"],
                "name": call["function"]["name"],
                "arguments": call["function"]["arguments"][:MAX_CALL_CHARS],
            }
            for call in calls[:MAX_CALLS]
        ]
    if call_id := row.payload.get("tool_call_id"):
        line["tool_call_id"] = call_id
    return line
