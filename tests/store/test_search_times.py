"""Searches for what was said or is of a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from engines.embedded.engine import EmbeddedEngine
from tests.conftest import Person
from tests.store.conftest import search, text_message, texts

NOW = datetime(2026, 6, 10, 9, tzinfo=UTC)


def tell(engine: EmbeddedEngine, person: Person, said: dict[str, datetime]) -> None:
    """Store each text in another session."""
    for number, (text, at) in enumerate(said.items()):
        session = f"chat:s{number}"
        engine.add(person.owner, session, [text_message(text, at=int(at.timestamp() * 1000))])
        engine.flush(person.owner, session)


def test_a_time_without_memories_is_found_by_the_words_that_name_it(engine: EmbeddedEngine, alice: Person) -> None:
    """The newer text would be first if the words of the time did not count."""
    said = {"Four years ago I sold the boat": NOW - timedelta(400), "I painted a boat": NOW - timedelta(390)}
    tell(engine, alice, said)
    assert texts(search(engine, alice.owner, "Which boat did I have four years ago?", now=NOW)) == list(said)


def test_the_words_of_a_time_alone_find_nothing(engine: EmbeddedEngine, alice: Person) -> None:
    tell(engine, alice, {"Yesterday I sold the boat": NOW - timedelta(20)})
    assert search(engine, alice.owner, "What happened yesterday?", now=NOW) == []


def test_a_message_is_found_by_the_day_of_the_one_who_asks(engine: EmbeddedEngine, alice: Person) -> None:
    """The message is of 9 June in UTC, where it says no zone, and of 10 June in Tokyo."""
    tell(engine, alice, {"I sold the boat": datetime(2026, 6, 9, 20, tzinfo=UTC), "I rowed": NOW - timedelta(10)})
    now = NOW.astimezone(ZoneInfo("Asia/Tokyo"))
    assert texts(search(engine, alice.owner, "What did I do today?", now=now)) == ["I sold the boat"]
    assert texts(search(engine, alice.owner, "What did I do today?", now=NOW)) == []
