"""HTML and the formats of text are read by their grammar, and without a loss if it is broken."""

from __future__ import annotations

import json

import pytest

from documents import mime_types as mt
from documents.rows import Row
from documents.text_kinds import READERS

H, P, C, T, I = "heading", "paragraph", "context", "table", "item"  # noqa: E741


def rows(mime: str, text: str) -> list[tuple[str, str]]:
    return [_short(row) for row in READERS[mime](text)]


def _short(row: Row) -> tuple[str, str]:
    return row[0], row[2]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h1>A</h1>bare <div>in div</div><span>span</span>", [(H, "A"), (P, "bare"), (P, "in div"), (P, "span")]),
        ("<p>Rue 5<br>75002 Paris", [(P, "Rue 5\n75002 Paris")]),
        ("<div>one</div><div>two</div>", [(P, "one"), (P, "two")]),
        ("un<b>believ</b>able H<sub>2</sub>O", [(P, "unbelievable H2O")]),
        ("<dl><dt>Notice<dd>Three months</dl>", [(P, "Notice"), (I, "Three months")]),
        ("<details><summary>More</summary>hidden</details>", [(P, "More"), (P, "hidden")]),
        ("<figure><img alt=seal><figcaption>Fig 1</figure>", [(P, "seal"), (P, "Fig 1")]),
        (
            "<table><caption>Prices<tr><th>a<th>b<tr><td>1<br>2<td>3</table>x",
            [(P, "Prices"), (T, "a | b\n1 2 | 3"), (P, "x")],
        ),
        ("<table><tr><td>a<td><table><tr><td>E1<td>E2</table></table>", [(T, "a | E1 | E2")]),
        ("<table><tr><td><h2>Big</h2><p>text<td>side</table>", [(H, "Big"), (P, "text"), (P, "side")]),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", [(I, "a"), (I, "b"), (I, "c")]),
        (
            "<ol><li>a<li value=5><p>b</p><p>c</p><ul><li>d</ul><li>e</ol><ol type=a start=2><li>f</ol>g",
            [(I, "1. a"), (P, "5. b"), (P, "c"), (I, "d"), (I, "6. e"), (I, "b. f"), (P, "g")],
        ),
        (
            "<ol reversed start=2><li>a<li></li><li>b</ol><ol style='list-style: none'><li>c</ol><li>d",
            [(I, "2. a"), (I, "0. b"), (I, "c"), (I, "d")],
        ),
        ("<table><tr><td>x<td><ol><li>a<li>b</ol></table>", [(T, "x | 1. a 2. b")]),
        ("<pre>if x:\n    y</pre>", [(P, "if x:\n    y")]),
        ("<label>Name</label> <input value=Ann> <input type=hidden value=t0ken>", [(P, "Name Ann")]),
        ("<nav>Home</nav><p>text</p><footer>(c)</footer>", [(P, "text")]),
        ("<script>a<b</script><style>p{}</style><p>text<template>t</template>", [(P, "text")]),
        ("<div><p style='display: none'>x</div>after<p hidden>a<p>b", [(P, "after"), (P, "b")]),
        ("<nav>Home</nav>", [(P, "Home")]),
        ("<my-card><template shadowrootmode=open><p>shown</template></my-card>", [(P, "shown")]),
        ("<nav>Home<p>never closed", [(P, "Home"), (P, "never closed")]),
        ("<title>T</title><h1>T</h1><p>x", [(H, "T"), (P, "x")]),
        ("&lt;p&gt; &amp; caf&eacute; &#x4f1a;", [(P, "<p> & café 会")]),
        ("<a href='http://x'>link</a> <!-- no -->text", [(P, "link text")]),
        (
            "Let <math><mi>x</mi><mo>=</mo><mn>2</mn><annotation>x=2</annotation></math> be. <xml><o:p>no</o:p></xml>",
            [(P, "Let x=2 be.")],
        ),
        ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>字", [(P, "漢 (kan) 字")]),
        ("", []),
    ],
)
def test_html(html: str, expected: list[tuple[str, str]]) -> None:
    assert rows(mt.HTML, html) == expected


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("# A\n## B\ntext\n### C ###\nmore", [(H, "A"), (H, "B"), (P, "text"), (H, "C"), (P, "more")]),
        ("Noise\n=====\n\nQuiet\n---\nx", [(H, "Noise"), (H, "Quiet"), (P, "x")]),
        ("~~~\n\n# no\n~~~\n\n    # no\n", [(P, "~~~\n\n# no\n~~~"), (P, "    # no")]),
        ("## The **big** [plan](http://x) of `a`", [(H, "The big plan of a")]),
        ("---\ntitle: Manual\n---\n# A\nx", [(P, "title: Manual"), (H, "A"), (P, "x")]),
        ("x\n\n[a]: http://b\n\ny", [(P, "x"), (P, "[a]: http://b"), (P, "y")]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", [(T, "a | b\n1 | 2")]),
        ("<details>\n<b>bold</b>\n</details>\n\nx", [(P, "bold"), (P, "x")]),
        ("> # quoted\n\n- # item", [(P, "> # quoted"), (P, "- # item")]),
        ("#no heading", [(P, "#no heading")]),
        ("#", []),
    ],
)
def test_markdown(markdown: str, expected: list[tuple[str, str]]) -> None:
    assert rows(mt.MARKDOWN, markdown) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps({"city": "Zürich", "note": 'a "b"\nc'}), [(C, ""), (P, 'city: Zürich\nnote: a "b"\nc')]),
        ('{"a": {"b": [{"c": 1.10}, {"c": 2}]}}', [(C, "a.b"), (P, "c: 1.10"), (C, "a.b"), (P, "c: 2")]),
        ('{"x": 1, "x": true, "y": null}', [(C, ""), (P, "x: 1\nx: true")]),
        ('[1, "two", []]', [(C, ""), (P, "1\ntwo")]),
        ('"\\u4f1a"', [(C, ""), (P, "会")]),
        ('{"a": "\\u4f1a"}\n{"a": "b"}\n', [(C, ""), (P, "a: 会"), (C, ""), (P, "a: b")]),
        (
            '{"a": 1}\nno json \\u4f1a\n{"a": 2}',
            [(C, ""), (P, "a: 1"), (C, ""), (P, "no json 会"), (C, ""), (P, "a: 2")],
        ),
        ('{"a": {"b": 1}}\n{"a": "cut', [(C, "a"), (P, "b: 1"), (C, ""), (P, '{"a": "cut')]),
        ('{"a": "\\u4f1a", ', [(P, '{"a": "会",')]),
        ('{"image": "data:image/png;base64,%s"}' % ("iVBO" * 200), []),
        ("", []),
    ],
)
def test_json(text: str, expected: list[tuple[str, str]]) -> None:
    assert rows(mt.JSON, text) == expected
    assert rows(mt.JSON_LINES, text) == expected


