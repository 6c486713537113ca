"""All that the questions of one user need, read in one statement: so that it is one moment, and one round trip.

Its parts come as rows of one shape, told apart by `part`; long lists of numbers come as one text or one blob each.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from core import sql
from store.index import postgresql, sqlite
from store.index.pages import FACTS, NAMED, Facts
from store.owned import owner_values
from store.types import Owner
from store.vectors.spaces import IS_SERVING, Serving

Numbers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

_VENDORS: Final = {"sqlite": sqlite, "postgresql": postgresql}
_STATISTICS, _FACTS, _POSTINGS, _HIDDEN, _PENDING, _CLOSED, _SESSIONS, _PROFILE, _VECTORS, _SPACE = range(10)
_OWNED: Final = "user_id = %s AND app_id = %s AND project_id = %s"
_IS_SET_APART: Final = (
    "is_indexed AND (hidden_at IS NOT NULL OR memory_type = 'unprocessed_message' OR memory_type = 'profile')"
)
_SET_APART_AS: Final = f"""
    CASE WHEN hidden_at IS NOT NULL THEN {_HIDDEN} WHEN memory_type = 'profile' THEN {_PROFILE} ELSE {_PENDING} END
"""
_BASE: Final = f"""
    SELECT {_STATISTICS} AS part, documents AS number, tokens AS amount, CAST(NULL AS text) AS name,
        CAST(NULL AS text) AS list, CAST(NULL AS {{blob}}) AS data, CAST(NULL AS {{blob}}) AS more
    FROM store_indexstatistics WHERE {_OWNED}
    UNION ALL SELECT {_FACTS}, number, 0, names, NULL, facts, NULL FROM store_factpage WHERE {_OWNED}
    UNION ALL SELECT {_SET_APART_AS}, 0, 0, NULL, {{ids}}, NULL, NULL
        FROM store_memory WHERE {_OWNED} AND {_IS_SET_APART} GROUP BY {_SET_APART_AS}
    UNION ALL SELECT {_CLOSED}, 0, 0, NULL, {{ids}}, NULL, NULL
        FROM store_session WHERE {_OWNED} AND (hidden_at IS NOT NULL OR deleted_at IS NOT NULL)
"""
_OF_TERMS: Final = f" UNION ALL SELECT {_POSTINGS}, number, 0, NULL, docs, NULL, NULL FROM ({{found}}) found"
_OF_SESSIONS: Final = f" UNION ALL SELECT {_SESSIONS}, id, 0, session_id, NULL, NULL, NULL FROM store_session"
_OF_VECTORS: Final = (
    f" UNION ALL SELECT {_VECTORS}, number, 0, NULL, NULL, rows, codes FROM store_vectorpage"
    f" WHERE {_OWNED} AND space_id = %s"
    f" UNION ALL SELECT {_SPACE}, id, 0, NULL, NULL, NULL, NULL FROM store_embeddingspace WHERE {IS_SERVING}"
)


class OtherSpace(Exception):
    """The vectors that were asked for are not those in use, or not any more."""


class Postings(NamedTuple):
    """Which term of the question stands how often in which document; in the order of terms, then of documents."""

    terms: Numbers
    documents: Numbers
    counts: Reals


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The user's live memories, in the order of their row ids (`pks`): a document is a place in `facts`.

    `names` are what its speaker, sender and agent point into. `pending` says which are unprocessed messages. The user's
    `profiles` (row ids) are among no documents: nobody looks for them.
    `sessions` are those that were asked for, by name. `documents` and `tokens` count hidden memories too.
    Read `with_hidden`, the user's hidden memories are among the live.
    """

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

    def places_of(self, pks: Numbers) -> Numbers:
        """The documents with these row ids, -1 for one that is not live."""
        return places_of(self.pks, pks)


def places_of(held: Numbers, wanted: Numbers) -> Numbers:
    """Where each wanted number stands in a sorted array, -1 where it does not."""
    if not len(held):
        return np.full(len(wanted), -1, np.int64)
    places = np.searchsorted(held, wanted)
    places[places == len(held)] = 0
    places[held[places] != wanted] = -1
    return places


def read(
    owner: Owner,
    terms: Sequence[str],
    prefix: str,
    *,
    sessions: Collection[str] | None = (),
    space: Serving | None = None,
    with_hidden: bool = False,
) -> Snapshot:
    """One statement. `sessions` None asks for all of the owner's; `space` for the vectors of that space.

    Errors: `OtherSpace`.
    """
    values = _values(owner, [prefix + term for term in terms], sessions, space)
    statement = _statement(sql.vendor(), bool(terms), _which(sessions), space is not None)
    parts: list[list[Any]] = [[] for _ in range(_SPACE + 1)]
    for row in sql.rows(statement, values):
        parts[row[0]].append(row)
    if space is not None and not parts[_SPACE]:
        raise OtherSpace
    return _snapshot(parts, with_hidden=with_hidden)


