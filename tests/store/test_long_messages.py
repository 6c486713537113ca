"""The rank of long messages: a fact in their middle counts, words far apart do not."""

from __future__ import annotations

from engines.embedded.engine import EmbeddedEngine
from tests.conftest import Person
from tests.store.conftest import NOON_MS, search, text_message, texts

FILLER = "We talked about the harbour and the weather for a long while. " * 100
QUERY = "Which code do the zebra notes have?"
FACT = "The zebra notes have the code 4412."
TALK = tuple(f"Conversation {number} was about the harbour and all its boats in the rain." for number in range(20))


def say(engine: EmbeddedEngine, person: Person, *said: str) -> None:
    """Add each text as a message of another session."""
    for number, text in enumerate(said):
        engine.add(person.owner, f"chat:c{number}", [text_message(text, at=NOON_MS + number * 60_000)])
        engine.flush(person.owner, f"chat:c{number}")


def test_a_fact_in_the_middle_of_a_long_message_is_first(engine: EmbeddedEngine, alice: Person) -> None:
    near = [
        f"{text} {text} {word} was there."
        for text, word in zip(TALK, ("The zebra code", "My zebra notes"), strict=False)
    ]
    fact = f"{FILLER}{FACT} {FILLER}"
    say(engine, alice, fact, *near, *TALK)
    assert texts(search(engine, alice.owner, QUERY))[0] == fact


def test_a_log_with_all_words_far_apart_is_below_a_text_that_holds_them(engine: EmbeddedEngine, alice: Person) -> None:
    log = "".join(f"{word} " * 20 + FILLER for word in ("zebra", "notes", "code"))
    say(engine, alice, FACT, log, *TALK)
    assert texts(search(engine, alice.owner, QUERY)) == [FACT, log]
