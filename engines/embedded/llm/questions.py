"""What a language model does for a search: it puts the question in the words of memories, and judges what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from engines.embedded.llm.client import Answer, ChatClient
from engines.embedded.llm.framing import RULE, framed

MAX_QUERIES: Final = 4
"""The question itself is always the first of them."""
MAX_QUERY_CHARS: Final = 300
_MAX_QUESTION_CHARS: Final = 2000
_MAX_JUDGED_CHARS: Final = 600
_MOST: Final = 10.0

_REWRITE: Final = (
    "You prepare a search in a person's memories: notes of what they said and of documents that they gave. You get a "
    f"question and today's date. Write 1 to {MAX_QUERIES - 1} short search queries, in the language of the question, "
    "that together find what answers it: in the words that such notes would use, each of one topic, a question about "
    "several things split up, names kept, 'yesterday' and the like as dates. "
    'The answer\'s form: {"queries": ["…"]}. '
) + RULE
_JUDGE: Final = (
    "You judge memories found for a question. The first line of the data is the question; each other one is a memory "
    "with its number. Give each memory a number from 0 (says nothing about the question) to 10 (answers it). "
    'The answer\'s form: {"ratings": [{"number": 1, "rating": 7}]}. '
) + RULE


class _Queries(Answer):
    queries: Annotated[list[str], Field(min_length=1, max_length=50)]


def _bounded(value: float) -> float:
    return min(max(value, 0.0), _MOST)


class _Rating(Answer):
    number: int
    rating: Annotated[float, Field(allow_inf_nan=False), AfterValidator(_bounded)]


class _Ratings(Answer):
    ratings: Annotated[list[_Rating], Field(min_length=1, max_length=1000)]


def queries_of(client: ChatClient, question: str, today: date, seconds: float) -> list[str]:
    """The question and what to look for besides, `MAX_QUERIES` in all. Errors: `EndpointError`."""
    data = framed([{"question": question[:_MAX_QUESTION_CHARS], "today": today.isoformat()}])
    answer = client.ask(_REWRITE, data, _Queries, seconds)
    told = [" ".join(query.split())[:MAX_QUERY_CHARS] for query in answer.queries]
    return list(dict.fromkeys([question, *filter(None, told)]))[:MAX_QUERIES]


def ratings_of(
    client: ChatClient, question: str, memories: Sequence[Mapping[str, Any]], seconds: float
) -> dict[int, float]:
    """How much memories (with `text`) say about the question, 0 to 1 by their places; what was left out is absent.

    Errors: `EndpointError`.
    """
    lines = [
        {"number": number, **memory, "text": str(memory["text"])[:_MAX_JUDGED_CHARS]}
        for number, memory in enumerate(memories, start=1)
    ]
    data = framed([{"question": question[:_MAX_QUESTION_CHARS]}, *lines])
    answer = client.ask(_JUDGE, data, _Ratings, seconds)
    known = (rating for rating in answer.ratings if 1 <= rating.number <= len(memories))
    return {rating.number - 1: rating.rating / _MOST for rating in known}
