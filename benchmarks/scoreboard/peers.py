"""Peers that need no language model: plain tables of SQLite's FTS5, and mem0 where it is installed.

FTS5 has its stemmer for English, or trigrams. mem0 needs an embedding model.
"""

import json
import re
import sqlite3
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

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

    def close(self) -> None:
        self._db.close()

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


class Mem0Process:
    """mem0 in an environment of its Python, given by the path of that Python, with `address#model?dimensions=N`."""

    def __init__(self, python: str, embedding: str) -> None:
        found = re.fullmatch(r"(.+)#(.+)\?dimensions=(\d+)", embedding)
        if found is None:
            raise ValueError("--embedding must look like http://127.0.0.1:8080/v1#model?dimensions=384")
        driver = Path(__file__).with_name("mem0_driver.py")
        command = [python, str(driver), *found.groups()]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def user(self, name: str) -> "Mem0":
        return Mem0(self, name)

    def call(self, *values: Any) -> Any:
        """Return the answer to a call. Raises: `RuntimeError` if mem0 has ended."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(values) + "\n")
        self._process.stdin.flush()
        if not (line := self._process.stdout.readline()):
            raise RuntimeError("mem0 has ended; its error is above")
        return json.loads(line)


class Mem0(Fts5):
    """A user of mem0, who adds texts as they are."""

    def __init__(self, process: Mem0Process, name: str) -> None:
        self._process, self._name = process, name

    def say(self, messages: Iterable[Said], **_options: Any) -> None:
        told = [(said.role, said.text, f"chat:{said.session}") for said in messages]
        self._process.call(self._name, "add", told)

    def delete(self, word: str) -> None:
        for key, text, _session in self._process.call(self._name, "search", (word, 20)):
            if word in text:
                self._process.call(self._name, "delete", key)

    def search(self, question: str, *, top_k: int = 10, **_options: Any) -> list[dict[str, Any]]:
        found = self._process.call(self._name, "search", (question, top_k))
        return [
            {"text": text, "session_id": session, "superseded_by": None, "relevance": None}
            for _key, text, session in found
        ]
