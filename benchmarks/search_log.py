"""Measure the share of the search log in a search: `python -m benchmarks.search_log`.

Run it in the environment of a seeded gateway. Blocks of searches of users created by `manage.py seed_memories` are run
with and without the log, in turn. A block with the log includes the time to write its rows, which are removed
afterwards.
"""

import random
import time
from statistics import median
from typing import Final

import django

django.setup()

from django.db import connection  # noqa: E402

from accounts.models import MemoryUser  # noqa: E402
from memories.models import LoggedSearch, SearchCount  # noqa: E402
from memories.services.scoped_hits import SearchCommand  # noqa: E402
from memories.services.search import search  # noqa: E402
from memories.services.search_log import logged_search, write  # noqa: E402
from store.models import Memory  # noqa: E402
from store.types import Owner  # noqa: E402

BLOCKS: Final = 60
SEARCHES: Final = 100


def main() -> None:
    owners = [Owner(user.pk, user.user_id) for user in MemoryUser.objects.filter(user_id__startswith="many-")[:100]]
    texts = list(Memory.objects.order_by("-pk").values_list("text", flat=True)[:1000])
    chance = random.Random(9)
    shares, without, with_log, writes = [], [], [], []
    for number in range(BLOCKS):
        asked = [
            (
                chance.choice(owners),
                SearchCommand(query=" ".join(chance.choice(texts).split()[:8]), scopes=frozenset({"all_user_memory"})),
            )
            for _ in range(SEARCHES)
        ]
        took = {}
        for is_logged in (True, False) if number % 2 else (False, True):
            began = time.perf_counter(), time.process_time()
            for owner, command in asked:
                if is_logged:
                    logged_search(owner, command, interface="rest")
                else:
                    search(owner, command)
            if is_logged:
                began_to_write = time.process_time()
                write()
                writes.append((time.process_time() - began_to_write) / SEARCHES)
            took[is_logged] = (time.perf_counter() - began[0]) / SEARCHES, (time.process_time() - began[1]) / SEARCHES
        with_log.append(took[True])
        without.append(took[False])
        shares.append([logged / plain - 1 for logged, plain in zip(took[True], took[False], strict=True)])
    LoggedSearch.objects.filter(user__in=[owner.user_pk for owner in owners]).delete()
    SearchCount.objects.all().delete()
    for column, name in enumerate(("clock", "process")):
        medians = [median(row[column] for row in rows) * 1000 for rows in (without, with_log)]
        print(
            f"{connection.vendor} {name:8} without {medians[0]:.3f} ms, with {medians[1]:.3f} ms, "
            f"{median(row[column] for row in shares):+.1%}"
        )
    share = median(write / plain[1] for write, plain in zip(writes, without, strict=True))
    print(f"{connection.vendor} writing a search: {median(writes) * 1e6:.0f} µs of CPU time, {share:.1%} of a search")


if __name__ == "__main__":
    main()
