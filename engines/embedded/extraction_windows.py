"""What a language model is shown of a conversation at a time, and what it has to know to understand it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from django.db.models import Q

from core.times import from_ms
from engines.embedded.extraction_rows import Window
from store.extraction_models import OwedExtraction
from store.models import Memory, Session, owned_by
from store.search.search import rank
from store.types import MAX_TOP_K, Owner, SearchRequest

WINDOW_MESSAGES: Final = 40
WINDOW_CHARS: Final = 8000
MAX_MESSAGE_CHARS: Final = 2000
CONTEXT_MESSAGES: Final = 4
KNOWN: Final = 30
_KNOWN_ORIGINS: Final = (Memory.Origin.EXTRACTED, Memory.Origin.TOOL, Memory.Origin.PANEL)


SAID: Final = Q(origin=Memory.Origin.EMBEDDED, chunk_index=None, hidden_at=None)
"""What people and agents said and nobody deleted; documents speak for themselves."""


def next_of(owner: Owner, owed: OwedExtraction) -> Window | None:
    """The next messages of what is owed, with what is known; None where nothing is left."""
    messages = _messages(owed)
    return Window(messages, _known(owner, messages), _before(owed, messages)) if messages else None


def _said(session: Session | None) -> Any:
    return Memory.objects.filter(SAID, session=session, session__hidden_at=None, session__deleted_at=None)


def _messages(owed: OwedExtraction) -> list[Memory]:
    """The next window: at least one message, and no more than a model reads with care."""
    rows = _said(owed.session).filter(batch_id=owed.batch_id, seq__gt=owed.after_seq)
    if owed.until_seq is not None:
        rows = rows.filter(seq__lte=owed.until_seq)
    found: list[Memory] = []
    chars = 0
    for row in rows.order_by("seq")[:WINDOW_MESSAGES]:
        chars += min(len(row.text), MAX_MESSAGE_CHARS)
        if found and chars > WINDOW_CHARS:
            break
        found.append(row)
    return found


def _before(owed: OwedExtraction, messages: Sequence[Memory]) -> list[Memory]:
    """What was said last before the messages."""
    if owed.refusals:  # it may be these that the model will not take
        return []
    said = _said(owed.session).filter(seq__lt=messages[0].seq)
    return list(reversed(said.order_by("-seq")[:CONTEXT_MESSAGES]))


def _known(owner: Owner, messages: Sequence[Memory]) -> list[Memory]:
    """What is remembered already of what the messages speak of, then what came last."""
    text = "\n".join(row.text[:MAX_MESSAGE_CHARS] for row in messages)
    [best] = rank(owner, [SearchRequest(text, method="keyword", top_k=MAX_TOP_K)])
    written = Memory.objects.filter(
        owned_by(owner), origin__in=_KNOWN_ORIGINS, hidden_at=None, session__hidden_at=None, session__deleted_at=None
    ).exclude(memory_type=Memory.Type.PROFILE)
    near = {row.pk: row for row in written.filter(pk__in=[pk for pk, _ in best])}
    last = {row.pk: row for row in written.order_by("-created_at_ms", "-pk")[:KNOWN]}
    ranked = {pk: near[pk] for pk, _ in best if pk in near}
    return list((ranked | last).values())[:KNOWN]


def lines_of(owner: Owner, window: Window) -> Iterator[Mapping[str, Any]]:
    """The window as a model is shown it."""
    yield {"person": owner.user_id}
    for number, row in enumerate(window.known, start=1):
        yield {"known": number, "kind": row.category.rpartition("_")[2], "text": row.text[:500]}
    for row in window.before:
        yield {"context": True, **_line(row)}
    for number, row in enumerate(window.messages, start=1):
        yield {"message": number, **_line(row)}


def _line(row: Memory) -> dict[str, Any]:
    return {
        "role": row.payload.get("role", "user"),
        "speaker": row.speaker,
        "at": from_ms(row.created_at_ms).isoformat(timespec="minutes"),
        "text": row.text[:MAX_MESSAGE_CHARS],
    }
