"""Passages cover the whole document once and in order, and end at natural breaks."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.document import Block, Document, split


def _document(*texts: str) -> Document:
    return Document(tuple(Block(text, None, None) for text in texts))


def _texts(document: Document, max_chars: int) -> list[str]:
    return [passage.text for passage in split(document, max_chars)]


def test_an_empty_document_has_no_passages() -> None:
    assert split(Document(())) == []
    assert split(_document("  \n ", "")) == []


def test_small_paragraphs_are_joined_up_to_the_limit() -> None:
    assert _texts(_document("one", "two", "three"), 9) == ["one\n\ntwo", "three"]


def test_a_long_paragraph_is_cut_at_sentences() -> None:
    assert _texts(_document("First one. Second one! Third?"), 23) == ["First one. Second one!", "Third?"]
    assert _texts(_document("付款期限三十天。逾期加收利息；双方确认！"), 10) == [
        "付款期限三十天。",
        "逾期加收利息；",
        "双方确认！",
    ]


def test_a_closing_quote_stays_with_its_sentence() -> None:
    assert _texts(_document("他说：“好的。”然后离开了房间去开会"), 11)[0] == "他说：“好的。”"


def test_numbers_are_not_cut_at_their_points() -> None:
    assert _texts(_document("The total is 3.14159 euros and 1,234,567 cents"), 20)[0] == "The total is 3.14159"


def test_without_sentences_text_is_cut_at_commas_and_spaces() -> None:
    assert _texts(_document("alpha beta gamma delta"), 11) == ["alpha beta", "gamma delta"]
    assert _texts(_document("甲乙丙丁，戊己庚辛，壬癸"), 6) == ["甲乙丙丁，", "戊己庚辛，", "壬癸"]


def test_text_without_breaks_is_cut_at_the_limit() -> None:
    assert _texts(_document("x" * 25), 10) == ["x" * 10, "x" * 10, "x" * 5]


@pytest.mark.parametrize("unit", ["e\u0301", "👩\u200d👩\u200d👧", "👍🏽", "🇨🇭", "\ud83d\ude00", "ก็"])
def test_grapheme_clusters_are_not_cut(unit: str) -> None:
    passages = _texts(_document(unit * 40), len(unit) * 3 + 1)
    assert all(len(passage) % len(unit) == 0 for passage in passages)
    assert "".join(passages) == unit * 40


def test_endless_combining_marks_are_cut_at_the_limit() -> None:
    assert max(map(len, _texts(_document("a" + "\u0301" * 5000), 800))) == 800


def test_pages_and_headings_are_not_mixed() -> None:
    blocks = (
        Block("Intro", 1, "Intro", "heading"),
        Block("on page one", 1, "Intro"),
        Block("on page two", 2, "Intro"),
        Block("Costs", 2, "Costs", "heading"),
        Block("ten", 2, "Costs"),
    )
    passages = split(Document(blocks))
    assert [(passage.text, passage.page, passage.heading, passage.position) for passage in passages] == [
        ("Intro\n\non page one", 1, "Intro", 0),
        ("on page two", 2, "Intro", 1),
        ("Costs\n\nten", 2, "Costs", 2),
    ]


def test_consecutive_headings_start_one_passage() -> None:
    blocks = (
        Block("Report", None, "Report", "heading"),
        Block("Part 1", None, "Part 1", "heading"),
        Block("Text", None, "Part 1"),
    )
    (passage,) = split(Document(blocks))
    assert (passage.text, passage.heading) == ("Report\n\nPart 1\n\nText", "Part 1")


def test_a_table_is_cut_between_rows_and_its_header_is_repeated() -> None:
    rows = ["name | price", *(f"item {number} | {number * 7}" for number in range(30))]
    document = Document((Block("\n".join(rows), None, "Prices", "table"), Block("after", None, "Prices")))
    passages = split(document, 100)
    assert [line for passage in passages[:-1] for line in passage.text.split("\n")] == rows
    assert passages[0].heading == "Prices"
    assert {passage.heading for passage in passages[1:-1]} == {"Prices — name | price"}
    assert (passages[-1].text, passages[-1].heading) == ("after", "Prices")


def test_a_row_longer_than_a_passage_is_cut_like_prose() -> None:
    document = Document((Block("head\n" + "word " * 100 + "\nlast", None, None, "table"),))
    passages = split(document, 50)
    assert passages[0].text == "head"
    assert passages[-1].text == "last"
    assert max(len(passage.text) for passage in passages) <= 50


_letters = st.text(
    alphabet=st.one_of(
        st.sampled_from("ab .,;!?。！？；，\n\t\u0301\u200d\u3000😀🇨🇭👍🏽合同"),
        st.characters(),
    ),
    max_size=120,
)
_blocks = st.builds(
    Block,
    _letters,
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, "A", "B"]),
    st.sampled_from(["paragraph", "heading", "table"]),
)


@given(st.lists(_blocks, max_size=12).map(lambda blocks: Document(tuple(blocks))), st.integers(2, 60))
def test_every_character_is_in_exactly_one_passage(document: Document, max_chars: int) -> None:
    passages = split(document, max_chars)
    covered = "".join(character for passage in passages for character in passage.text if not character.isspace())
    assert covered == "".join(character for character in document.text if not character.isspace())
    end = 0
    for position, passage in enumerate(passages):
        assert passage.position == position
        assert end <= passage.start < passage.end
        assert passage.text == document.text[passage.start : passage.end]
        assert len(passage.text) <= max_chars
        assert passage.text == passage.text.strip()
        end = passage.end


@given(st.text(alphabet="ae\u0301\u0300\u0302", min_size=10, max_size=200).filter(lambda text: text[0] in "ae"))
def test_no_passage_begins_with_a_combining_mark(text: str) -> None:
    longest = max(len(run) for run in text.replace("a", " ").replace("e", " ").split(" ")) + 1
    for passage in split(_document(text), max(longest, 5)):
        assert not unicodedata.combining(passage.text[0])


def test_all_passages_of_a_block_have_its_page_and_heading() -> None:
    document = Document((Block("word " * 300, 7, "H"),))
    assert {(passage.page, passage.heading) for passage in split(document)} == {(7, "H")}


def test_five_megabytes_are_cut_in_time() -> None:
    document = _document("这是一个很长的句子，没有尽头。" * 100_000)
    assert len(split(document)) < 3_000
