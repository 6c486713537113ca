"""Responses with a stored file: ETag, ranges of bytes (RFC 9110), and a file name that every client can use."""

import io
import re
from pathlib import Path

from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase
from whitenoise.responders import SlicedFile

from accounts.api.preconditions import not_modified
from core.errors import GatewayError, RangeNotSatisfiable
from core.messages import Translatable as _
from core.rest import problem_http_response
from resources.services import StoredContent

# One range. Several are ignored, as the RFC allows: the answer is the whole file.
_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{1,18})?|-(\d{1,18}))")
_HEADERS = {
    # Uploaded content must never run as a page of this site.
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
    "Accept-Ranges": "bytes",
}


def download(request: HttpRequest, stored: StoredContent) -> HttpResponseBase:
    """Return the file, the range that the request asks for, or 304 if the client has it. Closes the file.

    Raises: `PreconditionFailed`, `BadRequest` for a header that lists no ETags.
    """
    etag = f'"{stored.sha256}"'
    try:
        unchanged = not_modified(request, etag, None)
    except GatewayError:
        stored.file.close()
        raise
    if unchanged is not None:
        stored.file.close()
        return unchanged
    size = stored.file.seek(0, io.SEEK_END)
    stored.file.seek(0)
    asked = _range(request, etag, size)
    if asked and asked[0] >= size:
        stored.file.close()
        refusal = RangeNotSatisfiable(_("The range is outside of the file, which has %(size)s bytes.", size=size))
        problem = problem_http_response(refusal, request)
        problem.headers["Content-Range"] = f"bytes */{size}"
        return problem
    response = FileResponse(
        SlicedFile(stored.file, *asked) if asked else stored.file,
        as_attachment=True,
        filename=stored.filename,
        content_type=stored.mime_type,
        headers={**_HEADERS, "ETag": etag},
    )
    # Some clients know no `filename*`, which Django sends alone for names that are not ASCII.
    plain = f'; filename="{stored.resource_id}{_suffix(stored.filename)}"; filename*='
    response["Content-Disposition"] = response["Content-Disposition"].replace("; filename*=", plain)
    if asked:
        response.status_code = 206
        response["Content-Length"] = str(asked[1] - asked[0] + 1)
        response["Content-Range"] = f"bytes {asked[0]}-{asked[1]}/{size}"
    return response


def _range(request: HttpRequest, etag: str, size: int) -> tuple[int, int] | None:
    """Return the first and the last byte of the range that is asked for; None for the whole file."""
    match = _RANGE.fullmatch(request.headers.get("Range", ""))
    if request.method != "GET" or match is None or request.headers.get("If-Range", etag) != etag:
        return None
    first, last, suffix = match.groups()
    if suffix is not None:
        return max(size - int(suffix), 0), size - 1
    if last is not None and int(last) < int(first):
        return None
    return int(first), min(int(last or size), size - 1)


def _suffix(filename: str) -> str:
    suffix = Path(filename).suffix
    return suffix if re.fullmatch(r"\.[A-Za-z0-9]+", suffix) else ""
