from __future__ import annotations

import io

import pytest

from core.bounded import CHUNK_BYTES, LimitExceeded, chunks


def test_all_of_a_source_within_its_limit_comes_out() -> None:
    data = b"x" * (2 * CHUNK_BYTES + 1)
    assert b"".join(chunks(io.BytesIO(data), len(data))) == data


def test_one_byte_too_many_is_refused() -> None:
    with pytest.raises(LimitExceeded):
        list(chunks(io.BytesIO(b"1234"), 3))
