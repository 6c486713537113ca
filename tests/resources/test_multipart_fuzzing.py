"""Fuzzed multipart bodies cause no 5xx and leave no file without a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.models import Resource
from tests.conftest import Person
from tests.resources.forms import files_below

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

PARAMETERS = [
    'name="file"', 'name="file"', 'name="title"', 'name="description"', 'name="user_id"', 'name="app_id"', "name=file",
    "name*=utf-8''file", "name*=foo''file", "name*=hex''66", "name*=''file", "name*=file", 'name="', 'name=""', "name",
    'filename="notes.txt"', 'filename="notes.txt"', 'filename=""', "filename*=UTF-8''n%E5%90%88.txt", "filename*=x",
    "filename*=UTF-8''%ff%00.txt", "filename*=rot13''a.txt", 'filename="a\\"b.txt"', 'filename="../../evil.txt"',
    'filename="a.txt\\', "filename*0=a", "filename*=a; filename*0=b", 'filename="' + "x" * 5000 + '.txt"',
]  # fmt: skip
DISPOSITIONS = st.builds(
    lambda kind, parameters: "; ".join([kind, *parameters]).encode("utf-8", "replace"),
    st.sampled_from(["form-data", "form-data", "form-data", "attachment", ""]),
    st.lists(st.sampled_from(PARAMETERS) | st.text(max_size=10), max_size=4),
)
HEADERS = st.sampled_from([
    b"Content-Type: text/plain", b"Content-Type: text/plain; charset=nothing", b"Content-Type: ;;;=", b"Content-Type:",
    b"Content-Type: text/plain; a*=foo''b", b"Content-Transfer-Encoding: base64", b"Content-Transfer-Encoding: 8bit",
    b"Content-Disposition: form-data; name=title", b"X: " + b"y" * 20_000, b": no name", b"no colon", b"\xff\xfe: \x00",
]) | st.binary(max_size=20)  # fmt: skip
DATA = (
    st.sampled_from([b"Some text.", b"", b"\r\n", b"\xff\xd8\xff\xe0", b"%PDF-1.4", b"--b", b"PK\x03\x04"])
    | st.binary()
)
BOUNDARIES = st.sampled_from(["b", "----WebKitFormBoundary7", "'()+_,-./:=?", "x" * 70]) | st.text(
    st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=8
)


@st.composite
def forms(draw: st.DrawFn) -> tuple[str, bytes]:
    """A content type and a body with some invalid parts."""

    def usually(valid: Any, invalid: st.SearchStrategy[Any]) -> Any:
        return draw(invalid) if draw(st.integers(0, 4)) == 4 else valid

    boundary = draw(BOUNDARIES)
    start = b"--" + usually(boundary, BOUNDARIES).encode()
    end = usually(b"\r\n", st.sampled_from([b"\n", b"\r", b""]))
    body = b""
    for number in range(draw(st.integers(0, 3))):
        valid = b'form-data; name="title"' if number else b'form-data; name="file"; filename="notes.txt"'
        lines = [b"Content-Disposition: " + usually(valid, DISPOSITIONS), *usually([], st.lists(HEADERS, max_size=2))]
        body += start + end + end.join(lines) + end + end + draw(DATA) + end
    body += start + usually(b"--\r\n", st.sampled_from([b"--", b"", b"-", b"--\r\nepilogue", b"\r\n\r\n"]))
    at = draw(st.integers(0, len(body)))
    other = st.sampled_from([body[:at], body[:at] + b"\xff" + body[at + 1 :], body[:at] + body, body * 2])
    valid_type = f'multipart/form-data; boundary="{boundary}"'
    invalid_types = [
        "multipart/form-data",
        f"multipart/form-data; boundary={boundary}; charset=nothing",
        valid_type[:-1],
    ]
    return usually(valid_type, st.sampled_from(invalid_types)), usually(body, other)


@pytest.mark.parametrize("examples", [100, pytest.param(10_000, marks=pytest.mark.torture)])
def test_no_form_causes_a_server_error_or_leaves_a_file(alice: Person, storage: Path, examples: int) -> None:
    statuses: set[int] = set()

    @settings(max_examples=examples)
    @given(forms())
    def post(form: tuple[str, bytes]) -> None:
        content_type, body = form
        answer: Any = alice.client.generic("POST", "/resources", body, content_type=content_type)
        statuses.add(answer.status_code)
        assert answer.status_code < 500, answer.content
        assert answer.status_code < 300 or answer.json()["detail"]
        kept = Resource.objects.values_list("storage_path", flat=True)
        assert files_below(storage) == sorted(kept)
        for path in kept:
            (storage / path).unlink()
        Resource.objects.all().delete()

    post()
    assert {200, 400, 422} <= statuses
