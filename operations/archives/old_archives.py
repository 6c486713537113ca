"""Convert rows of archives of version 1, whose tables had other columns."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from core.errors import InvalidInput
from core.times import from_ms

_NEW_COLUMNS: Final[dict[str, Any]] = {
    "delivery_state": "",
    "sent_at": None,
    "original_text": "",
    "sources": [],
    "supersedes": [],
    "superseded_by": "",
    "hidden_reason": "",
}
_UNCONFIRMED: Final = re.compile(r"sending:([0-9]{1,13})-([0-9a-f]{1,32})")
_DERIVED_COLUMNS: Final = {
    "said": "original_text",
    "sources": "sources",
    "supersedes": "supersedes",
    "superseded_by": "superseded_by",
    "hidden_as": "hidden_reason",
}


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
        return row | {"original_text": payload.get("episode", "")}  # written by EverOS
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


def resource(row: Any) -> Any:
    """Return a row of `resources` with its renamed column."""
    if not isinstance(row, dict) or "cleanup_owed" not in row:
        return row
    rest = {name: value for name, value in row.items() if name != "cleanup_owed"}
    return rest | {"cleanup_pending": row["cleanup_owed"]}


CONVERTERS: Final[Mapping[str, Callable[[Any], Any]]] = {"memories": memory, "resources": resource}
