"""All data that rank one user's queries, read in one SQL statement: of one moment, in one round trip.

Ours, because FTS5 ranks by the words of all users, and tsvector by none. Not chosen: several statements, which see
several moments; the ORM; a cache, which writes of other processes would make stale.

The SQL exists twice, and all facts of the user travel with each search (`python -m benchmarks engine`).

The rows of all parts have the same columns; `part` names the part. Long lists of numbers are one text or blob each.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import orjson
from django.db import connection

from core.persistence import sql
from store import cover
from store.index import VENDORS, fact_pages
from store.index.fact_pages import FACTS, LAYOUT, NAMED, Facts
from store.models import owner_values
from store.text.tokens import TOKENIZER_VERSION
from store.types import Owner
from store.vectors.layout import LAYOUT as VECTOR_LAYOUT
from store.vectors.spaces import IS_SERVING, Serving

_list_of: Final = itemgetter(4)  # the column `list` of a row
Numbers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

_STATISTICS, _FACTS, _POSTINGS, _HIDDEN, _PENDING, _CLOSED, _SESSIONS, _PROFILE, _VECTORS, _SPACE = range(10)
_INCOGNITO: Final = 10
_OWNED: Final = "user_id = %s AND app_id = %s AND project_id = %s"
_IS_EXCLUDED: Final = (
    "is_indexed AND (NOT (state = 'live') OR memory_type = 'unprocessed_message' OR memory_type = 'profile')"
)
_EXCLUDED_PART: Final = f"""
    CASE WHEN state <> 'live' THEN {_HIDDEN} WHEN memory_type = 'profile' THEN {_PROFILE} ELSE {_PENDING} END
"""
_BASE_PARTS: Final = f"""
    SELECT {_STATISTICS} AS part, documents AS number, tokens AS amount, CAST(tokenizer AS text) AS name,
        CAST(NULL AS text) AS list, CAST(NULL AS {{blob}}) AS data, CAST(NULL AS {{blob}}) AS more
    FROM store_indexstatistics WHERE {_OWNED}
    UNION ALL SELECT {_FACTS}, number, layout, names, NULL, facts, NULL FROM store_factpage WHERE {_OWNED}
    UNION ALL SELECT {_EXCLUDED_PART}, 0, 0, NULL, {{ids}}, NULL, NULL
        FROM store_memory WHERE {_OWNED} AND {_IS_EXCLUDED} GROUP BY {_EXCLUDED_PART}
    UNION ALL SELECT {_CLOSED}, 0, 0, NULL, {{ids}}, NULL, NULL
        FROM store_session WHERE {_OWNED} AND NOT (state = 'live')
    UNION ALL SELECT {_INCOGNITO}, id, 0, session_id, NULL, NULL, NULL
        FROM store_session WHERE {_OWNED} AND incognito_until IS NOT NULL AND NOT (state = 'purged')
"""
_POSTINGS_PART: Final = f" UNION ALL SELECT {_POSTINGS}, number, 0, NULL, docs, NULL, NULL FROM ({{found}}) found"
_SESSIONS_PART: Final = f" UNION ALL SELECT {_SESSIONS}, id, 0, session_id, NULL, NULL, NULL FROM store_session"
_VECTORS_PART: Final = (
    f" UNION ALL SELECT {_VECTORS}, number, layout, NULL, NULL, rows, codes FROM store_vectorpage"
    f" WHERE {_OWNED} AND space_id = %s"
    f" UNION ALL SELECT {_SPACE}, id, 0, NULL, NULL, NULL, NULL FROM store_embeddingspace WHERE {IS_SERVING}"
)


class EmbeddingSpaceChanged(Exception):
    """Raised if the requested embedding space is not active, or no longer."""


class Postings(NamedTuple):
    """The count of each term of the query per document, sorted by term, then by document."""

    terms: Numbers
    documents: Numbers
    counts: Reals


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The user's live memories, sorted by row id (`pks`). A document is a position in `facts`.

    Speaker, sender and agent in `facts` are positions in `names`. `pending` masks unprocessed messages. The user's
    `profiles` (row ids) are not documents: searches do not rank them. `sessions` are the requested ones: row id by
    session id. `documents` and `tokens` are totals that include hidden memories. Read `with_hidden`, the snapshot
    includes memories that the user hid. `lacks_entries`, `lacks_vectors`: another version
    wrote some, which were not read.
    """

    owner: Owner
    documents: int
    tokens: int
    facts: Facts
    pks: Numbers
    names: Sequence[str]
    pending: npt.NDArray[np.bool_]
    sessions: dict[str, int]
    postings: Postings
    vectors: Sequence[tuple[bytes, bytes]] = ()
    profiles: Sequence[int] = ()
    lacks_entries: bool = False
    lacks_vectors: bool = False

    def among(self, rows: Numbers) -> Self:
        """Return the snapshot with the memories of some row ids only."""
        is_left = np.isin(self.pks, rows)
        places, found = np.cumsum(is_left) - 1, self.postings
        remain = is_left[found.documents]
        return replace(
            self,
            facts=self.facts[is_left],
            pks=self.pks[is_left],
            pending=self.pending[is_left],
            postings=Postings(found.terms[remain], places[found.documents[remain]], found.counts[remain]),
            profiles=(),
        )

    def without(self, terms: Collection[int]) -> Self:
        """Return the snapshot without the postings of some terms."""
        remain = ~np.isin(self.postings.terms, list(terms))
        found = self.postings
        return replace(self, postings=Postings(found.terms[remain], found.documents[remain], found.counts[remain]))


