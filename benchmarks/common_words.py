"""Measure searches for a word that every memory of the user contains: `python -m benchmarks.common_words`.

Set `DATABASE_URL` to an empty, migrated database, or `MEMORY_GATEWAY_DB_PATH` to a file. One user has all memories. The
same questions are asked with the common word and without it, in turns.
"""

from __future__ import annotations

import argparse
import statistics
import time

import django

django.setup()

from accounts import services as accounts  # noqa: E402
from accounts.audit import Actor  # noqa: E402
from benchmarks.engine.corpus import Corpus  # noqa: E402
from engines.embedded.engine import EmbeddedEngine  # noqa: E402
from store.types import ContentItem, Message, Owner, SearchRequest  # noqa: E402

COMMON = "caroline"
MOST = 1.5
_BEGAN_MS = 1_700_000_000_000
_ADDED_AT_ONCE = 500


def main() -> int:
    options = _options()
    engine, corpus = EmbeddedEngine(), Corpus(users=1, dimensions=1)
    name = f"user-{time.time_ns()}"
    owner = Owner(accounts.create_user(name, actor=Actor.command("benchmark")).key.user_id, name)
    questions = corpus.rare_questions(options.questions)
    missed = False
    added = 0
    for size in options.memories:
        items = corpus.memories(size - added)
        for start in range(0, len(items), _ADDED_AT_ONCE):
            batch = items[start : start + _ADDED_AT_ONCE]
            messages = [
                Message(name, "user", _BEGAN_MS + 1000 * (added + start + number),
                        (ContentItem("text", f"{COMMON} {item.text}"),))
                for number, item in enumerate(batch)
            ]  # fmt: skip
            engine.add(owner, f"chat:{added + start}", messages)
            engine.flush(owner, f"chat:{added + start}")
        added = size
        without, with_common = _compared(engine, owner, questions)
        missed |= with_common > MOST * without
        print(
            f"{size:>7,} memories: {without * 1000:6.2f} ms without the word, {with_common * 1000:6.2f} ms with it: "
            f"{with_common / without:.2f} × (target ≤ {MOST})"
        )
    return int(missed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.common_words", description=__doc__)
    parser.add_argument("--memories", type=int, nargs="+", default=[1000, 4000, 16000])
    parser.add_argument("--questions", type=int, default=50)
    return parser.parse_args()


def _compared(engine: EmbeddedEngine, owner: Owner, questions: list[str]) -> tuple[float, float]:
    """Return the median seconds of the questions without and with the common word."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for question in questions:
        for times, query in zip(seconds, (question, f"{question} {COMMON}"), strict=True):
            began = time.perf_counter()
            engine.search(owner, [SearchRequest(query, "keyword", 10)])
            times.append(time.perf_counter() - began)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


if __name__ == "__main__":
    raise SystemExit(main())
