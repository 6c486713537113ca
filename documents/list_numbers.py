"""Write the automatic numbers of headings, clauses and lists into the text of Word, OpenDocument and RTF files.

Office programs store how a paragraph is numbered, not its number, and parsers leave it out. Text that was moved with
changes tracked is kept at its new place only, and paragraphs of Word that are headings by their outline level alone, or
by a style of another language, get the style of a heading. Comments of RTF become notes, and its deleted text
is left out.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from xml.etree import ElementTree  # the members were checked for declarations
from xml.parsers import expat
from xml.sax.saxutils import escape

from documents import mime_types as mt
from documents.patches import Patch, parser, parts_of, repacked

_W: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_FALLBACK: Final = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
_TEXT: Final = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_MAX_LEVELS: Final = 10
_ROMAN: Final = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_CHINESE: Final = "〇一二三四五六七八九"
_BODY_LEVEL: Final = 9
"""The outline level of Word's text that is no heading."""
_HEADING_NAME: Final = re.compile(
    r"(?:überschrift|titre|t[ií]tulo|titolo|kop|rubrik|overskrift|otsikko|nadpis|nagłówek|címsor|başlık|заголовок"
    r"|标题|標題|見出し|제목) ?([1-9])",
    re.IGNORECASE,
)
"""Names of heading styles that other programs than Word write in the language of their user."""
_WORD_PARTS: Final = re.compile(r"word/(?:document|numbering|styles)\.xml")
_OPEN_PARTS: Final = re.compile(r"(?:content|styles)\.xml")
_RTF_LABEL: Final = re.compile(
    rb"\{\\(?:listtext|pntext)\b((?:[^{}]|\{[^{}]*\})*)\}"
    rb"((?:\s|\{(?!\\\*)|\\(?!(?:par|tab|line|u-?\d+)\b)[a-z]+-?\d* ?)*)"
)
"""The group with the number of a list item, and the formats between it and the item's text."""
_RTF_ENCODINGS: Final = {b"mac": "mac-roman", b"pc": "cp437", b"pca": "cp850"}
_RTF_ENCODING: Final = re.compile(rb"\s*\{\\rtf1?\\(mac|pca?)\b(?!\\ansicpg)")
"""Encodings of old programs, which the parser takes for that of Windows."""
_RTF_BYTE: Final = re.compile(rb"\\'([89a-fA-F][0-9a-fA-F])")
_RTF_BREAK: Final = re.compile(rb"\\(?:page|sect|column)(?![a-z-])(?:-?\d+)? ?")
_RTF_PAIR: Final = re.compile(
    rb"\\u(-10\d{3}|-9[2-9]\d\d|5[56]\d{3}) ?(?:\?|\\'3[fF])? ?\\u(-[89]\d{3}|5[67]\d{3}) ?(?:\?|\\'3[fF])?"
)
_RTF_UNSEEN: Final = re.compile(
    rb"\{\\\*\\atn(?:date|ref|parent|time)[^{}]*\}|\{(?:\\[a-z]+-?\d* ?)*\\deleted\b(?:[^{}\\]|\\.)*\}", re.DOTALL
)
"""Data of comments, and text that was deleted with changes tracked."""
_RTF_CONTROL: Final = re.compile(rb"\\'[0-9a-fA-F]{2}|\\u-?\d+ ?\??|\\[a-z]+-?\d* ?|[{}\r\n]")


def with_numbers(data: bytes, mime: str) -> bytes:
    """Return a document whose automatic numbers are text. An unknown numbering stays as it is."""
    with suppress(expat.ExpatError, ElementTree.ParseError, ValueError, KeyError):  # the document's parser reports it
        if mime == mt.DOCX:
            return _word(data)
        if mime == mt.ODT:
            return _open_document(data)
        if mime == mt.RTF:
            if encoding := _RTF_ENCODING.match(data):
                data = _RTF_BYTE.sub(partial(_rtf_letter, _RTF_ENCODINGS[encoding[1]]), data)
            data = _RTF_UNSEEN.sub(b"", data.replace(rb"{\*\annotation", rb"{\footnote"))
            data = _RTF_PAIR.sub(_rtf_character, _RTF_BREAK.sub(rb"\\par ", data))
            return _RTF_LABEL.sub(_rtf_label, data)
    return data