def places_of(known: Numbers, wanted: Numbers) -> Numbers:
    """Return the position of each wanted number in a sorted array, -1 for none: of row ids in `Snapshot.pks`."""
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    places = np.searchsorted(known, wanted)
    places[places == len(known)] = 0
    places[known[places] != wanted] = -1
    return places


def read(
    owner: Owner,
    terms: Sequence[str],
    prefix: str,
    *,
    sessions: Collection[str] | None = (),
    space: Serving | None = None,
    with_hidden: bool = False,
    left_out: Collection[int] | None = None,
    read_from: Collection[str] | None = (),
) -> Snapshot:
    """Read a snapshot with the postings of `terms`, these sessions (None: all) and the vectors of `space`.

    What incognito sessions hold is in it only if `read_from` names them (None: all). `left_out` are kinds of memories
    (`store.cover`), by default those that are not shown.
    Raises: `EmbeddingSpaceChanged`.
    """
    values = _values(owner, [prefix + term for term in terms], sessions, space)
    wanted: Literal["none", "some", "all"] = "all" if sessions is None else "some" if sessions else "none"
    statement = _statement(connection.vendor, bool(terms), wanted, space is not None)
    parts: list[list[Any]] = [[] for _ in range(_INCOGNITO + 1)]
    for row in sql.rows(statement, values):
        parts[row[0]].append(row)
    if space is not None and not parts[_SPACE]:
        raise EmbeddingSpaceChanged
    if any(row[2] != LAYOUT for row in parts[_FACTS]):
        fact_pages.rebuild(owner, if_outdated=True)
        return read(
            owner,
            terms,
            prefix,
            sessions=sessions,
            space=space,
            with_hidden=with_hidden,
            left_out=left_out,
            read_from=read_from,
        )
    parts[_INCOGNITO] = [] if read_from is None else [row for row in parts[_INCOGNITO] if row[3] not in read_from]
    return _snapshot(owner, parts, with_hidden=with_hidden, left_out=cover.left_out() if left_out is None else left_out)


def _values(owner: Owner, terms: Sequence[str], sessions: Collection[str] | None, space: Serving | None) -> list[Any]:
    """Return the parameters of `_statement`."""
    owned = owner_values(owner)
    values: list[Any] = owned * 5
    if terms:
        values += VENDORS[connection.vendor].postings_values(terms)
    if sessions is None or sessions:
        values += owned
    if sessions:
        values.append(orjson.dumps(list(sessions)).decode())
    if space is not None:
        values += [*owned, space.pk, *space]
    return values


@cache
def _statement(vendor: str, has_terms: bool, sessions: Literal["none", "some", "all"], has_vectors: bool) -> str:
    """Return the statement. Queries of a kind share its text, so the database can reuse a prepared one."""
    vendor_sql = VENDORS[vendor]
    statement = _BASE_PARTS.format(blob="blob" if vendor == "sqlite" else "bytea", ids=vendor_sql.joined_ids("id"))
    if has_terms:
        statement += _POSTINGS_PART.format(found=vendor_sql.POSTINGS)
    if sessions != "none":
        statement += f"{_SESSIONS_PART} WHERE {_OWNED}"
    if sessions == "some":
        statement += f" AND session_id IN ({vendor_sql.JSON_LIST})"
    return statement + _VECTORS_PART if has_vectors else statement


