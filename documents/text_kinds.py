"""Read formats of text by their grammar: Markdown, JSON, notebooks, CSV, YAML, subtitles, headings of other markup.

Nothing is lost: a file that its parser refuses is read as plain text.
"""

import csv
import html
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from xml.parsers import expat

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from documents import mime_types as mt
from documents.decoding import TERMINAL
from documents.html import html_rows
from documents.rows import EMPTY_LINES, Row, paragraphs

DATA: Final = re.compile(r"(?:data:[\w/+.-]{1,80};base64,)?[A-Za-z0-9+/=]{400,}")
"""Files written as text (base64)."""
_FRONT_MATTER: Final = re.compile(r"---[^\S\n]*\n(.*?)\n(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
_MARKDOWN: Final = MarkdownIt("commonmark").enable("table").disable("inline")
_INLINE: Final = MarkdownIt("commonmark")
_ESCAPE: Final = re.compile(r"(?<!\\)((?:\\\\)*)((?:\\u[0-9a-fA-F]{4})+)")
_CUE: Final = re.compile(r"^(?:\d+:)?\d{1,2}:\d\d[.,]\d{1,3}(?=[^\S\n]*-->)")
_NEXT_CUE: Final = re.compile(r"\n(?=\d+[^\S\n]*\n(?:\d+:)?\d{1,2}:\d\d[.,]\d{1,3}[^\S\n]*-->)")
_SPEAKER: Final = re.compile(r"<v(?:\.[\w.]+)?\s+([^<>\n]+)>")
_TAG: Final = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")
_PATH_CHARACTERS: Final = 500
_CUES_CHARACTERS: Final = 600
_DELIMITERS: Final = ",;\t|"


def markdown_rows(text: str) -> Iterator[Row]:
    """Yield the blocks of Markdown as they are written, and its headings as plain text."""
    if front := _FRONT_MATTER.match(text):
        yield from paragraphs(front[1])
        text = "\n" * front[0].count("\n") + text[front.end() :]
    lines, done = text.split("\n"), 0
    for token in _MARKDOWN.parse(text):
        if token.level or not token.map or token.type == "inline" or token.nesting < 0:
            continue
        start, end = token.map
        yield from paragraphs(DATA.sub("", "\n".join(lines[done:start])))  # definitions of links
        yield from _markdown_block(token, "\n".join(lines[start:end]))
        done = end
    yield from paragraphs(DATA.sub("", "\n".join(lines[done:])))


def _markdown_block(token: Token, source: str) -> Iterator[Row]:
    if token.type == "heading_open":
        written = source.strip()
        written = re.sub(r"\n[^\S\n]*(?:=+|-+)\s*\Z", "", written) if token.markup in {"=", "-"} else written.strip("#")
        if heading := " ".join(_plain(written).split()):
            yield "heading", None, heading
    elif token.type == "html_block":
        yield from html_rows(source)
    elif token.type == "table_open":
        rows = (line.strip().strip("|").strip() for line in source.split("\n"))
        yield "table", None, "\n".join(row for row in rows if row.strip("|-: "))
    elif source.strip():
        yield "paragraph", None, DATA.sub("", source).strip("\n").rstrip()


def _plain(markdown: str) -> str:
    """Return a line of Markdown without its marks."""
    children = _INLINE.parseInline(markdown.strip())[0].children or []
    return "".join(" " if "break" in one.type else one.content for one in children if one.type != "html_inline")


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON, whose keys may repeat."""


def json_rows(text: str) -> Iterator[Row]:
    """Yield the values of JSON, or of lines of JSON, with their keys; the path of keys is their context."""
    whole = _loaded(text)
    lines = [line for line in text.split("\n") if line.strip()]
    values = [whole] if isinstance(whole, tuple) else [_loaded(line) for line in lines]
    if 2 * sum(isinstance(value, str) for value in values) > len(values):
        yield from paragraphs(_unescaped(text))
        return
    for value in values:
        if isinstance(value, str):
            yield "context", None, ""
            yield from paragraphs(_unescaped(value))
        else:
            yield from _values(value[0])


def _loaded(text: str) -> tuple[Any] | str:
    """Return the value of a text in a tuple, or the text if it is no JSON."""
    hooks: dict[str, Any] = {"parse_int": str, "parse_float": str, "parse_constant": str, "object_pairs_hook": _Pairs}
    try:
        return (json.loads(text, strict=False, **hooks),)
    except (ValueError, RecursionError):
        return text


def _unescaped(text: str) -> str:
    """Return text with the characters that JSON's escapes stand for."""
    return _ESCAPE.sub(lambda match: match[1] + json.loads(f'"{match[2]}"'), text)


def _values(value: Any) -> Iterator[Row]:
    """Yield the simple values of an object together, then those of the objects and lists in it."""
    todo = [("", value)]
    while todo:
        path, value = todo.pop()
        members = value if isinstance(value, list) else [value]
        named = value if isinstance(value, _Pairs) else [("", one) for one in members]
        simple = [(key, _scalar(one)) for key, one in named if not isinstance(one, list)]
        if lines := [f"{key}: {text}" if key else text for key, text in simple if text]:
            yield "context", None, path
            yield "paragraph", None, "\n".join(lines)
        inner = [(".".join(filter(None, (path, key))), one) for key, one in named if isinstance(one, list)]
        todo += reversed(inner)


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    return DATA.sub("", value).strip()


@dataclass(slots=True)
class _Element:
    """An element of XML: its name, attributes, and the texts and elements in it, in order."""

    name: str
    attributes: list[tuple[str, str]] = field(default_factory=list)
    content: list["str | _Element"] = field(default_factory=list)

    @property
    def children(self) -> list["_Element"]:
        return [one for one in self.content if isinstance(one, _Element)]

    @property
    def is_sentence(self) -> bool:
        """Return True if there is text beside the elements."""
        return any(isinstance(one, str) and one.strip() for one in self.content)

    def text(self) -> str:
        """Return all text in it, on one line for each line of the file."""
        parts, todo = list[str](), list[str | _Element](reversed(self.content))
        while todo:
            one = todo.pop()
            parts += [one] if isinstance(one, str) else []
            todo += [] if isinstance(one, str) else reversed(one.content)
        return "\n".join(filter(None, (line.strip() for line in DATA.sub("", "".join(parts)).split("\n"))))


def xml_rows(text: str) -> Iterator[Row]:
    """Yield the texts and attributes of XML with their names, as those of JSON; what is not well-formed, as written."""
    top = _Element("")
    elements = [top]
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True

    def start(name: str, attributes: dict[str, str]) -> None:
        kept = [(_local(key), value) for key, value in attributes.items() if not key.startswith("xml")]
        elements[-1].content.append(element := _Element(_local(name), kept))
        elements.append(element)

    def read(data: str) -> None:
        elements[-1].content.append(data)

    def read_other(data: str) -> None:
        if data.startswith("&"):  # an entity that a file of definitions declares
            read(html.unescape(data))

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _name: elements.pop()
    parser.CharacterDataHandler = read
    parser.DefaultHandlerExpand = read_other
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError:
        yield from paragraphs(html.unescape(text))
        return
    yield from _element_rows(top.children[0])


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _element_rows(root: _Element) -> Iterator[Row]:
    """Yield the attributes and short elements of an element together, then those of the elements in it."""
    todo = [("", root)]
    while todo:
        path, element = todo.pop()
        lines = [f"{name}: {value}" for name, value in element.attributes if value.strip()]
        inner = element.children
        if element.is_sentence:
            lines.append(element.text())
            lines += (f"{name}: {value}" for one in inner for name, value in one.attributes if value.strip())
            inner = []
        short = [one for one in inner if not one.attributes and not one.children]
        lines += (f"{one.name}: {text}" for one in short if (text := one.text()))
        if lines:
            yield "context", None, path
            yield "paragraph", None, "\n".join(lines)
        deeper = [one for one in inner if one.attributes or one.children]
        todo += [(f"{path}.{one.name}".lstrip(".")[-_PATH_CHARACTERS:], one) for one in reversed(deeper)]


def notebook_rows(text: str) -> Iterator[Row]:
    """Yield the cells of a Jupyter notebook and the text of their outputs."""
    try:
        notebook = json.loads(text)
        sheets = [notebook, *notebook.get("worksheets", ())]
        cells = [cell for sheet in sheets for cell in sheet.get("cells", ())]
        rows = [row for cell in cells for row in _cell_rows(cell)]
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
        yield from json_rows(text)
        return
    yield from rows


def _cell_rows(cell: dict[str, Any]) -> Iterator[Row]:
    source = _joined(cell.get("source", cell.get("input", "")))
    if cell.get("cell_type") == "markdown":
        yield from markdown_rows(source)
    elif cell.get("cell_type") == "heading":
        yield "heading", None, source.strip()
    elif source.strip():
        yield "paragraph", None, source.strip()
    for output in cell.get("outputs", ()):
        data = output.get("data", output)
        texts = [output.get("text"), data.get("text/plain"), data.get("text/markdown"), output.get("traceback")]
        found = next((_joined(one) for one in texts if one), "")
        yield from paragraphs(DATA.sub("", TERMINAL.sub("", found)))
        if not found:
            yield from html_rows(_joined(data.get("text/html") or ""))


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else ("" if all(one.endswith("\n") for one in text[:-1]) else "\n").join(text)


def table_rows(text: str, delimiters: str = _DELIMITERS) -> Iterator[Row]:
    """Yield a file of values as one table, whose cells have no line breaks."""
    csv.field_size_limit(max(len(text), 1))
    said = re.match(r"sep=(.)\n", text)
    delimiter = said[1] if said else max(delimiters, key=lambda one: _regularity(text, one))
    if not said and _regularity(text, delimiter)[0] <= 0.5:  # no values
        yield from ([("table", None, text.strip())] if text.strip() else ())
        return
    lines = _cells(text[said.end() :] if said else text, delimiter)
    rows = (" | ".join(" ".join(cell.split()) for cell in line) for line in lines)
    if table := "\n".join(row.rstrip(" |") for row in rows if row.strip(" |")):
        yield "table", None, table


def _cells(text: str, delimiter: str) -> Iterable[list[str]]:
    """Return the rows of values. If a quote is never closed, or ends inside a cell, each line is a row."""
    options: dict[str, Any] = {"delimiter": delimiter, "skipinitialspace": True}
    try:
        return list(csv.reader(io.StringIO(text, newline=""), strict=True, **options))
    except csv.Error:
        return (row for line in text.split("\n") for row in csv.reader([line], **options))


def _regularity(text: str, delimiter: str) -> tuple[float, int]:
    """Return the share of the first rows that have the usual number of cells, at least two, and this number."""
    reader = csv.reader(io.StringIO(text[:20_000], newline=""), delimiter=delimiter, skipinitialspace=True)
    counts = [len(row) for row, _ in zip(reader, range(50), strict=False) if row]
    usual = max(set(counts), key=counts.count, default=0)
    return (counts.count(usual) / len(counts), usual) if usual > 1 else (0.0, 0)


def yaml_rows(text: str) -> Iterator[Row]:
    """Yield the parts of YAML as they are written, with characters for escapes; the top keys are their context."""
    if "\\" in text:
        try:
            tokens = [one for one in yaml.scan(text, Loader=yaml.CSafeLoader) if isinstance(one, yaml.ScalarToken)]
        except yaml.YAMLError:
            tokens = []
        pieces, done = [], 0
        for token in tokens:
            start, end = token.start_mark.index, token.end_mark.index
            if token.style == '"' and "\\" in text[start:end]:
                pieces += [text[done:start], token.value]
                done = end
        text = "".join([*pieces, text[done:]])
    for part in re.split(r"\n(?=[\w\"'][^\n]*:(?:\s|$))", text):
        key = re.match(r"[\"']?([^\n:]{1,100}?)[\"']?:\s*\n", part)
        if key:
            yield "context", None, key[1]
        elif re.match(r"\S+:", part):
            yield "context", None, ""
        yield from paragraphs(part)


def subtitle_rows(text: str) -> Iterator[Row]:
    """Yield the texts of subtitles (SRT, WebVTT), several together; the time of the first is their context."""
    time, said = "", list[str]()
    for part in EMPTY_LINES.split(_NEXT_CUE.sub("\n\n", text)):
        lines = part.strip().split("\n")
        place = next((number for number, line in enumerate(lines) if _CUE.match(line.strip())), None)
        if place is None:
            said += [] if lines[0].startswith(("WEBVTT", "STYLE", "REGION")) else lines
            continue
        if said and sum(map(len, said)) > _CUES_CHARACTERS:
            yield from _cues(time, said)
            time, said = "", []
        begin = _CUE.match(lines[place].strip())
        time = time or (re.split("[.,]", begin[0])[0] if begin else "")
        said += (html.unescape(_TAG.sub("", _SPEAKER.sub(r"\1: ", line))) for line in lines[place + 1 :])
    yield from _cues(time, said)


def _cues(time: str, said: Iterable[str]) -> Iterator[Row]:
    if text := "\n".join(filter(None, map(str.strip, said))):
        yield "context", None, time
        yield "paragraph", None, text


_RST: Final = re.compile(
    r"(?:^|(?<=\n))(?:([^\w\s])\1{2,}\n)?[^\S\n]*(?P<heading>\S[^\n]*)\n([^\w\s])\3{2,}[^\S\n]*(?=\n|\Z)"
)
_ORG: Final = re.compile(
    r"^[^\S\n]*#\+begin_(\w+)[^\S\n]*[^\n]*\n.*?\n[^\S\n]*#\+end_\1"
    r"|^(?:\*+[^\S\n]+(?:TODO[^\S\n]+|DONE[^\S\n]+)?(?:\[#\w\][^\S\n]+)?|#\+title:[^\S\n]*)(?P<heading>[^\n]*?)"
    r"(?:[^\S\n]+:[\w@:]+:)?$",
    re.MULTILINE | re.IGNORECASE | re.DOTALL,
)
_TEX: Final = re.compile(
    r"\\begin\{(verbatim|lstlisting)\}.*?\\end\{\1\}"
    r"|\\(?:title|part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?(?:\[[^\]\n]*\])?"
    r"\{(?P<heading>(?:[^{}\n]|\{[^{}\n]*\})*)\}",
    re.DOTALL,
)
_ACCENTS: Final = dict(
    zip("\"'`^~=.uvHckr", "\u0308\u0301\u0300\u0302\u0303\u0304\u0307\u0306\u030c\u030b\u0327\u0328\u030a", strict=True)
)
_ACCENTED: Final = re.compile(r"\\([\"'`^~=.])(?:\{\\?([A-Za-z])\}|\\?([A-Za-z]))|\\([uvHckr])\{\\?([A-Za-z])\}")
_LETTERS: Final = {
    "ss": "ß",
    "o": "ø",
    "O": "Ø",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "aa": "å",
    "AA": "Å",
    "l": "ł",
    "L": "Ł",
}
_LETTER: Final = re.compile(r"\\(ss|[oO]|ae|AE|oe|OE|aa|AA|[lL])(?:\{\}|[^\S\n]+|(?![A-Za-z]))")
_BRACED: Final = re.compile(r"\{([^\W\d_a-zA-Z])\}")
_ASCIIDOC: Final = re.compile(
    r"^(-{4,}|\.{4,}|\+{4,}|/{4,})\n.*?\n\1$|^={1,6} +(?P<heading>[^\n]+)$", re.MULTILINE | re.DOTALL
)
"""Headings of markup, and parts that only look like some: examples of code."""


def _with_headings(pattern: re.Pattern[str]) -> Callable[[str], Iterator[Row]]:
    def rows(text: str) -> Iterator[Row]:
        done = 0
        for found in pattern.finditer(text):
            heading = found["heading"]
            if heading is None:  # a part without headings
                continue
            heading = heading.strip()
            if pattern is _RST and len(found[0].rstrip().rpartition("\n")[2]) < len(heading):
                continue  # underlined too short
            yield from paragraphs(text[done : found.start()])
            if heading:
                yield "heading", None, heading
            done = found.end()
        yield from paragraphs(text[done:])

    return rows


def tex_rows(text: str) -> Iterator[Row]:
    """Yield the text of TeX under its headings, with letters for the commands that stand for them."""
    text = _ACCENTED.sub(_accented, text)
    text = _LETTER.sub(lambda match: _LETTERS[match[1]], text)
    yield from _with_headings(_TEX)(_BRACED.sub(r"\1", text))


def _accented(match: re.Match[str]) -> str:
    """Return a letter with its accent; what is written if there is no such letter."""
    accent, letter = match[1] or match[4], match[2] or match[3] or match[5]
    composed = unicodedata.normalize("NFC", letter + _ACCENTS[accent])
    return composed if len(composed) == 1 else match[0]


def svg_rows(text: str) -> Iterator[Row]:
    """Yield the texts of a drawing, its title as a heading."""
    yield from html_rows(re.sub(r"</?(?:\w+:)?svg\b[^>]*>", " ", text))


READERS: Final[dict[str, Callable[[str], Iterator[Row]]]] = {
    mt.HTML: html_rows,
    mt.SVG: svg_rows,
    mt.XML: xml_rows,
    mt.MARKDOWN: markdown_rows,
    mt.JSON: json_rows,
    mt.JSON_LINES: json_rows,
    mt.NOTEBOOK: notebook_rows,
    mt.CSV: table_rows,
    mt.TSV: lambda text: table_rows(text, "\t"),
    mt.YAML: yaml_rows,
    mt.SRT: subtitle_rows,
    mt.VTT: subtitle_rows,
    mt.RST: _with_headings(_RST),
    mt.ORG: _with_headings(_ORG),
    mt.TEX: tex_rows,
    mt.ASCIIDOC: _with_headings(_ASCIIDOC),
}
"""Functions that yield the rows of a text, by its type."""
