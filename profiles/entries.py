"""Find the entries of a user's documents that answer a query: those that hold the words that tell what it asks for."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple, cast
from uuid import UUID

from accounts.profile_entries import ProfileEntry, Question
from profiles import prompts
from profiles.documents import Document, document_of
from profiles.labels import Language
from profiles.models import ProfileMemory
from profiles.schemas import UserMemoryContent
from store.search.question import asked
from store.text.times import query_times
from store.text.tokens import query_readings, query_tokens, tokenize, without_stop_words

MOST_ENTRIES: Final = 3
LEAST_RELEVANCE: Final = 0.5
_READ_CHARS: Final = 1000
"""Of an entry, for the comparison with a query."""
_ALSO_CALLED: Final = {
    "occupation": "job profession work Beruf Arbeit 工作",
    "timezone": "time zone Zeitzone",
    "primary_language": "language speak Sprache 语言",
    "interests": "interest hobby hobbies like Hobby Interessen 爱好 喜欢",
    "places": "place address Ort Anschrift",
    "current_projects": "project working Projekt",
    "team_members": "team colleague Kollege Kollegin 同事",
    "preferred_tools": "tool prefer Werkzeug",
}
"""Words for fields besides their labels, which are English and Chinese."""


class _Asked(NamedTuple):
    """The words of a query that tell what it asks for: of whom or what, and others. `readings` are further stems."""

    subjects: frozenset[str]
    others: frozenset[str]
    readings: dict[str, str]


def fitting(user_pk: UUID, question: Question) -> list[ProfileEntry] | None:
    """Return up to three entries, best first; None for a user without documents. One SQL statement."""
    rows = list(ProfileMemory.objects.filter(owner_id=user_pk).order_by("memory_type"))
    if not rows:
        return None
    wanted = _asked(question.query)
    if not wanted.subjects and not wanted.others:
        return []
    documents = {row.memory_type: document_of(row) for row in rows}
    user = documents.get("user")
    language = prompts.language_of(cast("UserMemoryContent | None", user and user.readable))
    least = LEAST_RELEVANCE if question.least is None else question.least
    found = [
        entry
        for document in documents.values()
        for entry in _entries(document, language, wanted)
        if entry.relevance >= least
    ]
    return sorted(found, key=lambda entry: -entry.relevance)[:MOST_ENTRIES]


def _entries(document: Document, language: Language, wanted: _Asked) -> Iterator[ProfileEntry]:
    """Yield the entries of a document that share words with a query; none of a disabled one."""
    if document.readable is None or document.updated_at is None:
        return
    kind, content = document.kind, document.readable
    lines = {written: list(prompts.lines_of(kind, content, written)) for written in prompts.LANGUAGES}
    updated_at_ms = int(document.updated_at.timestamp() * 1000)
    for place, line in enumerate(lines[language]):
        labeled = (f"{one[place].heading} {one[place].text}" for one in lines.values())
        words = frozenset().union(*map(_words, labeled), _words(_ALSO_CALLED.get(line.path.split(".")[1], "")))
        if relevance := _relevance(words, wanted):
            text = f"{line.heading}: {line.text.removeprefix('- ')}" if line.heading else line.text
            yield ProfileEntry(f"profile:{kind}", line.path, text, relevance, updated_at_ms)


def _asked(query: str) -> _Asked:
    rest, known = query_times(query, datetime.now(UTC)).rest, asked(query)
    words = {word for word in without_stop_words(query_tokens(rest)) if ":" not in word} - known.common
    subjects = words & known.subjects
    return _Asked(frozenset(subjects), frozenset(words - subjects), query_readings(rest))


@lru_cache(maxsize=2048)
def _words(text: str) -> frozenset[str]:
    return frozenset(tokenize(text[:_READ_CHARS]))


def _relevance(words: frozenset[str], wanted: _Asked) -> float:
    """Return the share of a query's words in an entry; 0 if none is of its subject, or none of the others."""
    held = words | {word for reading, word in wanted.readings.items() if reading in words}
    subjects, others = wanted.subjects & held, wanted.others & held
    if (wanted.subjects and not subjects) or (wanted.others and not others):
        return 0.0
    return (len(subjects) + len(others)) / (len(wanted.subjects) + len(wanted.others))
