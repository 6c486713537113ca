"""Measure how well searches find what labeled questions expect, and compare two measurements question by question."""

import statistics
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Self, TypeVar

import numpy as np
from django.db.models import Q
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from accounts import expiry
from accounts.services import find_user
from core.errors import InvalidInput
from memories.models import Override
from memories.services.scoped_hits import Scope, SearchCommand
from memories.services.search import search
from operations.commands import Report
from store.models import IN_LIVE_SESSION, IS_LIVE, Memory, State
from store.states import IS_IN_TRASH
from store.types import Method, Owner

DEPTH: Final = 50
"""The results of a question that are looked at."""
CUTOFFS: Final = (1, 5, 10)
_DRAWS: Final = 1000
_MAX_QUERY_CHARS: Final = 300
_SEED: Final = 1
_SCOPES: Final[frozenset[Scope]] = frozenset({"all_user_memory"})

_Row = TypeVar("_Row", bound=BaseModel)
Text = Annotated[str, Field(min_length=1, max_length=10_000)]


class Question(BaseModel):
    """A labeled question of one user.

    Expected are memories by id (`expected`) or by a part of their text (`texts`). `forbidden` memories must not be
    found at all. `label` groups questions in the report.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: Text
    query: Text
    expected: tuple[Text, ...] = ()
    texts: tuple[Text, ...] = ()
    forbidden: tuple[Text, ...] = ()
    label: str = ""
    app_id: Text = "default"
    project_id: Text = "default"

    @model_validator(mode="after")
    def _expects_something(self) -> Self:
        if not (self.expected or self.texts or self.forbidden):
            raise ValueError("one of expected, texts and forbidden is required")
        return self


class Result(BaseModel):
    """The answer to a question. `recall` is by cutoff, None if the question expects nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: str
    query: str
    label: str
    recall: dict[str, float] | None
    reciprocal_rank: float | None
    forbidden_found: tuple[str, ...]
    ms: float


def load(path: Path) -> list[Question]:
    """Read questions from a file with one JSON object per line. Raises: `InvalidInput` that names the line."""
    return _load(path, Question)


def load_results(path: Path) -> list[Result]:
    """Read results that `save` wrote. Raises: `InvalidInput`."""
    return _load(path, Result)


def _load(path: Path, model: type[_Row]) -> list[_Row]:
    rows = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rows.append(model.model_validate_json(line))
        except ValidationError as error:
            raise InvalidInput(f"{path}, line {number}: {error.errors()[0]['msg']}") from error
    if not rows:
        raise InvalidInput(f"{path} is empty.")
    return rows


def save(path: Path, rows: Iterable[Question | Result]) -> int:
    """Write questions or results, one JSON object per line; return their number."""
    count = 0
    with path.open("x", encoding="utf-8") as file:
        for row in rows:
            file.write(f"{row.model_dump_json(exclude_defaults=True)}\n")
            count += 1
    return count


def ask(questions: Sequence[Question], method: Method, report: Report) -> list[Result]:
    """Search for every question. Raises: `NotFound` for an unknown user, the errors of search."""
    pks = {user: find_user(user).pk for user in dict.fromkeys(question.user for question in questions)}
    results = []
    expiry.end_all_due()
    for number, question in enumerate(questions, start=1):
        owner = Owner(pks[question.user], question.user, question.app_id, question.project_id)
        results.append(_ask(owner, question, method))
        report(method, number, len(questions))
    return results


def _ask(owner: Owner, question: Question, method: Method) -> Result:
    command = SearchCommand(question.query, method=method, top_k=DEPTH, scopes=_SCOPES, include_profile=False)
    began = time.perf_counter()
    hits = [found.hit for found in search(owner, command).results]
    ms = (time.perf_counter() - began) * 1000
    ids = [hit.memory_id for hit in hits]
    texts = [hit.text.casefold() for hit in hits]
    ranks = [_rank(memory_id == one for one in ids) for memory_id in question.expected]
    ranks += [_rank(part.casefold() in text for text in texts) for part in question.texts]
    return Result(
        user=question.user,
        query=question.query,
        label=question.label,
        recall={str(k): sum(rank <= k for rank in ranks) / len(ranks) for k in CUTOFFS} if ranks else None,
        reciprocal_rank=1 / min(ranks) if ranks else None,
        forbidden_found=tuple(sorted(set(question.forbidden) & set(ids))),
        ms=round(ms, 3),
    )


