"""Matching of new memories with old ones."""

from __future__ import annotations

from store.text.matching import Match, Text, match

TEA = Text("old", "On Friday, alice said: I like green tea with honey. alice said: ok.", "b1")
NEWS = [Text("n1", "I like green tea with honey", "b1"), Text("n2", "ok", "b1"), Text("n3", "我喜欢咖啡", "b2")]


def test_the_only_memory_of_a_batch_matches_all_its_messages() -> None:
    rephrased = Text("old", "Sie trinkt gern Tee.", "b1")
    assert match(rephrased, [rephrased], NEWS) == Match(("n1", "n2"))


def test_a_memory_matches_the_messages_that_it_repeats() -> None:
    old = Text("old", "bob said: the old house by the river is on fire. bob said: nobody was hurt in it", "b1")
    news = [
        Text("n1", "the old house by the river is on fire", "b1"),
        Text("n2", "nobody was hurt in it", "b1"),
        Text("n3", "tea at five with my aunt and her dog", "b1"),
    ]
    assert match(old, [old], news) == Match(("n1", "n2"))


def test_a_memory_does_not_match_messages_of_another_memory() -> None:
    """A memory of a late message carries the batch id of the next flush."""
    old = Text("old", "A fire, and nobody hurt.", "b1")
    late = Text("late", "bob said: tea at five with my aunt and her dog", "b2")
    news = [Text("n1", "the house is on fire", "b1"), Text("n2", "tea at five with my aunt and her dog", "b1")]
    assert match(old, [old, late], news) == Match(("n1",))
    assert match(late, [old, late], [*news, Text("n3", "Rome is far", "b2")]) == Match(("n2",))


def test_a_late_memory_matches_by_its_text_and_not_by_its_batch() -> None:
    """The engine adds text around the message."""
    late = Text("late", "On 2026-06-11 10:14 UTC (Thursday), bob.f701 said: tea at five with my aunt.", "b2")
    news = [
        Text("n1", "tea at five with my aunt", "b1"),
        Text("n2", "Rome is far away from here", "b2"),
        Text("n3", "the house is on fire", "b2"),
    ]
    assert match(late, [late], news) == Match(("n1",))
    replayed = [*news, Text("n4", "as I said: tea at five with all of them", "b2")]
    assert match(late, [late], replayed) == Match(("n1", "n4"))


def test_a_late_memory_does_not_match_similar_messages_of_its_batch() -> None:
    late = Text("late", "bob said: 周末去爬山，编号七一。", "b2")
    news = [Text("n1", "周末去爬山，编号七一。", "b1"), Text("n2", "周末去爬山，编号九八。", "b2")]
    assert match(late, [late], news) == Match(("n1",))


def test_several_memories_of_a_batch_are_matched_by_text() -> None:
    other = Text("other", "On Friday, alice said: the house is on fire in Rome.", "b1")
    news = [*NEWS, Text("n4", "the house is on fire in Rome", "b1")]
    assert match(TEA, [TEA, other], news) == Match(("n1", "n2"))
    assert match(other, [TEA, other], news) == Match(("n4",))


def test_a_memory_without_a_batch_is_matched_by_text_in_the_whole_session() -> None:
    old = Text("old", "她说：我喜欢咖啡。")
    assert match(old, [old], NEWS) == Match(("n3",))


def test_similar_messages_are_returned_if_nothing_matches() -> None:
    old = Text("old", "green tea with milk and sugar and a biscuit")
    news = [Text("n1", "I bought a pot of green tea with a friend of mine yesterday"), Text("n2", "Rome is far away")]
    assert match(old, [old], news) == Match((), ())
    news += [Text("n3", "there was green tea with milk at my aunt's place")]
    assert match(old, [old], news) == Match((), ("n3",))


def test_punctuation_case_and_width_are_ignored() -> None:
    old = Text("old", "ＩＮＶＯＩＣＥ №7 — payable within THIRTY days!")
    assert match(old, [old], [Text("n", "invoice no7 payable, within thirty days")]) == Match(("n",))


def test_a_text_without_words_matches_nothing() -> None:
    old = Text("old", "!!!")
    assert match(old, [old], [Text("n", "???"), *NEWS]) == Match((), ())
