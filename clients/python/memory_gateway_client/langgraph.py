"""Long-term memory of LangGraph in a Memory Gateway. Needs `memory-gateway-client[langgraph]`.

Each item is a memory in a session of its namespace and key. A value that a person edited, and that is no JSON object
since, is read as `{"text": …}`.
"""

import asyncio
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from memory_gateway_client.calls import NEVER
from memory_gateway_client.client import Client
from memory_gateway_client.errors import Conflict, NotFound
from memory_gateway_client.models import Memory, Message

AGENT_ID: Final = "langgraph"
MAX_HITS: Final = 100
MAX_SESSION_ID_CHARS: Final = 128
MAX_VALUE_CHARS: Final = 100_000
TTL: Final = "langgraph_ttl"
"""The minutes that an item lasts, in its metadata: reads that refresh it need them."""
UNINDEXED: Final = "langgraph:unindexed"
"""The tag of items that no query finds."""

_Namespace = tuple[str, ...]
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class MemoryGatewayStore(BaseStore):
    """A store whose items are memories of the client's user, in the application `langgraph`.

    A `ttl` is the memory's expiry. `index=False` keeps an item out of queries; a list of fields indexes the whole
    value. Memories cannot keep these, which raise `NotImplementedError`:

    - values whose JSON has more than 100,000 characters
    - names with more than 116 characters (labels, a period between two of them, and the key), or with unprintable ones
    - hits of a `query` beyond the first 100, before `filter` applies
    - any item while the gateway's engine is EverOS, which rewrites texts
    """

    supports_ttl = True

    def __init__(self, client: Client, *, app_id: str = "langgraph", ttl: TTLConfig | None = None) -> None:
        self.ttl_config = ttl
        self._client = client.in_scope(app_id)
        self._is_checked = False

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Return a result for each operation. Reads see the store before the batch; a key's last write counts."""
        ops = list(ops)
        for op in ops:
            validate_op_namespace(op)
        writes = {_session_id(op.namespace, op.key): (op, _text(op)) for op in ops if isinstance(op, PutOp)}
        results = [self._read(op) for op in ops]
        for session_id, (op, text) in writes.items():
            self._write(session_id, op, text)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same in a thread."""
        return await asyncio.to_thread(self.batch, ops)

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = next(self._client.memories.list(session_id=_session_id(op.namespace, op.key)), None)
            return None if found is None else self._item(found, is_refreshed=op.refresh_ttl)
        if isinstance(op, SearchOp):
            return self._search(op)
        return self._namespaces(op) if isinstance(op, ListNamespacesOp) else None

    def _write(self, session_id: str, op: PutOp, text: str | None) -> None:
        versions = list(self._client.memories.list(session_id=session_id))
        if text is None:
            for memory in versions:
                self._client.memories.delete(memory.id)
            return
        expires_at = None if op.ttl is None else datetime.now(UTC) + timedelta(minutes=op.ttl)
        metadata = {} if op.ttl is None else {TTL: op.ttl}
        tags = [UNINDEXED] if op.index is False else []
        if versions:
            latest = versions[0]
            self._client.memories.update(
                latest.id,
                text,
                expires_at=expires_at or NEVER,
                metadata={name: value for name, value in (latest.metadata or {}).items() if name != TTL} | metadata,
                tags=[tag for tag in latest.tags or () if tag != UNINDEXED] + tags,
            )
        else:
            self._require_embedded_engine()
            message = Message(
                sender_id=AGENT_ID,
                role="assistant",
                content=text,
                expires_at=expires_at,
                metadata=metadata or None,
                tags=tags or None,
            )
            self._client.sessions.add(session_id, [message])

    def _require_embedded_engine(self) -> None:
        if not self._is_checked and self._client.health().backend.base_url is not None:
            raise NotImplementedError("EverOS rewrites texts, so it cannot keep the items of a store.")
        self._is_checked = True

    def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = "langgraph:" + "".join(f"{label}." for label in op.namespace_prefix)
        if op.query and op.offset + op.limit > MAX_HITS:
            raise NotImplementedError(f"A query returns its first {MAX_HITS} hits: lower limit or offset.")
        found = self._hits(op.query, prefix) if op.query else self._all(prefix)
        matching = (pair for pair in found if _matches(_value(pair[0].text), op.filter or {}))
        page = islice(matching, op.offset, op.offset + op.limit)
        return [self._item(memory, score, is_refreshed=op.refresh_ttl) for memory, score in page]

    def _all(self, prefix: str) -> Iterator[tuple[Memory, None]]:
        seen = set()
        for memory in self._client.memories.list():
            if memory.session_id and memory.session_id.startswith(prefix) and memory.session_id not in seen:
                seen.add(memory.session_id)
                yield memory, None

    def _hits(self, query: str, prefix: str) -> Iterator[tuple[Memory, float | None]]:
        answer = self._client.memories.search(
            query,
            scope=["all_user_memory"],
            top_k=MAX_HITS,
            include_profile=False,
            fold=False,
            filters={"session_id": {"gte": prefix, "lt": f"{prefix}\U0010ffff"}, "tags": {"none": [UNINDEXED]}},
        )
        for hit in answer.results:
            memory = self._client.memories.get(hit.id).memory
            if memory.deleted_at is None:  # not deleted since the search
                yield memory, hit.score

    def _item(self, memory: Memory, score: float | None = None, *, is_refreshed: bool) -> SearchItem:
        minutes = (memory.metadata or {}).get(TTL)
        if is_refreshed and memory.expires_at is not None and isinstance(minutes, int | float):
            with suppress(Conflict, NotFound):  # it was deleted, or has ended, since it was read
                expires_at = datetime.now(UTC) + timedelta(minutes=minutes)
                self._client.memories.update(memory.id, expires_at=expires_at)
        created = updated = datetime.fromtimestamp(memory.timestamp_ms / 1000, tz=UTC)
        if memory.override_id is not None:
            changes = self._client.memories.get(memory.id).history
            updated = max([created, *(event.at for event in changes)])  # these are in whole seconds
        namespace, key = _name(memory.session_id or "")
        return SearchItem(namespace, key, _value(memory.text), created, updated, score)

    def _namespaces(self, op: ListNamespacesOp) -> list[_Namespace]:
        sessions = (one for one in self._client.sessions.list() if one.memories + one.pending)
        ids = (one.session_id for one in sessions if one.session_id.startswith("langgraph:"))
        names = {_name(session_id)[0] for session_id in ids}
        matching = {name for name in names if all(_is_at(one, name) for one in op.match_conditions or ())}
        return sorted({name[: op.max_depth] for name in matching})[op.offset : op.offset + op.limit]


def _session_id(namespace: _Namespace, key: str) -> str:
    """Return the session of an item. Labels are not empty and have no period, so `..` begins the key."""
    session_id = f"langgraph:{'.'.join(namespace)}..{key}"
    if len(session_id) > MAX_SESSION_ID_CHARS or not session_id.isprintable():
        raise NotImplementedError(f"The gateway cannot keep an item of this name: {namespace}, {key!r}.")
    return session_id


def _name(session_id: str) -> tuple[_Namespace, str]:
    namespace, _, key = session_id.removeprefix("langgraph:").partition("..")
    return tuple(namespace.split(".")), key


def _text(op: PutOp) -> str | None:
    text = None if op.value is None else json.dumps(op.value, ensure_ascii=False)
    if text is not None and len(text) > MAX_VALUE_CHARS:
        raise NotImplementedError(f"The JSON of a value has at most {MAX_VALUE_CHARS} characters, not {len(text)}.")
    return text


def _value(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:  # a person edited it
        return {"text": text}
    return value if isinstance(value, dict) else {"text": text}


def _matches(found: Any, condition: Any) -> bool:
    """Return True if a value fulfills a condition; objects and lists hold conditions for their parts."""
    if isinstance(condition, dict) and any(key.startswith("$") for key in condition):
        return all(_compares(found, key, operand) for key, operand in condition.items())
    if isinstance(condition, dict):
        return isinstance(found, dict) and all(_matches(found.get(key), part) for key, part in condition.items())
    if isinstance(condition, list | tuple):
        is_as_long = isinstance(found, list) and len(found) == len(condition)
        return is_as_long and all(_matches(*pair) for pair in zip(found, condition, strict=True))
    return bool(found == condition)


def _compares(found: Any, key: str, operand: Any) -> bool:
    """Compare a value by an operator. An absent field is None, which no number compares with."""
    return (found is not None or key in {"$eq", "$ne"}) and _OPERATORS[key](found, operand)


def _is_at(condition: MatchCondition, namespace: _Namespace) -> bool:
    size = len(condition.path)
    part = namespace[:size] if condition.match_type == "prefix" else namespace[-size:]
    return len(part) == size and all(label in {"*", name} for label, name in zip(condition.path, part, strict=True))
