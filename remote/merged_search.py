"""Answer the search requests of one user: EverOS and the local index together, or the local index alone.

EverOS's calls and the search in the local index start together. EverOS has one deadline and one attempt; if it does not
answer in time, or not validly, the local index answers alone, which contains copies of EverOS's memories. Otherwise it
adds what EverOS lacks: overrides, memories written by operators and tools, and memories that are not moved yet. EverOS
finds an overridden memory by its original text; these hits are dropped.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

import orjson

from core.errors import EngineError, EngineUnavailable
from core.limits.concurrency import run_bounded, search_lock
from core.messages import Translatable as _
from core.messages import joined
from core.network.http_client import Deadline
from remote import outbox, remote_sessions, residue, sources
from remote.client import failures, wire
from remote.client.client import Client
from remote.client.hits import Names, build_result, collect_hits
from remote.client.queries import Payload, payloads_of, session_ids_in
from remote.engine_ids import AgentNames
from store import cover, filters
from store.search import question, records
from store.search import retrieval as local_search
from store.search.retrieval import MAX_TERMS, Ranked, hits_of, rank
from store.text.tokens import query_tokens, tokenize
from store.types import Hit, Method, Owner, SearchRequest, SearchResult
from store.vectors.client import wanted_model

CALLS_PER_SEARCH: Final = 8
AGENTIC_SECONDS: Final = 30.0
"""The deadline of `agentic`: EverOS calls its language model."""
_TIME: Final = re.compile(r"_(\d+)_\d+$")
"""The time in the id of an unprocessed message."""
_NO_MODEL: Final = _("The memory engine has no embedding model: searched by keyword only.")
_ALONE: Final = _("The gateway searched without it.")
_Wait = Callable[[], list[wire.Records]]


def search(
    client: Client, owner: Owner, requests: Sequence[SearchRequest], batch_size: int, seconds: float
) -> list[SearchResult]:
    """Answer the requests in order. EverOS has `seconds`, `AGENTIC_SECONDS` if a request is `agentic`.

    Raises: `InvalidInput` for filters, `NotConfigured` if EverOS lacks the model of a method.
    """
    # The rows here are copies of EverOS's memories, have what EverOS never gets, and know when they were stored.
    if any(request.as_of or (request.filters and filters.needs_rows(request.filters)) for request in requests):
        return _search_here(owner, requests)
    deadline = _deadline(client, requests, seconds)
    try:
        return _search_with_model_or_keyword(client, deadline, owner, requests, batch_size)
    except failures.NotConfigured:
        raise
    except EngineError as error:
        return _search_alone(owner, requests, error.detail)


def _search_with_model_or_keyword(
    client: Client, deadline: Deadline, owner: Owner, requests: Sequence[SearchRequest], batch_size: int
) -> list[SearchResult]:
    """Answer the requests with EverOS, `hybrid` by keyword if EverOS has no embedding model."""
    try:
        return _search_both(client, deadline, owner, requests, batch_size)
    except failures.NotConfigured:
        if any(request.method != "hybrid" for request in requests):
            raise
    by_keyword = [replace(request, method="keyword") for request in requests]
    results = _search_both(client, deadline, owner, by_keyword, batch_size)
    return [replace(result, degraded=joined(" ", filter(None, [_NO_MODEL, result.degraded]))) for result in results]


def _deadline(client: Client, requests: Sequence[SearchRequest], seconds: float) -> Deadline:
    if any(request.method == "agentic" for request in requests):
        seconds = max(seconds, AGENTIC_SECONDS)
    now = time.monotonic()
    waited = max((now - request.began_at for request in requests if request.began_at is not None), default=0.0)
    return client.deadline(seconds - waited)


def _search_alone(owner: Owner, requests: Sequence[SearchRequest], cause: str) -> list[SearchResult]:
    """Search the local index, because EverOS does not answer."""
    results = _search_here(owner, requests)
    causes = ([cause, _ALONE, *([result.degraded] if result.degraded else [])] for result in results)
    return [replace(result, degraded=joined(" ", why)) for result, why in zip(results, causes, strict=True)]


def _search_here(owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
    """Search the local index: by our vectors if a model is configured and answers, else by keyword."""
    has_vectors = wanted_model() is not None
    here = [replace(request, method=_method_here(request.method, has_vectors=has_vectors)) for request in requests]
    try:
        return local_search.retrieve(owner, here)
    except EngineUnavailable:  # the embedding endpoint
        return local_search.retrieve(owner, [replace(request, method="keyword") for request in requests])


def _method_here(method: Method, *, has_vectors: bool) -> Method:
    if method == "agentic":
        return "hybrid" if has_vectors else "keyword"
    return method if has_vectors else "keyword"


def _search_both(
    client: Client, deadline: Deadline, owner: Owner, requests: Sequence[SearchRequest], batch_size: int
) -> list[SearchResult]:
    """Answer the requests with EverOS. At most eight SQL statements, usually five.

    Equal calls are made once, and the profile is requested once. Raises: the errors of the client.
    """
    client.require_closed()
    named = {
        session_id
        for request in requests
        for session_id in (*(request.session_ids or ()), *session_ids_in(request.filters or {}))
    }
    engine_ids, is_filled, has_other_remotes = remote_sessions.known(owner, named)
    payloads = [list(payloads_of(owner, request, engine_ids, batch_size)) for request in requests]
    of_users = (payload for payload in chain.from_iterable(payloads) if "user_id" in payload)
    if any(request.include_profile for request in requests) and (first := next(of_users, None)):
        first["include_profile"] = True
    bodies = [[orjson.dumps(payload) for payload in of_request] for of_request in payloads]
    calls = dict(zip(chain.from_iterable(bodies), chain.from_iterable(payloads), strict=True))
    wait = _start(client, list(calls.values()), deadline)
    left_out = cover.left_out(remote_ranks=not has_other_remotes)
    ranked, degraded = rank(owner, requests, left_out=left_out) if is_filled else ([[] for _request in requests], None)
    answers = dict(zip(calls, wait(), strict=True))
    records = [[answers[body] for body in of_request] for of_request in bodies]
    names = _names(owner, requests, engine_ids, records)
    hits = [
        collect_hits(request, of_request, owner, its_names)
        for request, of_request, its_names in zip(requests, records, names, strict=True)
    ]
    # EverOS cannot delete the profile of an erased user, and a new user may have the same id.
    if any(map(_is_without_session, chain.from_iterable(hits))) and residue.holds_user(owner.remote_name):
        hits = [[hit for hit in of_request if not _is_without_session(hit)] for of_request in hits]
    hits = _with_own_ids(owner, hits)
    hits = [_judged(request, of_request) for request, of_request in zip(requests, hits, strict=True)]
    not_shown = sources.not_shown(owner, list(chain.from_iterable(hits)))
    hits = [[hit for hit in of_request if hit.memory_id not in not_shown] for of_request in hits]
    if is_filled:
        hits = _with_local_hits(owner, requests, hits, ranked, has_other_remotes=has_other_remotes)
    return [
        replace(build_result(request, found, _full_at(of_request, its_records)), degraded=degraded)
        for request, found, of_request, its_records in zip(requests, hits, payloads, records, strict=True)
    ]


def _start(client: Client, payloads: Sequence[Payload], deadline: Deadline) -> _Wait:
    """Start the calls in threads; return the function that waits for their answers. Raises: `NoAnswer`."""
    if not payloads:
        return list
    if deadline.left_seconds <= 0:
        raise failures.no_answer()
    calls = [partial(client.search, payload, deadline) for payload in payloads]
    executor = ThreadPoolExecutor(1, thread_name_prefix="remote")
    running = executor.submit(copy_context().run, run_bounded, calls, CALLS_PER_SEARCH)
    executor.shutdown(wait=False)

    def wait() -> list[wire.Records]:
        try:
            with search_lock.released():
                return running.result(max(deadline.left_seconds, 0.0))
        except TimeoutError:  # a host name that is not resolved, for one, knows no deadline
            raise failures.no_answer() from None

    return wait


def _is_without_session(hit: Hit) -> bool:
    """Return True for profiles. Agents' memories are safe: agent ids in EverOS contain the user's key."""
    return hit.session_id is None and not hit.memory_type.startswith("agent_")


def _full_at(payloads: Sequence[Payload], answers: Sequence[wire.Records]) -> int | None:
    """Return the `top_k` of a request's calls if one of them returned as many hits, else None: there may be more."""
    full = [
        payload["top_k"]
        for payload, records in zip(payloads, answers, strict=True)
        if max(len(records.episodes), len(records.agent_cases), len(records.agent_skills)) >= payload["top_k"]
    ]
    return max(full, default=None)


