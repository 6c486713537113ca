"""Measure what filters by tags and metadata cost a search: `python -m benchmarks.filters`.

Set `DATABASE_URL` to an empty, migrated database, or `MEMORY_GATEWAY_DB_PATH` to a file. One user has all memories,
each with metadata. Questions are asked with each filter and without one, in turns; processor time is compared, question
by question. Each filter must fill the page.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping
from typing import Any

import django

django.setup()

from accounts import services as accounts  # noqa: E402
from accounts.audit import Actor  # noqa: E402
from benchmarks.engine.corpus import Corpus  # noqa: E402
from engines.embedded.engine import EmbeddedEngine  # noqa: E402
from store.types import ContentItem, Message, Owner, SearchRequest  # noqa: E402

MOST = 1.3
TOP_K = 10
_BEGAN_MS = 1_700_000_000_000
_ADDED_AT_ONCE = 500
_FILTERS: Mapping[str, Mapping[str, Any] | None] = {
    "no filter": None,
    "a tag of 1 %": {"tags": "rare"},
    "a tag of 25 %": {"tags": "common"},
    "not a tag of 25 %": {"NOT": {"tags": "common"}},
    "metadata of 1 %": {"metadata.group": 5},
    "metadata of 25 %": {"metadata.project": "p1"},
    "a range of 90 %": {"metadata.group": {"gte": 10}},
    "all have the key": {"metadata.project": {"exists": True}},
    "two of them": {"tags": "common", "metadata.project": {"in": ["p1", "p2"]}},
}


def main() -> int:
    options = _options()
    engine, corpus = EmbeddedEngine(), Corpus(users=1, dimensions=1)
    name = f"user-{time.time_ns()}"
    owner = Owner(accounts.create_user(name, actor=Actor.command("benchmark")).key.user_id, name)
    questions = [item.text.rpartition(" ")[0] for item in corpus.questions(options.questions)]
    texts = [item.text for item in corpus.memories(options.memories)]
    for start in range(0, len(texts), _ADDED_AT_ONCE):
        batch = enumerate(texts[start : start + _ADDED_AT_ONCE], start)
        engine.add(owner, f"chat:{start}", [_message(name, number, text) for number, text in batch])
        engine.flush(owner, f"chat:{start}")
    seconds: dict[str, list[float]] = {filtered: [] for filtered in _FILTERS}
    for question in [*questions[:2], *questions]:
        for filtered, tree in _FILTERS.items():
            began = time.process_time()
            [result] = engine.search(owner, [SearchRequest(question, "keyword", TOP_K, filters=tree, min_relevance=0)])
            seconds[filtered].append(time.process_time() - began)
            assert len(result.hits) == TOP_K, filtered
    bare = seconds["no filter"][2:]  # the first searches load what the next ones have
    missed = False
    print(f"{options.memories:,} memories")
    for filtered, took in seconds.items():
        ratio = statistics.median(one / other for one, other in zip(took[2:], bare, strict=True))
        missed |= ratio > MOST
        print(f"  {filtered:20} {statistics.median(took[2:]) * 1000:6.1f} ms  {ratio:.2f} × (target ≤ {MOST})")
    return int(missed)


def _message(name: str, number: int, text: str) -> Message:
    tags = ["common"] if number % 4 == 0 else ["rare"] if number % 100 == 1 else []
    metadata = {"group": number * 7919 % 100, "project": f"p{number * 104_729 // 100 % 4}", "row": number}
    content = (ContentItem("text", text),)
    return Message(name, "user", _BEGAN_MS + 1000 * number, content, tags=tags, metadata=metadata)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filters", description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=40)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
