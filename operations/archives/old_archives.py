"""Convert rows of archives of versions 1 to 3, whose tables had other columns.

Before version 3, rows of `memories` also held the messages for the remote that are in `outbox` now.
"""

import re
from typing import Any, Final, TypeGuard
from uuid import UUID

from core.errors import InvalidInput
from core.times import from_ms
from operations import ledger
from operations.archives.repairs import storable_id
from operations.tables import Row
from remote import former_journal
from store.models import State

WITH_OUTBOX: Final = 3
"""The first version whose archives have an outbox."""
_NEW_COLUMNS: Final[dict[str, Any]] = {
    "delivery_state": "",
    "sent_at": None,
    "original_text": "",
    "sources": [],
    "supersedes": [],
    "superseded_by": "",
    "hidden_reason": "",
}
_FORMER_COLUMNS: Final = ("delivery_state", "hidden_at", "hidden_reason", "superseded_by")
_OF_RESOURCES: Final = frozenset({"former_status", "deleted_at", "cleanup_pending", "cleanup_owed"})
_KINDS: Final = {
    "superseded": "superseded",
    "with_source": "source_deleted",
    "reworded": "source_corrected",
    "with_derived": "derived_deleted",
}
"""The kinds of tombstones by the former reason. Of a person's deletion, the archive has the tombstone."""
_UNCONFIRMED: Final = re.compile(r"sending:([0-9]{1,13})-([0-9a-f]{1,32})")
_DERIVED_COLUMNS: Final = {
    "said": "original_text",
    "sources": "sources",
    "supersedes": "supersedes",
    "superseded_by": "superseded_by",
    "hidden_as": "hidden_reason",
}


class Converter:
    """Converts the rows of one user's files, in the order of `operations.tables.PORTABLE`."""

    def __init__(self, user_pk: UUID, version: int) -> None:
        self._user_pk = user_pk
        self._version = version
        self._ids: dict[tuple[Any, ...], str | None] = {}
        """The ids of memories that journal rows became, by scope and former id; None for those without a text."""
        self.reasons: dict[ledger.Key, ledger.Reason] = {}
        """Why the memories that were read are hidden, if their row says so."""

    def source_of(self, table: str) -> str:
        """Return the name of the file that holds the rows of a table."""
        return "memories" if table == "outbox" and self._version < WITH_OUTBOX else table

    def rows(self, table: str, row: Any) -> list[Any]:
        """Return the rows of a table that a line holds. Invalid values are left to the loader."""
        is_older = self._version < WITH_OUTBOX
        if self._version == 1 and self.source_of(table) == "memories":
            row = memory(row)
        if not isinstance(row, dict):
            return [] if table == "outbox" and is_older else [row]
        if table in {"sessions", "resources"}:
            return [_session(row) if table == "sessions" else resource(row)]
        rows = self._rows_before_outbox(table, row) if is_older else [row]
        return [self._stated(one) for one in rows] if table == "memories" else rows

    def _rows_before_outbox(self, table: str, row: Row) -> list[Row]:
        if table in {"memories", "outbox"}:
            return self._memories(table, row)
        return [self._decision(row)] if table in {"tombstones", "overrides"} else [row]

    def _memories(self, table: str, row: Row) -> list[Row]:
        session, sent_at = row.get("session"), row.get("sent_at")
        row = {name: value for name, value in row.items() if name != "sent_at"}
        if not former_journal.is_journal_row(row) or not _is_key(session):
            return [] if table == "outbox" else [row]
        app_id, project_id, session_id = session
        found = former_journal.convert(self._user_pk, (app_id, project_id), session_id, row | {"sent_at": sent_at})
        key = (app_id, project_id, row["memory_id"])
        self._ids[key] = found.memories[0]["memory_id"] if found.memories else None
        if table == "memories":
            return [
                {**row, **memory, "chunk_index": None, "delivery_state": "", "hidden_reason": ""}
                for memory in found.memories
            ]
        scope = {name: row.get(name) for name in ("app_id", "project_id", "session")}
        return [{**found.entry, **scope, "base_url": ""}]

    def _stated(self, row: Row) -> Row:
        """Return a memory with its state; note why it is hidden. Raises: `InvalidInput`."""
        _require(row, "hidden_at")
        former = {name: row.get(name) for name in _FORMER_COLUMNS}
        row = {name: value for name, value in row.items() if name not in _FORMER_COLUMNS}
        if former["delivery_state"] == "purged":
            return row | {"state": State.PURGED.value, "state_since": former["hidden_at"]}
        if former["hidden_at"] is None:
            return row | {"state": State.LIVE.value, "state_since": None}
        newer_id = storable_id(str(former["superseded_by"] or ""))
        kind = _KINDS.get(str(former["hidden_reason"])) or ("superseded" if newer_id else "")
        if kind:
            key = (str(row.get("app_id")), str(row.get("project_id")), storable_id(str(row.get("memory_id"))))
            self.reasons[key] = ledger.Reason(kind, newer_id)
        is_superseded = former["hidden_reason"] == "superseded"
        state = State.SUPERSEDED.value if is_superseded else State.TRASHED.value
        return row | {"state": state, "state_since": former["hidden_at"]}

    def _decision(self, row: Row) -> Row:
        key = (row.get("app_id"), row.get("project_id"), row.get("memory_id"))
        if key not in self._ids:
            return row
        memory_id = self._ids[key]
        if memory_id is None:
            return row | {"row": None}
        return row | {"memory_id": memory_id, "row": row.get("row") and [*key[:2], memory_id]}


