"""Read the text of HTML: blocks, headings, lists and tables in the order of the page, without navigation and code."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final

from documents.decoding import clean
from documents.list_numbers import formatted
from documents.rows import Row

_CODE: Final = frozenset({"script", "style", "template", "svg", "xml", "annotation", "annotation-xml", "rp"})
_BOILERPLATE: Final = frozenset({"nav", "footer", "noscript", "iframe", "select"})
_ENDED_BY_OTHERS: Final = frozenset({"p", "li", "dt", "dd", "td", "th", "tr"})
"""Elements whose end tag may be absent."""
_LISTS: Final = frozenset({"ol", "ul", "menu", "dir"})
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_CELLS: Final = frozenset({"td", "th"})
_INLINE: Final = frozenset(
    {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins"}
    | {"kbd", "label", "mark", "q", "rb", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup"}
    | {"time", "tspan", "tt", "u", "var", "wbr", "nobr", "rp", "annotation"}
    | {"math", "mi", "mn", "mo", "mrow", "mstyle", "mtext", "msub", "msup", "msubsup", "mfrac", "msqrt", "semantics"}
)
"""Elements that may be a part of a word; all others separate words."""
_VOID: Final = frozenset({"br", "hr", "img", "input", "wbr", "meta", "link", "base", "col", "area", "embed", "source"})
_KINDS: Final = {"li": "item", "dd": "item", "dt": "paragraph", **dict.fromkeys(_HEADINGS, "heading")}


def _integer(text: str | None, default: int) -> int:
    found = re.match(r"\s*([+-]?\d{1,9})", text or "", re.ASCII)
    return int(found[1]) if found else default


def _numbering(attributes: dict[str, str | None]) -> tuple[int, int, str] | None:
    """Return the number before the first of an ordered list, the step and the format; None if its style hides them."""
    if re.search(r"list-style(?:-type)?\s*:\s*none", attributes.get("style") or "", re.IGNORECASE):
        return None
    step = -1 if "reversed" in attributes else 1
    kind = (attributes.get("type") or "1").strip()
    return _integer(attributes.get("start"), 1) - step, step, kind


def _replacement(tag: str, attributes: dict[str, str | None]) -> str | None:
    """Return the text that an element without content stands for; None for other elements."""
    if tag == "img":
        return f" {attributes.get('alt') or ''} "
    if tag == "input":
        is_shown = (attributes.get("type") or "text").lower() in {"text", "search", "email", "tel", "url", "number"}
        return f" {attributes.get('value') or ''} " if is_shown else " "
    return {"br": "\n", "rt": " ("}.get(tag)


class _Page(HTMLParser):
    """Collects the rows of a page while it is fed. Unclosed elements end with the page."""

    def __init__(self, *, hides: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.is_hiding = False
        self._hides = hides
        self.rows: list[Row] = []
        self._words: list[str] = []
        self._kind = "paragraph"
        self._hidden: list[str] = []
        self._tables: list[list[list[str]] | None] = []  # rows of cells; None for a table that arranges the page
        self._preformatted = 0
        self._lists: list[tuple[int, int, str] | None] = []  # last number, step and format; None for bullets
        self._marker = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if self._hidden and tag == self._hidden[-1] and tag in _ENDED_BY_OTHERS:
            self._hidden.pop()
        if self._hidden:
            if tag == self._hidden[-1]:
                self._hidden.append(tag)
        elif self._is_hidden(tag, values):
            if tag not in _INLINE:
                self._begin("paragraph")
            self._hidden.append(tag)
        elif (replacement := _replacement(tag, values)) is not None:
            self._words.append(replacement)
        elif tag == "table":
            self._begin("paragraph")
            self._tables.append([])
        elif self._tables and tag in {"tr", *_CELLS}:
            self._begin_cell(tag)
        elif tag not in _INLINE or (tag == "tspan" and {"x", "y"} & values.keys()):  # a line of a drawing
            self._begin_block(tag, values)

    def _begin_block(self, tag: str, attributes: dict[str, str | None]) -> None:
        self._begin("heading" if tag == "title" else _KINDS.get(tag, "paragraph"))
        self._preformatted += tag in {"pre", "textarea"}
        if tag in _LISTS:
            self._lists.append(_numbering(attributes) if tag == "ol" else None)
        elif tag == "li":
            self._number(attributes)

    def _number(self, attributes: dict[str, str | None]) -> None:
        """Count an item of a list with numbers; its number begins its text."""
        numbering = self._lists[-1] if self._lists else None
        self._marker = ""
        if numbering:
            last, step, kind = numbering
            number = _integer(attributes.get("value"), last + step)
            self._lists[-1] = number, step, kind
            self._marker = f"{formatted(number, kind)}. "
        if self._cells():
            self._words.append(self._marker)
            self._marker = ""

    def _is_hidden(self, tag: str, attributes: dict[str, str | None]) -> bool:
        if tag in _CODE:
            return not {"shadowrootmode", "shadowroot"} & attributes.keys()
        style = re.search(r"display\s*:\s*none", attributes.get("style") or "", re.IGNORECASE)
        is_boilerplate = tag in _BOILERPLATE or attributes.get("role") == "navigation"
        return self._hides and tag not in _VOID and (is_boilerplate or "hidden" in attributes or style is not None)

    def handle_endtag(self, tag: str) -> None:
        if self._hidden and tag != self._hidden[-1] and self._hidden[-1] in _ENDED_BY_OTHERS and tag not in _INLINE:
            self._hidden.pop()
        if self._hidden:
            if tag == self._hidden[-1]:
                self._hidden.pop()
        elif tag == "rt":
            self._words.append(") ")
        elif tag == "table" and self._tables:
            self._end_table()
        elif self._tables and tag in {"tr", *_CELLS}:
            self._end_cell()
        elif tag not in _INLINE and tag not in _VOID:
            self._begin("paragraph")
            if tag in _LISTS and self._lists:
                self._lists.pop()
            if tag in {"li", *_LISTS}:
                self._marker = ""
            self._preformatted -= tag in {"pre", "textarea"} and self._preformatted > 0

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._words.append(data if self._preformatted else re.sub(r"\s+", " ", data))

    def finish(self) -> None:
        self.close()
        self.is_hiding = bool(self._hidden)
        while self._tables:
            self._end_table()
        self._begin("paragraph")

    def _cells(self) -> list[str] | None:
        """Return the cells of the current row; None outside of a table with values."""
        rows = self._tables[-1] if self._tables else None
        return rows[-1] if rows else None

    def _text(self) -> str:
        text = clean("".join(self._words))
        self._words.clear()
        if self._preformatted:
            text = text.strip("\n")
        else:
            text = "\n".join(line.strip() for line in re.sub(r"[^\S\n]+", " ", text).split("\n")).strip()
        if text and self._marker:
            text, self._marker = self._marker + text, ""
        return text

    def _begin(self, kind: str) -> None:
        """End the block before this one, and begin one of another kind."""
        if kind == "heading" and self._cells():  # cells with headings are parts of the page
            self._end_cell()
            self._emit_table(self._tables[-1])
            self._tables[-1] = None
        if self._cells():
            self._words.append("\n")
            return
        text = self._text()
        if self._kind == "heading":
            text = " ".join(text.split())
        repeats_title = self._kind == "heading" and self.rows[-1:] == [("heading", None, text)]
        if text.strip() and not repeats_title:
            self.rows.append((self._kind, None, text))
        self._kind = kind

    def _begin_cell(self, tag: str) -> None:
        self._end_cell()
        rows = self._tables[-1]
        if rows is None:
            return
        if tag == "tr" or not rows:
            rows.append([])
        if tag in _CELLS:
            rows[-1].append("")

    def _end_cell(self) -> None:
        cells = self._cells()
        if cells:
            cells[-1] = " ".join(filter(None, (cells[-1], *self._text().split())))
        else:
            self._begin("paragraph")

    def _end_table(self) -> None:
        self._end_cell()
        self._emit_table(self._tables.pop())

    def _emit_table(self, rows: list[list[str]] | None) -> None:
        lines = [" | ".join(cells).rstrip(" |") for cells in rows or ()]
        text = "\n".join(line for line in lines if line.strip(" |"))
        if self._cells():  # a table inside a cell
            self._words.append(f" {text} ")
        elif text:
            self.rows.append(("table", None, text))


def html_rows(text: str) -> Iterator[Row]:
    """Yield the rows of a page, its title first.

    What a navigation without an end tag hides is shown, as is the navigation of a page without other text.
    """
    for hides in (True, False):
        page = _Page(hides=hides)
        page.feed(text)
        page.finish()
        if page.rows and not page.is_hiding:
            break
    yield from page.rows