def test_deep_json_is_read_as_text() -> None:
    assert rows(mt.JSON, "[" * 100_000) == [(P, "[" * 100_000)]
    deep = "[" * 900 + "1" + "]" * 900
    assert [text for kind, text in rows(mt.JSON, deep) if kind == P] in ([["1"], [deep]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '<f:feed xmlns:f="urn:f"><f:title xml:lang="de">Caf&#233; &amp; Bar</f:title><date/></f:feed>',
            [(C, ""), (P, "title: Café & Bar")],
        ),
        (
            '<pets><pet id="7"><name>Ann</name></pet><pet id="8"><![CDATA[a < b]]></pet></pets>',
            [(C, "pet"), (P, "id: 7\nname: Ann"), (C, "pet"), (P, "id: 8\na < b")],
        ),
        (
            '<book><chapter><p>un<b>believ</b>able <a href="x">link</a>\n  end</p></chapter></book>',
            [(C, "chapter.p"), (P, "unbelievable link\nend\nhref: x")],
        ),
        ('<!DOCTYPE a [<!ENTITY co "Company">]><a>&co;</a>', [(C, ""), (P, "Company")]),
        ('<!DOCTYPE a SYSTEM "a.dtd"><a>caf&eacute; &other;</a>', [(C, ""), (P, "café &other;")]),
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>x: &x;</a>', [(C, ""), (P, "x: &x;")]),
        ("<a>caf&#233;</b>", [(P, "<a>café</b>")]),
    ],
)
def test_xml(text: str, expected: list[tuple[str, str]]) -> None:
    assert rows(mt.XML, text) == expected