def _names(
    owner: Owner, requests: Sequence[SearchRequest], own: Mapping[str, str], found: Sequence[Sequence[wire.Records]]
) -> list[Names]:
    """Return for each request the engine ids that it may return, with the owner's session ids.

    These are the requested sessions or, for a request without sessions, the owner's sessions among the returned ones.
    """
    returned = {
        record.session_id
        for request, answers in zip(requests, found, strict=True)
        if _is_unscoped(request)
        for records in answers
        for record, _sent in records.all()
        if record.session_id
    }
    agents = AgentNames(owner.user_pk)
    live, deleted = remote_sessions.session_ids(owner, returned)
    return [
        Names(live, agents, deleted)
        if _is_unscoped(request)
        else Names({own[name]: name for name in request.session_ids or () if name in own}, agents)
        for request in requests
    ]


def _is_unscoped(request: SearchRequest) -> bool:
    return request.session_ids is None or request.agent_id is not None


def _with_own_ids(owner: Owner, hits: Sequence[Sequence[Hit]]) -> list[list[Hit]]:
    """Give EverOS's unprocessed messages the ids of their memories here. At most one SQL statement."""

    def place_of(hit: Hit) -> tuple[str, int] | None:
        match = _TIME.search(hit.memory_id) if hit.memory_type == "unprocessed_message" else None
        return (hit.session_id or "", int(match[1])) if match else None

    own = outbox.own_ids(owner, {place for hit in chain.from_iterable(hits) if (place := place_of(hit))})

    def renamed(hit: Hit) -> Hit:
        place = place_of(hit)
        memory_id = own.get(place) if place else None
        return hit._replace(memory_id=memory_id, raw={**hit.raw, "id": memory_id}) if memory_id else hit

    return [list(map(renamed, of_request)) for of_request in hits]


