"""Load memories, questions and their answers from files of three formats.

- `conversations*.json`: a list of `{"sample_id", "conversation": {"session_1": [{"speaker", "dia_id", "text"}, …], …},
  "qa": [{"question", "evidence": ["D1:3", …], "category": 1–5}, …]}`; category 5 has no answer and is left out. Beside
  `session_1`, `session_1_date_time` ("1:56 pm on 8 May, 2023") is when it began.
- `passages*.jsonl`: lines `{"type": "memory", "user", "id", "text", "session"}` and
  `{"type": "question", "user", "text", "gold": [id, …]}`.
- LongMemEval's public file, as `_haystacks` reads it.
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_UNANSWERABLE = 5
_BEGAN = "%I:%M %p on %d %B, %Y"
_HAYSTACK_BEGAN = "%Y/%m/%d (%a) %H:%M"
_NO_ANSWER = "_abs"


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
    role: str = "user"


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
    if path.suffix == ".jsonl":
        return _passages(path)
    samples = json.loads(path.read_bytes())
    read = _haystacks if "haystack_sessions" in samples[0] else _conversations
    return read(path.stem, samples)


def _haystacks(name: str, samples: Sequence[dict[str, Any]]) -> QuestionSet:
    """Load `{"question_id", "question", "haystack_session_ids", "haystack_dates", "haystack_sessions"}`.

    A session is a list of `{"role", "content", "has_answer"}`. Each question has a separate user. Those whose id ends
    with `_abs` have no answer and are left out.
    """
    found = QuestionSet(name)
    for sample in samples:
        if sample["question_id"].endswith(_NO_ANSWER):
            continue
        user, answered_by = sample["question_id"], set()
        haystack = zip(*(sample[f"haystack_{part}"] for part in ("session_ids", "dates", "sessions")), strict=True)
        for session, date, turns in haystack:
            began_ms = _ms(date, _HAYSTACK_BEGAN)
            for number, turn in enumerate(turns):
                told = Told(user, f"{session}:{number}", session, turn["content"], began_ms, turn["role"])
                found.told[user].append(told)
                answered_by |= {told.id} if turn.get("has_answer") else set()
        if answered_by:
            found.questions.append(Question(user, sample["question"], frozenset(answered_by)))
    return found


def _conversations(name: str, samples: Sequence[dict[str, Any]]) -> QuestionSet:
    found = QuestionSet(name)
    for sample in samples:
        user, conversation = sample["sample_id"], sample["conversation"]
        for session, turns in conversation.items():
            if isinstance(turns, list):
                written = conversation.get(f"{session}_date_time")
                began_ms = _ms(written, _BEGAN) if written else None
                found.told[user] += [Told(user, turn["dia_id"], session, _text(turn), began_ms) for turn in turns]
        ids = {one.id for one in found.told[user]}
        for asked in sample["qa"]:
            evidence = _evidence(asked.get("evidence") or []) & ids
            if evidence and asked["category"] != _UNANSWERABLE:
                found.questions.append(Question(user, asked["question"], frozenset(evidence)))
    return found


def _ms(written: str, form: str) -> int:
    """Return a time, read as UTC, in Unix milliseconds."""
    return int(datetime.strptime(written, form).replace(tzinfo=UTC).timestamp() * 1000)


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