def _session(row: Row) -> Row:
    """Return a session with its state. Raises: `InvalidInput`."""
    _require(row, "hidden_at")
    row = dict(row)
    deleted_at, hidden_at = row.pop("deleted_at", None), row.pop("hidden_at", None)
    if deleted_at is not None:
        return row | {"state": State.PURGED.value, "state_since": deleted_at}
    return row | {"state": State.LIVE.value if hidden_at is None else State.TRASHED.value, "state_since": hidden_at}


def _require(row: Row, name: str) -> None:
    """Check that a row says whether it is deleted: it is not taken for one that is shown. Raises: `InvalidInput`."""
    if name not in row:
        raise InvalidInput(f"lacks {name}")


def _is_key(session: Any) -> TypeGuard[list[str]]:
    return isinstance(session, list) and len(session) == 3 and all(isinstance(name, str) for name in session)


def memory(row: Any) -> Any:
    """Return a row of `memories`. Some of its columns were parts of `batch_id` and `payload`.

    Invalid values are left to the loader. Raises: `InvalidInput`.
    """
    if not isinstance(row, dict):
        return row
    row = {**row, **_NEW_COLUMNS}
    payload, batch_id = row.get("payload"), row.get("batch_id")
    if not isinstance(payload, dict) or not isinstance(batch_id, str):
        return row
    if row.get("origin") == "upstream" and row.get("memory_type") == "unprocessed_message":
        return row | _delivery(batch_id)
    if row.get("origin") != "extracted":
        return row | {"original_text": payload.get("episode", "")}  # written by the remote
    moved = {new: payload[old] for old, new in _DERIVED_COLUMNS.items() if old in payload}
    rest = {name: value for name, value in payload.items() if name not in {*_DERIVED_COLUMNS, "agent_id"}}
    return row | moved | {"payload": rest}


def _delivery(batch_id: str) -> dict[str, Any]:
    """Return the columns of a journal entry from its old `batch_id`. Raises: `InvalidInput`."""
    if batch_id == "":
        return {"delivery_state": "buffered"}
    if batch_id == "purged":
        return {"delivery_state": "purged", "batch_id": ""}
    if not batch_id.startswith("sending:"):
        return {"delivery_state": "flushed"}
    found = _UNCONFIRMED.fullmatch(batch_id)
    if not found:
        raise InvalidInput(f"batch_id: {batch_id[:100]!r} is not a call ID")
    return {"delivery_state": "unconfirmed", "batch_id": found[2], "sent_at": from_ms(int(found[1])).isoformat()}


def resource(row: Row) -> Row:
    """Return a row of `resources` with its state. It is deleted if one of the columns that recorded this says so.

    Other invalid values are left to the loader. Raises: `InvalidInput`.
    """
    _require(row, "deleted_at")
    rest = {name: value for name, value in row.items() if name not in _OF_RESOURCES}
    former, deleted_at = row.get("former_status"), row["deleted_at"]
    needs_cleanup = row.get("cleanup_pending") or row.get("cleanup_owed")
    if not (former or needs_cleanup or deleted_at is not None or row.get("status") == "deleted"):
        return rest | {"state": State.LIVE.value, "state_since": None}
    since = row.get("updated_at") if deleted_at is None else deleted_at
    if former and not needs_cleanup:
        status = "pending" if former == "ingesting" else former
        return rest | {"state": State.TRASHED.value, "state_since": since, "status": status}
    purged = {"state": State.PURGED.value, "state_since": since, "status": "failed"}
    return rest | purged | {"retry_at": since if needs_cleanup else None}