def _rank(matches: Iterable[bool]) -> float:
    """Return the place of the first match, from 1; infinity for none."""
    return next((place for place, is_match in enumerate(matches, start=1) if is_match), float("inf"))


def summarize(results: Sequence[Result]) -> dict[str, Any]:
    """Return the means with their 95 % confidence intervals (bootstrap over questions), and the latency."""
    measured = [one for one in results if one.recall is not None]
    times = sorted(one.ms for one in results)
    return {
        "questions": len(results),
        **{f"recall@{k}": _mean([one.recall[str(k)] for one in measured if one.recall]) for k in CUTOFFS},
        "mrr": _mean([one.reciprocal_rank for one in measured if one.reciprocal_rank is not None]),
        "forbidden_found": sum(len(one.forbidden_found) for one in results),
        "p50_ms": round(statistics.median(times), 2),
        "p95_ms": round(times[int(0.95 * (len(times) - 1))], 2),
    }


def compare(before: Sequence[Result], after: Sequence[Result]) -> dict[str, Any]:
    """Return the paired differences of the questions that both have, and those that got worse, the worst first."""
    known = {(one.user, one.query): one for one in before if one.recall is not None}
    pairs = [(known[one.user, one.query], one) for one in after if one.recall and (one.user, one.query) in known]
    rows = [
        (new.recall["10"] - old.recall["10"], (new.reciprocal_rank or 0.0) - (old.reciprocal_rank or 0.0), new)
        for old, new in pairs
        if old.recall and new.recall
    ]
    return {
        "questions": len(rows),
        "recall@10": _mean([recall for recall, _rank, _new in rows]),
        "mrr": _mean([rank for _recall, rank, _new in rows]),
        "worse": [
            {"user": new.user, "query": new.query, "recall@10": round(recall, 4), "reciprocal_rank": round(rank, 4)}
            for recall, rank, new in sorted(rows, key=lambda row: row[:2])
            if (recall, rank) < (0.0, 0.0)
        ],
    }


def _mean(values: Sequence[float]) -> dict[str, float] | None:
    """Return the mean and the bounds of its 95 % interval; None without values."""
    if not values:
        return None
    sample = np.array(values)
    draws = np.random.default_rng(_SEED).choice(sample, (_DRAWS, len(sample))).mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return {"mean": round(float(sample.mean()), 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def questions_of_decisions(user_ids: Collection[str] | None) -> Iterator[Question]:
    """Yield questions from what users and operators decided; of all users if `user_ids` is None.

    An edited memory is expected for its new wording. A deleted one must not be found by its own text; one that has
    expired is left out, because a model may read the questions.
    """
    expiry.end_all_due()
    of_users = Q() if user_ids is None else Q(user__user_id__in=user_ids)
    edits = Override.objects.filter(of_users, undone_at__isnull=True).exclude(text="").select_related("user")
    for edit in edits.order_by("pk").iterator():
        yield _question(edit, "edit", edit.text, expected=(edit.memory_id,))
    is_deleted = ~IS_LIVE & (~IN_LIVE_SESSION | Q(IS_IN_TRASH))
    expired = Q(state=State.EXPIRED) | Q(session__state=State.EXPIRED, session__isnull=False)
    deleted = Memory.objects.filter(of_users, is_deleted).exclude(expired).exclude(text="").select_related("user")
    for memory in deleted.order_by("pk").iterator():
        yield _question(memory, "deletion", memory.text, forbidden=(memory.memory_id,))


def _question(row: Override | Memory, label: str, text: str, **labels: tuple[str, ...]) -> Question:
    return Question(
        user=row.user.user_id,
        query=text[:_MAX_QUERY_CHARS],
        label=label,
        app_id=row.app_id,
        project_id=row.project_id,
        **labels,
    )
