"""Peers that need no model: plain tables of SQLite's FTS5, with its stemmer for English or by trigrams."""

import re
import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from benchmarks.answers.client import Asked, Said

TOKENIZERS: Final = {"FTS5, porter": "porter unicode61", "FTS5, trigrams": "trigram"}
_WORD: Final = re.compile(r"\w+")
_TRIGRAM: Final = re.compile(r"(?=(\w{3}))")


class Fts5:
    """A user with a table of FTS5: the words of a question joined by OR, ranked by bm25, and no other rule."""

    def __init__(self, tokenizer: str) -> None:
        self._words = _TRIGRAM if tokenizer == "trigram" else _WORD
        self._db = sqlite3.connect(":memory:")
        self._db.execute(f"CREATE VIRTUAL TABLE said USING fts5(body, session UNINDEXED, tokenize='{tokenizer}')")

    def say(self, messages: Iterable[Said], **_options: Any) -> None:
        rows = ((said.text, f"chat:{said.session}") for said in messages)
        self._db.executemany("INSERT INTO said (body, session) VALUES (?, ?)", rows)

    def store(self, text: str) -> None:
        self.say([Said(text, session="facts")])

    def upload(self, filename: str, text: str) -> None:
        self.say([Said(text, session=filename)])

    def delete(self, word: str) -> None:
        self._db.execute("DELETE FROM said WHERE said MATCH ?", (f'"{word}"',))

    def search(self, question: str, *, top_k: int = 10, **_options: Any) -> list[dict[str, Any]]:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(self._words.findall(question)))
        statement = "SELECT body, session FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?"
        found = self._db.execute(statement, (words, top_k)).fetchall() if words else []
        return [
            {"text": text, "session_id": session, "superseded_by": None, "relevance": None} for text, session in found
        ]

    def recall(self, question: str) -> tuple[list[str], int]:
        lines = [result["text"] for result in self.search(question)]
        return lines, len("\n".join(lines).encode())

    def ask(self, question: str, **_options: Any) -> Asked:
        return Asked(self.search(question), *self.recall(question))