def _values(owner: Owner, terms: Sequence[str], sessions: Collection[str] | None, space: Serving | None) -> list[Any]:
    """The parameters of `_statement`."""
    owned = owner_values(owner)
    values: list[Any] = owned * 4
    if terms:
        values += _VENDORS[sql.vendor()].of_terms(terms)
    if sessions is None or sessions:
        values += owned
    if sessions:
        values.append(orjson.dumps(list(sessions)).decode())
    if space is not None:
        values += [*owned, space.pk, *space]
    return values


@cache
def _statement(vendor: str, of_terms: bool, sessions: Literal["none", "some", "all"], of_vectors: bool) -> str:
    """The same text for all questions of a kind: the database then knows it already."""
    own = _VENDORS[vendor]
    statement = _BASE.format(blob="blob" if vendor == "sqlite" else "bytea", ids=own.joined("id"))
    if of_terms:
        statement += _OF_TERMS.format(found=own.FOUND)
    if sessions != "none":
        statement += f"{_OF_SESSIONS} WHERE {_OWNED}"
    if sessions == "some":
        statement += f" AND session_id IN ({own.ANY_OF})"
    return statement + _OF_VECTORS if of_vectors else statement


def _which(sessions: Collection[str] | None) -> Literal["none", "some", "all"]:
    if sessions is None:
        return "all"
    return "some" if sessions else "none"


def _snapshot(parts: Sequence[Sequence[Any]], *, with_hidden: bool) -> Snapshot:
    facts, names = _facts(parts[_FACTS])
    closed = _numbers([] if with_hidden else parts[_CLOSED])
    hidden = _numbers(parts[_PROFILE] if with_hidden else [*parts[_HIDDEN], *parts[_PROFILE]])
    if len(closed) and len(facts):
        facts = facts[~np.isin(facts["session"], closed)]
    if len(hidden) and len(facts):
        facts = facts[~np.isin(facts["pk"], hidden)]
    documents, tokens = parts[_STATISTICS][0][1:3] if parts[_STATISTICS] else (0, 0)
    pending = _numbers(parts[_PENDING])
    pks = np.ascontiguousarray(facts["pk"])
    return Snapshot(
        documents=documents,
        tokens=tokens,
        facts=facts,
        pks=pks,
        names=names,
        pending=np.isin(pks, pending) if len(pending) else np.zeros(len(facts), np.bool_),
        sessions={row[3]: row[1] for row in parts[_SESSIONS]},
        postings=_postings(parts[_POSTINGS], pks),
        vectors=[(row[5], row[6]) for row in parts[_VECTORS]],
        profiles=_numbers(parts[_PROFILE]).tolist(),
    )


def _facts(pages: Sequence[Any]) -> tuple[Facts, list[str]]:
    """All pages as one, in the order of row ids."""
    if not pages:
        return np.empty(0, FACTS), []
    facts = np.frombuffer(b"".join([row[5] for row in pages]), FACTS)
    if len({row[3] for row in pages}) == 1:  # as in the chats of one user with one agent
        names = orjson.loads(pages[0][3])
    else:
        facts, names = _with_names_of_all(facts, pages)
    pks = facts["pk"]
    return (facts if (pks[1:] > pks[:-1]).all() else facts[np.argsort(pks, kind="stable")]), names


def _with_names_of_all(facts: Facts, pages: Sequence[Any]) -> tuple[Facts, list[str]]:
    """Facts that point into the pages' names as one list."""
    lists = [orjson.loads(row[3]) for row in pages]
    starts = np.cumsum([0, *map(len, lists[:-1])])
    shifts = np.repeat(starts, [len(row[5]) // FACTS.itemsize for row in pages]).astype(np.uint32)
    facts = facts.copy()
    for field in NAMED:
        facts[field] += shifts
    return facts, list(chain.from_iterable(lists))


def _postings(rows: Sequence[Any], pks: Numbers) -> Postings:
    """Each row has the number of a term and, as one text, the memories that hold it."""
    lists = sorted((row[1], row[4]) for row in rows if row[4])
    if not lists:
        return Postings(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    places = places_of(pks, _listed([text for _, text in lists]))
    held = np.repeat([number for number, _ in lists], [text.count(",") + 1 for _, text in lists]).astype(np.int64)
    is_live = places >= 0
    return _counted(held[is_live], places[is_live], len(pks))


def _counted(terms: Numbers, documents: Numbers, size: int) -> Postings:
    """A document stands in the list as often as the term in it."""
    keys = terms * size + documents
    if (keys[1:] < keys[:-1]).any():
        keys.sort()
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
    counts = np.concatenate([starts[1:], [len(keys)]])[: len(starts)] - starts
    return Postings(*np.divmod(keys[starts], max(size, 1)), counts.astype(np.float64))


def _numbers(rows: Sequence[Any]) -> Numbers:
    """What some rows list; none of an empty list, as most of these are."""
    return _listed([row[4] for row in rows if row[4]]) if rows else np.empty(0, np.int64)


def _listed(texts: Sequence[str]) -> Numbers:
    return np.fromstring(",".join(texts), np.int64, sep=",") if texts else np.empty(0, np.int64)
