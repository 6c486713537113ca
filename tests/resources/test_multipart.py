"""`UploadForm` reads forms in chunks of any size, and empty fields in both forms that clients send."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest

from core.errors import BadRequest
from resources.api.multipart import UploadForm

BOUNDARY = b"-----form"
FILE = b"The seller delivers in Hamburg.\r\n\r\n--" + BOUNDARY + b"x\r\n"


class SlowReader(io.BytesIO):
    """A stream that returns at most `max_bytes` at once."""

    def __init__(self, data: bytes, max_bytes: int) -> None:
        super().__init__(data)
        self.max_bytes = max_bytes

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or self.max_bytes, self.max_bytes))


def part(head: bytes, body: bytes | None) -> bytes:
    """Return a part. `body` None omits the line end before the next delimiter, as RFC 2046 allows."""
    start = b"--" + BOUNDARY + b"\r\nContent-Disposition: form-data; " + head + b"\r\n\r\n"
    return start if body is None else start + body + b"\r\n"


@pytest.mark.parametrize("max_bytes", [*range(1, 12), 40, 64 * 1024])
@pytest.mark.parametrize("order", ["title file description", "file title description", "title description file"])
def test_an_empty_field_without_a_body_does_not_consume_the_next_part(
    storage: Path, max_bytes: int, order: str
) -> None:
    parts = {
        "title": part(b'name="title"', None),
        "description": part(b'name="description"', None),
        "file": part(b'name="file"; filename="contract.txt"', FILE),
    }
    body = b"".join(parts[name] for name in order.split()) + b"--" + BOUNDARY + b"--\r\n"
    form = UploadForm(expected_bytes=len(FILE))
    form.read(SlowReader(body, max_bytes), BOUNDARY)
    assert (form.fields["title"], form.fields["description"]) == ("", "")
    assert form.files["file"].sha256 == hashlib.sha256(FILE).hexdigest()
    form.close()


@pytest.mark.parametrize("max_bytes", [1, 7, 64 * 1024])
def test_line_ends_at_the_end_of_a_part_are_kept(storage: Path, max_bytes: int) -> None:
    body = (
        part(b'name="file"; filename="a.txt"', b"a\r\n\r\n") + part(b'name="title"', b"\r\n") + b"--" + BOUNDARY + b"--"
    )
    form = UploadForm(expected_bytes=5)
    form.read(SlowReader(body, max_bytes), BOUNDARY)
    assert form.fields["title"] == "\r\n"
    assert form.files["file"].sha256 == hashlib.sha256(b"a\r\n\r\n").hexdigest()
    form.close()


def test_a_parameter_given_whole_and_in_sections_is_refused(storage: Path) -> None:
    body = part(b'name="file"; filename*=a; filename*0=b', b"text") + b"--" + BOUNDARY + b"--"
    form = UploadForm(expected_bytes=4)
    with pytest.raises(BadRequest, match="Content-Disposition"):
        form.read(SlowReader(body, 64), BOUNDARY)