def test_hostile_xml_is_read_within_the_limits() -> None:
    deep = "<a>x" * 20_000 + "</a>" * 20_000
    assert [kind for kind, _ in rows(mt.XML, deep)] == [C, P]
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE a [<!ENTITY a0 "{"lol" * 100}">{entities}]><a>&a9;</a>'
    assert rows(mt.XML, bomb) == [(P, bomb)]


def test_a_notebook() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Study\n", "in *Zürich*"], "attachments": {"a": {"image/png": "AAAA"}}},
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [
                {"output_type": "stream", "text": ["1\n", "2\n"]},
                {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo" * 50, "text/plain": ["<Figure>"]}},
                {"output_type": "display_data", "data": {"text/html": ["<table><tr><td>77<td>quokkas</table>"]}},
                {"output_type": "error", "traceback": ["\x1b[0;31mKeyError\x1b[0m", "'x'"]},
            ],
        },
    ]
    expected = [
        *((H, "Study"), (P, "in *Zürich*"), (P, "print(1)"), (P, "1\n2"), (P, "<Figure>"), (T, "77 | quokkas")),
        (P, "KeyError\n'x'"),
    ]
    assert rows(mt.NOTEBOOK, json.dumps({"cells": cells})) == expected
    assert rows(mt.NOTEBOOK, json.dumps({"worksheets": [{"cells": cells}]})) == expected
    assert rows(mt.NOTEBOOK, '{"cells": 3}') == [(C, ""), (P, "cells: 3")]
    assert rows(mt.NOTEBOOK, "no json") == [(P, "no json")]


@pytest.mark.parametrize(
    ("text", "table"),
    [
        (
            'name;note\n"Müller, A";"likes ""tea""; no"\nB;"line\n\ntwo"\n\n',
            'name | note\nMüller, A | likes "tea"; no\nB | line two',
        ),
        ("a,b\n1,2\n", "a | b\n1 | 2"),
        ("a\tb\n1\t2,5\n", "a | b\n1 | 2,5"),
        ("sep=|\na|b,c\n", "a | b,c"),
        ('a, "b, c", d\n1, "2, 3", 4\n', "a | b, c | d\n1 | 2, 3 | 4"),
        ("only one column\nof text, here\n", "only one column\nof text, here"),
        ('a,b\n1,"never closed\n2,3\n', "a | b\n1 | never closed\n2 | 3"),
        ('a,b\n1,"two" words\n2,"3, 4"\n', "a | b\n1 | two words\n2 | 3, 4"),
    ],
)
def test_values_in_rows(text: str, table: str) -> None:
    assert rows(mt.CSV, text) == [(T, table)]


def test_values_between_tabs_may_have_commas() -> None:
    assert rows(mt.TSV, "a,b\tc\n1\t2\n") == [(T, "a,b | c\n1 | 2")]


def test_the_texts_of_a_drawing() -> None:
    svg = (
        "<?xml version='1.0'?><svg xmlns='x'><title>Plan</title><style>.a{}</style><defs><path d='M0'/></defs>"
        "<text x='1'>The <tspan>valve</tspan></text><desc>Room &#x4f1a;</desc></svg>"
    )
    assert rows(mt.SVG, svg) == [(H, "Plan"), (P, "The valve"), (P, "Room 会")]
    lines = "<svg><text><tspan x='1' y='1'>Boiler</tspan><tspan x='1' y='2'>room</tspan></text></svg>"
    assert rows(mt.SVG, lines) == [(P, "Boiler"), (P, "room")]


