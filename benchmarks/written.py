"""Measure what a message writes: `python -m benchmarks.written`, rows and bytes per message.

Set `DATABASE_URL` to an empty, migrated PostgreSQL database, or `MEMORY_GATEWAY_DB_PATH` to a migrated file. One user
adds 2,000 messages of about 113 characters to 100 sessions, one at a time. On SQLite rows include those of the tables
that FTS5 keeps for itself; on PostgreSQL those that the background writes when it adds counts up.
"""

from __future__ import annotations

import random
import time
from typing import Final

import django

django.setup()

from django.db import connection  # noqa: E402
from django.db.models import Sum  # noqa: E402
from django.db.models.functions import Length  # noqa: E402

from accounts import services as accounts  # noqa: E402
from accounts.audit import Actor  # noqa: E402
from core.persistence.sql import rows  # noqa: E402
from engines.embedded.engine import EmbeddedEngine  # noqa: E402
from store import rollups  # noqa: E402
from store.models import Memory  # noqa: E402
from store.types import ContentItem, Message, Owner  # noqa: E402

SESSIONS: Final = 100
MESSAGES: Final = 2000
CHARACTERS: Final = 113
_BEGAN_MS: Final = 1_700_000_000_000
_WORDS: Final = [
    "invoice",
    "garden",
    "release",
    "sister",
    "train",
    "hamburg",
    "contract",
    "meeting",
    "supplier",
    "tea",
    "test",
    "budget",
    "lease",
    "answer",
    "customer",
    "water",
    "house",
    "painting",
    "story",
    "music",
]
_SIZES: Final = {
    "sqlite": "SELECT name, sum(pgsize) FROM dbstat GROUP BY name",
    "postgresql": "SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace",
}
_CHANGED: Final = (
    "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del), pg_stat_force_next_flush() IS NULL FROM pg_stat_user_tables"
)


def main() -> None:
    engine, name = EmbeddedEngine(), f"user-{time.time_ns()}"
    owner = Owner(accounts.create_user(name, actor=Actor.command("benchmark")).key.user_id, name)
    engine.add(owner, "chat:0", [_message(name, 0)])
    before, changed, began = _sizes(), _changed(), time.perf_counter()
    for number in range(1, MESSAGES + 1):
        engine.add(owner, f"chat:{number * SESSIONS // (MESSAGES + 1)}", [_message(name, number)])
    for number in range(SESSIONS):
        engine.flush(owner, f"chat:{number}")
    took = time.perf_counter() - began
    rollups.settle()
    written, after = _changed() - changed, _sizes()
    text = Memory.objects.filter(user_id=owner.user_pk).aggregate(size=Sum(Length("text")))["size"]
    grown = {table: size - before.get(table, 0) for table, size in after.items()}
    print(f"{connection.vendor}: {took / MESSAGES * 1000:.2f} ms and {written / MESSAGES:.1f} rows per message")
    print(
        f"{sum(grown.values()) / MESSAGES:,.0f} bytes per message, {sum(grown.values()) / text:.1f} per byte of text:"
    )
    for table, size in sorted(grown.items(), key=lambda item: -item[1])[:16]:
        print(f"  {table:40} {size / MESSAGES:8.1f}")


def _message(sender: str, number: int) -> Message:
    chance = random.Random(number)
    text = " ".join(f"{chance.choice(_WORDS)} {number if chance.random() < 0.1 else ''}".strip() for _ in range(20))
    return Message(sender, "user", _BEGAN_MS + 60_000 * number, (ContentItem("text", text[:CHARACTERS]),))


def _sizes() -> dict[str, int]:
    return {name: int(size) for name, size in rows(_SIZES[connection.vendor], [])}


def _changed() -> int:
    """Return how many rows were written so far."""
    if connection.vendor == "sqlite":
        return int(connection.connection.total_changes)
    rows(_CHANGED, [])  # sends what this connection has counted
    return int(rows(_CHANGED, [])[0][0])


if __name__ == "__main__":
    main()