def _snapshot(
    owner: Owner, parts: Sequence[Sequence[Any]], *, with_hidden: bool, left_out: Collection[int]
) -> Snapshot:
    facts, names = _merge_pages(parts[_FACTS])
    if facts["cover"].any():  # without a remote, all are plain
        facts = facts[~np.isin(facts["cover"], list(left_out))]
    closed = parse_ids(map(_list_of, () if with_hidden else parts[_CLOSED]))
    if parts[_INCOGNITO]:
        closed = np.concatenate([closed, [row[1] for row in parts[_INCOGNITO]]])
    hidden = parse_ids(map(_list_of, parts[_PROFILE] if with_hidden else [*parts[_HIDDEN], *parts[_PROFILE]]))
    if len(closed) and len(facts):
        facts = facts[~np.isin(facts["session"], closed)]
    if len(hidden) and len(facts):
        facts = facts[~np.isin(facts["pk"], hidden)]
    documents, tokens, tokenizer = parts[_STATISTICS][0][1:4] if parts[_STATISTICS] else (0, 0, TOKENIZER_VERSION)
    vectors = [(row[5], row[6]) for row in parts[_VECTORS] if row[2] == VECTOR_LAYOUT]
    pending = parse_ids(map(_list_of, parts[_PENDING]))
    pks = np.ascontiguousarray(facts["pk"])
    return Snapshot(
        owner=owner,
        documents=documents,
        tokens=tokens,
        facts=facts,
        pks=pks,
        names=names,
        pending=np.isin(pks, pending) if len(pending) else np.zeros(len(facts), np.bool_),
        sessions={row[3]: row[1] for row in parts[_SESSIONS]},
        postings=_postings(parts[_POSTINGS], pks),
        vectors=vectors,
        profiles=parse_ids(map(_list_of, parts[_PROFILE])).tolist(),
        lacks_entries=tokenizer != TOKENIZER_VERSION,
        lacks_vectors=len(vectors) < len(parts[_VECTORS]),
    )


def _merge_pages(rows: Sequence[Any]) -> tuple[Facts, list[str]]:
    """Return all pages as one, in the order of row ids."""
    if not rows:
        return np.empty(0, FACTS), []
    facts = np.frombuffer(b"".join([row[5] for row in rows]), FACTS)
    if len({row[3] for row in rows}) == 1:  # as in the chats of one user with one agent
        names = orjson.loads(rows[0][3])
    else:
        facts, names = _merge_names(facts, rows)
    pks = facts["pk"]
    return (facts if (pks[1:] > pks[:-1]).all() else facts[np.argsort(pks, kind="stable")]), names


def _merge_names(facts: Facts, rows: Sequence[Any]) -> tuple[Facts, list[str]]:
    """Return all facts with positions in one list of names, and that list."""
    lists = [orjson.loads(row[3]) for row in rows]
    starts = np.cumsum([0, *map(len, lists[:-1])])
    shifts = np.repeat(starts, [len(row[5]) // FACTS.itemsize for row in rows]).astype(np.uint32)
    facts = facts.copy()
    for field in NAMED:
        facts[field] += shifts
    return facts, list(chain.from_iterable(lists))


def _postings(rows: Sequence[Any], pks: Numbers) -> Postings:
    """Return the postings from rows with the number of a term and, as one text, the memories that contain it."""
    lists = sorted((row[1], row[4]) for row in rows if row[4])
    if not lists:
        return Postings(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    places = places_of(pks, parse_ids([text for _, text in lists]))
    terms = np.repeat([number for number, _ in lists], [text.count(",") + 1 for _, text in lists]).astype(np.int64)
    is_live = places >= 0
    return _count_postings(terms[is_live], places[is_live], len(pks))


def _count_postings(terms: Numbers, documents: Numbers, size: int) -> Postings:
    """Count how often each document is listed for a term, which is the term's count in the document."""
    keys = terms * size + documents
    if (keys[1:] < keys[:-1]).any():
        keys.sort()
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
    counts = np.concatenate([starts[1:], [len(keys)]])[: len(starts)] - starts
    return Postings(*np.divmod(keys[starts], max(size, 1)), counts.astype(np.float64))


def postings_of(prefix: str, terms: Sequence[str], pks: Numbers) -> Postings:
    """Read the postings of further terms among the memories of a snapshot."""
    vendor = VENDORS[connection.vendor]
    found = sql.rows(vendor.POSTINGS, vendor.postings_values([prefix + term for term in terms]))
    return _postings([(_POSTINGS, number, 0, None, documents) for number, documents in found], pks)


def parse_ids(texts: Iterable[str | None]) -> Numbers:
    """Return the numbers in texts, which separate them by commas."""
    joined = ",".join(filter(None, texts))
    return np.fromstring(joined, np.int64, sep=",") if joined else np.empty(0, np.int64)