def _with_local_hits(
    owner: Owner,
    requests: Sequence[SearchRequest],
    hits: Sequence[Sequence[Hit]],
    ranked: Sequence[Sequence[Ranked]],
    *,
    has_other_remotes: bool,
) -> list[list[Hit]]:
    """Add the hits of the local index, and drop EverOS's hits of the same messages and of overridden memories.

    At most two SQL statements.

    With `has_other_remotes`, the hits contain copies, among them those that EverOS ranks itself.
    """
    pks = {pk for of_request in ranked for pk, _score in of_request}
    everos_ids = {hit.memory_id for of_request in hits for hit in of_request}
    with_hidden = any(request.with_hidden for request in requests)
    rows = records.rows_and_overridden(owner, pks, everos_ids, with_hidden=with_hidden)
    own = outbox.copies_of_remote(rows.keys()) if has_other_remotes else set()
    rows = {pk: row for pk, row in rows.items() if pk not in own or row.is_edited}
    overridden = {row.memory_id for row in rows.values()}
    merged = []
    for request, found, best in zip(requests, hits, ranked, strict=True):
        kept = [hit for hit in found if hit.memory_id not in overridden]
        top = max((hit.score for hit in kept if hit.score is not None), default=1.0)
        merged.append([*kept, *_placed(request.query, hits_of(owner, best, rows), top)])
    return merged


def _judged(request: SearchRequest, hits: Iterable[Hit]) -> list[Hit]:
    """Return EverOS's hits with the share of the question's informative words that each contains, above the floor.

    EverOS finds by meaning too, so only a floor that the request sets leaves hits out.
    """
    common = question.asked(request.query).common
    wanted = {token for token in query_tokens(request.query)[:MAX_TERMS] if token not in common}
    judged = [hit._replace(relevance=_share(wanted, hit.text)) for hit in hits]
    return [hit for hit in judged if hit.relevance is None or hit.relevance >= (request.min_relevance or 0.0)]


def _share(wanted: set[str], text: str) -> float | None:
    return len(wanted.intersection(tokenize(text))) / len(wanted) if wanted else None


def _placed(query: str, hits: Iterable[Hit], top: float) -> Iterator[Hit]:
    """Score local hits among those of EverOS, whose best score is `top`.

    A hit has the share of the query's terms that it contains, of `top`: the scales of EverOS's methods differ, the
    order within each does not. With all terms, it comes before EverOS's hits, halfway between `top` and 1.
    """
    terms = len(query_tokens(query)[:MAX_TERMS])
    for hit in hits:
        share = len(hit.legs["keyword"]["matched"]) / terms
        score = (1 + top) / 2 if share == 1 else share * top
        yield hit._replace(score=score, raw={**hit.raw, "score": score})
