"""Measure the share of the search log in a search: `python -m benchmarks.search_log`.

Run it in the environment of a seeded gateway. Searches of users created by `manage.py seed_memories` are run with and
without the log, in turns within one process; processor time is compared. The time to write the rows, which are removed
afterwards, belongs to the searches with the log.
"""

import random
import sys
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

BLOCKS: Final = 20
SEARCHES: Final = 100
MOST: Final = 0.03


def main() -> int:
    owners = [Owner(user.pk, user.user_id) for user in MemoryUser.objects.filter(user_id__startswith="many-")[:100]]
    texts = list(Memory.objects.order_by("-pk").values_list("text", flat=True)[:1000])
    chance = random.Random(9)
    shares, plain, writes = [], [], []
    for _ in range(BLOCKS):
        took = {True: 0.0, False: 0.0}
        for number in range(SEARCHES):
            owner, words = chance.choice(owners), chance.choice(texts).split()[:8]
            command = SearchCommand(query=" ".join(words), scopes=frozenset({"all_user_memory"}))
            search(owner, command)  # the first one loads what the next ones have
            for is_logged in (True, False) if number % 2 else (False, True):
                took[is_logged] += _seconds(owner, command, is_logged=is_logged)
        began = time.process_time()
        write()
        writes.append((time.process_time() - began) / SEARCHES)
        plain.append(took[False] / SEARCHES)
        shares.append((took[True] / SEARCHES + writes[-1]) / plain[-1] - 1)
    LoggedSearch.objects.filter(user__in=[owner.user_pk for owner in owners]).delete()
    SearchCount.objects.all().delete()
    print(
        f"{connection.vendor}: a search {median(plain) * 1000:.3f} ms of CPU time, the log {median(shares):+.1%}, "
        f"of it writing {median(writes) * 1e6:.0f} µs, {median(writes) / median(plain):.1%} (target ≤ {MOST:.0%})"
    )
    return int(median(shares) > MOST)


def _seconds(owner: Owner, command: SearchCommand, *, is_logged: bool) -> float:
    began = time.process_time()
    if is_logged:
        logged_search(owner, command, interface="rest")
    else:
        search(owner, command)
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