def _rtf_label(match: re.Match[bytes]) -> bytes:
    """Return the formats of a list item and its number as text; nothing for a bullet."""
    label = _RTF_CONTROL.sub(b"", match[1].replace(b"\\tab", b"")).strip()
    return match[2] + (b"{" + label + b" }" if any(chr(one).isalnum() for one in label) else b"")


def _rtf_letter(encoding: str, match: re.Match[bytes]) -> bytes:
    return b"\\u%d?" % ord(bytes.fromhex(match[1].decode()).decode(encoding))


def _rtf_character(match: re.Match[bytes]) -> bytes:
    """Return one number for the two of a character, such as an emoji; the parser reads each for a character."""
    high, low = (int(one) % 0x10000 for one in match.groups())
    return b"\\u%d?" % (0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)


def formatted(number: int, kind: str) -> str:
    """Return a number in a format of Word ("lowerRoman") or OpenDocument ("i")."""
    match kind:
        case "upperRoman" | "I":
            return _roman(number).upper()
        case "lowerRoman" | "i":
            return _roman(number)
        case "upperLetter" | "A":
            return _letters(number).upper()
        case "lowerLetter" | "a":
            return _letters(number)
        case "decimalZero":
            return f"{number:02}"
    is_chinese = kind.startswith(("chineseCounting", "japaneseCounting", "taiwaneseCounting", "一", "ideographDigital"))
    return _chinese(number) if is_chinese else str(number)


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        while number >= value and len(text) < 20:
            text, number = text + letters, number - value
    return text


def _letters(number: int) -> str:
    return chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 9) if number > 0 else str(number)


def _chinese(number: int) -> str:
    if not 0 < number < 100:
        return "".join(_CHINESE[int(digit)] for digit in str(max(number, 0)))
    tens, ones = divmod(number, 10)
    return (_CHINESE[tens] if tens > 1 else "") + ("十" if tens else "") + (_CHINESE[ones] if ones else "")


@dataclass(frozen=True, slots=True)
class _Level:
    """One level of a numbering. `text` is Word's template "%1.%2", `style` the style of paragraphs that it numbers."""

    kind: str = "decimal"
    text: str = ""
    start: int = 1
    style: str | None = None
    is_decimal: bool = False


