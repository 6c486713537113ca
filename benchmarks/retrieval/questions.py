"""Load memories, questions and their answers from files of two formats.

- `conversations*.json`: a list of `{"sample_id", "conversation": {"session_1": [{"speaker", "dia_id", "text"}, …], …},
  "qa": [{"question", "evidence": ["D1:3", …], "category": 1–5}, …]}`; category 5 has no answer and is left out. Beside
  `session_1`, `session_1_date_time` ("1:56 pm on 8 May, 2023") is when it began.
- `passages*.jsonl`: lines `{"type": "memory", "user", "id", "text", "session"}` and
  `{"type": "question", "user", "text", "gold": [id, …]}`.
"""

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_UNANSWERABLE = 5
_BEGAN = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Told:
    """A memory to add: its user, its id in the file, its session and its text.

    `began_ms` is when the session began, in Unix milliseconds; None if the file does not say.
    """

    user: str
    id: str
    session: str
    text: str
    began_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    user: str
    text: str
    answered_by: frozenset[str]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    name: str
    told: dict[str, list[Told]] = field(default_factory=lambda: defaultdict(list))
    questions: list[Question] = field(default_factory=list)


def load(path: Path) -> QuestionSet:
    """Load a file. Raises: `KeyError` or `ValueError` for another format."""
    return _conversations(path) if path.suffix == ".json" else _passages(path)


def _conversations(path: Path) -> QuestionSet:
    found = QuestionSet(path.stem)
    for sample in json.loads(path.read_bytes()):
        user, conversation = sample["sample_id"], sample["conversation"]
        for name, turns in conversation.items():
            if isinstance(turns, list):
                began_ms = _began_ms(conversation.get(f"{name}_date_time"))
                found.told[user] += [Told(user, turn["dia_id"], name, _text(turn), began_ms) for turn in turns]
        ids = {one.id for one in found.told[user]}
        for asked in sample["qa"]:
            evidence = _evidence(asked.get("evidence") or []) & ids
            if evidence and asked["category"] != _UNANSWERABLE:
                found.questions.append(Question(user, asked["question"], frozenset(evidence)))
    return found


def _began_ms(written: str | None) -> int | None:
    """Return when a session began, read as UTC."""
    return int(datetime.strptime(written, _BEGAN).replace(tzinfo=UTC).timestamp() * 1000) if written else None


def _text(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [shares {caption}]" if caption else "")


def _evidence(written: list[str]) -> set[str]:
    """Return the ids of the evidence. Some files join them or add a colon."""
    return {f"D{int(session)}:{int(turn)}" for item in written for session, turn in _EVIDENCE.findall(item)}


def _passages(path: Path) -> QuestionSet:
    found = QuestionSet(path.stem)
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["type"] == "memory":
            found.told[row["user"]].append(Told(row["user"], row["id"], row.get("session", ""), row["text"]))
        else:
            found.questions.append(Question(row["user"], row["text"], frozenset(row["gold"])))
    return found
