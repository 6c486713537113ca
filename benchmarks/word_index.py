"""Measure the word index's share of an add: `python -m benchmarks.word_index`, in the environment of a seeded gateway.

It adds messages of users created by `manage.py seed_memories`, and removes them.
"""

import random
import time
import uuid
from collections.abc import Mapping
from statistics import median
from typing import Final

import django

django.setup()

from django.db import connection, transaction  # noqa: E402
from django.db.backends.utils import CursorWrapper  # noqa: E402

from accounts.models import MemoryUser  # noqa: E402
from store import sessions, storage  # noqa: E402
from store.index import words  # noqa: E402
from store.index.keyword import entry_of  # noqa: E402
from store.models import Memory  # noqa: E402
from store.types import Owner  # noqa: E402

ADDS: Final = 200
MESSAGES: Final = 20
put = words.put
_of_words: list[tuple[float, float]] = []


def _now() -> tuple[float, float]:
    return time.perf_counter() * 1000, time.process_time() * 1000


def _since(began: tuple[float, float]) -> tuple[float, float]:
    return _now()[0] - began[0], _now()[1] - began[1]


def timed_put(cursor: CursorWrapper, packed: Mapping[int, str]) -> None:
    began = _now()
    put(cursor, packed)
    _of_words.append(_since(began))


def add(owner: Owner, texts: list[str]) -> tuple[float, float]:
    """Add messages to a new session of a user; return milliseconds by the clock and of this process."""
    with transaction.atomic():
        began = _now()
        session = sessions.locked(owner, f"chat:{uuid.uuid4()}")
        memories = [
            Memory(
                memory_id=str(uuid.uuid4()), memory_type="episode", category="user_memory_fact", session=session,
                sender_id=owner.user_id, text=text, created_at_ms=1_795_000_000_000 + seq, seq=seq,
            )
            for seq, text in enumerate(texts)
        ]  # fmt: skip
        storage.insert(owner, memories, [entry_of(memory) for memory in memories])
        took = _since(began)
        transaction.set_rollback(True)
    return took


def main() -> None:
    words.put = timed_put
    owners = [Owner(user.pk, user.user_id) for user in MemoryUser.objects.filter(user_id__startswith="many-")[:100]]
    texts = list(Memory.objects.order_by("-pk").values_list("text", flat=True)[: ADDS * MESSAGES])
    chance = random.Random(9)
    whole = [add(chance.choice(owners), texts[at : at + MESSAGES]) for at in range(0, len(texts), MESSAGES)]
    for name, took in (("add", whole), ("of it the word index", _of_words)):
        clock, process = (median(times) for times in zip(*took, strict=True))
        print(f"{connection.vendor} {name:22} {clock:7.2f} ms, {process:6.2f} ms of this process")


if __name__ == "__main__":
    main()
