"""The report on the reading of a file: its parser, how much was read, and what was left out or is doubtful."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, Self

from core.messages import Translatable
from core.messages import Translatable as _

NoteCode = Literal[
    "text_cut",
    "blocks_cut",
    "words_lost",
    "pages_skipped",
    "pages_without_text",
    "parts_skipped",
    "sheets_skipped",
    "images_skipped",
    "recognition_doubtful",
    "encoding_doubtful",
    "passages_refused",
]
MAX_NAMES: Final = 20
_NAME_CHARACTERS: Final = 120
_LOSS: Final = 0.02
"""The share of the parser's words that may be missing in the rows without a note."""
_WORD: Final = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_SENTENCES: Final[Mapping[NoteCode, str]] = {
    "text_cut": _("The text is longer than %(count)s bytes: the rest was not read."),
    "blocks_cut": _("The text has more than %(count)s paragraphs: the rest was not read."),
    "words_lost": _("%(count)s words of the file are missing in its text."),
    "pages_skipped": _("Pages that could not be read: %(count)s (%(names)s)."),
    "pages_without_text": _("Pages whose pictures were not read: %(count)s (%(names)s)."),
    "parts_skipped": _("Attachments or parts that were not read: %(count)s (%(names)s)."),
    "sheets_skipped": _("Sheets that were not read to their end: %(count)s (%(names)s)."),
    "images_skipped": _("Images whose text was not read: %(count)s."),
    "recognition_doubtful": _("Pages whose recognized text is doubtful: %(count)s (%(names)s)."),
    "encoding_doubtful": _("The encoding of the text is a guess (%(names)s): check its letters."),
    "passages_refused": _("Passages that the person wants never remembered, which were not stored: %(count)s."),
}
WHOLE: Final = frozenset({"images_skipped", "recognition_doubtful", "encoding_doubtful"})
"""Notes about a file whose text was read to its end."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was left out or is doubtful. `names` are page numbers, or names of parts."""

    code: NoteCode
    count: int = 1
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, code: NoteCode, names: Sequence[object]) -> Self:
        """Return a note about all names, which keeps the first twenty."""
        return cls(code, len(names), tuple(str(name)[:_NAME_CHARACTERS] for name in names[:MAX_NAMES]))


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of a text file, by Python's name. `certainty` is 1 for one that is declared or without rivals."""

    name: str
    certainty: float = 1.0

    @property
    def is_doubtful(self) -> bool:
        """Return True if the text may be wrong, because another encoding fits about as well."""
        return self.certainty < 0.5


@dataclass(frozen=True, slots=True)
class Reading:
    """The report on one reading of a file.

    `pages` and `pages_read` are None for files without pages, `encoding` for those that are no text.
    `certainty` is that of the encoding, or the average score of recognized pages.
    """

    parser: str
    characters: int = 0
    pages: int | None = None
    pages_read: int | None = None
    notes: tuple[Note, ...] = ()
    encoding: str | None = None
    certainty: float | None = None

    @property
    def is_partial(self) -> bool:
        """Return True if text of the file is missing."""
        return any(note.code not in WHOLE for note in self.notes)

    @property
    def is_cut(self) -> bool:
        """Return True if the file has more text or pages than were read."""
        return any(note.code in {"text_cut", "blocks_cut", "pages_skipped"} for note in self.notes)

    def noting(self, *notes: Note | None) -> Self:
        """Return the reading with more notes; None stands for nothing to note."""
        return replace(self, notes=(*self.notes, *(note for note in notes if note is not None)))

    def decoded(self, encoding: Encoding) -> Self:
        """Return the reading of a text in an encoding; a doubtful one is noted."""
        doubt = Note.of("encoding_doubtful", [encoding.name]) if encoding.is_doubtful else None
        return replace(self, encoding=encoding.name, certainty=encoding.certainty).noting(doubt)

    def as_json(self) -> dict[str, Any]:
        """Return the form in which a reading is stored: a document of JSON."""
        notes = [{"code": note.code, "count": note.count, "names": list(note.names)} for note in self.notes]
        return {**asdict(self), "notes": notes, "is_partial": self.is_partial}


def notes_of(stored: Iterable[Mapping[str, Any]]) -> tuple[Note, ...]:
    """Return notes from JSON."""
    return tuple(Note(note["code"], note["count"], tuple(note["names"])) for note in stored)


def sentence(note: Mapping[str, Any]) -> Translatable:
    """Return what a stored note says, in words."""
    names = note["names"]
    named = ", ".join(names) + ("…" if note["count"] > len(names) > 0 else "")
    return Translatable(_SENTENCES[note["code"]], count=f"{note['count']:,}", names=named)


def lost_words(seen: str, kept: Iterable[str]) -> Note | None:
    """Compare what a parser saw with the text that is kept; return a note if over 2 % of the words are missing."""
    words = Counter(_words(seen))
    for text in kept:
        words.subtract(_words(text))
    total = sum(1 for _word in _words(seen))
    lost = sum(number for number in words.values() if number > 0)
    return Note("words_lost", lost) if lost > total * _LOSS else None


def _words(text: str) -> Iterable[str]:
    """Yield the words of a text, and each character of scripts without spaces."""
    return (match[0] for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()))
