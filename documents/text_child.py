"""Sandboxed process that parses one text: `python -m documents.text_child JOB`.

Job and answer are those of `reader_child`. It starts in half of the time, because it does not load the parser of binary
documents.
"""

import math
import re
import signal
from typing import Any, Final

from documents import mime_types as mt
from documents.decoding import decode_as, detect, label_in
from documents.document import Limits
from documents.reading import Note, lost_words
from documents.rows import Row, answer, bounded
from documents.sandbox import run
from documents.text_kinds import DATA, READERS

_PARSERS: Final = {mt.MARKDOWN: "markdown", mt.NOTEBOOK: "notebook", mt.ASCIIDOC: "asciidoc"}
"""Names of parsers that are not the extension of their files."""
_KEPT: Final = frozenset({mt.MARKDOWN, mt.CSV, mt.TSV})
"""Texts that keep every word. Others lose keys, times or hidden parts on purpose."""
_ADDRESS: Final = re.compile(r"\]\([^()\n]*\)")


def read(data: bytes, mime: str, charset: str | None, limits: Limits) -> dict[str, Any]:
    """Decode and parse one text within the limits."""
    signal.setitimer(signal.ITIMER_REAL, limits.page_seconds * max(1, math.ceil(len(data) / limits.page_bytes)))
    encoding = detect(data, declared=charset or label_in(data, mime))
    text = decode_as(data, encoding)
    rows, cut = bounded(READERS[mime](text), limits)
    parser = _PARSERS.get(mime) or mt.extension_of(mime).removeprefix(".")
    return answer(parser, rows, [cut or _lost(text, mime, rows)], encoding=encoding)


def _lost(text: str, mime: str, rows: list[Row]) -> Note | None:
    """Return a note if words are missing in a text that is kept as it is written, without markup."""
    if mime not in _KEPT or "<" in text:
        return None
    text = re.sub(r"\Asep=.\n", "", text)
    return lost_words(DATA.sub("", _ADDRESS.sub("", text)), (row for _kind, _page, row in rows))


def answers(data: bytes, job: dict[str, Any], limits: Limits) -> list[dict[str, Any]]:
    """Return the answer for a job."""
    return [read(data, job["mime"], job["charset"], limits)]


if __name__ == "__main__":
    run(answers)
