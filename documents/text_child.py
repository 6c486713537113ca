"""Sandboxed process that parses one text: `python -m documents.text_child JOB`.

Job and answer are those of `reader_child`. It starts in half of the time, because it does not load the parser of binary
documents.
"""

import math
import signal
from typing import Any, Final

from documents import mime_types as mt
from documents.decoding import decode_as, detect, label_in
from documents.document import Limits
from documents.rows import answer, bounded
from documents.sandbox import run
from documents.text_kinds import READERS

_PARSERS: Final = {mt.MARKDOWN: "markdown", mt.NOTEBOOK: "notebook", mt.ASCIIDOC: "asciidoc"}
"""Names of parsers that are not the extension of their files."""


def read(data: bytes, mime: str, charset: str | None, limits: Limits) -> dict[str, Any]:
    """Decode and parse one text within the limits."""
    signal.setitimer(signal.ITIMER_REAL, limits.page_seconds * max(1, math.ceil(len(data) / limits.page_bytes)))
    encoding = detect(data, declared=charset or label_in(data, mime))
    rows, cut = bounded(READERS[mime](decode_as(data, encoding)), limits)
    parser = _PARSERS.get(mime) or mt.extension_of(mime).removeprefix(".")
    return answer(parser, rows, [cut], encoding=encoding)


if __name__ == "__main__":
    run(lambda data, job, limits: [read(data, job["mime"], job["charset"], limits)])
