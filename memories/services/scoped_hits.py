"""Value types of a search in several scopes."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from resources.queries import AttachmentRow
from store.neighbors import ContextWindow
from store.types import Hit, SearchRequest

Scope = Literal["current_chat", "resources", "all_user_memory"]
SCOPES: tuple[Scope, ...] = get_args(Scope)  # the most specific first: it names the scope of a hit found in several


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCommand(SearchRequest):
    """A search request with search scopes. `search` sets `session_ids` for each of them.

    `top_k` applies per scope. `context` is the number of neighbors to return on each side of a hit. `history` False
    leaves out what a newer memory of the answer replaces; `fold` False returns copies one by one, and echoes in place.
    """

    scopes: frozenset[Scope]
    conversation_id: str | None = None
    include_profile: bool = True
    enable_llm_rerank: bool = True
    context: int = 0
    history: bool = True
    fold: bool = True


class Copy(NamedTuple):
    """A memory with the same text, speaker and role as a hit, which stands for it."""

    memory_id: str
    session_id: str | None
    created_at_ms: int


class LinkedMemory(NamedTuple):
    """Another memory of the answer that a rule links to a hit. `is_newer`: it replaces the hit; else the hit it.

    `relation` names the slot, `rule` and `confidence` are those of `store.text.slots.Link`.
    """

    memory_id: str
    is_newer: bool
    relation: str
    rule: str
    confidence: str


class ScopedHit(NamedTuple):
    """A hit with its most specific scope, its files, the id of its override and, if requested, its neighbors.

    `superseded_by` is the id of the newer memory that replaces it.
    """

    hit: Hit
    scope: Scope
    attachments: tuple[AttachmentRow, ...] = ()
    override_id: str | None = None
    context: ContextWindow | None = None
    superseded_by: str | None = None
    copies: tuple[Copy, ...] = ()
    links: tuple[LinkedMemory, ...] = ()
