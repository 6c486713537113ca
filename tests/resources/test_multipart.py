"""Forms read the same however their bytes arrive, and whichever way a client writes an empty field."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest

from resources.api.multipart import UploadForm

BOUNDARY = b"-----form"
FILE = b"The seller delivers in Hamburg.\r\n\r\n--" + BOUNDARY + b"x\r\n"


class Slow(io.BytesIO):
    """Gives at most `most` bytes at once."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or self.most, self.most))


def part(head: bytes, body: bytes | None) -> bytes:
    """A part; `body` None leaves out the line end before the next delimiter, as RFC 2046 allows."""
    start = b"--" + BOUNDARY + b"\r\nContent-Disposition: form-data; " + head + b"\r\n\r\n"
    return start if body is None else start + body + b"\r\n"


@pytest.mark.parametrize("most", [*range(1, 12), 40, 64 * 1024])
@pytest.mark.parametrize("order", ["title file description", "file title description", "title description file"])
def test_an_empty_field_without_a_body_swallows_nothing(storage: Path, most: int, order: str) -> None:
    parts = {
        "title": part(b'name="title"', None),
        "description": part(b'name="description"', None),
        "file": part(b'name="file"; filename="contract.txt"', FILE),
    }
    body = b"".join(parts[name] for name in order.split()) + b"--" + BOUNDARY + b"--\r\n"
    form = UploadForm(expected_bytes=len(FILE))
    form.read(Slow(body, most), BOUNDARY)
    assert (form.fields["title"], form.fields["description"]) == ("", "")
    assert form.files["file"].sha256 == hashlib.sha256(FILE).hexdigest()
    form.close()


@pytest.mark.parametrize("most", [1, 7, 64 * 1024])
def test_a_body_that_ends_in_line_ends_is_kept(storage: Path, most: int) -> None:
    body = (
        part(b'name="file"; filename="a.txt"', b"a\r\n\r\n") + part(b'name="title"', b"\r\n") + b"--" + BOUNDARY + b"--"
    )
    form = UploadForm(expected_bytes=5)
    form.read(Slow(body, most), BOUNDARY)
    assert form.fields["title"] == "\r\n"
    assert form.files["file"].sha256 == hashlib.sha256(b"a\r\n\r\n").hexdigest()
    form.close()
