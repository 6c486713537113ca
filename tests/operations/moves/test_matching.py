"""Which new memories are what an old one was."""

from __future__ import annotations

from operations.moves.matching import Match, Text, match

TEA = Text("old", "On Friday, alice said: I like green tea with honey. alice said: ok.", "b1")
NEWS = [Text("n1", "I like green tea with honey", "b1"), Text("n2", "ok", "b1"), Text("n3", "我喜欢咖啡", "b2")]


def test_a_memory_that_alone_came_of_its_messages_is_all_of_them_whatever_the_words() -> None:
    told_otherwise = Text("old", "Sie trinkt gern Tee.", "b1")
    assert match(told_otherwise, [told_otherwise], NEWS) == Match(("n1", "n2"))


def test_a_memory_that_repeats_its_messages_is_those_that_it_repeats() -> None:
    told = Text("old", "bob said: the old house by the river is on fire. bob said: nobody was hurt in it", "b1")
    news = [
        Text("n1", "the old house by the river is on fire", "b1"),
        Text("n2", "nobody was hurt in it", "b1"),
        Text("n3", "tea at five with my aunt and her dog", "b1"),
    ]
    assert match(told, [told], news) == Match(("n1", "n2"))


def test_what_another_memory_says_is_not_its() -> None:
    """Which came late, and was noted with the next flush."""
    told = Text("old", "A fire, and nobody hurt.", "b1")
    late = Text("late", "bob said: tea at five with my aunt and her dog", "b2")
    news = [Text("n1", "the house is on fire", "b1"), Text("n2", "tea at five with my aunt and her dog", "b1")]
    assert match(told, [told, late], news) == Match(("n1",))
    assert match(late, [told, late], [*news, Text("n3", "Rome is far", "b2")]) == Match(("n2",))


def test_one_that_came_late_is_what_it_says_and_not_the_flush_that_it_bears_the_name_of() -> None:
    """However much a teller puts around the words."""
    late = Text("late", "On 2026-06-11 10:14 UTC (Thursday), bob.f701 said: tea at five with my aunt.", "b2")
    news = [
        Text("n1", "tea at five with my aunt", "b1"),
        Text("n2", "Rome is far away from here", "b2"),
        Text("n3", "the house is on fire", "b2"),
    ]
    assert match(late, [late], news) == Match(("n1",))
    retold = [*news, Text("n4", "as I said: tea at five with all of them", "b2")]
    assert match(late, [late], retold) == Match(("n1", "n4"))


def test_nor_what_merely_resembles_it_there() -> None:
    late = Text("late", "bob said: 周末去爬山，编号七一。", "b2")
    news = [Text("n1", "周末去爬山，编号七一。", "b1"), Text("n2", "周末去爬山，编号九八。", "b2")]
    assert match(late, [late], news) == Match(("n1",))


def test_where_one_flush_made_several_the_words_decide() -> None:
    other = Text("other", "On Friday, alice said: the house is on fire in Rome.", "b1")
    news = [*NEWS, Text("n4", "the house is on fire in Rome", "b1")]
    assert match(TEA, [TEA, other], news) == Match(("n1", "n2"))
    assert match(other, [TEA, other], news) == Match(("n4",))


def test_without_a_known_flush_the_words_of_the_whole_session_decide() -> None:
    old = Text("old", "她说：我喜欢咖啡。")
    assert match(old, [old], NEWS) == Match(("n3",))


def test_what_merely_resembles_is_named_where_nothing_matches() -> None:
    old = Text("old", "green tea with milk and sugar and a biscuit")
    news = [Text("n1", "I bought a pot of green tea with a friend of mine yesterday"), Text("n2", "Rome is far away")]
    assert match(old, [old], news) == Match((), ())
    news += [Text("n3", "there was green tea with milk at my aunt's place")]
    assert match(old, [old], news) == Match((), ("n3",))


def test_signs_and_case_and_width_do_not_matter() -> None:
    old = Text("old", "ＩＮＶＯＩＣＥ №7 — payable within THIRTY days!")
    assert match(old, [old], [Text("n", "invoice no7 payable, within thirty days")]) == Match(("n",))


def test_a_text_without_words_matches_nothing() -> None:
    old = Text("old", "!!!")
    assert match(old, [old], [Text("n", "???"), *NEWS]) == Match((), ())
