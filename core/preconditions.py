"""Preconditions of requests (RFC 9110): `If-Match` and `If-None-Match`, compared with the ETag of an object."""

import re
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from core.errors import BadRequest, PreconditionFailed
from core.messages import Translatable as _

ANY: Final = "*"
_TAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_TAGS: Final = re.compile(rf"[ \t,]*{_TAG.pattern}(?:[ \t]*,[ \t,]*{_TAG.pattern})*[ \t,]*")


class Preconditions(NamedTuple):
    """The ETags of the headers. Without `If-Match`, `if_match` is None and accepts every ETag."""

    if_match: Collection[str] | None
    if_none_match: Collection[str]

    @property
    def is_any(self) -> bool:
        return self.if_match is not None or bool(self.if_none_match)


def preconditions_of(headers: Mapping[str, str]) -> Preconditions:
    """Return the preconditions of a request. Raises: `BadRequest` for a header that lists no ETags."""
    return Preconditions(_etags(headers, "If-Match"), _etags(headers, "If-None-Match") or ())


def _etags(headers: Mapping[str, str], name: str) -> Collection[str] | None:
    value = headers.get(name)
    if value is None:
        return None
    if value.strip(" \t") == ANY:
        return (ANY,)
    if not _TAGS.fullmatch(value):
        raise BadRequest.of_field(name, _('must be * or ETags in quotation marks, such as "3f2a"'))
    return _TAG.findall(value)


def etag_of(document: Any) -> str:
    """Return the strong ETag of JSON data: it changes whenever the data do."""
    return f'"{sha256(orjson.dumps(document)).hexdigest()[:32]}"'


def is_named(etag: str, if_none_match: Collection[str]) -> bool:
    """Return True if the strong ETag is among those of `If-None-Match`, which compares weakly."""
    return any(one == ANY or one.removeprefix("W/") == etag for one in if_none_match)


def require_match(
    etag: str, if_match: Collection[str] | None, if_none_match: Collection[str] = (), *, current: Any = None
) -> None:
    """Check that the ETag is one of `if_match`, compared strongly, and none of `if_none_match`.

    Raises: `PreconditionFailed` with the ETag and `current`, the object as its owner reads it.
    """
    if if_match is not None and ANY not in if_match and etag not in if_match:
        message = _("It has changed; its ETag is now %(etag)s. Read it again.", etag=etag)
        raise PreconditionFailed(message, etag=etag, current=current)
    if is_named(etag, if_none_match):
        raise PreconditionFailed(_("It exists and its ETag is %(etag)s.", etag=etag), etag=etag, current=current)