@dataclass(slots=True)
class _Numbering:
    """The numberings of a Word document, and the last number of each level."""

    levels: dict[str, dict[int, _Level]] = field(default_factory=dict)
    abstract: dict[str, str] = field(default_factory=dict)
    starts: dict[str, dict[int, int]] = field(default_factory=dict)
    styles: dict[str, tuple[str | None, int | None]] = field(default_factory=dict)
    headings: dict[str, int] = field(default_factory=dict)
    counts: dict[str, dict[int, int]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def label(self, number: str | None, level: int | None, style: str | None) -> str:
        """Count a paragraph and return its number, empty if it has none."""
        of_style = self.styles.get(style or "", (None, None))
        number = number if number is not None else of_style[0]
        if not number or number not in self.abstract:
            return ""
        key = self.abstract[number]
        levels = self.levels.get(key, {})
        if level is None:
            level = next((at for at, one in levels.items() if style and one.style == style), of_style[1] or 0)
        found = levels.get(level)
        if found is None:
            return ""
        counts = self.counts.setdefault(key, {})
        if number not in self.seen:
            self.seen.add(number)
            for at, start in self.starts.get(number, {}).items():
                counts[at] = start - 1
        counts[level] = counts.get(level, found.start - 1) + 1
        for deeper in [at for at in counts if at > level]:
            del counts[deeper]
        if found.kind in {"bullet", "none"}:
            return ""
        return re.sub(r"%(\d)", lambda match: self._shown(levels, counts, int(match[1]) - 1, found), found.text)

    def _shown(self, levels: dict[int, _Level], counts: dict[int, int], at: int, current: _Level) -> str:
        one = levels.get(at, _Level())
        count = counts.setdefault(at, one.start)
        return formatted(count, "decimal" if current.is_decimal else one.kind) if one.kind != "bullet" else ""


def _word(data: bytes) -> bytes:
    parts = parts_of(data, _WORD_PARTS)
    document = parts.get("word/document.xml", b"")
    patch = Patch(document)
    _WordWalk(_numbering(parts.get("word/numbering.xml"), parts.get("word/styles.xml")), patch).run()
    return repacked(data, {"word/document.xml": patch.result} if patch.inserted or patch.removed else {})


def _numbering(numbering: bytes | None, styles: bytes | None) -> _Numbering:
    found = _Numbering()
    root = ElementTree.fromstring(numbering) if numbering else ElementTree.Element("none")  # noqa: S314
    links: dict[str, str] = {}
    for one in root.iter(f"{{{_W}}}abstractNum"):
        key = _value(one, "abstractNumId") or ""
        found.levels[key] = dict(_levels(one))
        if (name := _child(one, "styleLink")) is not None:
            links[name] = key
    for one in root.iter(f"{{{_W}}}abstractNum"):
        if (name := _child(one, "numStyleLink")) in links:
            found.levels[_value(one, "abstractNumId") or ""] = found.levels[links[name or ""]]
    for one in root.findall(f"{{{_W}}}num"):
        number = _value(one, "numId") or ""
        found.abstract[number] = _child(one, "abstractNumId") or ""
        for override in one.findall(f"{{{_W}}}lvlOverride"):
            at = int(_value(override, "ilvl") or 0)
            if (start := _child(override, "startOverride")) is not None:
                found.starts.setdefault(number, {})[at] = int(start)
            for level, changed in _levels(override):
                key = f"{found.abstract[number]}/{number}"
                found.levels[key] = {**found.levels.get(found.abstract[number], {}), level: changed}
                found.abstract[number] = key
    if styles:
        _read_styles(ElementTree.fromstring(styles), found)  # noqa: S314
    return found


def _levels(element: ElementTree.Element) -> Iterator[tuple[int, _Level]]:
    for one in element.findall(f"{{{_W}}}lvl"):
        yield (
            int(_value(one, "ilvl") or 0),
            _Level(
                _child(one, "numFmt") or "decimal",
                _child(one, "lvlText") or "",
                int(_child(one, "start") or 1),
                _child(one, "pStyle"),
                one.find(f"{{{_W}}}isLgl") is not None,
            ),
        )


def _read_styles(root: ElementTree.Element, found: _Numbering) -> None:
    """Set numbering and level of heading of each paragraph style, also those that it inherits."""
    based: dict[str, str | None] = {}
    own: dict[str, tuple[str | None, int | None]] = {}
    headings: dict[str, int] = {}
    for style in root.findall(f"{{{_W}}}style"):
        name = _value(style, "styleId") or ""
        based[name] = _child(style, "basedOn")
        if heading := _HEADING_NAME.fullmatch(_child(style, "name") or ""):
            headings[name] = int(heading[1]) - 1
        properties = style.find(f"{{{_W}}}pPr/{{{_W}}}numPr")
        if properties is not None:
            depth = _child(properties, "ilvl")
            own[name] = _child(properties, "numId"), int(depth) if depth is not None else None
    for name in based:
        styles = _with_bases(name, based)
        if numbered := next((own[one] for one in styles if own.get(one, (None,))[0] is not None), None):
            found.styles[name] = numbered
        if (level := next((headings[one] for one in styles if one in headings), None)) is not None:
            found.headings[name] = level


def _with_bases(name: str, based: Mapping[str, str | None]) -> list[str]:
    """Return a style and those that it is based on, the nearest first."""
    found = [name]
    while (base := based.get(found[-1])) and len(found) < _MAX_LEVELS:
        found.append(base)
    return found


def _value(element: ElementTree.Element, name: str = "val") -> str | None:
    return element.get(f"{{{_W}}}{name}")


def _child(element: ElementTree.Element, name: str) -> str | None:
    child = element.find(f"{{{_W}}}{name}")
    return _value(child) if child is not None else None


@dataclass(slots=True)
class _Paragraph:
    """A paragraph while it is read. `number`, `level`, `style` and `outline` are those of its properties."""

    number: str | None = None
    level: int | None = None
    style: str | None = None
    style_at: int | None = None
    outline: int | None = None
    properties_at: int = 0
    label: str = ""
    at: int = 0

    def set(self, name: str, value: str, at: int) -> None:
        """Set what an element of the properties says, which starts at an offset."""
        match name:
            case "pStyle":
                self.style, self.style_at = value, at
            case "numId":
                self.number = value
            case "ilvl" if value.isdigit():
                self.level = int(value)
            case "outlineLvl" if value.isdigit():
                self.outline = int(value)


class _WordWalk:
    """Reads the body of a Word document and collects its changes."""

    def __init__(self, numbering: _Numbering, patch: Patch) -> None:
        self._numbering, self._patch = numbering, patch
        self._paragraphs: list[_Paragraph] = []
        self._old = self._moved = self._moved_at = 0
        self._is_in_properties = False
        self._parser = parser()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def run(self) -> None:
        self._parser.Parse(self._patch.data, True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        space, _space, local = name.rpartition(" ")
        if name == _FALLBACK or local == "pPrChange":
            self._old += 1
        if space != _W or self._old:
            return
        value = attributes.get(f"{_W} val")
        paragraph = self._paragraphs[-1] if self._paragraphs else _Paragraph()
        match local:
            case "p":
                self._paragraphs.append(_Paragraph())
            case "pPr":
                self._is_in_properties = True
                paragraph.properties_at = self._parser.CurrentByteIndex
            case "moveFrom" if not self._moved:
                self._moved, self._moved_at = 1, self._parser.CurrentByteIndex
            case _ if self._is_in_properties and value:
                paragraph.set(local, value, self._parser.CurrentByteIndex)
            case "br" | "cr" if local == "cr" or attributes.get(f"{_W} type") in {"page", "column"}:
                self._patch.inserted.append((self._parser.CurrentByteIndex, b'<w:br xmlns:w="%b"/>' % _W.encode()))
            case "t" if paragraph.label and not self._moved:
                text = escape(paragraph.label).encode()
                self._patch.inserted.append(
                    (paragraph.at, b'<w:r xmlns:w="%b"><w:t xml:space="preserve">%b </w:t></w:r>' % (_W.encode(), text))
                )
                paragraph.label = ""

    def _end(self, name: str) -> None:
        space, _space, local = name.rpartition(" ")
        if name == _FALLBACK or local == "pPrChange":
            self._old -= 1
            return
        if space != _W or self._old:
            return
        match local:
            case "p" if self._paragraphs:
                self._paragraphs.pop()
            case "moveFrom" if self._moved:
                self._moved = 0
                end = self._patch.end_of_tag(self._parser.CurrentByteIndex)
                self._patch.removed.append((self._moved_at, end))
            case "pPr" if self._paragraphs:
                self._is_in_properties = False
                paragraph = self._paragraphs[-1]
                paragraph.label = self._numbering.label(paragraph.number, paragraph.level, paragraph.style)
                paragraph.at = self._patch.end_of_tag(self._parser.CurrentByteIndex)
                self._name_heading(paragraph)

    def _name_heading(self, paragraph: _Paragraph) -> None:
        """Give a paragraph that only its outline level or its style's name make a heading the style of one."""
        level = paragraph.outline
        if level is None:
            level = self._numbering.headings.get(paragraph.style or "", _BODY_LEVEL)
        if level >= _BODY_LEVEL or re.fullmatch(r"Heading\d", paragraph.style or ""):
            return
        if paragraph.style_at is not None:
            self._patch.removed.append((paragraph.style_at, self._patch.end_of_tag(paragraph.style_at)))
        style = b'<w:pStyle xmlns:w="%b" w:val="Heading%d"/>' % (_W.encode(), level + 1)
        self._patch.inserted.append((self._patch.end_of_tag(paragraph.properties_at), style))


def _open_document(data: bytes) -> bytes:
    parts = parts_of(data, _OPEN_PARTS)
    walk = _OpenWalk(Patch(parts.get("content.xml", b"")))
    if styles := parts.get("styles.xml"):
        walk.read(styles, is_content=False)
    walk.read(walk.patch.data, is_content=True)
    result = walk.patch.result.replace(b"text:list-header", b"text:list-item")  # which the parser leaves out
    return repacked(data, {"content.xml": result} if result != walk.patch.data else {})


@dataclass(frozen=True, slots=True)
class _OpenLevel:
    """One level of a list style: format, texts around the number, how many levels it shows, its first number."""

    kind: str
    prefix: str
    suffix: str
    shown: int
    start: int


class _OpenWalk:
    """Reads the styles, then the text of an OpenDocument file, and collects the numbers of its lists and headings."""

    def __init__(self, patch: Patch) -> None:
        self.patch = patch
        self._styles: dict[str, dict[int, _OpenLevel]] = {}
        self._style = ""
        self._lists: list[str] = []
        self._counts: dict[str, dict[int, int]] = {}
        self._item: tuple[str, int, str | None] | None = None
        self._is_content = False

    def read(self, data: bytes, *, is_content: bool) -> None:
        self._is_content = is_content
        self._parser = parser()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.Parse(data, True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        space, _space, local = name.rpartition(" ")
        if space != _TEXT:
            return
        own = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        if local == "list-style":
            self._style = own.get("name", "")
        elif local == "outline-style":
            self._style = ""
        elif local in {"list-level-style-number", "outline-level-style"}:
            self._add_level(own)
        elif self._is_content:
            self._on_text(local, own)

    def _add_level(self, own: dict[str, str]) -> None:
        level = _OpenLevel(
            own.get("num-format", ""),
            own.get("num-prefix", ""),
            own.get("num-suffix", ""),
            int(own.get("display-levels", 1)),
            int(own.get("start-value", 1)),
        )
        self._styles.setdefault(self._style, {})[int(own.get("level", 1))] = level

    def _on_text(self, local: str, own: dict[str, str]) -> None:
        if local == "list":
            style = own.get("style-name") or (self._lists[-1] if self._lists else "")
            if not self._lists and "continue-list" not in own and own.get("continue-numbering") != "true":
                self._counts[style] = {}
            self._lists.append(style)
        elif local == "list-item" and self._lists:
            self._item = (self._lists[-1], len(self._lists), own.get("start-value"))
        elif local == "h" and not self._lists and own.get("is-list-header") != "true":
            self._item = ("", int(own.get("outline-level", 1)), own.get("start-value"))
        if local in {"p", "h"} and self._item:
            # An item without a paragraph only holds deeper ones, and is not counted.
            label, start = self._next(*self._item), self._parser.CurrentByteIndex
            if label and not self.patch.is_empty_tag(start):
                self.patch.inserted.append((self.patch.end_of_tag(start), escape(label).encode() + b" "))
            self._item = None

    def _next(self, style: str, at: int, start: str | None) -> str:
        """Count an item of a level and return its number, empty if it has none."""
        levels = self._styles.get(style, {})
        level = levels.get(at)
        counts = self._counts.setdefault(style, {})
        first = int(start) if start else level.start if level else 1
        counts[at] = first if start or at not in counts else counts[at] + 1
        for deeper in [one for one in counts if one > at]:
            del counts[deeper]
        if level is None or not level.kind:
            return ""
        numbers = []
        for one in range(max(1, at - level.shown + 1), at + 1):
            upper = levels.get(one)
            if upper is not None and upper.kind:
                numbers.append(formatted(counts.setdefault(one, upper.start), upper.kind))
        return level.prefix + ".".join(numbers) + level.suffix

    def _end(self, name: str) -> None:
        if not self._is_content:
            return
        if name == f"{_TEXT} list" and self._lists:
            self._lists.pop()
        if name == f"{_TEXT} list-item":
            self._item = None
