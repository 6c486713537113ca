"""Measure one number of memories in this process. The last line of the output is the result as JSON."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import django

django.setup()

import numpy as np  # noqa: E402
from django.conf import settings  # noqa: E402
from django.db import connection  # noqa: E402

from accounts import services as accounts  # noqa: E402
from accounts.audit import Actor  # noqa: E402
from benchmarks.engine.corpus import Corpus, Item  # noqa: E402
from benchmarks.engine.others import Fts5, Lance  # noqa: E402
from core.network.model_endpoint import ModelAddress  # noqa: E402
from engines.embedded.engine import EmbeddedEngine  # noqa: E402
from store.models import EmbeddingSpace, Memory, PendingEmbedding  # noqa: E402
from store.types import ContentItem, Message, Method, Owner, SearchRequest  # noqa: E402
from store.vectors import fill, spaces  # noqa: E402
from store.vectors.client import EmbeddingClient, Model, client  # noqa: E402

_BEGAN_MS = 1_700_000_000_000
_ADDED_AT_ONCE = 500
_USERS_WITH_TABLES = 20
_ADDS = 250
_AT_A_STRETCH = 50
"""Questions of one system before the other's turn: who has just waited for another finds a processor that has forgotten
what it worked on, which is no part of what is compared."""


class Vectors(EmbeddingClient):
    """An embedding client that knows the vectors of its texts and needs no network."""

    def __init__(self, items: Sequence[Item]) -> None:
        super().__init__("http://127.0.0.1:9", "")
        self._of = {item.text: item.vector for item in items}

    def embed(self, model: Model, texts: Sequence[str], seconds: float = 0) -> Any:
        return np.stack([self._of[text] for text in texts])


class Ours:
    """The embedded engine on SQLite."""

    def __init__(self, folder: Path, users: int) -> None:
        self.path = folder / "memory_gateway.sqlite3"
        self._engine = EmbeddedEngine()
        self._last = 0
        actor = Actor.command("benchmark")
        names = [f"user-{number}" for number in range(users)]
        self._owners = [Owner(accounts.create_user(name, actor=actor).key.user_id, name) for name in names]

    def build(self, items: Sequence[Item], source: EmbeddingClient, dimensions: int) -> dict[str, float]:
        """Add all memories; return the seconds by step. Vectors are computed after each flush, as with an endpoint."""
        EmbeddingSpace.objects.create(
            model="synthetic", dimensions=dimensions, is_active=True, knows_other_scripts=False
        )
        by_user: defaultdict[int, list[Item]] = defaultdict(list)
        for item in items:
            by_user[item.user].append(item)
        seconds = {"ours": 0.0, "ours, vectors": 0.0}
        for user, told in by_user.items():
            for start in range(0, len(told), _ADDED_AT_ONCE):
                batch = told[start : start + _ADDED_AT_ONCE]
                seconds["ours"] += _took(self._tell, user, f"chat:{start}", batch)
                seconds["ours, vectors"] += _took(self._embed, source)
        return seconds

    def _tell(self, user: int, session_id: str, batch: Sequence[Item]) -> None:
        self._engine.add(self._owners[user], session_id, [self._message(item) for item in batch])
        self._engine.flush(self._owners[user], session_id)

    def _embed(self, source: EmbeddingClient) -> None:
        """Compute and store the pending vectors."""
        space = spaces.active()
        assert space is not None
        with connection.cursor() as cursor:  # no model is configured, so adds do not mark them
            spaces.mark_pending(cursor, Memory.objects.filter(pk__gt=self._last).values_list("pk", flat=True))
        self._last = Memory.objects.latest("pk").pk
        pending = Memory.objects.filter(pk__in=PendingEmbedding.objects.values("memory")).select_related("user")
        fill.write(space, list(pending.order_by("pk")), source, 0)

    def know(self, questions: Sequence[Item]) -> None:
        """Cache the vectors of the questions, as if they had been asked before."""
        settings.MEMORY_GATEWAY_MODELS = {"embedding": ModelAddress("http://127.0.0.1:9", "synthetic")}
        space = spaces.active()
        assert space is not None
        for question in questions:
            client().cache_query(spaces.model_of(space), question.text, question.vector)

    def settle(self, source: EmbeddingClient) -> None:
        """Store the pending vectors and checkpoint the write-ahead log."""
        self._embed(source)
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def search(self, question: Item, method: Method) -> list[str]:
        owner = self._owners[question.user]
        [result] = self._engine.search(owner, [SearchRequest(question.text, method, 10)])
        assert result.method == method, result.degraded
        return [hit.text for hit in result.hits]

    def add(self, item: Item) -> None:
        self._engine.add(self._owners[item.user], "chat:added", [self._message(item)])

    def _message(self, item: Item) -> Message:
        sender = self._owners[item.user].user_id
        number = int(item.text.rpartition(" ")[2])
        return Message(sender, "user", _BEGAN_MS + 1000 * number, (ContentItem("text", item.text),))


def main() -> None:
    options = _options()
    folder = Path(options.folder)
    corpus = Corpus(options.users, options.dimensions)
    items, questions = corpus.memories(options.rows), corpus.questions(options.questions)
    more = corpus.memories(_ADDS)
    ours, fts5, lance = Ours(folder, options.users), Fts5(folder), Lance(folder, options.dimensions)
    source = Vectors([*items, *more])
    built = ours.build(items, source, options.dimensions)
    built |= {"FTS5": _took(fts5.build, items), "LanceDB": _took(lance.build, items)}
    print(
        "  built " + ", ".join(f"{name} in {took:.0f} s" for name, took in built.items()), file=sys.stderr, flush=True
    )
    ours.know(questions)
    few = min(_USERS_WITH_TABLES, options.users)
    of_few = [_of(question, number % few) for number, question in enumerate(questions)]
    for user in range(few):
        lance.build_of(user, [item for item in items if item.user == user])
    keyword = _compared(questions, lambda one: ours.search(one, "keyword"), fts5.keyword)
    vector = _compared(questions, lambda one: ours.search(one, "vector"), lance.vector)
    hybrid = _compared(of_few, lambda one: ours.search(one, "hybrid"), lance.hybrid)
    add = _in_turns(more, ours.add, lance.add)
    after = _compared(questions, lambda one: ours.search(one, "vector"), lance.vector)
    upkeep = _took(ours.settle, source), _took(lance.settle)
    kept = [statistics.fmean(each) + spent / len(more) for each, spent in zip(add, upkeep, strict=True)]
    appended = [statistics.median(each) for each in add]
    fts5.settle()
    result = {
        "recall": _recall(ours, items, questions),
        "ratios": {
            "keyword / FTS5 with a user column": keyword[0] / keyword[1],
            "vector / LanceDB with a user filter": vector[0] / vector[1],
            "hybrid / LanceDB, a table per user": hybrid[0] / hybrid[1],
            "durable add / LanceDB, its indexes kept": kept[0] / kept[1],
            "durable add / LanceDB, rows appended alone": appended[0] / appended[1],
        },
        "systems": {
            "ours": {
                "keyword ms": _ms(keyword[0]), "vector ms": _ms(vector[0]), "hybrid ms": _ms(hybrid[0]),
                "add ms": _ms(appended[0]), "with upkeep": _ms(kept[0]), "vector after adds": _ms(after[0]),
                "build s": round(built["ours"], 1), "vectors s": round(built["ours, vectors"], 1),
                "MB": _megabytes(ours.path),
            },
            "FTS5, user column": {
                "keyword ms": _ms(keyword[1]), "build s": round(built["FTS5"], 1), "MB": _megabytes(fts5.path),
            },
            "LanceDB": {
                "vector ms": _ms(vector[1]), "hybrid ms": _ms(hybrid[1]),
                "add ms": _ms(appended[1]), "with upkeep": _ms(kept[1]), "vector after adds": _ms(after[1]),
                "build s": round(built["LanceDB"], 1), "MB": _megabytes(lance.path),
            },
        },
    }  # fmt: skip
    print(json.dumps(result))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    for name in ("rows", "users", "dimensions", "questions"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser.parse_args()


def _of(question: Item, user: int) -> Item:
    return Item(user, question.text, question.vector)


def _took(work: Callable[..., object], *values: object) -> float:
    """Return the seconds that a call takes."""
    began = time.perf_counter()
    work(*values)
    return time.perf_counter() - began


def _compared(
    questions: Sequence[Item], ours: Callable[[Item], object], theirs: Callable[[Item], object]
) -> tuple[float, float]:
    """Return the median seconds of both systems for questions that both have answered before."""
    for question in questions:
        ours(question), theirs(question)
    seconds = _in_turns(questions, ours, theirs)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def _in_turns(
    items: Sequence[Item], ours: Callable[[Item], object], theirs: Callable[[Item], object]
) -> tuple[list[float], list[float]]:
    """Return the seconds of each item in both systems, which take turns every few items."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for start in range(0, len(items), _AT_A_STRETCH):
        for side, call in enumerate((ours, theirs)):
            seconds[side].extend(_took(call, item) for item in items[start : start + _AT_A_STRETCH])
    return seconds


def _recall(ours: Ours, items: Sequence[Item], questions: Sequence[Item]) -> float:
    """Return the share of the ten nearest memories, found by comparing all vectors of the user, that a search finds."""
    by_user: defaultdict[int, list[Item]] = defaultdict(list)
    for item in items:
        by_user[item.user].append(item)
    shares = []
    for question in questions[:100]:
        own = by_user[question.user]
        cosines = np.stack([item.vector for item in own]) @ question.vector
        nearest = {own[place].text for place in np.argsort(-cosines)[:10] if cosines[place] > 0}
        if nearest:
            shares.append(len(nearest & set(ours.search(question, "vector"))) / len(nearest))
    return statistics.fmean(shares)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)


def _megabytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else path.parent.glob(path.name + "*")
    return round(sum(file.stat().st_size for file in files if file.is_file()) / 2**20)


if __name__ == "__main__":
    main()
