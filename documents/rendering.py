"""Draw a page of a stored file with a passage marked, in a child process (`page_child`). Nothing is kept."""

import base64
import importlib.util
from collections.abc import Hashable
from pathlib import Path
from typing import Final

from core.errors import EngineUnavailable, Unreadable
from core.limits.concurrency import FairSemaphore
from core.messages import Translatable as _
from documents import child
from documents import mime_types as mt
from documents.document import MIB, Box, Limits

LIMITS: Final = Limits(seconds=20, memory_bytes=768 * MIB, text_bytes=6 * MIB)
_MAX_TEXT_CHARS: Final = 2_000
_slots: Final = FairSemaphore(2)


def is_available() -> bool:
    """Return True if the packages that draw pages are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("pypdfium2", "PIL"))


def can_draw(mime_type: object, page: object) -> bool:
    """Return True for a picture, and for a page of a PDF."""
    mime = mt.normalize(mime_type)
    return is_available() and (mt.is_picture(mime) or (mime == mt.PDF and isinstance(page, int) and page > 0))


def draw_page(
    path: Path,
    mime_type: str,
    page: int,
    *,
    box: Box | None = None,
    text: str = "",
    user: Hashable = None,
    limits: Limits = LIMITS,
) -> bytes:
    """Return a page as JPEG of at most 1,600 pixels a side, with the box or the lines of the text marked.

    Raises: `Unreadable` if the file is damaged or takes too long or too much memory, `EngineUnavailable`.
    """
    job = {"mime": mt.normalize(mime_type), "page": page, "box": box, "text": text[:_MAX_TEXT_CHARS]}
    try:
        with (
            _slots.slot(user),
            path.open("rb") as file,
            child.started("documents.page_child", file, job, limits) as process,
        ):
            answer = child.answer_of(process, limits)
    except FileNotFoundError as error:
        raise Unreadable(_("The stored file is missing. Upload it again.")) from error
    except OSError as error:
        raise EngineUnavailable(_("The document could not be read. Try again later.")) from error
    return base64.b64decode(answer["image"])