def test_yaml() -> None:
    text = 'boiler:\n  # below the stairs\n  note: "H\\xE4user"\nname: x\nbad: "\\q\n'
    assert rows(mt.YAML, text.replace('bad: "\\q\n', "")) == [
        (C, "boiler"),
        (P, "boiler:\n  # below the stairs\n  note: Häuser"),
        (C, ""),
        (P, "name: x"),
    ]
    assert "below the stairs" in str(rows(mt.YAML, text))
    bomb = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(50))
    assert sum(kind == P for kind, _ in rows(mt.YAML, bomb)) == 51


def test_subtitles() -> None:
    vtt = (
        "WEBVTT - talk\n\nNOTE by Ann\n\nintro\n00:01.000 --> 00:04.000 line:0\n<v Ann>Hello <i>there</i>\n\n"
        "00:05.000 --> 00:06.000\nbye &amp; &lt;thanks&gt;\n"
    )
    assert rows(mt.VTT, vtt) == [(C, "00:01"), (P, "NOTE by Ann\nAnn: Hello there\nbye & <thanks>")]
    assert rows(mt.SRT, "1\n00:00:01,000 --> 00:00:02,000\na\n2\n00:00:03,000 --> 00:00:04,000\nb") == [
        (C, "00:00:01"),
        (P, "a\nb"),
    ]
    assert rows(mt.SRT, "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}Above\n") == [(C, "00:00:01"), (P, "Above")]
    srt = "".join(f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},900\n{'word ' * 50}\n\n" for n in range(1, 7))
    assert [text for kind, text in rows(mt.SRT, srt) if kind == C] == ["00:00:01", "00:00:04"]


@pytest.mark.parametrize(
    ("mime", "text", "expected"),
    [
        (
            mt.RST,
            "=====\nLease\n=====\n\nPets\n----\nCats.\n\n* a\n* b\n",
            [(H, "Lease"), (H, "Pets"), (P, "Cats."), (P, "* a\n* b")],
        ),
        (mt.RST, "A longer line\n---\nx", [(P, "A longer line\n---\nx")]),
        (
            mt.ORG,
            "#+TITLE: Flat\n* TODO Pets  :home:\nCats *bold*.\n** More\nx",
            [(H, "Flat"), (H, "Pets"), (P, "Cats *bold*."), (H, "More"), (P, "x")],
        ),
        (
            mt.TEX,
            "\\section*{The \\emph{big} cat}Fine.\\subsection[s]{B}x",
            [(H, "The \\emph{big} cat"), (P, "Fine."), (H, "B"), (P, "x")],
        ),
        (
            mt.ORG,
            "* DONE [#A] Pets\n#+BEGIN_SRC python\n* no heading\n#+END_SRC\nCats.",
            [(H, "Pets"), (P, "#+BEGIN_SRC python\n* no heading\n#+END_SRC\nCats.")],
        ),
        (
            mt.TEX,
            "\\begin{verbatim}\n\\section{x}\n\\end{verbatim}",
            [(P, "\\begin{verbatim}\n\\section{x}\n\\end{verbatim}")],
        ),
        (
            mt.TEX,
            '\\section{Gr\\"o\\ss e}Caf\\\'e, na\\"{\\i}ve \\c{c}a, \\v{C}apek, \\AA ngstr\\"om, \\label{a} \\= x',
            [(H, "Größe"), (P, "Café, naïve ça, Čapek, Ångström, \\label{a} \\= x")],
        ),
        (
            mt.ASCIIDOC,
            "== Pets\n----\n== no heading\n----\nCats.",
            [(H, "Pets"), (P, "----\n== no heading\n----\nCats.")],
        ),
        (mt.TEX, '\\section{Gr{\\"u}{\\ss}e}{\\o}re {\\bf b}', [(H, "Grüße"), (P, "øre {\\bf b}")]),
        (mt.ASCIIDOC, "= Lease\n\n== Pets\nCats.", [(H, "Lease"), (H, "Pets"), (P, "Cats.")]),
    ],
)
def test_headings_of_other_markup(mime: str, text: str, expected: list[tuple[str, str]]) -> None:
    assert rows(mime, text) == expected
